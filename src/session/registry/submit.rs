//! `Registry::submit`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::SessionError;
use crate::hooks::{self, HookPlace};
use crate::idempotency::{method, remembered};
use crate::registry::Registry;
use crate::requests::{Submission, SubmittedInput};
use crate::session_environments::EnvironmentOfSession;
use engine::typed_line;
use project::hooks::{HookAnswers, HookInput};
use types::hook::{HookDecision, HookEvent};
use types::ids::SessionId;
use types::message::{InputBlock, input_text};
use types::outcome::SubmitOutcome;

impl Registry {
    /// Submits an input. The input is on disk when this returns. A repeated call with the same idempotency key
    /// returns the same outcome, and then does not await `input`, because its files may have changed since.
    ///
    /// # Errors
    /// An option is invalid, the input was refused, or the store failed. Nothing was recorded.
    pub async fn submit<E>(
        &self,
        id: SessionId,
        mut submission: Submission,
        to_error: impl Fn(SessionError) -> E,
        input: impl Future<Output = Result<SubmittedInput, E>>,
    ) -> Result<SubmitOutcome, E> {
        let keyed = submission.keyed.clone();
        let known = async || match &keyed {
            Some(keyed) => remembered(&self.inner.shared.store, method::SUBMIT, id, keyed).await,
            None => Ok(None),
        };
        if let Some(known) = known().await.map_err(&to_error)? {
            return Ok(known);
        }
        submission.options = self.known_options(id, submission.options).await.map_err(&to_error)?;
        self.inner.shared.check_journal_quota().map_err(&to_error)?;
        let mut input = input.await?;
        if submission.runs_hooks {
            self.run_input_hooks(id, &mut input).await.map_err(&to_error)?;
        }
        let line = if submission.raw { None } else { typed_line(&input.blocks) };
        let submitted = match line {
            Some(line) => self.submit_line(id, submission, line).await,
            None => match self.open(id).await {
                Ok(handle) => handle.submit(submission, input).await,
                Err(error) => return Err(to_error(error)),
            },
        };
        let error = match submitted {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        // Another call with the same key may have committed first. The unique key then kept this input
        // out of the journal.
        match known().await {
            Ok(Some(known)) => Ok(known),
            Err(conflict @ SessionError::Conflict(_)) => Err(to_error(conflict)),
            Ok(None) | Err(_) => Err(to_error(error)),
        }
    }

    /// Runs the hooks on a user's input. A hook may refuse the input or add text for the model.
    async fn run_input_hooks(&self, id: SessionId, input: &mut SubmittedInput) -> Result<(), SessionError> {
        let handle = self.open(id).await?;
        let cwd = handle.loaded().await?;
        let environment =
            EnvironmentOfSession { all: Arc::clone(&self.inner.shared.environments), id, root: id };
        let place = HookPlace { cwd: PathBuf::from(&*cwd), environment: Some(Arc::new(environment)) };
        let found = hooks::load(&self.inner.shared, place, HookEvent::UserPromptSubmit).await;
        if found.is_empty() {
            return Ok(());
        }
        let problems = found.problems();
        let facts = handle.facts().await?;
        let about = HookInput {
            prompt: Some(input_text(&input.blocks)),
            ..HookInput::new(
                HookEvent::UserPromptSubmit,
                id.to_string(),
                facts.spec.cwd.clone(),
                facts.mode.name(),
            )
        };
        let background = handle.clone();
        let report = async move |answers: HookAnswers| _ = background.record_hooks(answers.runs, None).await;
        let answers = found.matching(&about.into()).run(&self.inner.shared, report).await;
        handle.record_hooks(answers.runs, Some(problems)).await?;
        if answers.decision == Some(HookDecision::Deny) {
            return Err(SessionError::HookDenied(answers.reason));
        }
        if !answers.context.is_empty() {
            let text = format!("<reminder>From a hook of the user:</reminder>\n{}", answers.context);
            input.blocks.push(InputBlock::Text { text });
        }
        Ok(())
    }
}
