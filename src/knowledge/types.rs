//! Plain values of the index: documents, chunks, entities, relations, progress, errors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of a document: `doc-` and 32 hexadecimal digits, unless the caller of an insert chose another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocId(pub String);

/// The id of a chunk: `chunk-` and 32 hexadecimal digits, a hash of document id, ordinal and content. Equal texts in two
/// documents are two chunks.
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

/// 128 bits of a blake3 hash as 32 hexadecimal digits. Each field is hashed with its length, so that fields cannot
/// run into each other.
#[must_use]
pub fn hash128(fields: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// How much an index job extracts. A higher level includes the lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Chunks with full-text search. No model.
    Lexical,
    /// Also entities and relations from syntax trees and headings. No model.
    #[default]
    Structure,
    /// Also entities and relations that a model extracts. Costs money.
    Semantic,
}

impl Level {
    /// The name on the wire and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Lexical => "lexical",
            Level::Structure => "structure",
            Level::Semantic => "semantic",
        }
    }

    /// The level with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Level::Lexical, Level::Structure, Level::Semantic].into_iter().find(|level| level.as_str() == name)
    }
}

/// Where a document is on its way into the index.
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

/// Where a document's text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentSource {
    /// A file of the workspace. Its document goes when the file goes.
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
    /// Where its text comes from.
    pub source: DocumentSource,
    /// State.
    pub status: DocumentStatus,
    /// The level that it was processed at.
    pub level: Level,
    /// Why it failed.
    pub error: Option<String>,
    /// Language of the text, such as `rust`, if known.
    pub language: Option<String>,
    /// Size of the text in bytes.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// When it was first seen, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When its state last changed.
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

/// A node of the graph. Its name is its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Unique name.
    pub name: String,
    /// What it is, in lower case: `function`, `file`, `person` …
    #[serde(rename = "type")]
    pub entity_type: String,
    /// What is known about it. Empty for a stub.
    pub description: String,
    /// Number of its relations.
    pub degree: u32,
    /// Only named as an end of a relation so far.
    pub stub: bool,
}

/// An undirected edge of the graph. The pair of its ends is its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// One end. `source` and `target` keep the direction in which the relation was first described.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Key words, separated by commas and sorted.
    pub keywords: String,
    /// What is known about it.
    pub description: String,
    /// Strength: at least the number of chunks that name it.
    pub weight: f64,
}

impl Relation {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> PairKey {
        PairKey::new(&self.source, &self.target)
    }
}

/// The key of a relation: both ends, the lesser first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairKey {
    a: String,
    b: String,
}

impl PairKey {
    /// The key of the relation between two names.
    #[must_use]
    pub fn new(one: &str, other: &str) -> Self {
        let (a, b) = if one <= other { (one, other) } else { (other, one) };
        Self { a: a.to_owned(), b: b.to_owned() }
    }

    /// The lesser name.
    #[must_use]
    pub fn first(&self) -> &str {
        &self.a
    }

    /// The greater name.
    #[must_use]
    pub fn second(&self) -> &str {
        &self.b
    }
}

/// A relation as the query needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The relation.
    pub relation: Relation,
    /// Degree of one end plus degree of the other.
    pub rank: u32,
}

/// One result of a search. A higher score is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit<K> {
    /// What was found.
    pub key: K,
    /// BM25 (negated, so that higher is better) or cosine similarity.
    pub score: f64,
}

/// The things that have vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// Name and description of an entity.
    Entity,
    /// Key words, ends and description of a relation.
    Relation,
    /// Path, symbol and text of a chunk.
    Chunk,
}

/// Number of rows, for status replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCounts {
    /// Documents in any state.
    pub documents: u64,
    /// Documents that failed.
    pub failed_documents: u64,
    /// Documents that are not finished: pending or processing.
    pub open_documents: u64,
    /// Chunks.
    pub chunks: u64,
    /// Entities, stubs included.
    pub entities: u64,
    /// Relations.
    pub relations: u64,
}

