//! Switches that turn optimisations of a session off, to measure their effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Switches for the optimisations of a session, to measure their effect. `true` turns an optimisation off. The
/// switches are fixed when the session is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ablation {
    /// No thinking, even if a session or turn requests it.
    pub thinking: bool,
    /// No thinking between tool calls of one answer, if the provider has such a setting.
    pub interleaved_thinking: bool,
    /// No compaction unless a client requests it.
    pub auto_compaction: bool,
    /// No compaction at all.
    pub compaction: bool,
    /// No automatic memory.
    pub auto_memory: bool,
    /// No reminders for the model.
    pub reminders: bool,
    /// Tool calls start only after the model has written its whole answer.
    pub streaming_execution: bool,
    /// No commands in the background.
    pub background_tasks: bool,
}

impl Ablation {
    /// All optimisations are turned off.
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
