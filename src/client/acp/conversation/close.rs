//! `session/close` of version 2: the work of the session is cancelled, and the conversation ends. The session lives on
//! in the daemon, where other clients may use it.

use serde_json::json;

use super::Conversation;
use crate::acp::wire::Responder;
use types::ids::TurnId;

/// A close whose work has not ended.
pub(super) struct Closing {
    pub(super) responder: Responder,
    /// The turn that ran when the editor closed the session.
    turn: Option<TurnId>,
}

impl Conversation {
    pub(super) fn close(&mut self, responder: Responder) {
        self.closing = Some(Closing { responder, turn: None });
        self.start_close();
    }

    /// Begins to close: cancels as `session/cancel` does. After a load, this begins again.
    pub(super) fn start_close(&mut self) {
        self.cancel();
        if let Some(closing) = &mut self.closing {
            closing.turn = self.mapper.turn;
        }
    }

    /// Replies to a close once the cancelled work has ended. `true` if it did.
    pub(super) async fn finish_close(&mut self) -> bool {
        let Some(closing) = &self.closing else { return false };
        let is_own = |turn: TurnId| closing.turn == Some(turn) || self.own_turns.contains(&turn);
        let is_busy = self.cancel.is_some()
            || self.replay.is_some()
            || !self.submits.is_empty()
            || !self.prompts.is_empty()
            || self.mapper.turn.is_some_and(is_own);
        let Some(closing) = self.closing.take_if(|_| !is_busy) else { return false };
        for (_, request) in self.requests.drain() {
            request.withdraw(&self.shared.output).await;
        }
        closing.responder.reply(Ok(json!({}))).await;
        true
    }
}
