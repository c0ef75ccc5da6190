//! Parameters of the methods about the notes of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::memory::MemoryNote;

/// `memory.list`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemoryListParams {
    /// The folder of the project.
    pub cwd: String,
    /// Only this note, with its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Reply of `memory.list`: at most 100 notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryListReply {
    /// The notes by name.
    pub notes: Vec<MemoryNote>,
}

/// `memory.set`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemorySetParams {
    /// The folder of the project.
    pub cwd: String,
    /// Name of the note: `a-z`, `0-9`, `_` and `-`.
    pub name: String,
    /// The whole text, at most 16 KiB. Its first line is its description.
    pub text: String,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `memory.set`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySetReply {
    /// The note as it is stored.
    pub note: MemoryNote,
}

/// `memory.remove`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRemoveParams {
    /// The folder of the project.
    pub cwd: String,
    /// Name of the note.
    pub name: String,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `memory.remove`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRemoveReply {
    /// Name of the removed note.
    pub name: String,
}
