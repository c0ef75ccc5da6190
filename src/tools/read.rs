//! Read (T1): a window of a text file, with line numbers. Memory stays bounded however large
//! the file is.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use encoding_rs::Decoder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::care::Access;
use super::context::Context;
use super::disk::{self, Stamp};
use super::near::similar_path;
use super::refusal::{Refusal, cancelled};
use super::text::{self, Charset};
use super::{input, toolbox};
use crate::types::tool::{PathCare, Prepared, ReadRecord, ResolvedPath, Subject, ToolOutcome};

const DEFAULT_LINES: u64 = 2_000;
/// Letters of one line.
const LONGEST_LINE: usize = 2_000;
/// Bytes of one answer. Larger than the cap of other tools: half a file helps nobody.
const LARGEST_ANSWER: usize = 120_000;
/// Above this size the content is not hashed, and the file does not count as read whole.
const LARGEST_HASHED: u64 = 64 << 20;
/// So many bytes are looked at to tell the encoding.
const DETECT: usize = 1 << 20;
const CHUNK: usize = 64 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file: absolute, or relative to the current folder.
    file_path: String,
    /// Number of the first line to read, from 1.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    offset: Option<u64>,
    /// How many lines to read; 2000 if not given.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    limit: Option<u64>,
}

pub(super) const DESCRIPTION: &str = "Reads a text file and shows it with line numbers (number, tab, text). \
    Shows up to 2000 lines from the beginning unless offset and limit say otherwise; the total number of lines \
    is always told. Read a file before you edit or overwrite it.";

pub(super) fn prepare(context: &Context, input: &Input) -> Result<Prepared, Refusal> {
    let path = context.resolve(&input.file_path, Access::Read)?;
    // What may be read anyway is checked right here; elsewhere a person is asked first.
    if path.in_workspace && path.care == PathCare::Ordinary {
        disk::open(&path.path).map_err(|refusal| helpful(context, &path.path, refusal))?;
    }
    let summary = format!("Read {}", context.show(&path.path));
    Ok(Prepared {
        subject: Subject::Read { path },
        summary,
        diff: None,
        read_only: true,
        change: None,
        sandbox: None,
    })
}

/// A missing file is answered with the name that was probably meant.
pub(super) fn helpful(context: &Context, path: &Path, refusal: Refusal) -> Refusal {
    if refusal.code != "file_not_found" {
        return refusal;
    }
    match similar_path(path, &context.scene.workspace) {
        None => refusal,
        Some(similar) => Refusal {
            text: format!("{}. Did you mean {}?", refusal.text, context.show(&similar)),
            ..refusal.with(json!({ "path": path, "did_you_mean": similar }))
        },
    }
}

pub(super) fn run(
    context: &Context,
    input: &Input,
    prepared: &Prepared,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let path = context.resolve(&input.file_path, Access::Read)?;
    toolbox::same_target(prepared, &Subject::Read { path: path.clone() })?;
    read(context, input, &path, stop)
}

