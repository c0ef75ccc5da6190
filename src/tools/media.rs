//! What Read does with files that are no text and yet can be shown: PDFs.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::convert::{Document, convert};
use super::disk::{self, Stamp};
use super::refusal::{Refusal, cancelled};
use crate::types::tool::{ReadRecord, ToolOutcome};

/// Bytes of a document.
const LARGEST: u64 = 32 << 20;
/// Pages that are shown if nothing is said, and at most.
const DEFAULT_PAGES: u64 = 20;
const MOST_PAGES: u64 = 100;
/// Bytes of text of one answer.
const LARGEST_ANSWER: usize = 120_000;

pub(super) fn is_pdf(head: &[u8]) -> bool {
    head.starts_with(b"%PDF-")
}

/// A line of the converter.
#[derive(Deserialize)]
struct Page {
    page: Option<u64>,
    pages: Option<u64>,
    text: Option<String>,
    error: Option<String>,
}

/// The text of a PDF; `offset` and `limit` count pages, from 1.
pub(super) fn read_pdf(
    context: &Context,
    (offset, limit): (Option<u64>, Option<u64>),
    path: &Path,
    (file, stamp): (File, Stamp),
    stop: &CancellationToken,
) -> Result<ToolOutcome, Refusal> {
    let shown = context.show(path);
    let bytes = load(file, path, &shown)?;
    let (size, sha256) = (bytes.len() as u64, disk::sha256(&bytes));
    let first = offset.unwrap_or(1).max(1);
    let last = first.saturating_add(limit.unwrap_or(DEFAULT_PAGES).clamp(1, MOST_PAGES) - 1);
    let number = |page: u64| u32::try_from(page).unwrap_or(u32::MAX);
    let document = Document::Pdf { first: number(first), last: number(last) };
    // This runs on a thread for waiting, inside the runtime.
    let work = convert(&context.settings, document, bytes, stop);
    let Some(made) = tokio::runtime::Handle::current().block_on(work) else { return Ok(cancelled()) };

    let lines: Vec<Page> = made.text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // One without pages was mended beyond recognition, or never was one.
    let Some(total) = lines.iter().find_map(|line| line.pages).filter(|pages| *pages > 0) else {
        let why = made.broken.unwrap_or_else(|| "it has no pages".into());
        return Err(Refusal::new("not_convertible", format!("{shown} could not be read: {why}"))
            .with(json!({ "path": path, "problem": why })));
    };
    if first > total.max(1) {
        return Err(Refusal::new(
            "offset_past_end",
            format!("{shown} has only {total} pages; offset {first} is past its end"),
        )
        .with(json!({ "total_pages": total, "offset": first })));
    }
    let (mut answer, mut end) = (String::new(), first - 1);
    for line in &lines {
        let Some(page) = line.page else { continue };
        if answer.len() >= LARGEST_ANSWER {
            break;
        }
        answer.push_str(&format!("<page number={page}>\n"));
        match (&line.text, &line.error) {
            (Some(text), _) if !text.trim().is_empty() => answer.push_str(text.trim_end()),
            (Some(_), _) => answer.push_str("[no text on this page]"),
            (None, error) => {
                let why = error.as_deref().unwrap_or("unknown");
                answer.push_str(&format!("[this page could not be read: {why}]"));
            }
        }
        answer.push_str("\n</page>\n");
        end = page;
    }
    answer.push_str(&format!("(pages {first} to {end} of {total})"));
    if end < total && made.broken.is_none() {
        answer.push_str(&format!(" Go on with offset {}.", end + 1));
    }
    if let Some(why) = &made.broken {
        answer.push_str(&format!(" Not all of it: {why}."));
    }
    let record =
        ReadRecord { path: path.to_path_buf(), mtime_ns: stamp.mtime_ns, size, sha256, whole: false };
    let detail = json!({ "total_pages": total, "last_page": end, "size": size, "problem": made.broken });
    Ok(ToolOutcome { detail: Some(detail), reads: vec![record], ..ToolOutcome::completed(answer) })
}

fn load(file: File, path: &Path, shown: &str) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| Refusal::io(path, &e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Refusal::new(
            "file_too_large",
            format!("{shown} is larger than {} MiB; look at it with Bash", LARGEST >> 20),
        )
        .with(json!({ "path": path, "largest": LARGEST })));
    }
    Ok(bytes)
}
