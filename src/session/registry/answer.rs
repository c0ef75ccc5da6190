//! Answers to permission requests and questions of any session.

use crate::error::SessionError;
use crate::registry::Registry;
use crate::requests::{AnswerRequest, QuestionAnswer};
use engine::Refusal;
use types::ids::{RequestId, Seq, SessionId};
use types::outcome::AnswerOutcome;

impl Registry {
    /// Answers a permission request of any session.
    ///
    /// # Errors
    /// The request does not exist or is settled.
    pub async fn answer_permission(
        &self,
        request: AnswerRequest,
    ) -> Result<(SessionId, AnswerOutcome), SessionError> {
        let store = &self.inner.shared.store;
        let request_id = RequestId::Permission(request.answer.request_id);
        let known = store.request(request_id).await?.ok_or(SessionError::NoSuchRequest)?;
        if let Some(mode) = request.answer.mode {
            self.check_mode(mode)?;
        }
        let handle = self.open(known.session_id).await?;
        let answered = handle.answer_permission(request).await;
        if answered == Err(SessionError::Refused(Refusal::NotPending))
            && let Some(settled) = store.request(request_id).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, answered?))
    }

    /// Answers a question of any session. Returns the session and the seq of the answer.
    ///
    /// # Errors
    /// The question does not exist or is settled.
    pub async fn answer_question(&self, chosen: QuestionAnswer) -> Result<(SessionId, Seq), SessionError> {
        let store = &self.inner.shared.store;
        let request = RequestId::Question(chosen.request_id);
        let known = store.request(request).await?.ok_or(SessionError::NoSuchQuestion)?;
        let handle = self.open(known.session_id).await?;
        let resolved = handle.answer_question(chosen).await;
        if resolved == Err(SessionError::Refused(Refusal::NotPending))
            && let Some(settled) = store.request(request).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, resolved?))
    }
}