/// Model answers that the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Extraction of one chunk.
    Extract,
    /// Summary of descriptions.
    Summary,
    /// Keywords of a query.
    Keywords,
    /// Answer to a query.
    Query,
}

impl CacheKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Extract, Self::Summary, Self::Keywords, Self::Query];

    /// The name on the wire and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CacheKind::Extract => "extract",
            CacheKind::Summary => "summary",
            CacheKind::Keywords => "keywords",
            CacheKind::Query => "query",
        }
    }
}

/// What an index job does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// Lists the files.
    Scanning,
    /// Splits documents and stores their chunks (and, from level structure on, their graph).
    Chunking,
    /// Embeds chunks, entities and relations.
    Embedding,
    /// Asks the model for entities and relations.
    Extracting,
    /// Merges what was extracted into the graph.
    Merging,
    /// Asks the model to summarise descriptions.
    Summarizing,
}

/// Progress of an index job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// The stage.
    pub stage: JobStage,
    /// Units done in this stage.
    pub done: u64,
    /// Units in all; 0 while unknown.
    pub total: u64,
    /// Model tokens used by the job so far, input and output.
    pub tokens: u64,
    /// Cost of the job so far in micro-dollars.
    pub cost_usd_micros: u64,
}

/// How an index job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum JobOutcome {
    /// Everything was processed; failed documents are counted.
    Done {
        /// Documents whose chunks were written.
        indexed: u64,
        /// Documents that had not changed.
        unchanged: u64,
        /// Documents removed, because their file is gone or not allowed any more.
        removed: u64,
        /// Files that were skipped (binary, too large, secret).
        skipped: u64,
        /// Documents that failed.
        failed: u64,
    },
    /// The job was cancelled. What is not finished stays resumable.
    Cancelled,
    /// The job ended early.
    Failed {
        /// The error's text.
        error: String,
    },
}

/// What an index job reports to its sink. Exactly one `Ended` comes last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// Progress. The sink may drop it; the job reports at most ten a second, and the last of each stage.
    Progress(JobProgress),
    /// The end.
    Ended(JobOutcome),
}

/// Why a file is not indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// It does not exist any more.
    Gone,
    /// It is larger than the cap.
    TooLarge,
    /// Its path looks like a secret.
    Secret,
    /// It is outside the workspace, for example through a symbolic link.
    Outside,
    /// It could not be read.
    Unreadable(String),
}

/// The kinds of errors, by which `rpc/convert` chooses a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A parameter is wrong.
    Invalid,
    /// The document, entity, relation or job does not exist.
    NotFound,
    /// A thing with this name exists already.
    Exists,
    /// Not while an index job runs.
    Busy,
    /// The level needs a budget: the message holds the estimate.
    BudgetRequired,
    /// The budget is used up.
    BudgetExceeded,
    /// The index file could not be read or written.
    Storage,
    /// The index file is damaged. It is set aside, and the next job builds it again.
    Damaged,
    /// The model gave an error.
    Model,
    /// The embedder gave an error.
    Embedder,
    /// A file or the workspace could not be read.
    Files,
    /// The caller cancelled it.
    Cancelled,
}

impl ErrorKind {
    /// The machine-readable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Exists => "exists",
            ErrorKind::Busy => "busy",
            ErrorKind::BudgetRequired => "budget_required",
            ErrorKind::BudgetExceeded => "budget_exceeded",
            ErrorKind::Storage => "storage",
            ErrorKind::Damaged => "damaged",
            ErrorKind::Model => "model",
            ErrorKind::Embedder => "embedder",
            ErrorKind::Files => "files",
            ErrorKind::Cancelled => "cancelled",
        }
    }
}

/// An error of this folder. The message has the form "could not X: Y; do Z".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeError {
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// The text for users.
    pub message: String,
}

impl KnowledgeError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The error of a cancelled call.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "could not finish: it was cancelled; start it again to continue")
    }
}

impl fmt::Display for KnowledgeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for KnowledgeError {}
