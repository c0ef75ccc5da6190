//! Queued turns as clients receive them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Origin;
use super::ids::TurnId;
use super::message::InputBlock;
use super::permission::Mode;
use super::time::Timestamp;

/// An input that waits for the running turn to end.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedTurn {
    /// The turn that will process the input.
    pub turn_id: TurnId,
    /// Text, pictures and documents of the input.
    pub input: Vec<InputBlock>,
    /// Time at which it was queued.
    pub queued_at_ms: Timestamp,
    /// Whether it was queued before the other turns, by `when_busy: "interrupt"`.
    pub front: bool,
    /// Its model, if not the session's.
    pub model: Option<String>,
    /// Its approval mode, if not the session's.
    pub mode: Option<Mode>,
    /// The client that submitted it.
    pub origin: Option<Origin>,
}

/// The action of a submit while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Wait for the turn to end.
    #[default]
    Queue,
    /// Steer the running turn: the input arrives with the next tool results.
    Steer,
    /// Abort the running turn first.
    Interrupt,
    /// Answer with the error `busy`.
    Reject,
}
