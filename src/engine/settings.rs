//! Settings of the engine that come from the configuration, with their defaults.

use std::sync::Arc;

use crate::engine::decide::output_limit::DEFAULT_OUTPUT_TOKENS;
use crate::engine::decide::retry::Retry;
use crate::engine::model_catalog::{FallbackModels, ModelCatalog, TitleModel};
use crate::types::permission::OnTimeout;
use crate::types::session::OnRestart;
use crate::types::tool::{OfferUnsandboxedRetry, ToolDefinition};

/// Settings of the engine, shared by all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How failed model calls are retried.
    pub retry: Retry,
    /// Models that replace the session's own after a failure.
    pub stand_ins: FallbackModels,
    /// The model that generates titles; `None` turns titles off.
    pub quick: Option<TitleModel>,
    /// Known capabilities of models.
    pub known: ModelCatalog,
    /// Default output limit in tokens, for models that allow more.
    pub output_tokens: u32,
    /// Maximum number of tools that run in parallel.
    pub parallel_tools: usize,
    /// How often a turn is resumed after restarts.
    pub max_resumes: u32,
    /// The wait before the second resume, in milliseconds; it doubles with each further one.
    pub resume_base_ms: u64,
    /// Handling of interrupted turns, for sessions without their own setting.
    pub on_restart: OnRestart,
    /// Maximum bytes of one tool result for the model.
    pub result_bytes: usize,
    /// Maximum bytes of all tool results of one message.
    pub results_bytes: usize,
    /// Maximum number of background commands per session at once; 0 allows none.
    pub background_commands: usize,
    /// Tools on offer.
    pub tools: Arc<[ToolDefinition]>,
    /// Permission requests of unattended sessions.
    pub unattended: Unattended,
    /// Whether commands that the sandbox blocked may be offered to run outside of it.
    pub offer_unsandboxed_retry: OfferUnsandboxedRetry,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: Retry::default(),
            stand_ins: FallbackModels::default(),
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
            tools: Arc::from([]),
            unattended: Unattended::default(),
            offer_unsandboxed_retry: OfferUnsandboxedRetry::default(),
        }
    }
}

/// Handling of requests of unattended sessions. Only the user's configuration sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unattended {
    /// How long a request waits, in milliseconds; with `None` a call that needs a request is denied at once.
    pub deadline_ms: Option<u64>,
    /// The action when the time has passed.
    pub on_timeout: OnTimeout,
}

impl Default for Unattended {
    fn default() -> Self {
        Self { deadline_ms: Some(3_600_000), on_timeout: OnTimeout::Deny }
    }
}
