//! Sizes and jobs of an index.

use serde::{Deserialize, Serialize};
use types::knowledge::{IndexProgress, IndexSummary};

/// Number of rows, for status replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCounts {
    /// Documents in any state.
    pub documents: u64,
    pub failed_documents: u64,
    /// Documents that are not finished: pending or processing.
    pub open_documents: u64,
    pub chunks: u64,
    /// Entities, stubs included.
    pub entities: u64,
    pub relations: u64,
}

/// The end of an index job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Everything was processed; failed documents are counted.
    Done(IndexSummary),
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
    Progress(IndexProgress),
    Ended(JobOutcome),
}