fn read(
    context: &Context,
    input: &Input,
    path: &ResolvedPath,
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let path = &path.path;
    let io = |e: std::io::Error| Refusal::io(path, &e);
    let (mut file, meta) = disk::open(path).map_err(|refusal| helpful(context, path, refusal))?;
    let stamp = Stamp::of(&meta);
    let charset = sniff(&mut file, path)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;

    let first = input.offset.unwrap_or(1).max(1);
    let limit = input.limit.unwrap_or(DEFAULT_LINES).max(1);
    let mut window = Window::new(first, limit);
    let mut decoder = charset.encoding.new_decoder_without_bom_handling();
    let mut hash = Sha256::new();
    let mut bytes = 0_u64;
    let mut chunk = vec![0; CHUNK];
    let mut skip = charset.bom;
    loop {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let n = file.read(&mut chunk).map_err(io)?;
        if bytes < LARGEST_HASHED {
            hash.update(&chunk[..n]);
        }
        bytes += n as u64;
        let last = n == 0;
        let fresh = &chunk[skip.min(n)..n];
        skip -= skip.min(n);
        if window.is_full() && charset.is_ascii_compatible() {
            window.count_only(fresh);
        } else {
            decode(&mut decoder, fresh, last, &mut window);
        }
        if last {
            break;
        }
    }
    let shown = window.finish();
    if first > shown.total.max(1) {
        return Err(Refusal::new(
            "offset_past_end",
            format!("{} has only {} lines; offset {first} is past its end", context.show(path), shown.total),
        )
        .with(json!({ "total_lines": shown.total, "offset": first })));
    }

    let hashed = bytes <= LARGEST_HASHED;
    let sha256 = if hashed { disk::hex(&hash.finalize()) } else { String::new() };
    let all = first == 1 && shown.last == shown.total && !shown.cut_a_line;
    let known_whole =
        context.record(path).is_some_and(|known| known.whole && hashed && known.sha256 == sha256);
    let record = ReadRecord {
        path: path.clone(),
        mtime_ns: stamp.mtime_ns,
        size: bytes,
        sha256,
        whole: hashed && (all || known_whole),
    };
    let detail = json!({
        "total_lines": shown.total,
        "first_line": if shown.last >= first { first } else { 0 },
        "last_line": shown.last,
        "encoding": charset.name(),
        "size": bytes,
        "whole": record.whole,
    });
    Ok(ToolOutcome {
        detail: Some(detail),
        reads: vec![record],
        ..ToolOutcome::completed(shown.into_answer(first))
    })
}

/// Tells the encoding, or refuses what is not text.
fn sniff(file: &mut File, path: &Path) -> Result<Charset, Refusal> {
    let mut head = Vec::new();
    file.take(DETECT as u64).read_to_end(&mut head).map_err(|e| Refusal::io(path, &e))?;
    refuse_binary(path, &head)?;
    Ok(text::detect(&head, head.len() < DETECT))
}

/// Images, documents and the like are not shown (yet); notebooks are no plain text either.
pub(super) fn refuse_binary(path: &Path, head: &[u8]) -> Result<(), Refusal> {
    if let Some(kind) = text::binary_kind(head) {
        return Err(Refusal::new(
            "binary_file",
            format!("{} is {kind}; only text files can be opened with this tool", path.display()),
        )
        .with(json!({ "path": path, "kind": kind })));
    }
    if path.extension().is_some_and(|ending| ending == "ipynb") {
        return Err(Refusal::new(
            "unsupported_file",
            format!(
                "{} is a notebook; notebooks are not supported yet, use Bash to look at it",
                path.display()
            ),
        )
        .with(json!({ "path": path })));
    }
    Ok(())
}

fn decode(decoder: &mut Decoder, mut bytes: &[u8], last: bool, window: &mut Window) {
    let mut out = String::with_capacity(bytes.len() + 64);
    loop {
        out.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(CHUNK));
        let (result, read, _) = decoder.decode_to_string(bytes, &mut out, last);
        window.take(&out);
        out.clear();
        bytes = &bytes[read..];
        if result == encoding_rs::CoderResult::InputEmpty {
            return;
        }
    }
}

/// Collects the wanted lines from pieces of text, and counts all of them.
struct Window {
    first: u64,
    /// The last wanted line.
    until: u64,
    /// The line being read, from 1.
    line: u64,
    text: String,
    /// Letters of the current line that were kept and that were not.
    kept: usize,
    left_out: usize,
    /// The current line has at least one letter.
    begun: bool,
    /// A `\r` that may belong to the line ending.
    pending_return: bool,
    last: u64,
    cut_a_line: bool,
    stopped_early: bool,
}

/// What a [`Window`] has seen.
struct Shown {
    text: String,
    total: u64,
    /// The last line that is shown; 0 if none is.
    last: u64,
    cut_a_line: bool,
}

