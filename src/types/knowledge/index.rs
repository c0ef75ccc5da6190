//! The index of a workspace and the jobs that build it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a workspace an index holds. Each level includes the ones before it.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum IndexLevel {
    /// Chunks with full-text search. No model.
    Lexical,
    /// Also a graph from syntax trees and headings. No model.
    #[default]
    Structure,
    /// Also entities and relations that a model extracts. It costs money and needs a budget.
    Semantic,
}

impl IndexLevel {
    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The level with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Lexical, Self::Structure, Self::Semantic].into_iter().find(|level| level.as_str() == name)
    }
}

/// The state of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// The workspace has no index.
    None,
    /// A job works on the index. Queries use the content that is indexed already.
    Indexing,
    /// The index can be queried.
    Ready,
    /// The last job failed. Queries use the content that is indexed already.
    Failed,
}

/// The current stage of an index job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexStage {
    /// Lists files.
    Scanning,
    /// Splits texts into chunks and stores them with their graph.
    Chunking,
    /// Computes vectors.
    Embedding,
    /// Asks the model for entities and relations.
    Extracting,
    /// Merges entities and relations into the graph.
    Merging,
    /// Asks the model for summaries of descriptions.
    Summarizing,
}

/// Progress of an index job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexProgress {
    /// The stage.
    pub stage: IndexStage,
    /// Number of finished units of the stage.
    pub done: u64,
    /// Number of all units of the stage; 0 while unknown.
    pub total: u64,
    /// Tokens that the job has used.
    pub tokens: u64,
    /// Cost of these tokens in millionths of a dollar.
    pub cost_usd_micros: u64,
}

/// The result of an index job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexSummary {
    /// Number of documents that were read.
    pub indexed: u64,
    /// Number of documents that had not changed.
    pub unchanged: u64,
    /// Number of documents that were removed, because their file no longer exists or is no longer allowed.
    pub removed: u64,
    /// Number of files that were left out: binary, too large, or secret.
    pub skipped: u64,
    /// Number of documents that failed.
    pub failed: u64,
    /// Number of documents with code that are searched as plain text only, because it is minified or took too long.
    #[serde(default)]
    pub plain: u64,
    /// A warning about a part that failed and was left out, for example the vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The estimated work of an index job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexEstimate {
    /// Number of files to read.
    pub files: u64,
    /// Number of documents that have not changed.
    pub unchanged: u64,
    /// Number of documents whose file no longer exists.
    pub removed: u64,
    /// Size of the files to read, in bytes.
    pub bytes: u64,
    /// Approximate number of chunks of these files.
    pub chunks: u64,
    /// Number of model calls at level `semantic`, without those for summaries.
    pub model_calls: u64,
    /// Input tokens of these calls.
    pub input_tokens: u64,
    /// Output tokens of these calls.
    pub output_tokens: u64,
    /// Sum of the input and output tokens.
    pub tokens: u64,
    /// Cost of these tokens in millionths of a dollar: 0 without a model, `null` if the price is unknown.
    pub cost_usd_micros: Option<u64>,
}

/// A started index job, or only its estimate: the reply of `knowledge.index`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedIndexJob {
    /// Id of the job; absent with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The estimated work of the job.
    pub estimate: IndexEstimate,
}

/// The newest job of an index.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexJobView {
    /// Its id.
    pub job_id: String,
    /// `running`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// Its progress.
    pub progress: Option<IndexProgress>,
    /// Its result.
    pub summary: Option<IndexSummary>,
    /// Why it failed.
    pub error: Option<String>,
}

/// State and size of an index: the reply of `knowledge.status`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexStatus {
    /// State of the index.
    pub state: IndexState,
    /// The level of the index.
    pub level: Option<IndexLevel>,
    /// Number of documents.
    pub documents: u64,
    /// Number of documents that failed.
    pub failed_documents: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of entities.
    pub entities: u64,
    /// Number of relations.
    pub relations: u64,
    /// A number that rises with each change of the index.
    pub generation: u64,
    /// The newest job since the daemon started.
    pub job: Option<IndexJobView>,
    /// Whether the daemon watches its files and starts a job when one changes.
    #[serde(default)]
    pub watched: bool,
    /// A notice for the user, for example about data that was lost with a damaged file. The next `knowledge.index`
    /// removes the notice.
    pub notice: Option<String>,
    /// Folders that the last job over the whole workspace left out, because they hold dependencies or results of
    /// builds, at most 100. A job whose `paths` name one of them reads it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out_folders: Vec<String>,
    /// Number of files that were read and left out, because they are no text or hold a secret.
    #[serde(default)]
    pub left_out_files: u64,
}

/// Kinds of model answers that an index caches.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CacheKind {
    /// Entities and relations of chunks.
    Extract,
    /// Summaries of descriptions.
    Summary,
    /// Keywords of queries.
    Keywords,
    /// Answers to queries.
    Query,
}

impl CacheKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Extract, Self::Summary, Self::Keywords, Self::Query];

    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
