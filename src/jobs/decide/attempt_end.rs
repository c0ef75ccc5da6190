//! What the end of an attempt means for its job.

use super::Step;
use crate::record::Spent;
use types::job::{Artifact, JobError, JobEventKind, JobResult, JobState};
use types::job_request::RetryMode;
use types::turn_result::{Subtype, TurnResult};
use types::worktree::GitResult;

/// How an attempt ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AttemptEnd {
    /// The result of its last turn; `None` if no turn ended.
    pub result: Option<TurnResult>,
    /// Why no turn ended: the session could not be created, or was killed or deleted.
    pub error: Option<JobError>,
    /// Why the job must not be repeated by itself: a call with an unknown outcome could have reached outside of the
    /// worktree, or the daemon cannot tell.
    pub unknown_outcome: Option<JobError>,
    /// What it left in its branch.
    pub git: Option<GitResult>,
    /// The files that were kept.
    pub artifacts: Vec<Artifact>,
    /// What all attempts have used so far; `None` if it could not be read.
    pub spent: Option<Spent>,
}

/// Subtypes after which an attempt is never repeated, whatever the job asks for: a person or a limit ended it.
const NEVER_REPEATED: [Subtype; 6] = [
    Subtype::Aborted,
    Subtype::PermissionDenied,
    Subtype::ErrorMaxBudgetUsd,
    Subtype::ErrorMaxTokens,
    Subtype::ErrorMaxTurns,
    Subtype::ErrorMaxTime,
];

impl Step {
    /// Ends the living attempt: the job is over, or retries.
    pub(super) fn end_attempt(&mut self, end: AttemptEnd) {
        let AttemptEnd { result, error, unknown_outcome, git, artifacts, spent } = end;
        let subtype = result.as_ref().map(|result| result.subtype);
        let now = self.now;
        let record = &mut self.next;
        if let Some(last) = record.attempts.last_mut() {
            last.ended_at_ms = Some(now);
            last.subtype = subtype;
        }
        if let Some(spent) = spent {
            record.job.usage = spent.models.usage;
            record.job.cost_usd_micros = spent.models.cost_usd_micros;
            record.spent = spent;
        }
        let attempts = record.attempts.clone();
        record.job.result = Some(Box::new(JobResult { turn: result, attempts, git, artifacts }));
        if let Some(cancelling) = record.cancelling.take() {
            return self.complete_cancelled(cancelling.reason);
        }
        if subtype == Some(Subtype::Success) && error.is_none() {
            return self.complete(JobState::Succeeded, None);
        }
        if let Some(unknown) = unknown_outcome.filter(|_| !self.next.retry.after_unknown) {
            return self.complete(JobState::Failed, Some(unknown));
        }
        let error = error.unwrap_or_else(|| self.turn_error());
        if subtype.is_some_and(|subtype| self.is_repeated(subtype)) {
            return self.wait_for_next_attempt(error.message);
        }
        self.complete(JobState::Failed, Some(error));
    }

    fn is_repeated(&self, subtype: Subtype) -> bool {
        let record = &self.next;
        record.retry.on.contains(&subtype)
            && !NEVER_REPEATED.contains(&subtype)
            && record.job.attempt < record.job.attempts_max
            && record.has_budget_left()
    }

    /// The error of the last turn, in terms of the job.
    fn turn_error(&self) -> JobError {
        let turn = self.next.job.result.as_ref().and_then(|result| result.turn.as_ref());
        let Some(turn) = turn else {
            return JobError::new("no_result", "the attempt ended without a result");
        };
        let kind = turn.subtype.name();
        match turn.errors.first() {
            Some(error) => JobError::new(error.kind.clone(), error.message.clone()),
            None => JobError::new(kind, format!("the last turn ended with {kind}")),
        }
    }

    fn wait_for_next_attempt(&mut self, reason: String) {
        let record = &mut self.next;
        let retry = &record.retry;
        let doublings = record.job.attempt.saturating_sub(1).min(30);
        let wait = retry.backoff.millis().saturating_mul(1 << doublings).min(retry.max_backoff.millis());
        record.next_mode = retry.mode;
        record.job.run_at_ms = self.now.plus(wait);
        let run_at_ms = record.job.run_at_ms;
        self.enter(JobState::Retrying);
        self.events.push(JobEventKind::Retrying { run_at_ms, reason });
    }

    pub(super) fn complete_cancelled(&mut self, reason: Option<String>) {
        let error = reason.map(|reason| JobError::new("cancelled", reason));
        self.complete(JobState::Cancelled, error);
    }

    /// Gives the job a final state.
    pub(super) fn complete(&mut self, state: JobState, error: Option<JobError>) {
        self.enter(state);
        self.next.next_mode = RetryMode::Fresh;
        let job = &mut self.next.job;
        job.ended_at_ms = Some(self.now);
        job.error = error.clone();
        let result = job.result.clone();
        self.events.push(JobEventKind::Completed { state, result, error });
    }
}
