//! Parts of the state that only the property tests compare. They are in a crate of their own, and the state is private.

use std::sync::Arc;

use types::ids::{ItemId, QuestionId, TurnId};
use types::ledger::ModelUsage;
use types::message::Message;

use crate::state::{Activity, CallState, Engine};

/// What a property compares with the events.
#[derive(Debug)]
pub struct Inspection<'a> {
    /// The use of the whole session.
    pub spent: &'a ModelUsage,
    /// The queued turns in the order of their start.
    pub queue: Vec<TurnId>,
    /// The conversation.
    pub transcript: Vec<Arc<Message>>,
    /// Number of remembered commands, running or ended.
    pub commands: usize,
    /// The open choice between two answers, with the items of the answers.
    pub open_feedback: Option<(QuestionId, Vec<ItemId>)>,
    /// Open questions of the model to the user, with the number of their parts.
    pub user_questions: Vec<(QuestionId, usize)>,
}

impl Engine {
    /// The parts that property tests compare.
    #[must_use]
    pub fn inspect(&self) -> Inspection<'_> {
        let state = &self.state;
        let open_feedback = state.turn.as_ref().and_then(|turn| {
            let Activity::Choosing { request_id } = turn.activity else { return None };
            Some((request_id, turn.candidates.iter().map(|candidate| candidate.item.item_id).collect()))
        });
        let open_questions = state.calls().iter().filter_map(CallState::open_question);
        Inspection {
            spent: &state.spent,
            queue: state.queue.iter().map(|queued| queued.turn_id).collect(),
            transcript: state.transcript.iter().cloned().collect(),
            commands: state.commands.len(),
            open_feedback,
            user_questions: open_questions.map(|open| (open.request_id, open.questions.len())).collect(),
        }
    }

    /// Whether the two states are equal in every part.
    #[must_use]
    pub fn has_same_state_as(&self, other: &Engine) -> bool {
        self.state == other.state
    }
}