impl Window {
    fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            until: first.saturating_add(limit - 1),
            line: 1,
            text: String::new(),
            kept: 0,
            left_out: 0,
            begun: false,
            pending_return: false,
            last: 0,
            cut_a_line: false,
            stopped_early: false,
        }
    }

    fn is_wanted(&self) -> bool {
        !self.stopped_early && (self.first..=self.until).contains(&self.line)
    }

    /// Whether nothing more will be shown, at the beginning of a line or within one.
    fn is_full(&self) -> bool {
        self.stopped_early || self.line > self.until
    }

    /// Goes on in bytes of which only the line feeds matter.
    fn count_only(&mut self, bytes: &[u8]) {
        self.line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        if let Some(byte) = bytes.last() {
            self.begun = *byte != b'\n';
        }
    }

    fn take(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            let (line, ends) = match part.strip_suffix('\n') {
                Some(line) => (line, true),
                None => (part, false),
            };
            if self.is_wanted() {
                self.keep(line);
            }
            if ends {
                self.end_line();
            } else {
                self.begun = true;
            }
        }
    }

    fn keep(&mut self, part: &str) {
        for c in part.chars() {
            if self.pending_return {
                self.pending_return = false;
                self.push('\r');
            }
            if c == '\r' { self.pending_return = true } else { self.push(c) }
        }
    }

    fn push(&mut self, c: char) {
        if self.kept == 0 && self.left_out == 0 {
            self.number();
        }
        if self.kept < LONGEST_LINE {
            self.text.push(c);
            self.kept += 1;
        } else {
            self.left_out += 1;
        }
    }

    fn number(&mut self) {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{:>6}\t", self.line);
    }

    fn end_line(&mut self) {
        use std::fmt::Write as _;
        if self.is_wanted() {
            if self.kept == 0 {
                self.number();
            }
            if self.left_out > 0 {
                self.cut_a_line = true;
                let _ = write!(self.text, " [line cut: {} more characters]", self.left_out);
            }
            self.text.push('\n');
            self.last = self.line;
            self.stopped_early = self.text.len() >= LARGEST_ANSWER;
        }
        self.line += 1;
        (self.kept, self.left_out, self.begun, self.pending_return) = (0, 0, false, false);
    }

    fn finish(mut self) -> Shown {
        let total = if self.begun { self.line } else { self.line - 1 };
        if self.begun {
            if self.pending_return && self.is_wanted() {
                self.push('\r');
            }
            self.end_line();
        }
        Shown { text: self.text, total, last: self.last, cut_a_line: self.cut_a_line }
    }
}

impl Shown {
    fn into_answer(mut self, first: u64) -> String {
        if self.total == 0 {
            return "(the file is empty)".into();
        }
        if first == 1 && self.last == self.total {
            self.text.push_str(&format!("({} lines in total)", self.total));
        } else {
            self.text.push_str(&format!("(lines {first} to {} of {})", self.last, self.total));
            if self.last < self.total {
                self.text.push_str(&format!(" Go on with offset {}.", self.last + 1));
            }
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u64, limit: u64, pieces: &[&str]) -> (String, u64, u64) {
        let mut window = Window::new(first, limit);
        pieces.iter().for_each(|piece| window.take(piece));
        let shown = window.finish();
        (shown.text, shown.last, shown.total)
    }

    #[test]
    fn lines_are_numbered_however_the_text_is_cut_into_pieces() {
        for (first, limit, pieces, expected) in [
            (1, 9, &["a\nb\n"][..], ("     1\ta\n     2\tb\n", 2, 2)),
            (1, 9, &["a", "\r", "\nb", "b"], ("     1\ta\n     2\tbb\n", 2, 2)),
            (2, 1, &["a\nb\nc\n"], ("     2\tb\n", 2, 3)),
            (1, 9, &["\n\nx"], ("     1\t\n     2\t\n     3\tx\n", 3, 3)),
            (1, 9, &["a\rb\r\n"], ("     1\ta\rb\n", 1, 1)),
            (1, 9, &["a\r"], ("     1\ta\r\n", 1, 1)),
            (5, 9, &["a\n"], ("", 0, 1)),
            (1, 9, &[], ("", 0, 0)),
        ] {
            let (text, last, total) = window(first, limit, pieces);
            assert_eq!((text.as_str(), last, total), expected, "{first} {limit} {pieces:?}");
        }
    }

    #[test]
    fn long_lines_are_cut_with_a_note() {
        let (text, ..) = window(1, 1, &[&"é".repeat(2_500)]);
        assert!(text.ends_with("é [line cut: 500 more characters]\n"), "{text}");
    }
}
