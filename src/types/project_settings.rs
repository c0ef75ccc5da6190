//! Settings of a session that come from its project's configuration file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values of the project's configuration file for the engine and the tools, fixed when the session is created.
/// Absent values are as in the daemon's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectSettings {
    /// `PROVIDER/MODEL` that answers when the provider limits the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_model: Option<String>,
    /// `PROVIDER/MODEL` for conversations that exceed the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_context_model: Option<String>,
    /// `PROVIDER/MODEL` for images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision_model: Option<String>,
    /// Maximum output tokens of the first request for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// How the conversation is made to fit the window.
    #[serde(skip_serializing_if = "CompactionOverrides::is_none")]
    pub compaction: CompactionOverrides,
    /// Time limit of a command that sets none, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bash_timeout_ms: Option<u64>,
    /// Maximum number of parallel calls. A lower limit of the daemon has priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tools: Option<u64>,
    /// Maximum number of background commands. A lower limit of the daemon has priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_commands: Option<u64>,
    /// Maximum bytes of one result for the model. A lower limit of the daemon has priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_bytes: Option<u64>,
    /// Maximum bytes of all results of one message. A lower limit of the daemon has priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results_total_bytes: Option<u64>,
}

/// Values of `[compaction]` in the project's configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompactionOverrides {
    /// Whether a model summarises the conversation when the other stages do not suffice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
    /// Part of the usable window, in percent, from which on the conversation is compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_percent: Option<u64>,
    /// Whether long tool results are shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<bool>,
    /// Whether results are cleared that later calls made useless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snip: Option<bool>,
    /// Whether old tool results are cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcompact: Option<bool>,
    /// Whether old turns are shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse: Option<bool>,
    /// Tokens of the newest messages that stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_recent_tokens: Option<u64>,
    /// Number of failed summaries in a row after which the session requests no summary by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
}

impl ProjectSettings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl CompactionOverrides {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
