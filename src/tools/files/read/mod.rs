//! The Read tool: a window of a text file, with line numbers. Memory is bounded for files of any size.

mod blob;
mod window;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use encoding_rs::Decoder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use window::LineWindow;

use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::file_identity;
use crate::file_identity::FileStamp;
use crate::files::file_checks::{is_notebook, refuse_binary, with_similar_path};
use crate::files::{media, notebook};
use crate::fs::pinned::PinnedPath;
use crate::fs::text;
use crate::fs::text::Charset;
use crate::sensitivity::Access;
use crate::{call, convert, input};
use types::hex;
use types::ids::BlobId;
use types::tool::{PathSensitivity, PreparedCall, ReadRecord, Subject, ToolOutcome};

const DEFAULT_LINES: u64 = 2_000;
/// Bytes of one answer. Larger than the limit of other tools, because a partial file is of little use.
const MAX_ANSWER_BYTES: usize = 120_000;
/// Larger files, in bytes, are not hashed and do not count as completely read.
const MAX_HASHED_BYTES: u64 = 64 << 20;
/// Bytes that are inspected to detect the encoding.
const DETECTION_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 64 << 10;
/// Largest notebook in bytes; it is read completely.
const MAX_NOTEBOOK_BYTES: u64 = 64 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The file: absolute, or relative to the current folder. Or the id of a blob, as the result of a tool
    /// names it.
    file_path: String,
    /// Number of the first line to read, from 1.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    offset: Option<u64>,
    /// How many lines to read; 2000 if not given.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    limit: Option<u64>,
    /// Of each line, the first character to show, from 1: for lines of more than 2000 characters.
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    column: Option<u64>,
}

impl Input {
    /// The window in the arguments.
    fn window(&self, feed: char) -> LineWindow {
        let (first, limit) = (self.offset.unwrap_or(1).max(1), self.limit.unwrap_or(DEFAULT_LINES).max(1));
        LineWindow::new(first, limit, feed).beginning_at(self.column.unwrap_or(1))
    }
}

pub(crate) const DESCRIPTION: &str = "Reads a file and shows it: text with line numbers (number, tab, text), \
    images (PNG, JPEG, GIF, WebP) as they are. \
    Shows up to 2000 lines from the beginning unless offset and limit say otherwise; the total number of lines \
    is always told. A Jupyter notebook is shown by its cells, which offset and limit then count; of a PDF \
    the text is shown, by pages (20 unless limit says otherwise), or the document itself. \
    Read a file before you edit or overwrite it.";

pub(crate) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    if let Some(blob_id) = blob(input) {
        return blob::prepare(context, blob_id);
    }
    let path = context.resolve(&input.file_path, Access::Read)?;
    // If no permission is necessary, check the file now; otherwise the user answers a permission request first.
    if path.in_workspace && path.sensitivity == PathSensitivity::Ordinary {
        path.open().map_err(|refusal| with_similar_path(context, &path.path, refusal))?;
    }
    let summary = format!("Read {}", context.show(&path.path));
    Ok(PreparedCall::read(Subject::Read { path: path.resolved }, summary))
}

/// The blob id in the arguments, if there is one. A file with such a name can be read by a path with a slash.
fn blob(input: &Input) -> Option<BlobId> {
    input.file_path.parse().ok()
}

pub(crate) fn run(
    context: &ToolContext,
    input: &Input,
    prepared: &PreparedCall,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    if let Some(blob_id) = blob(input) {
        return blob::run(context, input, blob_id, stop);
    }
    let path = context.resolve(&input.file_path, Access::Read)?;
    call::same_target(prepared, &Subject::Read { path: path.resolved.clone() })?;
    read(context, input, &path, stop)
}

