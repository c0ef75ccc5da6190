//! The state of a session between inputs. All of it is computed from the journal.
//!
//! Every decision works on a copy of the state, also for each part of a streamed answer. So long values
//! are behind an `Arc`, and the text of the answer is a [`growing_text::GrowingText`].

pub(super) mod background_task;
pub(super) mod backoff;
pub(super) mod call;
pub(super) mod growing_text;
pub(super) mod mcp;
pub(super) mod output_excerpt;
pub(super) mod partial;
mod project;
pub(super) mod session;
mod subagent;
pub(super) mod token_ratio;
pub(super) mod transcript;
pub(super) mod turn;

use std::sync::Arc;

use super::settings::Settings;
pub(crate) use call::{CallStage, CallState, Deadline, FirstRun, OpenQuestion, RepeatedCall};
pub(crate) use session::{Helper, QueuedInput, State};
pub(crate) use subagent::Subagent;
pub(crate) use token_ratio::TokenRatio;
pub use turn::CONTEXT_OVERFLOW;
pub(crate) use turn::{Activity, Candidate, Hold, ModelAttempts, OpenCompaction, Turn};
use types::permission::RuleKind;

/// Rules that users gave this session, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    /// Grants and allow rules.
    pub allow: Vec<String>,
    /// Rules that require a permission request.
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}

impl SessionRules {
    #[must_use]
    pub fn with_kind(&self, kind: RuleKind) -> &Vec<String> {
        match kind {
            RuleKind::Allow => &self.allow,
            RuleKind::Ask => &self.ask,
            RuleKind::Deny => &self.deny,
        }
    }

    pub(crate) fn with_kind_mut(&mut self, kind: RuleKind) -> &mut Vec<String> {
        match kind {
            RuleKind::Allow => &mut self.allow,
            RuleKind::Ask => &mut self.ask,
            RuleKind::Deny => &mut self.deny,
        }
    }
}

/// One session's engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) settings: Arc<Settings>,
    pub(crate) state: State,
}
