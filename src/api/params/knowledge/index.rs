//! Parameters and replies for index jobs and for the state of an index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::knowledge::{IndexEstimate, IndexLevel, IndexProgress, IndexState, IndexSummary};

/// Limits of an index job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IndexBudget {
    /// Maximum tokens of the model, input and output together.
    Tokens(u64),
    /// Limits by name; at least one.
    Limits {
        /// Maximum tokens of the model, input and output together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// Maximum cost in US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
    },
}

/// `knowledge.index`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// At most 1,000 files and folders to index, relative to the workspace; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// How much is extracted; by default the level of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IndexLevel>,
    /// Limits for the level `semantic`. Without them, the daemon refuses this level, and the error gives the
    /// estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<IndexBudget>,
    /// Whether the daemon only estimates the job and does not start it.
    #[serde(default)]
    pub dry_run: bool,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.index`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexReply {
    /// Id of the job; absent with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The estimated work of the job.
    pub estimate: IndexEstimate,
}

/// `knowledge.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusParams {
    /// The workspace folder, absolute.
    pub workspace: String,
}

/// The newest job of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexJobView {
    /// Its id.
    pub job_id: String,
    /// `running`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// Its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<IndexProgress>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<IndexSummary>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reply of `knowledge.status`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusReply {
    /// State of the index.
    pub state: IndexState,
    /// The level of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<IndexJobView>,
    /// Whether the daemon watches its files and starts a job when one changes.
    #[serde(default)]
    pub watched: bool,
    /// A notice for the user, for example about data that was lost with a damaged file. The next `knowledge.index`
    /// removes the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// `knowledge.cancel` and `knowledge.subscribe`: select a job or a query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeWorkParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Id of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Id of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_id: Option<String>,
}

/// Reply of `knowledge.cancel`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCancelReply {
    /// Whether the job or query was running.
    pub cancelled: bool,
}
