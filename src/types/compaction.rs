//! Compaction: making the conversation fit the model's context window. Each stage writes an edit into the journal,
//! so a request is always a function of the journal. The journal keeps the original events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_values::part;
use super::ids::CallId;
use super::message::Message;

/// `[compaction]`: the stages and their limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionSettings {
    /// `PROVIDER/MODEL` that writes the summaries; absent for the model of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether a model summarises the conversation when the other stages do not suffice.
    pub auto: bool,
    /// Part of the usable window at which compaction starts, above 0 and at most 1. The engine rounds it to percent.
    #[serde(deserialize_with = "part")]
    pub threshold: f64,
    /// Whether long tool results are shortened.
    pub tool_results: bool,
    /// Whether results that later calls made useless are cleared.
    pub snip: bool,
    /// Whether old tool results are cleared.
    pub microcompact: bool,
    /// Whether old turns are shortened.
    pub collapse: bool,
    /// Tokens of the newest messages, which compaction does not change; at most a quarter of the usable window.
    pub keep_recent_tokens: u64,
    /// Number of failed summaries in a row after which the session requests no further summary by itself.
    pub max_failures: u32,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            model: None,
            auto: true,
            threshold: 0.8,
            tool_results: true,
            snip: true,
            microcompact: true,
            collapse: true,
            keep_recent_tokens: 20_000,
            max_failures: 3,
        }
    }
}

impl CompactionSettings {
    /// The threshold in percent.
    #[must_use]
    pub fn threshold_percent(&self) -> u64 {
        percent(self.threshold)
    }
}

/// Converts a part of a whole to percent, rounded.
#[must_use]
pub fn percent(part: f64) -> u64 {
    (part * 100.0).round() as u64
}

/// A stage of compaction, in the order in which the stages run.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CompactStage {
    /// A long tool result is replaced by its beginning, its end, and a reference to the full text.
    ToolResults,
    /// Results that later calls made useless are cleared: earlier reads of a file, failed attempts.
    Snip,
    /// Old tool results are cleared, oldest first.
    Microcompact,
    /// Old turns are replaced by a short text about each.
    Collapse,
    /// A model summarises the conversation; the newest messages stay.
    Autocompact,
}

impl CompactStage {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why the conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactTrigger {
    /// The next request would exceed the threshold of `[compaction]`.
    Auto,
    /// A user requested it.
    Manual,
    /// The provider refused a request as too long.
    Overflow,
}

/// A change of the messages that later requests contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowEdit {
    /// Replaces the contents of tool results.
    Results {
        /// The replaced results, in the order of the conversation.
        results: Vec<ReplacedResult>,
    },
    /// Replaces some messages by others.
    Messages {
        /// Number of messages before the first replaced one.
        from: u64,
        /// Number of replaced messages.
        count: u64,
        /// The messages that replace them.
        messages: Vec<Message>,
    },
}

/// The new content of a tool result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplacedResult {
    /// The call whose result it is.
    pub call_id: CallId,
    /// The text that models receive from now on.
    pub content: String,
}

/// A request of a user to compact the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactRequest {
    /// The user's instructions about the content that the summary must keep.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instructions: Option<String>,
}
