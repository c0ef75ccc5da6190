//! Grep (T8): text in files, with ripgrep's own engine.
//!
//! Files that likely hold secrets are searched only when they are named themselves: a search of
//! the whole workspace must not be a way around the question that reading them raises.

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::care::{Access, care};
use super::context::Context;
use super::refusal::{Refusal, cancelled};
use super::{disk, input, toolbox, walk};
use crate::types::tool::{PathCare, Prepared, ResolvedPath, Subject, ToolOutcome};

/// Lines (or files) in one answer if the model does not say.
const DEFAULT_LINES: usize = 250;
/// Letters of one line.
const LONGEST_LINE: usize = 500;
/// Bytes that a multi-line search may hold of one file.
const HEAP: usize = 64 << 20;
const MOST_CONTEXT: u64 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A regular expression (Rust syntax; escape literal braces).
    pattern: String,
    /// The file or folder to search; the current folder if not given.
    #[serde(default)]
    path: Option<String>,
    /// Only files that match this glob, such as `*.rs` or `*.{ts,tsx}`.
    #[serde(default)]
    glob: Option<String>,
    /// What to show: matching lines, only the files (default), or counts per file.
    #[serde(default)]
    output_mode: Option<OutputMode>,
    /// Ignore case.
    #[serde(default, rename = "-i", deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    ignore_case: bool,
    /// Show line numbers (default true).
    #[serde(default = "yes", rename = "-n", deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    line_numbers: bool,
    /// Lines to show after each match.
    #[serde(default, rename = "-A", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    after: Option<u64>,
    /// Lines to show before each match.
    #[serde(default, rename = "-B", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    before: Option<u64>,
    /// Lines to show around each match.
    #[serde(default, rename = "-C", deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    around: Option<u64>,
    /// Let the pattern span lines; `.` then matches line ends too.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    multiline: bool,
    /// Only files of this type, such as rust, py, js.
    #[serde(default)]
    r#type: Option<String>,
    /// Show only so many lines or files.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    head_limit: Option<u64>,
}

fn yes() -> bool {
    true
}

pub(super) const DESCRIPTION: &str = "Searches the content of files with a regular expression. Files that \
    .gitignore names, hidden and binary files are left out. Use this instead of grep or rg in Bash.";

pub(super) fn prepare(context: &Context, input: &Input) -> Result<Prepared, Refusal> {
    matcher(input)?;
    let path = walk::root(context, input.path.as_deref())?;
    walker(input, &path.path)?;
    let summary = format!("Grep {:?} in {}", input.pattern, context.show(&path.path));
    Ok(Prepared {
        subject: Subject::Read { path },
        summary,
        diff: None,
        read_only: true,
        change: None,
        sandbox: None,
    })
}

fn matcher(input: &Input) -> Result<RegexMatcher, Refusal> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true);
    if input.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|e| {
        Refusal::new("invalid_regex", format!("{:?} is not a valid regular expression: {e}", input.pattern))
            .with(json!({ "pattern": input.pattern }))
    })
}

fn walker(input: &Input, root: &Path) -> Result<ignore::Walk, Refusal> {
    let mut builder = walk::builder(root);
    builder.sort_by_file_path(Ord::cmp);
    if let Some(glob) = input.glob.as_deref().filter(|glob| !glob.is_empty()) {
        let wrong = |e: ignore::Error| {
            Refusal::new("invalid_pattern", format!("{glob:?} is not a valid glob: {e}"))
                .with(json!({ "glob": glob }))
        };
        let folder = if root.is_dir() { root } else { root.parent().unwrap_or(root) };
        let mut overrides = OverrideBuilder::new(folder);
        overrides.add(glob).map_err(wrong)?;
        builder.overrides(overrides.build().map_err(wrong)?);
    }
    if let Some(kind) = input.r#type.as_deref().filter(|kind| !kind.is_empty()) {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        types.select(kind);
        let types = types.build().map_err(|_| {
            Refusal::new("invalid_type", format!("{kind:?} is not a known file type; use glob instead"))
                .with(json!({ "type": kind }))
        })?;
        builder.types(types);
    }
    Ok(builder.build())
}

pub(super) fn run(
    context: &Context,
    input: &Input,
    prepared: &Prepared,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let root = walk::root(context, input.path.as_deref())?;
    toolbox::same_target(prepared, &Subject::Read { path: root.clone() })?;
    walk::require_existing(&root.path)?;
    search(context, input, &root, stop)
}

