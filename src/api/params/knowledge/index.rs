//! Parameters and replies for index jobs and for the state of an index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::knowledge::IndexLevel;

/// Limits of an index job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IndexBudget {
    /// Maximum tokens of the model, input and output together.
    Tokens(u64),
    /// Limits by name; at least one.
    Limits {
        /// Maximum tokens of the model, input and output together.
        tokens: Option<u64>,
        /// Maximum cost in US dollars.
        usd: Option<f64>,
    },
}

/// `knowledge.index`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// At most 1,000 files and folders to index, relative to the workspace; absent for all.
    pub paths: Option<Vec<String>>,
    /// How much is extracted; by default the level of the configuration.
    pub level: Option<IndexLevel>,
    /// Limits for the level `semantic`. Without them, the daemon refuses this level, and the error gives the
    /// estimate.
    pub budget: Option<IndexBudget>,
    /// Whether the daemon only estimates the job and does not start it.
    #[serde(default)]
    pub dry_run: bool,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
}

/// `knowledge.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusParams {
    /// The workspace folder, absolute.
    pub workspace: String,
}

/// `knowledge.cancel`: selects a job or a query.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCancelParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Id of the job.
    pub job_id: Option<String>,
    /// Id of the query.
    pub query_id: Option<String>,
    /// Repeating the call with the same key returns the first reply.
    pub idempotency_key: Option<String>,
}

/// `knowledge.subscribe`: selects a job or a query.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeWorkParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Id of the job.
    pub job_id: Option<String>,
    /// Id of the query.
    pub query_id: Option<String>,
}

/// Reply of `knowledge.cancel`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCancelReply {
    /// Whether the job or query was running.
    pub cancelled: bool,
}
