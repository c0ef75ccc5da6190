//! Shows PDFs and pictures in Read. `input_files` does the same for files that a user attaches.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::convert::{DocumentKind, ImageInfo, convert};
use crate::error::{ToolError, cancelled};
use crate::file_identity;
use crate::file_identity::FileStamp;
use crate::settings::Settings;
use types::blob::{Attachment, AttachmentKind, Blob, BlobRef, PDF};
use types::tool::{ReadRecord, ToolOutcome};

/// Largest PDF whose text is read, in bytes.
pub(crate) const MAX_PDF_BYTES: u64 = 32 << 20;
/// Largest picture that is decoded before scaling, in bytes.
pub(crate) const MAX_PICTURE_BYTES: u64 = 20 << 20;
/// Largest PDF that models receive as a document, in bytes. Providers accept 32 MB for a whole request, in
/// base64 (docs.anthropic.com/en/docs/build-with-claude/pdf-support).
pub(crate) const MAX_SHOWN_PDF_BYTES: u64 = 10 << 20;
/// Default and maximal number of pages. Providers do not accept more than the maximum (same source).
const DEFAULT_PAGES: u64 = 20;
pub(crate) const MAX_PAGES: u64 = 100;
/// Bytes of text of one answer.
const MAX_ANSWER_BYTES: usize = 120_000;

pub(crate) fn is_pdf(head: &[u8]) -> bool {
    head.starts_with(b"%PDF-")
}

/// A line of the converter's output.
#[derive(Deserialize)]
struct PageLine {
    page: Option<u64>,
    pages: Option<u64>,
    text: Option<String>,
    error: Option<String>,
}

/// The text of some pages.
pub(crate) struct PdfPages {
    /// The text for the model.
    pub(crate) text: String,
    /// The first and the last page.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Number of pages of the whole document.
    pub(crate) total: u64,
    /// The reason why pages are missing.
    pub(crate) broken: Option<String>,
}

impl PdfPages {
    /// Whether these are all pages of the document.
    pub(crate) fn has_all_pages(&self) -> bool {
        self.first == 1 && self.last == self.total && self.broken.is_none()
    }
}

/// The reason why there are no pages to show.
pub(crate) enum PagesError {
    Stopped,
    /// The document has only this number of pages.
    PastEnd(u64),
    Unreadable(String),
}

/// The text of a PDF from page `first` on, numbered from 1. Cancel-safe.
pub(crate) async fn pages(
    settings: &Settings,
    bytes: Vec<u8>,
    (first, count): (u64, u64),
    stop: &CancellationToken,
) -> Result<PdfPages, PagesError> {
    let last = first.saturating_add(count.clamp(1, MAX_PAGES) - 1);
    let number = |page: u64| u32::try_from(page).unwrap_or(u32::MAX);
    let document = DocumentKind::Pdf { first: number(first), last: number(last) };
    let made = convert(settings, document, bytes, stop).await.ok_or(PagesError::Stopped)?;
    let text = made.text();
    let lines: Vec<PageLine> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    drop(text);
    // A file without pages was not a PDF, or is damaged beyond repair.
    let Some(total) = lines.iter().find_map(|line| line.pages).filter(|pages| *pages > 0) else {
        return Err(PagesError::Unreadable(made.broken.unwrap_or_else(|| "it has no pages".into())));
    };
    if first > total {
        return Err(PagesError::PastEnd(total));
    }
    let (mut text, mut last) = (String::new(), first - 1);
    for line in &lines {
        let Some(page) = line.page else { continue };
        if text.len() >= MAX_ANSWER_BYTES {
            break;
        }
        text.push_str(&format!("<page number={page}>\n"));
        match (&line.text, &line.error) {
            (Some(page_text), _) if !page_text.trim().is_empty() => text.push_str(page_text.trim_end()),
            (Some(_), _) => text.push_str("[no text on this page]"),
            (None, error) => {
                let why = error.as_deref().unwrap_or("unknown");
                text.push_str(&format!("[this page could not be read: {why}]"));
            }
        }
        text.push_str("\n</page>\n");
        last = page;
    }
    text.push_str(&format!("(pages {first} to {last} of {total})"));
    Ok(PdfPages { text, first, last, total, broken: made.broken })
}

