//! A sub-agent that runs: the session that a `Task` call started.

use crate::types::ids::{CallId, ItemId, RequestId, SessionId, TurnId};
use crate::types::usage::Budgets;

/// A running sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct Subagent {
    /// The call that started it.
    pub call_id: CallId,
    pub item_id: Option<ItemId>,
    /// The turn of that call.
    pub turn_id: Option<TurnId>,
    pub child_session_id: SessionId,
    pub agent: String,
    /// The model's description of its work.
    pub description: String,
    /// The part of this session's limits that is reserved for it.
    pub reserved: Budgets,
    /// Its call has returned, and no turn waits for it.
    pub background: bool,
    /// Its pending permission requests and questions, and those of its own sub-agents.
    pub requests: Vec<RequestId>,
}
