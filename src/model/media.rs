//! Pictures and documents of tool results on their way into a request.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::types::blob::{Attachment, AttachmentKind};
use crate::types::ids::BlobId;
use crate::types::model::ModelRequest;

/// What a model can be shown.
pub(super) struct Media<'a> {
    contents: &'a HashMap<BlobId, Arc<[u8]>>,
    /// Whether the model can see at all.
    sees: bool,
}

impl<'a> Media<'a> {
    pub(super) fn of(request: &'a ModelRequest, sees: bool) -> Self {
        Self { contents: &request.media, sees }
    }

    /// The content for the wire; else what the model is told instead. The same for the same request.
    pub(super) fn base64(&self, attachment: &Attachment) -> Result<String, String> {
        match self.contents.get(&attachment.blob.blob_id) {
            Some(content) if self.sees => Ok(STANDARD.encode(content)),
            _ => Err(Self::note(attachment)),
        }
    }

    /// What a model is told that cannot be shown something.
    pub(super) fn note(attachment: &Attachment) -> String {
        let what = match attachment.kind {
            AttachmentKind::Image => "image",
            AttachmentKind::Document => "document",
        };
        let name = attachment.name.as_deref().unwrap_or("without a name");
        let (media_type, bytes) = (&attachment.blob.media_type, attachment.blob.bytes);
        format!("[{what} {name} ({media_type}, {bytes} bytes): not shown, this model cannot see it]")
    }
}
