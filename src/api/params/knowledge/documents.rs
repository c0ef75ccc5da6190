//! Documents of an index, and what is deleted from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text for the index that is not a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsertedDocument {
    /// An id of the caller; absent for one that is derived from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A name for references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The text.
    pub text: String,
}

/// `knowledge.insert`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertParams {
    /// The folder whose index takes the documents, absolute.
    pub workspace: String,
    /// The documents, at most 100.
    pub documents: Vec<InsertedDocument>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.insert`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertReply {
    /// The documents in the given order.
    pub documents: Vec<InsertedView>,
}

/// What became of an inserted document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsertedView {
    /// Its id.
    pub id: String,
    /// The index had the same document already.
    pub unchanged: bool,
}

/// `knowledge.documents.list`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Only documents in this state: `pending`, `processing`, `processed` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Documents per page, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A document of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentView {
    /// Its id.
    pub id: String,
    /// Its path; absent for an inserted document without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `pending`, `processing`, `processed` or `failed`.
    pub status: String,
    /// The level that it was processed at.
    pub level: String,
    /// `file` or `inserted`.
    pub source: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its language, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Size of its text.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// When its state last changed.
    pub updated_at_ms: i64,
}

/// Reply of `knowledge.documents.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsReply {
    /// The documents of this page.
    pub documents: Vec<DocumentView>,
    /// For the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `knowledge.documents.get`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentParams {
    /// The folder, absolute.
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
    /// Its symbol or heading.
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
    pub document: DocumentView,
    /// Its chunks in order, at most 500.
    pub chunks: Vec<ChunkView>,
}

/// `knowledge.documents.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentDeleteParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Id or path of the document.
    pub id: String,
    /// Also forget the answers of the model about it.
    #[serde(default)]
    pub delete_cache: bool,
    /// The same key returns the same reply.
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

/// The answers of models that an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheKindParam {
    /// Entities and relations of chunks.
    Extract,
    /// Summaries of descriptions.
    Summary,
    /// Keywords of queries.
    Keywords,
    /// Answers to queries.
    Query,
}

/// `knowledge.cache.clear`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Which answers; absent for those to queries and their keywords, which cost least to get again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<CacheKindParam>>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.cache.clear`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearReply {
    /// Answers that were removed.
    pub removed: u64,
}

/// `knowledge.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteReply {
    /// Whether there was an index.
    pub deleted: bool,
}
