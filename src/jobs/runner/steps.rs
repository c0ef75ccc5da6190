//! Steps of jobs: read, decide, write in one transaction, tell subscribers.

use std::sync::Arc;
use std::time::Duration;

use super::{JobRunner, LivingAttempt, Phase, retry_wait};
use crate::command::{for_lists, parse};
use crate::decide::{self, Decision, JobInput, NextWork, Refusal};
use crate::error::JobsError;
use crate::notify;
use crate::queue::QueueEntry;
use crate::record::JobRecord;
use store::{DeliveryTry, Idempotency, JobCommit, JobWrite};
use types::audit::AuditNote;
use types::daemon_event::JobNotification;
use types::ids::JobId;
use types::job::{JobEvent, JobEventKind};
use types::job_request::JobRequest;
use types::time::Timestamp;

/// Wait before a failed write of a step without a caller is repeated.
const WRITE_RETRY: Duration = Duration::from_millis(500);

/// Number of names of models after which those that no job uses are forgotten.
const MAX_MODELS: usize = 64;

/// What a step writes besides the job and its events.
#[derive(Default)]
pub(super) struct Extras {
    pub writes: Vec<JobWrite>,
    pub audit: Vec<AuditNote>,
    pub idempotency: Option<Idempotency>,
}

/// A decision whose writes are not committed yet.
pub(super) struct PreparedStep {
    pub next: JobRecord,
    pub events: Vec<JobEventKind>,
    pub writes: Vec<JobWrite>,
}

impl JobRunner {
    /// The stored state of a job, and its content as JSON.
    pub(super) async fn read(&self, id: JobId) -> Result<(JobRecord, String), JobsError> {
        let stored = self.store.job(id).await?.ok_or(JobsError::NotFound)?;
        Ok((parse(&stored)?, stored.request))
    }

    /// One step for a caller, who gets its errors.
    ///
    /// # Errors
    /// The input was refused, or nothing was written.
    pub(super) async fn step(
        &mut self,
        id: JobId,
        input: JobInput,
        extras: Extras,
    ) -> Result<(JobRecord, NextWork), JobsError> {
        let (record, content) = self.read(id).await?;
        let decision = decide::decide(&record, input, self.now()).map_err(|refusal| refused(id, refusal))?;
        let work = decision.work;
        let owed = self.owed(&decision, &content);
        let owes = !owed.is_empty();
        let mut extras = extras;
        extras.writes.extend(owed);
        let next = self.write(decision, extras).await?;
        if owes {
            base::crash::point("JC5.owed");
            self.owed_messages.notify_one();
        }
        Ok((next, work))
    }

