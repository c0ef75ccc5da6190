//! Notes about a project that sessions share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// A note of a project's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryNote {
    /// Its name: `a-z`, `0-9`, `_` and `-`.
    pub name: String,
    /// The first line of its text.
    pub description: String,
    /// Bytes of its text.
    pub bytes: u64,
    /// Time of the last write.
    pub updated_at_ms: Timestamp,
    /// Its text, if the client requested a single note.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}
