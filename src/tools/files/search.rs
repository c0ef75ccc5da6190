//! The search of Grep: ripgrep's engine on all processors. The result does not depend on thread timing.
//!
//! The result holds the first lines in the order of paths. As soon as enough lines are found, later files are
//! not opened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Encoding, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish,
    SinkMatch,
};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::files::walk;
use crate::files::walk::Walk;
use crate::fs::hardlink::WorkspaceNames;
use crate::fs::pinned::{PinnedPath, open_regular};
use crate::fs::text;
use crate::sensitivity::SecretNames;
use base::sync::lock;
use types::tool::ToolOutcome;

/// Characters of one line.
const MAX_LINE_CHARS: usize = 500;
/// Bytes of one file that a multi-line search may hold in memory.
const MAX_HEAP_BYTES: usize = 64 << 20;
/// More threads do not make a disk faster.
const MAX_THREADS: usize = 12;

/// The part of a match that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

/// Parameters of a search.
pub(crate) struct SearchParams {
    pub(crate) matcher: RegexMatcher,
    pub(crate) mode: OutputMode,
    pub(crate) multiline: bool,
    pub(crate) line_numbers: bool,
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// Limits of the answer: lines, and bytes.
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
}

impl SearchParams {
    fn searcher(&self) -> SearcherBuilder {
        let mut builder = SearcherBuilder::new();
        if let Some(terminator) = self.matcher.line_terminator() {
            builder.line_terminator(terminator);
        }
        builder
            .line_number(self.mode == OutputMode::Content)
            .multi_line(self.multiline)
            .before_context(self.before)
            .after_context(self.after)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP_BYTES));
        builder
    }
}

pub(crate) struct Search<'a> {
    pub(crate) context: &'a ToolContext,
    pub(crate) root: &'a PinnedPath,
    pub(crate) wanted: &'a SearchParams,
    pub(crate) stop: &'a CancellationToken,
}

impl Search<'_> {
    /// Runs the search; `None` if it was stopped.
    pub(crate) fn run(&self, walk: &Walk) -> Option<FileSearchResult> {
        let shared = SharedResults {
            first_hits: Mutex::new(FirstHits::default()),
            secrets: AtomicUsize::new(0),
            linked: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            names: OnceLock::new(),
        };
        if self.root.is_folder() {
            self.search_folder(walk, &shared);
        } else if let Ok((file, _)) = self.root.open() {
            let hits = self.search_file(&mut self.wanted.searcher().build(), file, &shared);
            shared.add_hits(self.wanted, self.root.path.clone(), hits);
        }
        let first_hits = shared.first_hits.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (secrets, linked) = (shared.secrets.into_inner(), shared.linked.into_inner());
        (!self.stop.is_cancelled()).then_some(FileSearchResult {
            first_hits,
            secrets,
            linked,
            lines: self.wanted.lines,
            bytes: self.wanted.bytes,
        })
    }

    fn search_folder(&self, walk: &Walk, shared: &SharedResults) {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(MAX_THREADS);
        let Ok(folder) = self.root.folder_handle() else { return };
        let mut builder = walk.builder.clone();
        let looks = || {
            let mut searcher = self.wanted.searcher().build();
            let mut secret_names = SecretNames::new(&self.context.places);
            move |entry: Result<DirEntry, ignore::Error>| {
                if self.stop.is_cancelled() {
                    return WalkState::Quit;
                }
                let Some(entry) = entry.ok().filter(walk::is_file) else { return WalkState::Continue };
                let Some(below) = relative_path(&entry, &self.root.path) else { return WalkState::Continue };
                if secret_names.contain_path(entry.path()) {
                    shared.secrets.fetch_add(1, Relaxed);
                    return WalkState::Continue;
                }
                if shared.is_after_end(entry.path()) {
                    return WalkState::Continue;
                }
                // Skip a file that cannot be opened any more or is no longer below the folder.
                let Ok(Some((file, meta))) = open_regular(folder.as_fd(), below, entry.path()) else {
                    return WalkState::Continue;
                };
                if meta.nlink() > 1 && !shared.names(self).allow(entry.path(), &meta) {
                    shared.linked.fetch_add(1, Relaxed);
                    return WalkState::Continue;
                }
                let hits = self.search_file(&mut searcher, file, shared);
                shared.add_hits(self.wanted, entry.into_path(), hits);
                WalkState::Continue
            }
        };
        // If the user's process limit is reached, no thread can be started and a parallel walk would panic.
        if std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
            builder.threads(threads).build_parallel().run(|| Box::new(looks()));
        } else {
            let mut look = looks();
            let _ = builder.build().any(|entry| look(entry) == WalkState::Quit);
        }
    }

    fn search_file(&self, searcher: &mut Searcher, file: File, shared: &SharedResults) -> FileHits {
        shared.files.fetch_add(1, Relaxed);
        let mut hits = FileHits::default();
        let mut sink = HitCollector { hits: &mut hits, wanted: self.wanted, is_binary: false };
        let search = |searcher: &mut Searcher, sink: &mut HitCollector<'_>| {
            let mut text = StoppableFile { file: &file, search: self, shared, head_bytes: 0, is_ascii: true };
            // A file with a read error shows the matches before the error.
            let _ = searcher.search_reader(&self.wanted.matcher, &mut text, sink);
            text.is_ascii
        };
        let is_ascii = search(searcher, &mut sink);
        // The search itself recognises UTF-16 by its mark only, and takes all other files for UTF-8.
        let is_found = sink.hits.matches > 0 && self.wanted.mode == OutputMode::FilesWithMatches;
        if (sink.is_binary || !is_ascii)
            && !is_found
            && let Some(encoding) = encoding_of(&file, sink.is_binary)
        {
            *sink.hits = FileHits::default();
            search(&mut self.wanted.searcher().encoding(Some(encoding)).build(), &mut sink);
        }
        hits
    }
}