    /// The messages that a step owes.
    fn owed(&mut self, decision: &Decision, content: &str) -> Vec<JobWrite> {
        let is_told = |event: &JobEventKind| {
            matches!(event, JobEventKind::Completed { .. } | JobEventKind::Waiting { .. })
        };
        let job = &decision.next.job;
        if !decision.events.iter().any(is_told) {
            return Vec::new();
        }
        let request: JobRequest = match serde_json::from_str(content) {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(job = %job.job_id, %error, "the content of a job cannot be read, so no message about it is sent");
                return Vec::new();
            }
        };
        let now = self.now();
        let owed = notify::owed(&request, job, &self.settings.borrow().notify, now, &mut self.mint);
        owed.into_iter().map(|owed| JobWrite::Owe(Box::new(owed))).collect()
    }

    /// Writes the state of a message after a try, with an event of its job.
    ///
    /// # Errors
    /// The job does not exist, or nothing was written. The try of a job whose row is damaged gets no event.
    pub(super) async fn record_delivery(&mut self, tried: DeliveryTry) -> Result<(), JobsError> {
        let mut record = match self.read(tried.job_id).await {
            Ok((record, _)) => record,
            // Without the stored try, the message would be sent again and again.
            Err(error) if error.is_damage() => {
                let writes = vec![JobWrite::DeliveryTry(Box::new(tried))];
                let commit = JobCommit { writes, at: self.now(), ..JobCommit::default() };
                return Ok(self.store.commit_job(commit).await?);
            }
            Err(error) => return Err(error),
        };
        record.job.seq += 1;
        let DeliveryTry { target, status, tries, .. } = tried.clone();
        let event = JobEventKind::Delivery { target, status, tries };
        let seq = record.job.seq;
        let writes = vec![JobWrite::Update(Box::new(record.row())), JobWrite::DeliveryTry(Box::new(tried))];
        self.write_rows(&record, writes, vec![event], seq, Extras::default()).await
    }

    /// The stored state of a job, and its content as JSON, however long the disk takes. A job whose row is damaged or
    /// missing is left out until the next start of the daemon, so that it stops no other one; that is `None`.
    pub(super) async fn read_or_forget(
        &mut self,
        id: JobId,
    ) -> Result<Option<(JobRecord, String)>, JobsError> {
        let mut failures = 0;
        loop {
            match self.read(id).await {
                Ok(job) => return Ok(Some(job)),
                Err(JobsError::ShuttingDown) => return Err(JobsError::ShuttingDown),
                Err(error) if error == JobsError::NotFound || error.is_damage() => {
                    tracing::error!(job = %id, %error, "a job cannot be read");
                    self.forget(id);
                    return Ok(None);
                }
                Err(error) => {
                    tracing::warn!(job = %id, %error, "a job cannot be read yet");
                    tokio::time::sleep(retry_wait(failures)).await;
                    failures += 1;
                }
            }
        }
    }

    /// A step that the queue asks for. A job that cannot make it is left out until the next start of the daemon.
    pub(super) async fn step_or_forget(
        &mut self,
        id: JobId,
        input: JobInput,
    ) -> Result<Option<JobRecord>, JobsError> {
        let done = self.must_step(id, input).await?;
        if done.is_none() {
            self.forget(id);
        }
        Ok(done)
    }

    fn forget(&mut self, id: JobId) {
        tracing::error!(job = %id, "a job is left out until the next start of the daemon");
        self.queue.remove(id);
        let Some(attempt) = self.attempts.remove(&id) else { return };
        self.by_session.remove(&attempt.session_id);
        for reply in attempt.waiting_cancels {
            let _ = reply.send(Err(JobsError::NotFound));
        }
    }

    /// One step without a caller: it is written however long the disk takes. `None` if the input does not fit, because it
    /// came twice, or if the job's row is damaged.
    pub(super) async fn must_step(
        &mut self,
        id: JobId,
        input: JobInput,
    ) -> Result<Option<JobRecord>, JobsError> {
        loop {
            match self.step(id, input.clone(), Extras::default()).await {
                Ok((record, _)) => return Ok(Some(record)),
                Err(JobsError::ShuttingDown) => return Err(JobsError::ShuttingDown),
                Err(error) if error.is_damage() => {
                    tracing::error!(job = %id, %error, "a job cannot be read");
                    return Ok(None);
                }
                Err(JobsError::Store(error)) => {
                    tracing::warn!(job = %id, %error, "a step of a job could not be written yet");
                    tokio::time::sleep(WRITE_RETRY).await;
                }
                Err(error) => {
                    tracing::debug!(job = %id, %error, "an input of a job was not needed any more");
                    return Ok(None);
                }
            }
        }
    }

    /// Writes a decision and tells subscribers.
    pub(super) async fn write(&mut self, decision: Decision, extras: Extras) -> Result<JobRecord, JobsError> {
        let Decision { next, events, .. } = decision;
        let first_seq = next.job.seq + 1 - events.len() as u64;
        let writes = vec![JobWrite::Update(Box::new(next.row()))];
        self.write_rows(&next, writes, events, first_seq, extras).await?;
        Ok(next)
    }

    /// Writes rows of a job with its events, tells subscribers, and updates the queue.
    pub(super) async fn write_rows(
        &mut self,
        next: &JobRecord,
        mut writes: Vec<JobWrite>,
        events: Vec<JobEventKind>,
        first_seq: u64,
        extras: Extras,
    ) -> Result<(), JobsError> {
        let at = self.now();
        writes.extend(event_writes(next.job.job_id, &events, first_seq, at));
        writes.extend(extras.writes);
        let commit = JobCommit { writes, audit: extras.audit, idempotency: extras.idempotency, at };
        self.store.commit_job(commit).await?;
        self.announce(next, &events);
        Ok(())
    }

    /// A cancel of a job that has not started, as a part of another commit. [`Self::announce`] follows after it.
    ///
    /// # Errors
    /// The job has started or is over.
    pub(super) fn prepare_cancel(
        &mut self,
        job: &(JobRecord, String),
        reason: String,
    ) -> Result<PreparedStep, JobsError> {
        let (record, content) = job;
        let id = record.job.job_id;
        let input = JobInput::Cancel { reason: Some(reason) };
        let decision = decide::decide(record, input, self.now()).map_err(|refusal| refused(id, refusal))?;
        let first_seq = record.job.seq + 1;
        let mut writes = vec![JobWrite::Update(Box::new(decision.next.row()))];
        writes.extend(event_writes(id, &decision.events, first_seq, self.now()));
        writes.extend(self.owed(&decision, content));
        Ok(PreparedStep { next: decision.next, events: decision.events, writes })
    }

    /// Takes over a written state, and tells subscribers.
    pub(super) fn announce(&mut self, next: &JobRecord, events: &[JobEventKind]) {
        // A delivery changes nothing that the queue knows, and its job may be over long ago.
        if !matches!(events, [JobEventKind::Delivery { .. }]) {
            self.track(next);
        }
        for event in events {
            let notification = JobNotification::new(event, for_lists(next.job.clone()));
            // Sending fails if there is no subscriber.
            let _ = self.changes.send(Arc::new(notification));
        }
    }

    /// Writes a job's state without an event: a detail that clients do not see.
    pub(super) async fn write_record(&mut self, record: &JobRecord) -> Result<(), JobsError> {
        loop {
            let writes = vec![JobWrite::Update(Box::new(record.row()))];
            match self.write_rows(record, writes, Vec::new(), 0, Extras::default()).await {
                Err(JobsError::Store(error)) => {
                    tracing::warn!(job = %record.job.job_id, %error, "a detail of a job could not be written yet");
                    tokio::time::sleep(WRITE_RETRY).await;
                }
                done => return done,
            }
        }
    }

    /// The shared copy of a model's name. There are few, and thousands of jobs.
    fn intern(&mut self, model: &str) -> Arc<str> {
        match self.models.get(model) {
            Some(known) => Arc::clone(known),
            None => {
                let name: Arc<str> = Arc::from(model);
                if self.models.len() >= MAX_MODELS {
                    self.models.retain(|known| Arc::strong_count(known) > 1);
                }
                self.models.insert(Arc::clone(&name));
                name
            }
        }
    }

    /// Takes over the state of a job into the queue.
    pub(super) fn track(&mut self, record: &JobRecord) {
        let job = &record.job;
        if let Some(session_id) = record.living_session() {
            self.by_session.insert(session_id, job.job_id);
            let new = || LivingAttempt { session_id, phase: Phase::Idle, waiting_cancels: Vec::new() };
            self.attempts.entry(job.job_id).or_insert_with(new);
        }
        let before = self.queue.get(job.job_id).map(|known| known.state);
        self.counters.moved(before, job.state);
        let model = record.model.as_deref().map(|model| self.intern(model));
        self.queue.set(QueueEntry {
            job_id: job.job_id,
            state: job.state,
            priority: job.priority,
            run_at: job.run_at_ms.max(job.created_at_ms),
            start_before: record.start_before_ms.filter(|_| record.attempts.is_empty()),
            model,
            key: Arc::from(record.concurrency.key.as_str()),
            limit: record.concurrency.limit,
            reserve_usd_micros: record.remaining().usd_micros.unwrap_or(0),
        });
    }
}

fn event_writes(id: JobId, events: &[JobEventKind], first_seq: u64, at: Timestamp) -> Vec<JobWrite> {
    let write = |(seq, event): (u64, &JobEventKind)| {
        JobWrite::Event(Box::new(JobEvent { job_id: id, seq, at_ms: at, event: event.clone() }))
    };
    (first_seq..).zip(events).map(write).collect()
}

fn refused(id: JobId, refusal: Refusal) -> JobsError {
    match refusal {
        Refusal::NotPending(state) | Refusal::OutOfPlace(state) => JobsError::NotPending(state),
        Refusal::Running => JobsError::Running(id),
        Refusal::NotOver(state) => JobsError::NotOver(state),
    }
}
