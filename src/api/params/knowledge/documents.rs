//! Parameters and replies for the documents of an index, and for deletion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::knowledge::{CacheKind, Document, InsertOutcome, InsertedDocument};

/// `knowledge.insert`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertParams {
    /// The workspace folder whose index receives the documents, absolute.
    pub workspace: String,
    /// The documents, at most 100.
    pub documents: Vec<InsertedDocument>,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.insert`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertReply {
    /// The documents in the given order.
    pub documents: Vec<InsertOutcome>,
}

/// `knowledge.documents.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Only documents in this state: `pending`, `processing`, `processed` or `failed`.
    pub status: Option<String>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Documents per page, at most 500; 100 by default.
    pub limit: Option<u32>,
}

/// Reply of `knowledge.documents.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsReply {
    /// The documents of this page.
    pub documents: Vec<Document>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `knowledge.documents.get`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Id or path of the document.
    pub id: String,
}

/// A chunk of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkView {
    /// Its id.
    pub chunk_id: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// The symbol or heading that it contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Number of its tokens.
    pub tokens: u32,
    /// Its text.
    pub content: String,
}

/// Reply of `knowledge.documents.get`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentReply {
    /// The document.
    pub document: Document,
    /// Its chunks in order, at most 500.
    pub chunks: Vec<ChunkView>,
}

/// `knowledge.documents.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentDeleteParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Id or path of the document.
    pub id: String,
    /// Whether cached answers of the model about it are deleted as well.
    #[serde(default)]
    pub delete_cache: bool,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.documents.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentDeleteReply {
    /// `success`, `not_found`, `not_allowed` (a job works on the index) or `fail`.
    pub status: String,
    /// Why it was not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `knowledge.cache.clear`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// The kinds to delete. By default `query` and `keywords`, which cost least to request again.
    pub kinds: Option<Vec<CacheKind>>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.cache.clear`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearReply {
    /// Number of removed answers.
    pub removed: u64,
}

/// `knowledge.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteReply {
    /// Whether there was an index.
    pub deleted: bool,
}