fn search(
    context: &Context,
    input: &Input,
    root: &ResolvedPath,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let matcher = matcher(input)?;
    let mode = input.output_mode.unwrap_or_default();
    let limit = input
        .head_limit
        .filter(|n| *n > 0)
        .map_or(DEFAULT_LINES, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let around = |side: Option<u64>| {
        let lines = if mode == OutputMode::Content { side.or(input.around).unwrap_or(0) } else { 0 };
        usize::try_from(lines.min(MOST_CONTEXT)).unwrap_or(0)
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .multi_line(input.multiline)
        .before_context(around(input.before))
        .after_context(around(input.after))
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP))
        .build();
    let mut report = Report {
        lines: Vec::new(),
        room: limit,
        bytes: context.settings.output_cap,
        full: false,
        files: 0,
        matches: 0,
    };
    let mut secrets = 0_usize;
    for entry in walker(input, &root.path)? {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        if report.full {
            break;
        }
        let Some(path) = walk::file(entry) else { continue };
        if path != root.path && care(&path, Access::Read, &context.places) == PathCare::Secret {
            secrets += 1;
            continue;
        }
        // What cannot be opened (any more) is left out, as ripgrep does.
        let Ok((file, _)) = disk::open(&path) else { continue };
        let mut hits = Hits { report: &mut report, input, mode, shown: context.show(&path), count: 0, stop };
        let _ = searcher.search_file(&matcher, &file, &mut hits);
        hits.finish();
    }
    Ok(report.into_outcome(mode, secrets))
}

/// The answer as it grows.
struct Report {
    lines: Vec<String>,
    /// Lines and bytes that may still be added.
    room: usize,
    bytes: usize,
    full: bool,
    files: usize,
    matches: u64,
}

impl Report {
    fn add(&mut self, line: String) {
        if self.room == 0 || self.bytes < line.len() {
            self.full = true;
            return;
        }
        self.room -= 1;
        self.bytes -= line.len();
        self.lines.push(line);
    }

    fn into_outcome(mut self, mode: OutputMode, secrets: usize) -> ToolOutcome {
        let shown = self.lines.len();
        if self.matches == 0 {
            self.lines.push("No matches found.".into());
        }
        if self.full {
            self.lines.push("(there is more; narrow the search or raise head_limit)".into());
        }
        if mode == OutputMode::Count && self.matches > 0 {
            self.lines.push(format!("({} matching lines in {} files)", self.matches, self.files));
        }
        if secrets > 0 {
            self.lines.push(format!(
                "({secrets} files that likely hold secrets were not searched; give the file itself as path)"
            ));
        }
        let detail = json!({
            "files": self.files, "matches": self.matches, "shown": shown, "truncated": self.full,
            "secrets_skipped": secrets,
        });
        ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(self.lines.join("\n")) }
    }
}

/// Takes the matches of one file.
struct Hits<'a> {
    report: &'a mut Report,
    input: &'a Input,
    mode: OutputMode,
    shown: String,
    count: u64,
    stop: &'a CancellationToken,
}

impl Hits<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        // A multi-line match is several lines.
        let text = String::from_utf8_lossy(bytes);
        for (offset, line) in text.lines().enumerate() {
            let place = match number {
                Some(number) if self.input.line_numbers => format!("{mark}{}", number + offset as u64),
                _ => String::new(),
            };
            let line = line.trim_end_matches('\r');
            let cut = line.char_indices().nth(LONGEST_LINE).map(|(at, _)| at);
            let line = match cut {
                Some(at) => format!("{}{place}{mark}{} [line cut]", self.shown, &line[..at]),
                None => format!("{}{place}{mark}{line}", self.shown),
            };
            self.report.add(line);
        }
    }

    fn goes_on(&self) -> bool {
        !self.report.full && !self.stop.is_cancelled()
    }

    fn finish(self) {
        if self.count == 0 {
            return;
        }
        self.report.files += 1;
        self.report.matches += self.count;
        match self.mode {
            OutputMode::Content => {}
            OutputMode::FilesWithMatches => self.report.add(self.shown),
            OutputMode::Count => self.report.add(format!("{}:{}", self.shown, self.count)),
        }
    }
}

impl Sink for Hits<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.count += 1;
        match self.mode {
            OutputMode::FilesWithMatches => return Ok(false),
            OutputMode::Count => {}
            OutputMode::Content => self.push(found.line_number(), ':', found.bytes()),
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        if *line.kind() != SinkContextKind::Other {
            self.push(line.line_number(), '-', line.bytes());
        }
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.report.add("--".into());
        Ok(self.goes_on())
    }
}
