//! The state machine of one job. Pure: time and ids are part of the input.
//!
//! [`decide`] returns the next state with the events of the step. The runner writes both in one transaction and then
//! does what [`NextWork`] says. A refused input changes nothing.

mod attempt_end;
#[cfg(test)]
pub(crate) mod properties;
pub(crate) mod unknown_call;

pub(crate) use attempt_end::AttemptEnd;

use crate::record::{Cancelling, JobRecord};
use types::ids::SessionId;
use types::job::{JobAttempt, JobEventKind, JobState, WaitingFor};
use types::job_request::RetryMode;
use types::time::Timestamp;
use types::usage::Budgets;

/// What can happen to a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobInput {
    /// Its time has come.
    Due,
    /// Its start deadline has passed.
    Expired,
    /// A slot is free: start an attempt in this session.
    Claim {
        /// The session of the attempt; not used if the attempt continues in the session of the last one.
        session_id: SessionId,
        /// Whether the folder of the last attempt exists, so that this one can continue there.
        can_continue: bool,
    },
    /// The session of the attempt waits for a person.
    AttemptWaits(WaitingFor),
    /// The session of the attempt goes on.
    AttemptRuns,
    /// The attempt is over.
    AttemptEnded(Box<AttemptEnd>),
    /// A user cancels the job.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
    /// A user wants one more attempt.
    Retry {
        /// What it starts from.
        mode: Option<RetryMode>,
    },
    /// A user changes the job.
    Update(JobChange),
}

/// A change of a job by a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobChange {
    pub priority: Option<i32>,
    pub run_at_ms: Option<Timestamp>,
    pub labels: Option<std::collections::BTreeMap<String, String>>,
    pub budgets: Option<Budgets>,
}

/// The next state of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub next: JobRecord,
    pub events: Vec<JobEventKind>,
    pub work: NextWork,
}

/// What the runner does after the step is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextWork {
    /// Nothing.
    None,
    /// Start the newest attempt.
    Start,
    /// Stop the newest attempt.
    Stop,
}

/// Why an input was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The job is over, or is being cancelled.
    NotPending(JobState),
    /// An attempt of the job lives.
    Running,
    NotOver(JobState),
    /// The state does not allow it; the runner was wrong.
    OutOfPlace(JobState),
}

/// Decides about one input.
///
/// # Errors
/// The input does not fit the job's state.
pub(crate) fn decide(record: &JobRecord, input: JobInput, now: Timestamp) -> Result<Decision, Refusal> {
    let mut step = Step { next: record.clone(), events: Vec::new(), now };
    let state = record.job.state;
    let work = match input {
        JobInput::Due => match state {
            JobState::Scheduled | JobState::Retrying => {
                step.enter(JobState::Queued);
                step.events.push(JobEventKind::Queued {});
                NextWork::None
            }
            _ => return Err(Refusal::OutOfPlace(state)),
        },
        JobInput::Expired => match state {
            JobState::Scheduled | JobState::Queued if record.attempts.is_empty() => {
                step.complete(JobState::Expired, None);
                NextWork::None
            }
            _ => return Err(Refusal::OutOfPlace(state)),
        },
        JobInput::Claim { session_id, can_continue } => {
            if state != JobState::Queued {
                return Err(Refusal::OutOfPlace(state));
            }
            step.claim(session_id, can_continue);
            NextWork::Start
        }
        JobInput::AttemptWaits(waiting_for) => {
            if !state.has_attempt() || record.job.waiting_for == Some(waiting_for) {
                return Err(Refusal::OutOfPlace(state));
            }
            step.next.job.waiting_for = Some(waiting_for);
            step.enter(JobState::Waiting);
            step.events.push(JobEventKind::Waiting { waiting_for });
            NextWork::None
        }
        JobInput::AttemptRuns => {
            if state != JobState::Waiting {
                return Err(Refusal::OutOfPlace(state));
            }
            step.enter(JobState::Running);
            step.events.push(JobEventKind::Resumed {});
            NextWork::None
        }
        JobInput::AttemptEnded(end) => {
            if !state.has_attempt() {
                return Err(Refusal::OutOfPlace(state));
            }
            step.end_attempt(*end);
            NextWork::None
        }
        JobInput::Cancel { reason } => step.cancel(state, reason)?,
        JobInput::Retry { mode } => step.retry(state, mode)?,
        JobInput::Update(change) => step.update(state, change)?,
    };
    let Step { mut next, events, .. } = step;
    next.job.seq += events.len() as u64;
    Ok(Decision { next, events, work })
}

