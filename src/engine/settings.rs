//! Settings of the engine that come from the configuration, with their defaults.

use std::sync::Arc;

use crate::model_catalog::{FallbackModels, ModelCatalog, TitleModel};
use types::compaction::CompactionSettings;
use types::permission::OnTimeout;
use types::session::OnRestart;
use types::tool::{OfferUnsandboxedRetry, ToolDefinition};

/// Default limit of an answer in tokens, if no setting gives another limit.
pub(crate) const DEFAULT_OUTPUT_TOKENS: u32 = 32_000;

/// Settings of the engine, shared by all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy for retries of failed model calls.
    pub retry: RetrySettings,
    /// Models that replace the session's own after a failure.
    pub fallback_models: FallbackModels,
    /// The model that generates titles; `None` turns titles off.
    pub quick: Option<TitleModel>,
    /// Known capabilities of models.
    pub known: ModelCatalog,
    /// Default output limit in tokens, for models that allow more.
    pub output_tokens: u32,
    /// Maximum number of tools that run in parallel.
    pub parallel_tools: usize,
    /// How often a turn is resumed after restarts before it ends.
    pub max_resumes: u32,
    /// The wait before the second resume, in milliseconds. The wait doubles with each further resume.
    pub resume_base_ms: u64,
    /// Handling of interrupted turns, for sessions without their own setting.
    pub on_restart: OnRestart,
    /// Maximum bytes of one tool result for the model.
    pub result_bytes: usize,
    /// Maximum bytes of all tool results of one message.
    pub results_bytes: usize,
    /// Maximum number of background commands per session at once; 0 allows none.
    pub background_commands: usize,
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
            fallback_models: FallbackModels::default(),
            quick: None,
            known: ModelCatalog::default(),
            output_tokens: DEFAULT_OUTPUT_TOKENS,
            parallel_tools: 10,
            max_resumes: 3,
            resume_base_ms: 2_000,
            on_restart: OnRestart::Resume,
            result_bytes: 128 * 1024,
            results_bytes: 256 * 1024,
            background_commands: 8,
            subagents: 10,
            tools: Arc::from([]),
            tool_search: None,
            unattended: UnattendedSettings::default(),
            offer_unsandboxed_retry: OfferUnsandboxedRetry::default(),
            compaction: CompactionSettings::default(),
        }
    }
}

/// Handling of permission requests in unattended sessions. Only the user's configuration sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnattendedSettings {
    /// How long a request waits, in milliseconds. With `None`, a call that needs a request is denied at once.
    pub deadline_ms: Option<u64>,
    /// The action when a request was not answered in time.
    pub on_timeout: OnTimeout,
}

impl Default for UnattendedSettings {
    fn default() -> Self {
        Self { deadline_ms: Some(3_600_000), on_timeout: OnTimeout::Deny }
    }
}

/// Policy for retries of failed model calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Maximum attempts at one model call, including the first.
    pub attempts: u32,
    /// First wait, in milliseconds. Each further wait is twice as long.
    pub base_ms: u64,
    /// Maximum wait between attempts, in milliseconds.
    pub max_ms: u64,
    /// The longest wait in unattended sessions for rate limits and overloads, in milliseconds.
    pub unattended_max_ms: u64,
    /// Longest wait that a provider may request in attended sessions, in milliseconds. A longer wait
    /// ends the turn with an error.
    pub max_retry_after_ms: u64,
    /// Interval at which a long wait is reported, in milliseconds.
    pub heartbeat_ms: u64,
    /// Reaction to a rate limit.
    pub on_rate_limit: OnRateLimit,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 10,
            base_ms: 500,
            max_ms: 32_000,
            unattended_max_ms: 300_000,
            max_retry_after_ms: 600_000,
            heartbeat_ms: 30_000,
            on_rate_limit: OnRateLimit::Wait,
        }
    }
}

/// Reaction to a rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRateLimit {
    /// Wait and retry the same model.
    #[default]
    Wait,
    /// Switch to the backup model.
    Backup,
}