fn read(
    context: &ToolContext,
    input: &Input,
    held: &PinnedPath,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let path = &held.path;
    let io = |e: std::io::Error| ToolError::io(path, &e);
    let (mut file, meta) = held.open().map_err(|refusal| with_similar_path(context, path, refusal))?;
    let stamp = FileStamp::from_metadata(&meta);
    if is_notebook(path) {
        return read_notebook(context, input, path, (file, stamp));
    }
    let mut head = Vec::new();
    (&mut file).take(DETECTION_BYTES as u64).read_to_end(&mut head).map_err(io)?;
    if convert::media_type(&head).is_some() && text::binary_kind(&head).is_some() {
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        return media::read_picture(context, path, (file, stamp), stop);
    }
    if media::is_pdf(&head) {
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        return media::read_pdf(context, (input.offset, input.limit), path, (file, stamp), stop);
    }
    let (charset, feed) = detect_charset(&head, path)?;
    drop(head);
    file.seek(SeekFrom::Start(0)).map_err(io)?;

    let first = input.offset.unwrap_or(1).max(1);
    let mut look = FileScan::new(charset, input.window(feed));
    let mut hash = Sha256::new();
    let mut bytes = 0_u64;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let n = file.read(&mut chunk).map_err(io)?;
        if bytes < MAX_HASHED_BYTES {
            hash.update(&chunk[..n]);
        }
        bytes += n as u64;
        context.progress.report(|| format!("{} of {} MiB read", bytes >> 20, stamp.size >> 20));
        look.add_piece(&chunk[..n]);
        if n == 0 {
            break;
        }
    }
    let shown = look.window.finish();
    if first > shown.total.max(1) {
        return Err(ToolError::new(
            "offset_past_end",
            format!("{} has only {} lines; offset {first} is past its end", context.show(path), shown.total),
        )
        .with(json!({ "total_lines": shown.total, "offset": first })));
    }

    let hashed = bytes <= MAX_HASHED_BYTES;
    let sha256 = if hashed { hex::encode(&hash.finalize()) } else { String::new() };
    let all = first == 1 && shown.last == shown.total && !shown.cut_a_line;
    let is_part = hashed && !all && !shown.cut_a_line && shown.last >= first;
    let record = ReadRecord {
        path: path.clone(),
        mtime_ns: stamp.mtime_ns,
        size: bytes,
        sha256,
        whole: hashed && all,
        lines: if is_part { vec![(first, shown.last)] } else { Vec::new() },
        total_lines: is_part.then_some(shown.total),
    };
    let record = record.merged_with(context.record(path));
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

/// Detects the encoding and the line ending, or refuses binary content.
fn detect_charset(head: &[u8], path: &Path) -> Result<(Charset, char), ToolError> {
    refuse_binary(path, head)?;
    let extent = if head.len() < DETECTION_BYTES { text::Extent::Whole } else { text::Extent::Beginning };
    let charset = text::detect(head, extent);
    let is_cr = head.contains(&b'\r') && !head.contains(&b'\n');
    Ok((charset, if is_cr { '\r' } else { '\n' }))
}

