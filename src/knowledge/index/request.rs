//! What a job shall do.

use serde::{Deserialize, Serialize};

use super::progress::Budget;
use crate::knowledge::types::Level;

/// What a job shall do. Stored with the job, so that a restart can continue it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRequest {
    /// The job's id.
    pub id: String,
    /// Files and folders relative to the workspace; all if empty.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How much is extracted.
    #[serde(default)]
    pub level: Level,
    /// Limit of a job at level semantic, which is refused without one.
    #[serde(default)]
    pub budget: Budget,
}
