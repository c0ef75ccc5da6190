//! The steps of every adapter for the events of its API.

use crate::stream::fault;
use types::model::{Delta, ModelFault, ModelReply};
use types::usage::Usage;

/// The reason why an event ends the answer.
pub(crate) enum EventError {
    /// It violates the API.
    Unreadable(serde_json::Error),
    /// It reports an error, or it contradicts an earlier event.
    Fault(ModelFault),
}

impl EventError {
    /// Converts it to a fault; `has_begun`: an earlier event of the answer was valid.
    pub(crate) fn into_fault(self, has_begun: bool) -> ModelFault {
        match self {
            EventError::Unreadable(error) => fault::unreadable_event(&error, has_begun),
            EventError::Fault(fault) => fault,
        }
    }
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> Self {
        EventError::Unreadable(error)
    }
}

impl From<ModelFault> for EventError {
    fn from(fault: ModelFault) -> Self {
        EventError::Fault(fault)
    }
}

/// Decodes the events of one API.
pub(crate) trait Decode: Send {
    /// Decodes the data of one event.
    fn event(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), EventError>;
    /// Tokens that were reported so far.
    fn usage(&self) -> Usage;
    /// Whether the provider declared the end of the answer.
    fn is_done(&self) -> bool;
    /// Whether the answer would be complete if the stream ended here.
    fn may_end(&self) -> bool;
    /// Whether the stream ended without a stop reason and has calls: the rest of a truncated call may look like
    /// one without arguments. Texts are harmless, and some servers never give a reason.
    fn may_be_cut(&self) -> bool;
    /// Decodes a body with the answer in one piece.
    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelFault>;
    /// The reply. Call it only after the answer may end.
    fn reply(self: Box<Self>, out: &mut Vec<Delta>) -> ModelReply;
}
