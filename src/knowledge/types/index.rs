//! Levels, sizes, cached answers and jobs of an index.

use serde::{Deserialize, Serialize};

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

/// The current stage of an index job.
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
    /// Merges extracted records into the graph.
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

/// The end of an index job.
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
        /// Parts that failed and were omitted, such as vectors.
        warning: Option<String>,
    },
    /// The job was cancelled. Unfinished parts can be resumed.
    Cancelled,
    /// The job ended early.
    Failed {
        /// The error's text.
        error: String,
    },
}

/// An event of an index job for its sink. Exactly one `Ended` is sent last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// Progress. The sink may drop it; the job reports at most ten a second, and the last of each stage.
    Progress(JobProgress),
    /// The end.
    Ended(JobOutcome),
}
