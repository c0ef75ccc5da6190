//! Replies of a session to requests. These values are stored with an idempotency key, so that a repeated request gets
//! the same reply.

use serde::{Deserialize, Serialize};

use crate::ids::{Seq, TurnId};

/// The result of a submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitOutcome {
    /// The turn that answers the input.
    pub turn_id: TurnId,
    /// Whether the input runs, is queued or steers.
    pub state: AcceptedState,
    /// Seq of the event that recorded the input.
    pub seq: Seq,
    /// The answer of a command that needed no model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}

/// How a submit was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AcceptedState {
    /// Its turn is running.
    Running,
    /// The input is queued.
    Queued,
    /// The running turn receives the input.
    Steered,
    /// The input was a command, and it is answered.
    Completed,
}

/// An accepted answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOutcome {
    /// Seq of the event that recorded the answer.
    pub seq: Seq,
    /// The stored grant.
    pub grant: Option<String>,
}