/// A decision in the making.
struct Step {
    next: JobRecord,
    events: Vec<JobEventKind>,
    now: Timestamp,
}

impl Step {
    fn enter(&mut self, state: JobState) {
        if state != JobState::Waiting {
            self.next.job.waiting_for = None;
        }
        self.next.job.state = state;
    }

    fn claim(&mut self, session_id: SessionId, can_continue: bool) {
        let continued = match self.next.next_mode {
            RetryMode::Continue if can_continue => self.next.job.session_id,
            RetryMode::Continue | RetryMode::Fresh => None,
        };
        let session_id = continued.unwrap_or(session_id);
        let job = &mut self.next.job;
        job.attempt += 1;
        job.session_id = Some(session_id);
        job.started_at_ms.get_or_insert(self.now);
        let attempt = job.attempt;
        if continued.is_none() {
            self.next.worktree_place = None;
        }
        self.next.attempts.push(JobAttempt {
            attempt,
            session_id,
            node: None,
            started_at_ms: self.now,
            ended_at_ms: None,
            subtype: None,
        });
        self.enter(JobState::Running);
        self.events.push(JobEventKind::Started { attempt, session_id, node: None });
    }

    fn cancel(&mut self, state: JobState, reason: Option<String>) -> Result<NextWork, Refusal> {
        if state.is_final() || self.next.cancelling.is_some() {
            return Err(Refusal::NotPending(state));
        }
        if state.has_attempt() {
            self.events.push(JobEventKind::Cancelling { reason: reason.clone() });
            self.next.cancelling = Some(Cancelling { reason });
            return Ok(NextWork::Stop);
        }
        self.complete_cancelled(reason);
        Ok(NextWork::None)
    }

    fn retry(&mut self, state: JobState, mode: Option<RetryMode>) -> Result<NextWork, Refusal> {
        match state {
            JobState::Failed | JobState::Cancelled | JobState::Expired => {}
            JobState::Running | JobState::Waiting => return Err(Refusal::Running),
            JobState::Succeeded | JobState::Skipped => return Err(Refusal::NotPending(state)),
            JobState::Scheduled | JobState::Queued | JobState::Retrying => {
                return Err(Refusal::NotOver(state));
            }
        }
        let record = &mut self.next;
        record.next_mode = mode.unwrap_or(record.retry.mode);
        record.start_before_ms = None;
        record.cancelling = None;
        let job = &mut record.job;
        job.attempts_max = job.attempts_max.max(job.attempt + 1);
        job.run_at_ms = self.now;
        (job.ended_at_ms, job.error, job.result) = (None, None, None);
        self.enter(JobState::Queued);
        self.events.push(JobEventKind::Queued {});
        Ok(NextWork::None)
    }

    fn update(&mut self, state: JobState, change: JobChange) -> Result<NextWork, Refusal> {
        if state.is_final() {
            return Err(Refusal::NotPending(state));
        }
        let changes_start =
            change.priority.is_some() || change.run_at_ms.is_some() || change.labels.is_some();
        if state.has_attempt() && changes_start {
            return Err(Refusal::Running);
        }
        let record = &mut self.next;
        let job = &mut record.job;
        job.priority = change.priority.unwrap_or(job.priority);
        if let Some(labels) = change.labels {
            job.labels = labels;
        }
        if let Some(budgets) = change.budgets {
            record.budgets = budgets.or(record.budgets);
        }
        self.events.push(JobEventKind::Updated {});
        if let Some(at) = change.run_at_ms {
            self.next.job.run_at_ms = at;
            if state != JobState::Retrying {
                let is_due = at <= self.now;
                match (state, is_due) {
                    (JobState::Queued, false) => self.enter(JobState::Scheduled),
                    (JobState::Scheduled, true) => {
                        self.enter(JobState::Queued);
                        self.events.push(JobEventKind::Queued {});
                    }
                    _ => {}
                }
            }
        }
        Ok(NextWork::None)
    }
}
