//! Reminders: short texts of the daemon for the model, attached to the newest message of the user's role.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The occasion of a reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReminderKind {
    /// The conversation begins, or began again after `/clear`.
    SessionStart,
    /// Files that the model has read were changed outside the session.
    FilesChanged,
    /// Project instructions changed since the system prompt was built.
    InstructionsChanged,
    /// The mode is `plan`.
    PlanMode,
    /// The conversation was compacted.
    Compacted,
    /// The text that an edit should replace occurs several times in the file.
    SeveralMatches,
    /// The date changed since the model received it.
    NewDay,
    /// MCP servers are not available.
    ServersFailed,
    /// Sub-agents in the background were aborted while no turn ran.
    SubagentsAborted,
    /// The todo list is empty during long work.
    TodoEmpty,
    /// The todo list was not updated for several steps.
    TodoStale,
    /// The model made the same call several times in a row, with the same result.
    RepeatedCall,
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Absolute path.
    pub path: PathBuf,
    /// SHA-256 of the content in hexadecimal; empty if the file does not exist.
    pub digest: String,
}
