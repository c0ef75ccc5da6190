//! Submitting an input to the session.

use crate::crash;
use crate::engine::{Input, Refusal, Reply, Submit};
use crate::session::actor::Actor;
use crate::session::actor::commit::UnwrittenPlan;
use crate::session::budgets::check_money;
use crate::session::error::SessionError;
use crate::session::idempotency::method;
use crate::session::requests::{Submission, SubmittedInput};
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
        let decision = self.decide(Input::Submit(Box::new(submit)))?;
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
}
