//! Parameters and replies of the queue, of waiting, and of the archive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::SubmitInput;
use types::ids::{SessionId, TurnId};
use types::queue::QueuedTurn;
use types::session::{SessionState, SessionView, TurnResult};

/// `session.queue.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueListParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Turns per page, 1 to 500, 100 by default; fewer if their inputs are long.
    pub limit: Option<u32>,
}

/// Reply of the `session.queue` methods: the queued turns, in the order of their start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueReply {
    /// The queued turns of this page.
    pub queue: Vec<QueuedTurn>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.queue.clear`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueClearParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// A repeated call with the same key changes nothing more, and returns the current queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.queue.update`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueUpdateParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The queued turn.
    pub turn_id: TurnId,
    /// Its new input: text or blocks; must not be empty. Its options and its position in the queue stay unchanged.
    pub input: SubmitInput,
    /// A repeated call with the same key changes nothing more, and returns the current queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.queue.remove`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueRemoveParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The queued turn.
    pub turn_id: TurnId,
    /// A repeated call with the same key changes nothing more, and returns the current queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.queue.move`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueMoveParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The queued turn.
    pub turn_id: TurnId,
    /// The queued turn that follows it afterwards; without it, the turn becomes the last one.
    pub before: Option<TurnId>,
    /// A repeated call with the same key changes nothing more, and returns the current queue.
    pub idempotency_key: Option<String>,
}

/// `session.wait`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// States that end the wait; by default `idle`, `requires_action` and `ended`.
    pub until: Option<Vec<SessionState>>,
    /// Maximum wait in milliseconds, at most 30 days; by default there is no limit. 0 returns at once.
    pub timeout_ms: Option<u64>,
}

/// Reply of `session.wait`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitReply {
    /// The session, with the state that ended the wait.
    pub session: SessionView,
    /// Result of its newest completed turn, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TurnResult>,
    /// Whether `timeout_ms` passed before the session reached one of the states.
    pub timed_out: bool,
}

/// `session.archive`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// `true` archives the session, `false` restores it.
    pub archived: bool,
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}
