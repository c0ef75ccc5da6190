//! Settings of the engine that come from the configuration, with their defaults.

use std::sync::Arc;

use crate::model_catalog::{ModelCatalog, TitleModel};
use types::compaction::CompactionSettings;
use types::model_pointers::ModelPointers;
use types::retry::RetrySettings;
use types::session::OnRestart;
use types::tool::{OfferUnsandboxedRetry, ToolDefinition};
use types::unattended::UnattendedSettings;

/// Default limit of an answer in tokens, if no setting gives another limit.
pub(crate) const DEFAULT_OUTPUT_TOKENS: u32 = 32_000;

/// Settings of the engine, shared by all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy for failed model calls and interrupted turns.
    pub retry: RetrySettings,
    /// The pointers of `[models]`: the models that replace the session's own after a failure, and others.
    pub models: ModelPointers,
    /// The model that generates titles; `None` turns titles off.
    pub quick: Option<TitleModel>,
    /// Known capabilities of models.
    pub known: ModelCatalog,
    /// Default output limit in tokens, for models that allow more.
    pub output_tokens: u32,
    /// Maximum number of tools that run in parallel.
    pub parallel_tools: usize,
    /// Handling of interrupted turns, for sessions without their own setting.
    pub on_restart: OnRestart,
    /// Maximum bytes of one tool result for the model.
    pub result_bytes: usize,
    /// Maximum bytes of all tool results of one message.
    pub results_bytes: usize,
    /// Maximum number of background commands per session at once; 0 allows none.
    pub background_commands: usize,
    /// Number of identical calls in a row with identical results after which the user is asked; 0 for never.
    pub repeat_limit: u32,
    /// Maximum number of sub-agents per session at once; 0 allows none.
    pub subagents: usize,
    /// The tools that models are offered.
    pub tools: Arc<[ToolDefinition]>,
    /// The tool that loads deferred tool definitions.
    pub tool_search: Option<ToolDefinition>,
    /// Permission requests of unattended sessions.
    pub unattended: UnattendedSettings,
    /// Whether commands that the sandbox blocked may be offered to run outside of it.
    pub offer_unsandboxed_retry: OfferUnsandboxedRetry,
    /// Settings for making the conversation fit the model's context window.
    pub compaction: CompactionSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetrySettings::default(),
            models: ModelPointers::default(),
            quick: None,
            known: ModelCatalog::default(),
            output_tokens: DEFAULT_OUTPUT_TOKENS,
            parallel_tools: 10,
            on_restart: OnRestart::Resume,
            result_bytes: 128 * 1024,
            results_bytes: 256 * 1024,
            background_commands: 8,
            repeat_limit: 8,
            subagents: 10,
            tools: Arc::from([]),
            tool_search: None,
            unattended: UnattendedSettings::default(),
            offer_unsandboxed_retry: OfferUnsandboxedRetry::default(),
            compaction: CompactionSettings::default(),
        }
    }
}
