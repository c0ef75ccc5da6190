//! What a caller asks a new session to be.

use crate::session::handle::IdempotencyKey;
use crate::types::event::Origin;
use crate::types::ids::SessionId;
use crate::types::permission::Mode;
use crate::types::sampling::Sampling;
use crate::types::session::{OnRestart, SessionSpec};
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

/// What a session is to be.
#[derive(Clone, Debug, Default)]
pub struct NewSessionRequest {
    /// An id of the caller's choice.
    pub session_id: Option<SessionId>,
    /// Its folder.
    pub cwd: String,
    /// Short name.
    pub title: Option<String>,
    /// `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// For unattended work.
    pub background: bool,
    /// Serial and asking.
    pub safe_mode: Option<bool>,
    /// What becomes of interrupted turns.
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    pub budgets: Option<Budgets>,
    /// How much its models may think.
    pub thinking: Option<Thinking>,
    /// How freely they choose their words.
    pub sampling: Sampling,
    /// Instead of the default system prompt.
    pub system_prompt: Option<String>,
    /// At the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// Tools on offer.
    pub tools: ToolChoice,
    /// Further folders that count as workspace.
    pub additional_dirs: Vec<String>,
    /// Idempotency.
    pub keyed: Option<IdempotencyKey>,
    /// Who.
    pub origin: Option<Origin>,
}

impl NewSessionRequest {
    /// Whether `known` is what this request, resolved to `spec`, asks for.
    pub(in crate::session) fn is_for(&self, spec: &SessionSpec, known: &SessionSpec) -> bool {
        fn same<T: PartialEq>(asked: &Option<T>, known: &T) -> bool {
            asked.as_ref().is_none_or(|asked| asked == known)
        }
        known.cwd == spec.cwd
            && known.background == spec.background
            && known.on_restart == spec.on_restart
            && known.system_prompt == spec.system_prompt
            && known.append_system_prompt == spec.append_system_prompt
            && known.tools == spec.tools
            && known.additional_dirs == spec.additional_dirs
            && same(&self.title, &known.title)
            && same(&self.model, &known.model)
            && same(&self.mode, &known.mode)
            && same(&self.safe_mode, &known.safe_mode)
            && (self.thinking.is_none() || self.thinking == known.thinking)
            && self.sampling.or(known.sampling) == known.sampling
            && (self.budgets.is_none() || spec.budgets == known.budgets)
    }
}
