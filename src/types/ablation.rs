//! Switches that turn optimisations of a session off, to measure their effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Optimisations that a session does without, to measure their effect. `true` turns one off. They are fixed
/// when the session is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ablation {
    /// No thinking, whatever a session or turn asks for.
    pub thinking: bool,
    /// No thinking between tool calls of one answer, where it is a setting of the provider.
    pub interleaved_thinking: bool,
    /// No compaction unless a client requests it.
    pub auto_compaction: bool,
    /// No compaction at all.
    pub compaction: bool,
    /// No automatic memory.
    pub auto_memory: bool,
    /// No reminders for the model.
    pub reminders: bool,
    /// Tool calls start only when the whole answer is written.
    pub streaming_execution: bool,
    /// No commands in the background.
    pub background_tasks: bool,
}

impl Ablation {
    /// Everything is turned off: the bare loop.
    pub const ALL: Self = Self {
        thinking: true,
        interleaved_thinking: true,
        auto_compaction: true,
        compaction: true,
        auto_memory: true,
        reminders: true,
        streaming_execution: true,
        background_tasks: true,
    };

    /// Whether nothing is turned off.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