/// A notebook is shown by cells; `offset` and `limit` count these.
fn read_notebook(
    context: &ToolContext,
    input: &Input,
    path: &Path,
    (mut file, stamp): (File, FileStamp),
) -> Result<ToolOutcome, ToolError> {
    let shown = context.show(path);
    let mut bytes = Vec::new();
    let largest = MAX_NOTEBOOK_BYTES + 1;
    (&mut file).take(largest).read_to_end(&mut bytes).map_err(|e| ToolError::io(path, &e))?;
    if bytes.len() as u64 == largest {
        return Err(ToolError::new(
            "file_too_large",
            format!("{shown} is larger than {} MiB; look at it with Bash", MAX_NOTEBOOK_BYTES >> 20),
        )
        .with(json!({ "path": path, "size": stamp.size, "largest": MAX_NOTEBOOK_BYTES })));
    }
    refuse_binary(path, &bytes)?;
    let bad = |why: String| {
        ToolError::new(
            "bad_notebook",
            format!("{shown} cannot be read as a notebook: {why}. Look at it with Bash"),
        )
        .with(json!({ "path": path, "problem": why }))
    };
    let charset = text::detect(&bytes, text::Extent::Whole);
    let text = charset.decode(&bytes).ok_or_else(|| bad("it is not valid text".into()))?;
    let window = notebook::CellWindow {
        first: input.offset.unwrap_or(1).max(1),
        limit: input.limit.unwrap_or(u64::MAX).max(1),
        largest: MAX_ANSWER_BYTES,
    };
    let cells = notebook::read(&text, &window).map_err(bad)?;
    if window.first > cells.total.max(1) {
        return Err(ToolError::new(
            "offset_past_end",
            format!("{shown} has only {} cells; offset {} is past its end", cells.total, window.first),
        )
        .with(json!({ "total_cells": cells.total, "offset": window.first })));
    }
    let mut answer = cells.text;
    let whole = window.first == 1 && cells.last == cells.total;
    if whole {
        answer.push_str(&format!("({} cells in total)", cells.total));
    } else {
        answer.push_str(&format!("(cells {} to {} of {})", window.first, cells.last, cells.total));
        if cells.last < cells.total {
            answer.push_str(&format!(" Go on with offset {}.", cells.last + 1));
        }
    }
    let sha256 = file_identity::sha256(&bytes);
    let is_part = !whole && !cells.cut && cells.last >= window.first;
    let record = ReadRecord {
        path: path.to_path_buf(),
        mtime_ns: stamp.mtime_ns,
        size: bytes.len() as u64,
        sha256,
        whole: whole && !cells.cut,
        lines: if is_part { vec![(window.first, cells.last)] } else { Vec::new() },
        total_lines: is_part.then_some(cells.total),
    };
    let record = record.merged_with(context.record(path));
    let detail = json!({
        "total_cells": cells.total,
        "last_cell": cells.last,
        "encoding": charset.name(),
        "size": bytes.len(),
        "whole": record.whole,
    });
    Ok(ToolOutcome { detail: Some(detail), reads: vec![record], ..ToolOutcome::completed(answer) })
}

/// A file that is scanned piece by piece.
struct FileScan {
    charset: Charset,
    decoder: Decoder,
    /// Remaining bytes of the byte order mark.
    skip: usize,
    window: LineWindow,
}

impl FileScan {
    fn new(charset: Charset, window: LineWindow) -> Self {
        let decoder = charset.encoding.new_decoder_without_bom_handling();
        Self { charset, decoder, skip: charset.bom, window }
    }

    /// Continues with the next piece; an empty one is the end.
    fn add_piece(&mut self, piece: &[u8]) {
        let last = piece.is_empty();
        let fresh = &piece[self.skip.min(piece.len())..];
        self.skip -= piece.len() - fresh.len();
        if self.window.is_full() && self.charset.is_ascii_compatible() {
            self.window.count_only(fresh);
        } else {
            self.decode(fresh, last);
        }
    }

    fn decode(&mut self, mut bytes: &[u8], last: bool) {
        let mut out = String::with_capacity(bytes.len() + 64);
        loop {
            out.reserve(self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(CHUNK_BYTES));
            let (result, read, _) = self.decoder.decode_to_string(bytes, &mut out, last);
            self.window.add_piece(&out);
            out.clear();
            bytes = &bytes[read..];
            if result == encoding_rs::CoderResult::InputEmpty {
                return;
            }
        }
    }
}

/// The text that Read shows of a file in pieces, and its number of lines; `None` if it is binary.
pub(crate) fn shown_text(
    head: &[u8],
    pieces: &mut dyn Iterator<Item = &[u8]>,
    first: u64,
    limit: u64,
) -> Option<(String, u64)> {
    let (charset, feed) = detect_charset(head, Path::new("file")).ok()?;
    let mut look = FileScan::new(charset, LineWindow::new(first, limit, feed));
    pieces.filter(|piece| !piece.is_empty()).for_each(|piece| look.add_piece(piece));
    look.add_piece(&[]);
    let shown = look.window.finish();
    Some((shown.text, shown.total))
}