/// The encoding of a file without a mark that is not in UTF-8, as Read decodes it. A binary file is a text only in UTF-16.
/// Leaves the file at its beginning.
fn encoding_of(mut file: &File, is_binary: bool) -> Option<Encoding> {
    file.rewind().ok()?;
    let mut head = Vec::new();
    // One more byte says that this is not the whole file.
    file.take(text::DETECTION_BYTES as u64 + 1).read_to_end(&mut head).ok()?;
    file.rewind().ok()?;
    let is_whole = !is_binary && head.len() <= text::DETECTION_BYTES;
    let extent = if is_whole { text::Extent::Whole } else { text::Extent::Beginning };
    let charset = text::detect(&head, extent);
    let is_text = charset.is_ascii_compatible() != is_binary;
    let is_unknown = charset.bom == 0 && charset != text::Charset::UTF8;
    (is_text && is_unknown).then(|| Encoding::new(charset.encoding.name()).ok()).flatten()
}

fn relative_path<'e>(entry: &'e DirEntry, root: &Path) -> Option<&'e Path> {
    entry.path().strip_prefix(root).ok()
}

/// A file that ends when the call is stopped.
struct StoppableFile<'a> {
    file: &'a File,
    search: &'a Search<'a>,
    shared: &'a SharedResults,
    /// Number of bytes that were read, up to [`text::DETECTION_BYTES`].
    head_bytes: usize,
    /// Whether these bytes are ASCII.
    is_ascii: bool,
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.search.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let files = || format!("{} files searched", self.shared.files.load(Relaxed));
        self.search.context.progress.report(files);
        let count = self.file.read(buffer)?;
        let head = count.min(text::DETECTION_BYTES - self.head_bytes);
        self.head_bytes += head;
        self.is_ascii &= buffer.get(..head).is_none_or(<[u8]>::is_ascii);
        Ok(count)
    }
}

/// Data that the threads share.
struct SharedResults {
    first_hits: Mutex<FirstHits>,
    secrets: AtomicUsize,
    /// Number of skipped files with names that must not be read or are unknown.
    linked: AtomicUsize,
    /// Number of searched files.
    files: AtomicUsize,
    /// Computed when the first file with several names is found.
    names: OnceLock<WorkspaceNames>,
}

/// The files with the first lines, as far as known.
#[derive(Default)]
struct FirstHits {
    files: BTreeMap<PathBuf, FileHits>,
    lines: usize,
    bytes: usize,
    /// Files from this path on are not needed.
    end: Option<PathBuf>,
}

impl SharedResults {
    fn is_after_end(&self, path: &Path) -> bool {
        let first_hits = lock(&self.first_hits);
        first_hits.end.as_deref().is_some_and(|end| path >= end)
    }

    fn names(&self, search: &Search<'_>) -> &WorkspaceNames {
        self.names.get_or_init(|| {
            let session_context = &search.context.session_context;
            let is_unreadable = |path: &Path| {
                ["Read", "Grep"].iter().any(|tool| session_context.unreadable.is_unreadable(tool, path))
            };
            let roots = session_context.roots().map(PathBuf::as_path);
            WorkspaceNames::find(roots, &search.context.places, &is_unreadable, &|| {
                search.stop.is_cancelled()
            })
        })
    }

    fn add_hits(&self, wanted: &SearchParams, path: PathBuf, hits: FileHits) {
        if hits.matches == 0 {
            return;
        }
        let mut first_hits = lock(&self.first_hits);
        first_hits.lines += hits.line_count();
        first_hits.bytes += hits.bytes;
        first_hits.files.insert(path, hits);
        // Remove the last file if the earlier files fill the answer.
        while let Some((path, last)) = first_hits.files.last_key_value() {
            let (lines, bytes) = (first_hits.lines - last.line_count(), first_hits.bytes - last.bytes);
            if lines < wanted.lines && bytes < wanted.bytes {
                return;
            }
            (first_hits.lines, first_hits.bytes, first_hits.end) = (lines, bytes, Some(path.clone()));
            first_hits.files.pop_last();
        }
    }
}

