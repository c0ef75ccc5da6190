//! Submitting an input to the session, and a request to compact its conversation.

use crate::crash;
use crate::engine::{Input, Refusal, Reply, Submit};
use crate::session::actor::Actor;
use crate::session::actor::commit::UnwrittenPlan;
use crate::session::budgets::check_money;
use crate::session::error::SessionError;
use crate::session::idempotency::{IdempotencyKey, method};
use crate::session::requests::{Submission, SubmittedInput};
use crate::types::compaction::CompactRequest;
use crate::types::event::Origin;
use crate::types::outcome::SubmitOutcome;

impl Actor {
    pub(super) async fn submit(
        &mut self,
        submission: Submission,
        input: SubmittedInput,
    ) -> Result<SubmitOutcome, SessionError> {
        crash::point("C1.received");
        let Submission { when_busy, expected_turn, options, keyed, origin } = submission;
        if let Some(model) = &options.model {
            let budgets = options.budgets.unwrap_or(self.engine.spec().budgets);
            check_money(&self.shared.components(), model, budgets)?;
        }
        let SubmittedInput { blocks: input, blobs } = input;
        let submit = Submit { input, blobs, when_busy, expected_turn, options, origin: Some(origin) };
        let decision = self.decide(Input::Submit(submit))?;
        let Reply::Submitted(submitted) = decision.reply else {
            return Err(SessionError::Refused(Refusal::EmptyInput));
        };
        let idempotency = keyed.and_then(|keyed| keyed.row(method::SUBMIT, self.id, &submitted));
        crash::point("C1.decided");
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await?;
        self.recheck_trust();
        crash::point("C2.performed");
        Ok(submitted)
    }

    /// Adds a turn that compacts the conversation.
    pub(super) async fn compact(
        &mut self,
        request: CompactRequest,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<SubmitOutcome, SessionError> {
        if let Some(known) = self.remembered(method::COMPACT, keyed.as_ref()).await? {
            return Ok(known);
        }
        let decision = self.decide(Input::Compact { request, origin: Some(origin) })?;
        let Reply::Submitted(submitted) = decision.reply else {
            return Err(SessionError::Refused(Refusal::Ended));
        };
        let idempotency = keyed.and_then(|keyed| keyed.row(method::COMPACT, self.id, &submitted));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await?;
        Ok(submitted)
    }
}
