//! Blobs: content of a session that is too large for an event or for a model, stored outside the events.
//!
//! - A blob with content cut from an event's wire form ([`super::wire`]) or from a tool's result for the model
//!   (`engine::window::result_budget`) is named by its hash. So the same text is stored once.
//! - The output of a command is spooled to a file while it runs ([`Content::File`]) and is named by its call.
//! - An image or a document that a tool gives to the model is an [`Attachment`] of its result. The tool puts a
//!   [`Blob`] into `ToolOutcome::blobs` and its [`Attachment`] into `ToolOutcome::attachments`. The session stores
//!   the bytes in the transaction that writes `tool.completed`. The transcript refers to them (`Block::ToolResult`),
//!   and a model request contains them (`ModelRequest::media`).
//! - A [`Picture`] or a [`Document`] from the user is a block of the input and of its message. The session stores
//!   the bytes in the transaction that records the input.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::ids::BlobId;

/// The media type of text.
pub const TEXT: &str = "text/plain";
/// The media type of a PDF.
pub const PDF: &str = "application/pdf";
/// The media type of a list or an object that was cut out of an event.
pub const JSON: &str = "application/json";

/// One blob to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// Its id.
    pub blob_id: BlobId,
    /// Its media type, for example `image/png`. A `text/plain` blob is UTF-8, except for the output of
    /// commands.
    pub media_type: String,
    /// Location of the content.
    pub content: Content,
}

/// Location of a blob's content.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In a file in the blob folder; the file's name is the blob's id.
    File {
        /// Its length in bytes.
        bytes: u64,
    },
}

impl Blob {
    /// A blob of bytes, named by their hash.
    #[must_use]
    pub fn new(media_type: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let (media_type, bytes) = (media_type.into(), bytes.into());
        Self {
            blob_id: BlobId::from_content(&media_type, &bytes),
            media_type,
            content: Content::Bytes(bytes),
        }
    }

    /// A blob of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::new(TEXT, text.as_bytes())
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File { bytes } => *bytes,
        }
    }

    /// Whether its content is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {} bytes)", self.blob_id, self.media_type, self.len())
    }
}

impl BlobId {
    /// The id of a content. It is a digest of the media type and the bytes (RFC 9562, version 8).
    #[must_use]
    pub fn from_content(media_type: &str, bytes: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(media_type);
        digest.update([0]);
        digest.update(bytes);
        let mut id = [0; 16];
        id.copy_from_slice(&digest.finalize()[..16]);
        Self::from_uuid(uuid::Builder::from_custom_bytes(id).into_uuid())
    }

    /// Whether the id is a digest of the content, and not the id of a call.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        self.to_string().as_bytes().get("blob_00000000-0000-".len()) == Some(&b'8')
    }

    /// The id of the blob with a call's output.
    #[must_use]
    pub fn of_call(call_id: super::ids::CallId) -> Self {
        let text = call_id.to_string();
        let digits = text.trim_start_matches("call_");
        // An id prints its own UUID, so parsing it cannot fail.
        Self::from_uuid(Uuid::try_parse(digits).unwrap_or_default())
    }
}

/// A truncated value of an event or an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TruncatedField {
    /// Location of the value, as a JSON pointer (RFC 6901) into the object that has this list. A text is cut at
    /// its end; a list or an object has fewer entries.
    #[serde(alias = "at")]
    pub pointer: String,
    /// Id of the blob with the complete value, which `session.blob` reads.
    pub blob_id: BlobId,
    /// Length of the complete value in bytes.
    pub bytes: u64,
    /// `text/plain` for a text, `application/json` for a list or an object.
    pub media_type: String,
}

/// A blob with more content than an event contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// Id of the blob. Clients read it with `session.blob`, and the model with Read.
    pub blob_id: BlobId,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its media type, for example `text/plain`.
    pub media_type: String,
}

impl From<&Blob> for BlobRef {
    fn from(blob: &Blob) -> Self {
        Self { blob_id: blob.blob_id, bytes: blob.len(), media_type: blob.media_type.clone() }
    }
}

/// Kind of an attachment for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    /// A picture: PNG, JPEG, GIF or WebP.
    Image,
    /// A PDF.
    Document,
}

/// A picture or a document in the result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Picture or document.
    pub kind: AttachmentKind,
    /// Its content.
    #[serde(flatten)]
    pub blob: BlobRef,
    /// Its name for users and models, for example the file's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Whether the result's text contains the same information. If so, a model that receives the attachment does not
    /// receive the text.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub in_text: bool,
}

/// A picture from the user: PNG, JPEG, GIF or WebP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// Its content, as models receive it.
    #[serde(flatten)]
    pub blob: BlobRef,
    /// Its file name, or the name that the user gave.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
}

/// A PDF or a text file from the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// Its content.
    #[serde(flatten)]
    pub blob: BlobRef,
    /// Its file name, or the name that the user gave.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Its text; of a PDF, the text for models that accept no documents.
    pub text: String,
    /// Whether the text differs from the file of that name, because the user has not saved it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unsaved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Mint, Seed};

    #[test]
    fn blob_ids_differ_by_content_and_call() {
        let (one, same) = (Blob::text("a"), Blob::new(TEXT, *b"a"));
        assert_eq!(one.blob_id, same.blob_id);
        assert_ne!(one.blob_id, Blob::text("b").blob_id);
        assert_ne!(one.blob_id, Blob::new(JSON, *b"a").blob_id);
        let call = Mint::new(0, Seed(1)).call();
        let of_call = BlobId::of_call(call).to_string();
        assert_eq!(of_call.trim_start_matches("blob_"), call.to_string().trim_start_matches("call_"));
    }
}
