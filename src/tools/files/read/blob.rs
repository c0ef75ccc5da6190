//! Read of a blob: a window of a full result of which the model received only a part. A session can read only
//! its own blobs. No file is named, so no permission is necessary. A picture or a PDF of the session is shown
//! again.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::{Blobs, ToolContext};
use crate::error::{ToolError, cancelled};
use crate::files::read::{FileScan, Input};
use crate::fs::text::Charset;
use types::blob::{Attachment, AttachmentKind, BlobRef, PDF};
use types::ids::BlobId;
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

pub(super) fn prepare(context: &ToolContext, blob_id: BlobId) -> Result<PreparedCall, ToolError> {
    find(context, blob_id)?;
    Ok(PreparedCall::read(Subject::Blob { blob_id }, format!("Read {blob_id}")))
}

fn find(context: &ToolContext, blob_id: BlobId) -> Result<(&dyn Blobs, BlobRef), ToolError> {
    let unreadable = |why: String| ToolError::new("io_error", format!("{blob_id} could not be read: {why}"));
    let Some(blobs) = context.session_context.blobs.as_deref() else {
        return Err(unreadable("this session keeps no blobs".into()));
    };
    match blobs.find(blob_id).map_err(unreadable)? {
        Some((bytes, media_type)) if is_text(&media_type) || attachment_kind(&media_type).is_some() => {
            Ok((blobs, BlobRef { blob_id, bytes, media_type }))
        }
        Some((_, media_type)) => Err(ToolError::new(
            "binary_file",
            format!("{blob_id} is {media_type}; only text, images and PDFs can be read"),
        )),
        None => Err(ToolError::new(
            "blob_not_found",
            format!("this session has no {blob_id}; give the id as the result of a tool named it"),
        )
        .with(json!({ "blob_id": blob_id }))),
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == types::blob::JSON
}

/// The kind of attachment for the model.
fn attachment_kind(media_type: &str) -> Option<AttachmentKind> {
    match media_type {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Some(AttachmentKind::Image),
        PDF => Some(AttachmentKind::Document),
        _ => None,
    }
}

pub(super) fn run(
    context: &ToolContext,
    input: &Input,
    blob_id: BlobId,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let (blobs, blob) = find(context, blob_id)?;
    if let Some(kind) = attachment_kind(&blob.media_type) {
        let text = format!("{blob_id}: {}, {} bytes", blob.media_type, blob.bytes);
        let name = Some(blob_id.to_string());
        let attachments = vec![Attachment { kind, blob, name, in_text: false }];
        return Ok(ToolOutcome { attachments, ..ToolOutcome::completed(text) });
    }
    let bytes = blob.bytes;
    let first = input.offset.unwrap_or(1).max(1);
    let mut look = FileScan::new(Charset::UTF8, input.window('\n'));
    let mut at = 0;
    loop {
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let piece = blobs
            .read(blob_id, at, CHUNK_BYTES)
            .map_err(|why| ToolError::new("io_error", format!("{blob_id} could not be read: {why}")))?;
        at += piece.len() as u64;
        look.add_piece(&piece);
        if piece.is_empty() {
            break;
        }
        if at >= bytes {
            look.add_piece(&[]);
            break;
        }
    }
    let shown = look.window.finish();
    if first > shown.total.max(1) {
        return Err(ToolError::new(
            "offset_past_end",
            format!("{blob_id} has only {} lines; offset {first} is past its end", shown.total),
        )
        .with(json!({ "total_lines": shown.total, "offset": first })));
    }
    let detail = json!({
        "total_lines": shown.total,
        "first_line": if shown.last >= first { first } else { 0 },
        "last_line": shown.last,
        "size": bytes,
        "blob_id": blob_id,
    });
    Ok(ToolOutcome { detail: Some(detail), ..ToolOutcome::completed(shown.into_answer(first)) })
}
