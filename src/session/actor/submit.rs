//! Submitting an input to the session, and a request to compact its conversation.

use crate::actor::Actor;
use crate::actor::commit::UnwrittenPlan;
use crate::budgets::check_money;
use crate::error::SessionError;
use crate::idempotency::{IdempotencyKey, method};
use crate::project_data::note_text;
use crate::requests::{CommandSubmission, Submission, SubmittedInput};
use base::crash;
use engine::{AnsweredCommand, Input, Refusal, Reply, SessionUpdate, SubmitRequest};
use types::compaction::CompactRequest;
use types::event::Origin;
use types::outcome::SubmitOutcome;
use types::turn_options::TurnOptions;

impl Actor {
    pub(super) async fn submit(
        &mut self,
        submission: Submission,
        input: SubmittedInput,
    ) -> Result<SubmitOutcome, SessionError> {
        crash::point("C1.received");
        let Submission { when_busy, expected_turn, options, keyed, origin, .. } = submission;
        if let Some(model) = &options.model {
            let budgets = options.budgets.unwrap_or(self.engine.spec().budgets);
            check_money(&self.shared.components(), model, budgets)?;
        }
        let SubmittedInput { blocks: input, blobs } = input;
        let submit = SubmitRequest { input, blobs, when_busy, expected_turn, options, origin: Some(origin) };
        let decision = self.decide(Input::Submit(Box::new(submit)))?;
        let Reply::Submitted(submitted) = decision.reply.clone() else {
            return Err(SessionError::Refused(Refusal::EmptyInput));
        };
        let idempotency = keyed.and_then(|keyed| keyed.row(method::SUBMIT, self.id, &submitted));
        self.state.stop_hook_rounds = 0;
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
        let Reply::Submitted(submitted) = decision.reply.clone() else {
            return Err(SessionError::Refused(Refusal::Ended));
        };
        let idempotency = keyed.and_then(|keyed| keyed.row(method::COMPACT, self.id, &submitted));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await?;
        Ok(submitted)
    }

    /// Records a command whose answer is known. A note is written to its file after the engine has
    /// accepted the command.
    pub(super) async fn answer_command(
        &mut self,
        answered: CommandSubmission,
    ) -> Result<SubmitOutcome, SessionError> {
        let CommandSubmission { submission, command, text, change, add_dir, note } = answered;
        let Submission { when_busy, expected_turn, keyed, origin, .. } = submission;
        let covered = match change.mode {
            Some(mode) => self.requests_allowed_by(mode).await,
            None => Vec::new(),
        };
        let mut options = change;
        options.additional_dirs = add_dir.map(|dir| {
            let known = self.engine.spec().additional_dirs.iter().filter(|known| **known != dir);
            known.cloned().chain([dir.clone()]).collect()
        });
        let has_change = options != TurnOptions::default();
        let origin = Some(origin);
        let update = SessionUpdate { title: None, options, covered, origin: origin.clone() };
        let written = note.map(|target| (target, note_text(&command.arguments).1.to_owned()));
        let answered = AnsweredCommand {
            command,
            text,
            change: has_change.then(|| Box::new(update)),
            when_busy,
            expected_turn,
            origin,
        };
        let decision = self.decide(Input::Command(Box::new(answered)))?;
        let Reply::Submitted(submitted) = decision.reply.clone() else {
            return Err(SessionError::Refused(Refusal::EmptyInput));
        };
        // The note file is already written when the commit fails, so the commit must be repeated until
        // the journal contains the note.
        let must_write = written.is_some();
        if let Some((target, note)) = written {
            let appended = tokio::task::spawn_blocking(move || target.add(&note)).await;
            let failed = |why: String| SessionError::BadParam("input", why);
            appended.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        }
        let idempotency = keyed.and_then(|keyed| keyed.row(method::SUBMIT, self.id, &submitted));
        self.commit(UnwrittenPlan { idempotency, must_write, ..UnwrittenPlan::new(decision) }).await?;
        Ok(submitted)
    }
}
