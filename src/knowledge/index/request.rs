//! The request of an index job.

use serde::{Deserialize, Serialize};

use super::progress::Budget;
use types::knowledge::IndexLevel;

/// The request of an index job. It is stored with the job, so that a restart can continue it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRequest {
    /// The job's id.
    pub id: String,
    /// Files and folders relative to the workspace; all if empty.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Level of extraction.
    #[serde(default)]
    pub level: IndexLevel,
    /// Limit of a job at level semantic, which is refused without one.
    #[serde(default)]
    pub budget: Budget,
}