/// The text of a PDF; `offset` and `limit` count pages, from 1. If the answer covers the whole document and it
/// is not too large, the document is attached for models that accept it.
pub(crate) fn read_pdf(
    context: &ToolContext,
    (offset, limit): (Option<u64>, Option<u64>),
    path: &Path,
    (file, stamp): (File, FileStamp),
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let shown = context.show(path);
    let bytes = load(file, MAX_PDF_BYTES, path, &shown)?;
    let (size, sha256) = (bytes.len() as u64, file_identity::sha256(&bytes));
    let whole = (size <= MAX_SHOWN_PDF_BYTES).then(|| Blob::new(PDF, bytes.as_slice()));
    let first = offset.unwrap_or(1).max(1);
    // This runs on a blocking thread of the runtime.
    let work = pages(&context.settings, bytes, (first, limit.unwrap_or(DEFAULT_PAGES)), stop);
    let pages = match Handle::current().block_on(work) {
        Ok(pages) => pages,
        Err(PagesError::Stopped) => return Ok(cancelled()),
        Err(PagesError::PastEnd(total)) => {
            return Err(ToolError::new(
                "offset_past_end",
                format!("{shown} has only {total} pages; offset {first} is past its end"),
            )
            .with(json!({ "total_pages": total, "offset": first })));
        }
        Err(PagesError::Unreadable(why)) => return Err(unreadable_error(&shown, path, &why)),
    };
    let blobs: Vec<Blob> = whole.filter(|_| pages.has_all_pages()).into_iter().collect();
    let attachments = blobs.iter().map(|blob| Attachment {
        kind: AttachmentKind::Document,
        blob: BlobRef::from(blob),
        name: Some(shown.clone()),
        in_text: true,
    });
    let attachments = attachments.collect();
    let PdfPages { mut text, last, total, broken, .. } = pages;
    if last < total && broken.is_none() {
        text.push_str(&format!(" Go on with offset {}.", last + 1));
    }
    if let Some(why) = &broken {
        text.push_str(&format!(" Not all of it: {why}."));
    }
    let record = ReadRecord {
        path: path.to_path_buf(),
        mtime_ns: stamp.mtime_ns,
        size,
        sha256,
        whole: false,
        lines: Vec::new(),
        total_lines: None,
    };
    let detail = json!({ "total_pages": total, "last_page": last, "size": size, "problem": broken });
    Ok(ToolOutcome {
        detail: Some(detail),
        reads: vec![record],
        attachments,
        blobs,
        ..ToolOutcome::completed(text)
    })
}

pub(crate) struct CheckedPicture {
    /// Its properties.
    pub(crate) seen: ImageInfo,
    /// The picture for models.
    pub(crate) blob: Blob,
}

impl CheckedPicture {
    /// Describes the picture and its scaling for users and models.
    pub(crate) fn describe(&self, size: usize) -> String {
        let ImageInfo { media_type, width, height, scaled } = &self.seen;
        let kind = media_type.strip_prefix("image/").unwrap_or(media_type).to_uppercase();
        let mut text = format!("{kind} image, {width}×{height} pixels, {size} bytes");
        if let Some(scaled) = scaled {
            text.push_str(&format!("; shown at {}×{}", scaled.width, scaled.height));
        }
        text
    }
}

/// Decodes a picture completely, and makes it smaller if it is too large. `None` if it was stopped.
/// Cancel-safe.
///
/// # Errors
/// The reason why it cannot be shown, for users.
pub(crate) async fn inspect_media(
    settings: &Settings,
    bytes: Vec<u8>,
    stop: &CancellationToken,
) -> Result<Option<CheckedPicture>, String> {
    let Some(made) = convert(settings, DocumentKind::Image, bytes.clone(), stop).await else {
        return Ok(None);
    };
    if let Some(why) = made.broken {
        return Err(why);
    }
    let line = made.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(made.bytes.len());
    let (line, rest) = made.bytes.split_at(line);
    let seen: ImageInfo =
        serde_json::from_slice(line).map_err(|_| "the converter was not understood".to_owned())?;
    let blob = match &seen.scaled {
        Some(scaled) => Blob::new(scaled.media_type.as_str(), rest.get(1..).unwrap_or_default()),
        None => Blob::new(seen.media_type.as_str(), bytes),
    };
    Ok(Some(CheckedPicture { seen, blob }))
}

/// A picture for models that accept pictures.
pub(crate) fn read_picture(
    context: &ToolContext,
    path: &Path,
    (file, stamp): (File, FileStamp),
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let shown = context.show(path);
    let bytes = load(file, MAX_PICTURE_BYTES, path, &shown)?;
    let (size, sha256) = (bytes.len(), file_identity::sha256(&bytes));
    // This runs on a blocking thread of the runtime.
    let checked_picture = match Handle::current().block_on(inspect_media(&context.settings, bytes, stop)) {
        Ok(Some(checked_picture)) => checked_picture,
        Ok(None) => return Ok(cancelled()),
        Err(why) => return Err(unreadable_error(&shown, path, &why)),
    };
    let text = format!("{shown}: {}", checked_picture.describe(size));
    let CheckedPicture { seen, blob } = checked_picture;
    let attachment = Attachment {
        kind: AttachmentKind::Image,
        blob: BlobRef::from(&blob),
        name: Some(shown),
        in_text: false,
    };
    let record = ReadRecord {
        path: path.to_path_buf(),
        mtime_ns: stamp.mtime_ns,
        size: size as u64,
        sha256,
        whole: true,
        lines: Vec::new(),
        total_lines: None,
    };
    let detail = json!({
        "media_type": seen.media_type,
        "width": seen.width,
        "height": seen.height,
        "size": size,
        "scaled": seen.scaled,
    });
    Ok(ToolOutcome {
        detail: Some(detail),
        reads: vec![record],
        attachments: vec![attachment],
        blobs: vec![blob],
        ..ToolOutcome::completed(text)
    })
}

fn unreadable_error(shown: &str, path: &Path, why: &str) -> ToolError {
    ToolError::new("not_convertible", format!("{shown} could not be read: {why}"))
        .with(json!({ "path": path, "problem": why }))
}

/// Reads a whole file.
pub(crate) fn load(file: File, largest: u64, path: &Path, shown: &str) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes).map_err(|e| ToolError::io(path, &e))?;
    if bytes.len() as u64 > largest {
        return Err(ToolError::new(
            "file_too_large",
            format!("{shown} is larger than {} MiB; look at it with Bash", largest >> 20),
        )
        .with(json!({ "path": path, "largest": largest })));
    }
    Ok(bytes)
}
