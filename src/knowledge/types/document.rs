//! Documents and their chunks.

use serde::{Deserialize, Serialize};

use super::index::Level;

/// The id of a document: `doc-` and 32 hexadecimal digits, unless the caller of an insert chose another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocId(pub String);

/// The id of a chunk: `chunk-` and 32 hexadecimal digits, a hash of document id, ordinal and content. Equal texts in
/// two documents are two chunks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChunkId(pub String);

impl DocId {
    /// The id of a document without an id of its own.
    #[must_use]
    pub fn from_content(text: &[u8]) -> Self {
        Self(format!("doc-{}", hash128(&[text])))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ChunkId {
    /// The id of the chunk at `ordinal` (from 0) of a document.
    #[must_use]
    pub fn of_chunk(doc: &DocId, ordinal: u32, text: &str) -> Self {
        Self(format!("chunk-{}", hash128(&[doc.0.as_bytes(), &ordinal.to_le_bytes(), text.as_bytes()])))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// 128 bits of a blake3 hash as 32 hexadecimal digits. Each field is hashed with its length, so that shifted
/// field boundaries give another hash.
#[must_use]
pub fn hash128(fields: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The state of a document during indexing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentStatus {
    /// Known, not begun.
    Pending,
    /// Begun. After a crash it begins again; cached answers are reused.
    Processing,
    /// Completely in the index.
    Processed,
    /// Gave an error, which the document holds.
    Failed,
}

impl DocumentStatus {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Processing, Self::Processed, Self::Failed];

    /// The name on the wire and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DocumentStatus::Pending => "pending",
            DocumentStatus::Processing => "processing",
            DocumentStatus::Processed => "processed",
            DocumentStatus::Failed => "failed",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// The origin of a document's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentSource {
    /// A file of the workspace. Its document is deleted with the file.
    File,
    /// A text that a client inserted.
    Inserted,
}

/// One document without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Its id.
    pub id: DocId,
    /// Path relative to the workspace, with `/`. Inserted documents may have none.
    pub path: Option<String>,
    /// Hash of the content.
    pub hash: String,
    /// The origin of its text.
    pub source: DocumentSource,
    /// State during indexing.
    pub status: DocumentStatus,
    /// The level at which it was processed.
    pub level: Level,
    /// The reason of the failure.
    pub error: Option<String>,
    /// Language of the text, such as `rust`, if known.
    pub language: Option<String>,
    /// Size of the text in bytes.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// Time at which it was first seen, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Time at which the state last changed, in milliseconds since the Unix epoch.
    pub updated_at_ms: i64,
}

/// One part of a document, the unit of search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its id.
    pub id: ChunkId,
    /// The document that it belongs to.
    pub doc_id: DocId,
    /// The document's path.
    pub path: Option<String>,
    /// Position among the chunks of its document, from 0.
    pub ordinal: u32,
    /// The text.
    pub text: String,
    /// Number of o200k tokens of `text`.
    pub tokens: u32,
    /// Byte offset of its first byte in the document.
    pub start_byte: u64,
    /// Byte offset after its last byte.
    pub end_byte: u64,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// Language, such as `rust`.
    pub language: Option<String>,
    /// The path of the symbol that it holds, such as `Registry::submit`, or of its heading.
    pub symbol: Option<String>,
    /// Hash of `text`: embeddings and extraction answers are shared between equal texts.
    pub content_hash: String,
}

/// The reason why a file is not indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// The file does not exist any more.
    Gone,
    /// The file is larger than the limit.
    TooLarge,
    /// The path looks like a secret.
    Secret,
    /// The file is outside the workspace, for example through a symbolic link.
    Outside,
    /// The file could not be read.
    Unreadable(String),
}