/// Matches in one file.
#[derive(Default)]
struct FileHits {
    /// Lines without the file name.
    lines: Vec<String>,
    bytes: usize,
    matches: u64,
    /// Whether the file has more matches.
    cut: bool,
}

impl FileHits {
    /// Number of lines in the answer.
    fn line_count(&self) -> usize {
        self.lines.len().max(1)
    }
}

/// Collects the matches of one file.
struct HitCollector<'a> {
    hits: &'a mut FileHits,
    wanted: &'a SearchParams,
    /// Whether the file has a NUL.
    is_binary: bool,
}

impl HitCollector<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        // A multi-line match is several lines.
        let text = String::from_utf8_lossy(bytes);
        for (offset, line) in text.lines().enumerate() {
            let place = match number {
                Some(number) if self.wanted.line_numbers => format!("{mark}{}", number + offset as u64),
                _ => String::new(),
            };
            let line = line.trim_end_matches('\r');
            let line = match line.char_indices().nth(MAX_LINE_CHARS) {
                Some((at, _)) => format!("{place}{mark}{} [line cut]", &line[..at]),
                None => format!("{place}{mark}{line}"),
            };
            self.add(line);
        }
    }

    fn add(&mut self, line: String) {
        // Collect one more than can be shown, to know that there are more.
        if self.hits.lines.len() > self.wanted.lines || self.hits.bytes > self.wanted.bytes {
            self.hits.cut = true;
            return;
        }
        self.hits.bytes += line.len();
        self.hits.lines.push(line);
    }
}

impl Sink for HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.hits.matches += 1;
        match self.wanted.mode {
            OutputMode::FilesWithMatches => return Ok(false),
            OutputMode::Count => {}
            OutputMode::Content => self.push(found.line_number(), ':', found.bytes()),
        }
        Ok(!self.hits.cut)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        if *line.kind() != SinkContextKind::Other {
            self.push(line.line_number(), '-', line.bytes());
        }
        Ok(!self.hits.cut)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), Self::Error> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.add(String::new());
        Ok(!self.hits.cut)
    }
}

/// The result of a search.
pub(crate) struct FileSearchResult {
    first_hits: FirstHits,
    secrets: usize,
    linked: usize,
    lines: usize,
    bytes: usize,
}

impl FileSearchResult {
    pub(crate) fn into_outcome(self, context: &ToolContext, mode: OutputMode, walk: &Walk) -> ToolOutcome {
        let mut out = AnswerLines { lines: Vec::new(), room: self.lines, bytes: self.bytes, full: false };
        out.full = self.first_hits.end.is_some();
        let (mut files, mut matches) = (0_usize, 0_u64);
        for (path, hits) in self.first_hits.files {
            files += 1;
            matches += hits.matches;
            let shown = context.show(&path);
            match mode {
                OutputMode::FilesWithMatches => out.add(shown),
                OutputMode::Count => out.add(format!("{shown}:{}", hits.matches)),
                OutputMode::Content => {
                    for line in hits.lines {
                        // A separator line between groups of lines that are not adjacent.
                        out.add(if line.is_empty() { "--".into() } else { format!("{shown}{line}") });
                    }
                }
            }
            out.full |= hits.cut;
        }
        let mut lines = out.lines;
        let shown = lines.len();
        if matches == 0 {
            lines.push("No matches found.".into());
            let how = "spell the dot, the folder or the name in glob, or give it as path";
            lines.extend(walk.unsearched_note(context, |_| true, how));
        }
        if out.full {
            lines.push("(there is more; narrow the search or raise head_limit)".into());
        }
        if mode == OutputMode::Count && matches > 0 {
            lines.push(format!("({matches} matching lines in {files} files)"));
        }
        if self.secrets > 0 {
            lines.push(format!(
                "({} files that likely hold secrets were not searched; give the file itself as path)",
                self.secrets
            ));
        }
        if self.linked > 0 {
            lines.push(format!(
                "({} files that have other names as well, secret or unknown ones (hard links), were not searched; give \
                 the file itself as path)",
                self.linked
            ));
        }
        lines.extend(walk.hidden_note());
        let detail = json!({
            "files": files, "matches": matches, "shown": shown, "truncated": out.full,
            "secrets_skipped": self.secrets, "linked_skipped": self.linked, "hidden_by_rules": walk.hidden_count(),
        });
        ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(lines.join("\n")) }
    }
}

/// Collects lines of the answer within its limits.
struct AnswerLines {
    lines: Vec<String>,
    room: usize,
    bytes: usize,
    full: bool,
}

impl AnswerLines {
    fn add(&mut self, line: String) {
        if self.room == 0 || self.bytes < line.len() {
            self.full = true;
            return;
        }
        self.room -= 1;
        self.bytes -= line.len();
        self.lines.push(line);
    }
}
