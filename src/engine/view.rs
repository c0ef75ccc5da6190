//! What the rest of the house may know of a session's state.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::settings::Settings;
use super::state::{Activity, Call, Engine, Hold, SessionRules, Stage, State};
use crate::types::ids::{CallId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::message::ToolCall;
use crate::types::permission::Mode;
use crate::types::sampling::Sampling;
use crate::types::session::{Requires, SessionSpec, SessionState};
use crate::types::thinking::Thinking;
use crate::types::time::Timestamp;
use crate::types::tool::{Confinement, PreparedCall, ReadRecord};
use crate::types::usage::Usage;

/// A pending request with what was judged.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The request.
    pub request_id: PermissionId,
    /// The call.
    pub call: Arc<ToolCall>,
    /// What it would do.
    pub prepared: Arc<PreparedCall>,
    /// It asks whether a command that the sandbox stopped runs again outside: the one grant that covers it,
    /// or none if the command is too long for one. No other rule and no mode settles it.
    pub outside: Option<Option<String>>,
}

/// What the rest of the house may know of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Short name.
    pub title: String,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// How much its models may think.
    pub thinking: Option<Thinking>,
    /// How freely they choose their words.
    pub sampling: Sampling,
    /// State.
    pub state: SessionState,
    /// What it waits for.
    pub requires: Option<Requires>,
    /// The running turn.
    pub turn_id: Option<TurnId>,
    /// Tokens so far.
    pub usage: Usage,
    /// Cost so far.
    pub cost_usd_micros: Option<u64>,
    /// What is known of it, if not all is.
    pub cost_at_least_usd_micros: u64,
    /// Last line that was said.
    pub last_line: String,
    /// Time of the newest fact; clients that come and go are none.
    pub updated_at: Timestamp,
}

impl Engine {
    /// A session that has seen nothing yet; its first fact is `session.created`.
    #[must_use]
    pub fn new(session_id: SessionId, settings: Arc<Settings>) -> Self {
        Self { settings, state: State::new(session_id) }
    }

    /// Takes settings that hold from the next decision on. They are not state: nothing that is known
    /// changes. The tools of a running turn stay on offer as they are until it ends, so that the
    /// beginning of its requests does not change (Q9); the settings are then to be given again.
    pub fn use_settings(&mut self, settings: &Arc<Settings>) {
        if Arc::ptr_eq(&self.settings, settings) {
            return;
        }
        let mut taken = Arc::clone(settings);
        if self.state.turn.is_some() && self.settings.tools != settings.tools {
            Arc::make_mut(&mut taken).tools = Arc::clone(&self.settings.tools);
        }
        self.settings = taken;
    }

    /// The next event's number.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.state.next_seq
    }

    /// Makes sure that numbers that were given out and folded away are not given out again.
    pub fn skip_to(&mut self, next_seq: Seq) {
        self.state.next_seq = self.state.next_seq.max(next_seq);
    }

    /// How the session was made.
    #[must_use]
    pub fn spec(&self) -> &SessionSpec {
        &self.state.spec
    }

    /// Whether the system prompt is put together, and the workspace was looked at for it.
    #[must_use]
    pub fn has_context(&self) -> bool {
        self.state.system.is_some()
    }

    /// Which session.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        self.state.session_id
    }

    /// How a command would be held, or is, as it was judged.
    #[must_use]
    pub fn confinement(&self, call_id: CallId) -> Option<Confinement> {
        match &self.state.call(call_id)?.stage {
            Stage::Awaiting { prepared, .. }
            | Stage::Ready { prepared, .. }
            | Stage::Running { prepared, .. } => prepared.sandbox,
            Stage::Requested | Stage::Unknown { .. } | Stage::Done { .. } => None,
        }
    }

    /// A call of the running turn, with a person's arguments if one changed them.
    #[must_use]
    pub fn tool_call(&self, call_id: CallId) -> Option<Arc<ToolCall>> {
        self.state.call(call_id).map(Call::effective)
    }

    /// Whether the session was killed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state.status == SessionState::Ended
    }

    /// Whether an abort is under way.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.aborting)
    }

    /// The running turn.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|turn| turn.id)
    }

    /// Calls of the running turn that have no result yet.
    #[must_use]
    pub fn open_calls(&self) -> Vec<CallId> {
        match self.state.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => {
                calls.iter().filter(|call| !call.is_done()).map(|call| call.call.call_id).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Rules and grants given to this session.
    #[must_use]
    pub fn rules(&self) -> Arc<SessionRules> {
        Arc::clone(&self.state.rules)
    }

    /// The mode that verdicts are made in: the running turn's, else the session's.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.mode()
    }

    /// When the next request stops waiting for an answer. It folds from the journal: a restart does
    /// not move it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = |call: &Call| match &call.stage {
            Stage::Awaiting { deadline: Some(deadline), expired: false, .. } => Some(deadline.at),
            _ => None,
        };
        if self.is_aborting() { None } else { self.state.calls().iter().filter_map(due).min() }
    }

    /// What the model has seen of files.
    #[must_use]
    pub fn reads(&self) -> Arc<HashMap<PathBuf, ReadRecord>> {
        Arc::clone(&self.state.reads)
    }

    /// Where commands run.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.state.cwd
    }

    /// Pending permission requests with what was judged.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        match self.state.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => calls
                .iter()
                .filter_map(|call| match &call.stage {
                    Stage::Awaiting { request_id, prepared, suggestions, .. } => Some(Pending {
                        request_id: *request_id,
                        call: Arc::clone(&call.call),
                        prepared: Arc::clone(prepared),
                        outside: call.first.is_some().then(|| suggestions.first().cloned()),
                    }),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// What `session.list` shows.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = &self.state;
        Snapshot {
            title: state.spec.title.clone(),
            model: state.spec.model.clone(),
            mode: state.spec.mode,
            thinking: state.spec.thinking,
            sampling: state.spec.sampling,
            state: state.status,
            requires: state.requires,
            turn_id: self.turn_id(),
            usage: state.spent.usage,
            cost_usd_micros: state.spent.cost_usd_micros,
            cost_at_least_usd_micros: state.spent.cost_at_least_usd_micros,
            last_line: state.last_line.clone(),
            updated_at: state.updated_at,
        }
    }

    /// Open questions.
    #[must_use]
    pub fn questions(&self) -> Vec<QuestionId> {
        let Some(turn) = &self.state.turn else { return Vec::new() };
        let held = match turn.hold {
            Some(Hold::Paused { request_id }) => Some(request_id),
            _ => None,
        };
        let unknown = self.state.calls().iter().filter_map(|call| match call.stage {
            Stage::Unknown { request_id, .. } => Some(request_id),
            _ => None,
        });
        held.into_iter().chain(unknown).collect()
    }

    /// The model that the running turn asks, or that the next one would.
    #[must_use]
    pub fn model(&self) -> &str {
        self.state.turn.as_ref().map_or(&self.state.spec.model, |turn| &turn.model)
    }

    #[cfg(test)]
    pub(super) fn same_as(&self, other: &Engine) -> bool {
        self.state == other.state
    }
}
