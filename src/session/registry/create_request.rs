//! The request for a new session.

use crate::session::handle::IdempotencyKey;
use crate::types::event::Origin;
use crate::types::ids::SessionId;
use crate::types::permission::Mode;
use crate::types::sampling::Sampling;
use crate::types::session::{OnRestart, SessionSpec};
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

/// The parameters of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSessionRequest {
    /// An id that the caller chose.
    pub session_id: Option<SessionId>,
    /// Folder of the session.
    pub cwd: String,
    /// Short title.
    pub title: Option<String>,
    /// Model as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// Whether the session is unattended.
    pub background: bool,
    /// Whether calls run one at a time and each needs a permission request.
    pub safe_mode: Option<bool>,
    /// Policy for turns that a restart interrupts.
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    pub budgets: Option<Budgets>,
    /// Thinking setting of its models.
    pub thinking: Option<Thinking>,
    /// Sampling settings of its models.
    pub sampling: Sampling,
    /// Text that replaces the default system prompt.
    pub system_prompt: Option<String>,
    /// Text that is appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Tools that the session offers.
    pub tools: ToolChoice,
    /// Additional folders of the workspace.
    pub additional_dirs: Vec<String>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Option<Origin>,
}

impl NewSessionRequest {
    /// Whether this request, resolved to `spec`, describes the session `known`.
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
