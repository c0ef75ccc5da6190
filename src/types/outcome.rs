//! Replies of a session to requests. These values are stored with an idempotency key, so that a repeated request gets
//! the same reply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ItemId, Seq, TurnId};

/// The result of a submit, the reply of `session.submit`: the input is on disk.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmitOutcome {
    /// The turn that processes the input. A command that needs no model belongs to the running turn, if there is one.
    pub turn_id: TurnId,
    /// Whether the turn started, waits, was steered, or is already done.
    pub state: AcceptedState,
    /// Seq of the event that records the input.
    pub seq: Seq,
    /// The item that the user's message has, or will have once its turn starts or the model receives it. Absent for a
    /// command without a message.
    pub item_id: Option<ItemId>,
    /// The answer of a command that needs no model. The event `command.completed` contains it as well.
    pub text: Option<String>,
}

/// How a submit was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
// Older databases contain the names of the variants.
#[serde(rename_all = "snake_case")]
pub enum AcceptedState {
    /// The turn started.
    #[serde(alias = "Running")]
    Running,
    /// The input waits for the turn before it.
    #[serde(alias = "Queued")]
    Queued,
    /// The input steers the running turn.
    #[serde(alias = "Steered")]
    Steered,
    /// The input was a command that needs no model, and it is answered.
    #[serde(alias = "Completed")]
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
