//! The index of a workspace and the jobs that make it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a workspace an index holds. Each level includes the ones before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IndexLevel {
    /// Chunks with full-text search. No model.
    Lexical,
    /// Also a graph from syntax trees and headings. No model.
    #[default]
    Structure,
    /// Also entities and relations that a model extracts. It costs money and needs a budget.
    Semantic,
}

/// The state of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// The workspace has no index.
    None,
    /// A job works on it. Queries are answered from what is there.
    Indexing,
    /// It can be queried.
    Ready,
    /// The last job failed. Queries are answered from what is there.
    Failed,
}

/// What an index job does at the moment.
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
    /// Finished units of the stage.
    pub done: u64,
    /// All units of the stage; 0 while unknown.
    pub total: u64,
    /// Tokens that the job has used.
    pub tokens: u64,
    /// What they cost in micro-dollars.
    pub cost_usd_micros: u64,
}

/// What an index job did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexSummary {
    /// Documents that were read.
    pub indexed: u64,
    /// Documents that had not changed.
    pub unchanged: u64,
    /// Documents that were removed, because their file is gone or not allowed any more.
    pub removed: u64,
    /// Files that were left out: binary, too large, or secret.
    pub skipped: u64,
    /// Documents that failed.
    pub failed: u64,
    /// What did not work and was left out, such as vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// What an index job will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexEstimate {
    /// Files to read.
    pub files: u64,
    /// Documents that are as they were.
    pub unchanged: u64,
    /// Documents whose file is gone.
    pub removed: u64,
    /// Size of the files to read.
    pub bytes: u64,
    /// Chunks that they will make, roughly.
    pub chunks: u64,
    /// Calls of the model at level `semantic`, without summaries.
    pub model_calls: u64,
    /// Tokens to the model.
    pub input_tokens: u64,
    /// Tokens from the model.
    pub output_tokens: u64,
    /// All these tokens.
    pub tokens: u64,
    /// Their cost in micro-dollars: 0 without a model, `null` if the price is unknown.
    pub cost_usd_micros: Option<u64>,
}
