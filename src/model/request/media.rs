//! Pictures and documents in a request, and the text that replaces them for a model that does not accept them.
//! The same request and model always give the same bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use types::blob::{Attachment, AttachmentKind, BlobRef, Document, Picture};
use types::ids::BlobId;
use types::model::ModelRequest;

/// The media that a model accepts.
pub(crate) struct AcceptedMedia<'a> {
    contents: &'a HashMap<BlobId, Arc<[u8]>>,
    /// Whether the model accepts pictures.
    accepts_images: bool,
    /// Whether it accepts documents.
    documents: bool,
}

/// One medium in a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MediumContent<'b> {
    /// The content itself.
    Whole {
        kind: AttachmentKind,
        media_type: &'b str,
        name: Option<&'b str>,
        /// Its content, in base64.
        data: String,
    },
    /// A text that replaces the medium or names it.
    ReplacementText(String),
}

impl<'a> AcceptedMedia<'a> {
    /// `accepts_images` and `documents`: the media that the model accepts. Without vision it accepts no
    /// documents either, because providers show it their pages as pictures.
    pub(crate) fn from_request(request: &'a ModelRequest, accepts_images: bool, documents: bool) -> Self {
        Self { contents: &request.media, accepts_images, documents: accepts_images && documents }
    }

    /// A picture of the user: its name, if any, then the picture.
    pub(crate) fn picture<'b>(&self, picture: &'b Picture) -> Vec<MediumContent<'b>> {
        let shown = self.medium_content(AttachmentKind::Image, &picture.blob, picture.name.as_deref());
        let named = matches!(shown, MediumContent::Whole { .. });
        let name = picture.name.as_deref().filter(|_| named);
        name.map(|name| MediumContent::ReplacementText(format!("Image {name}:")))
            .into_iter()
            .chain([shown])
            .collect()
    }

    /// A document of the user: its content, or its text.
    pub(crate) fn document<'b>(&self, document: &'b Document) -> MediumContent<'b> {
        if document.blob.media_type == types::blob::PDF
            && let shown @ MediumContent::Whole { .. } =
                self.medium_content(AttachmentKind::Document, &document.blob, document.name.as_deref())
        {
            return shown;
        }
        let name = document.name.as_deref().unwrap_or("document");
        let name = name.replace('&', "&amp;").replace('"', "&quot;");
        let state = if document.unsaved { " unsaved=\"true\"" } else { "" };
        MediumContent::ReplacementText(format!(
            "<file name=\"{name}\"{state}>\n{}\n</file>",
            document.text.trim_end()
        ))
    }

    /// The text of a tool's result; shortened if a sent document contains the same text.
    pub(crate) fn result_text<'b>(&self, text: &'b str, attachments: &[Attachment]) -> Cow<'b, str> {
        let is_shown = |attachment: &&Attachment| {
            attachment.in_text && self.can_send(attachment.kind, attachment.blob.blob_id)
        };
        if let Some(attachment) = attachments.iter().find(is_shown) {
            let name = attachment.name.as_deref().unwrap_or("it");
            return format!("The document {name} is shown whole.").into();
        }
        if text.is_empty() { "(no output)".into() } else { text.into() }
    }

    /// Attachments of a result, without those that its text describes instead.
    pub(crate) fn attachment_contents<'b>(&self, attachments: &'b [Attachment]) -> Vec<MediumContent<'b>> {
        let shown = attachments.iter().filter_map(|attachment| {
            let shown = self.medium_content(attachment.kind, &attachment.blob, attachment.name.as_deref());
            let is_said = attachment.in_text && matches!(shown, MediumContent::ReplacementText(_));
            (!is_said).then_some(shown)
        });
        shown.collect()
    }

    fn can_send(&self, kind: AttachmentKind, blob_id: BlobId) -> bool {
        let is_accepted = match kind {
            AttachmentKind::Image => self.accepts_images,
            AttachmentKind::Document => self.documents,
        };
        is_accepted && self.contents.contains_key(&blob_id)
    }

    fn medium_content<'b>(
        &self,
        kind: AttachmentKind,
        blob: &'b BlobRef,
        name: Option<&'b str>,
    ) -> MediumContent<'b> {
        match self.contents.get(&blob.blob_id) {
            Some(content) if self.can_send(kind, blob.blob_id) => MediumContent::Whole {
                kind,
                media_type: &blob.media_type,
                name,
                data: STANDARD.encode(content),
            },
            _ => MediumContent::ReplacementText(self.replacement_text(kind, blob, name)),
        }
    }

    /// The text that replaces a medium.
    fn replacement_text(&self, kind: AttachmentKind, blob: &BlobRef, name: Option<&str>) -> String {
        let (what, is_accepted) = match kind {
            AttachmentKind::Image => ("image", self.accepts_images),
            AttachmentKind::Document => ("document", self.documents),
        };
        let name = name.unwrap_or("without a name");
        let why = if is_accepted {
            "not shown any more: this conversation holds more than one request may; read it again to see it"
        } else {
            "not shown, this model cannot see it"
        };
        format!("[{what} {name} ({}, {} bytes): {why}]", blob.media_type, blob.bytes)
    }
}

/// The last part of a path, for places where a complete path is not possible.
pub(crate) fn file_name<'b>(name: Option<&'b str>, otherwise: &'b str) -> &'b str {
    name.and_then(|name| name.rsplit('/').next()).filter(|name| !name.is_empty()).unwrap_or(otherwise)
}
