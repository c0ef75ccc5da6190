//! Settings of a session that come from its project's configuration file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values of the project's configuration file for the engine and the tools, fixed when the session is created.
/// Absent values are as in the daemon's configuration.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProjectSettings {
    /// `PROVIDER/MODEL` that answers when the provider limits the rate.
    pub backup_model: Option<String>,
    /// `PROVIDER/MODEL` for conversations that exceed the window.
    pub large_context_model: Option<String>,
    /// `PROVIDER/MODEL` for images.
    pub vision_model: Option<String>,
    /// Maximum output tokens of the first request for an answer.
    pub output_tokens: Option<u32>,
    /// How the conversation is made to fit the window.
    #[serde(skip_serializing_if = "CompactionOverrides::is_none")]
    pub compaction: CompactionOverrides,
    /// Time limit of a command that sets none, in milliseconds.
    pub bash_timeout_ms: Option<u64>,
    /// Maximum number of parallel calls. A lower limit of the daemon has priority.
    pub parallel_tools: Option<u64>,
    /// Maximum number of background commands. A lower limit of the daemon has priority.
    pub background_commands: Option<u64>,
    /// Maximum bytes of one result for the model. A lower limit of the daemon has priority.
    pub max_result_bytes: Option<u64>,
    /// Maximum bytes of all results of one message. A lower limit of the daemon has priority.
    pub max_results_total_bytes: Option<u64>,
}

/// Values of `[compaction]` in the project's configuration file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompactionOverrides {
    /// Whether a model summarises the conversation when the other stages do not suffice.
    pub auto: Option<bool>,
    /// Part of the usable window, in percent, from which on the conversation is compacted.
    pub threshold_percent: Option<u64>,
    /// Whether long tool results are shortened.
    pub tool_results: Option<bool>,
    /// Whether results are cleared that later calls made useless.
    pub snip: Option<bool>,
    /// Whether old tool results are cleared.
    pub microcompact: Option<bool>,
    /// Whether old turns are shortened.
    pub collapse: Option<bool>,
    /// Tokens of the newest messages that stay as they are.
    pub keep_recent_tokens: Option<u64>,
    /// Number of failed summaries in a row after which the session requests no summary by itself.
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
