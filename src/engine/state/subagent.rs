//! A sub-agent that runs: the session that a `Task` call started.

use crate::state::Turn;
use types::ids::{CallId, ItemId, RequestId, SessionId, TurnId};
use types::usage::Budgets;

/// A running sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subagent {
    /// The call that started the sub-agent.
    pub call_id: CallId,
    pub item_id: Option<ItemId>,
    /// The turn of that call.
    pub turn_id: Option<TurnId>,
    pub child_session_id: SessionId,
    pub agent: String,
    /// The model's description of the sub-agent's work.
    pub description: String,
    /// The part of this session's limits that is reserved for the sub-agent.
    pub reserved: Budgets,
    /// Whether the call has returned, so that no turn waits for the sub-agent.
    pub background: bool,
    /// Pending permission requests and questions of the sub-agent and of its own sub-agents.
    pub requests: Vec<RequestId>,
}

impl Subagent {
    /// Whether the turn waits for the result of the sub-agent.
    pub fn holds_up(&self, turn: &Turn) -> bool {
        !self.background && self.turn_id == Some(turn.id)
    }
}
