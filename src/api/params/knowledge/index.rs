//! Index jobs: start, follow, cancel, and the state of an index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::knowledge::{IndexEstimate, IndexLevel, IndexProgress, IndexState, IndexSummary};

/// What an index job may spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IndexBudget {
    /// Tokens of the model, input and output together.
    Tokens(u64),
    /// Limits by name; at least one.
    Limits {
        /// Tokens of the model, input and output together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
    },
}

/// `knowledge.index`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Files and folders below it, relative; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// How much is extracted; absent for that of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IndexLevel>,
    /// What the level `semantic` may spend. Without it, that level is refused with the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<IndexBudget>,
    /// Estimate only.
    #[serde(default)]
    pub dry_run: bool,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.index`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexReply {
    /// The job; absent with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What it will do.
    pub estimate: IndexEstimate,
}

/// `knowledge.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusParams {
    /// The folder, absolute.
    pub workspace: String,
}

/// The newest job of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexJobView {
    /// Its id.
    pub job_id: String,
    /// `running`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<IndexProgress>,
    /// What it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<IndexSummary>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reply of `knowledge.status`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusReply {
    /// The state.
    pub state: IndexState,
    /// The level of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IndexLevel>,
    /// Number of documents.
    pub documents: u64,
    /// Documents that failed.
    pub failed_documents: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of entities.
    pub entities: u64,
    /// Number of relations.
    pub relations: u64,
    /// Rises with each change of the index.
    pub generation: u64,
    /// The newest job since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<IndexJobView>,
    /// Whether its files are watched, so that a change starts a job.
    #[serde(default)]
    pub watched: bool,
    /// What a user must know, for example what was lost with a damaged file. The next `knowledge.index` takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// `knowledge.cancel` and `knowledge.subscribe`: a job or a query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeWorkParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_id: Option<String>,
}

/// Reply of `knowledge.cancel`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCancelReply {
    /// Whether it was running.
    pub cancelled: bool,
}
