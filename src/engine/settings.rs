//! What the engine is told from outside, and what holds where nobody says otherwise.

use std::sync::Arc;

use crate::engine::decide::output_limit::DEFAULT_OUTPUT_TOKENS;
use crate::engine::decide::retry::Retry;
use crate::engine::model_catalog::{FallbackModels, ModelCatalog, TitleModel};
use crate::types::permission::OnTimeout;
use crate::types::session::OnRestart;
use crate::types::tool::{OfferOutside, ToolDefinition};

/// What the engine is told from outside, once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How failed model calls are tried again (Q26).
    pub retry: Retry,
    /// Models that stand in for the session's own.
    pub stand_ins: FallbackModels,
    /// The model that is asked for titles; without one nobody is.
    pub quick: Option<TitleModel>,
    /// What is known of models.
    pub known: ModelCatalog,
    /// Tokens of an answer that are asked for at first, where a model can give more (Q28).
    pub output_tokens: u32,
    /// Tools that run beside each other at most (Q22).
    pub parallel_tools: usize,
    /// How often a turn is resumed after restarts (S7).
    pub max_resumes: u32,
    /// The wait before the second resume, in milliseconds; it doubles with each further one.
    pub resume_base_ms: u64,
    /// What becomes of interrupted turns of sessions that do not say.
    pub on_restart: OnRestart,
    /// Bytes of one tool result that the model is shown (Q14).
    pub result_bytes: usize,
    /// The same of all results of one message.
    pub results_bytes: usize,
    /// Commands that run in the background at once, in one session; 0 for none.
    pub background_commands: usize,
    /// Tools on offer.
    pub tools: Arc<[ToolDefinition]>,
    /// Requests of sessions without a person.
    pub unattended: Unattended,
    /// Whether commands that the sandbox stopped may be offered to run outside of it.
    pub offer_outside: OfferOutside,
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
            offer_outside: OfferOutside::default(),
        }
    }
}

/// What becomes of requests of unattended sessions (P6). Only the user's configuration says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unattended {
    /// How long a request waits, in milliseconds; `None`: nobody is asked, what asks is denied.
    pub deadline_ms: Option<u64>,
    /// What becomes of it then.
    pub on_timeout: OnTimeout,
}

impl Default for Unattended {
    fn default() -> Self {
        Self { deadline_ms: Some(3_600_000), on_timeout: OnTimeout::Deny }
    }
}
