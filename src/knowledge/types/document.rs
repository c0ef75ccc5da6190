//! Documents and their chunks.

use serde::{Deserialize, Serialize};

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

/// One part of a document, the unit of search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub id: ChunkId,
    /// The document that it belongs to.
    pub doc_id: DocId,
    /// The document's path.
    pub path: Option<String>,
    /// Position among the chunks of its document, from 0.
    pub ordinal: u32,
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
