//! Steps of jobs: read, decide, write in one transaction, tell subscribers.

use std::sync::Arc;

use super::{JobRunner, LivingAttempt, Phase, WRITE_RETRY};
use crate::command::{for_lists, parse};
use crate::decide::{self, Decision, JobInput, NextWork, Refusal};
use crate::error::JobsError;
use crate::notify;
use crate::queue::QueueEntry;
use crate::record::JobRecord;
use store::{DeliveryTry, Idempotency, JobCommit, JobWrite, StoreError};
use types::audit::AuditNote;
use types::daemon_event::JobNotification;
use types::ids::JobId;
use types::job::{JobEvent, JobEventKind};
use types::job_request::JobRequest;

/// What a step writes besides the job and its events.
#[derive(Default)]
pub(super) struct Extras {
    pub writes: Vec<JobWrite>,
    pub audit: Vec<AuditNote>,
    pub idempotency: Option<Idempotency>,
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
    /// The job does not exist, or nothing was written.
    pub(super) async fn record_delivery(&mut self, tried: DeliveryTry) -> Result<(), JobsError> {
        let (mut record, _) = self.read(tried.job_id).await?;
        record.job.seq += 1;
        let DeliveryTry { target, status, tries, .. } = tried.clone();
        let event = JobEventKind::Delivery { target, status, tries };
        let seq = record.job.seq;
        let writes = vec![JobWrite::Update(Box::new(record.row())), JobWrite::DeliveryTry(Box::new(tried))];
        self.write_rows(&record, writes, vec![event], seq, Extras::default()).await
    }

    /// One step without a caller: it is written however long the disk takes. `None` if the input does not fit, because it
    /// came twice, or if the job's row is damaged.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub(super) async fn must_step(
        &mut self,
        id: JobId,
        input: JobInput,
    ) -> Result<Option<JobRecord>, JobsError> {
        loop {
            match self.step(id, input.clone(), Extras::default()).await {
                Ok((record, _)) => return Ok(Some(record)),
                Err(JobsError::ShuttingDown) => return Err(JobsError::ShuttingDown),
                Err(JobsError::Store(StoreError::Corrupt(why))) => {
                    tracing::error!(job = %id, why, "a job cannot be read and does not run");
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
        let job_id = next.job.job_id;
        for (seq, event) in (first_seq..).zip(&events) {
            let event = JobEvent { job_id, seq, at_ms: at, event: event.clone() };
            writes.push(JobWrite::Event(Box::new(event)));
        }
        writes.extend(extras.writes);
        let commit = JobCommit { writes, audit: extras.audit, idempotency: extras.idempotency, at };
        self.store.commit_job(commit).await?;
        // A delivery changes nothing that the queue knows, and its job may be over long ago.
        if !matches!(events.as_slice(), [JobEventKind::Delivery { .. }]) {
            self.track(next);
        }
        for event in &events {
            let notification = JobNotification::new(event, for_lists(next.job.clone()));
            // Sending fails if there is no subscriber.
            let _ = self.changes.send(Arc::new(notification));
        }
        Ok(())
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
        self.queue.set(QueueEntry {
            job_id: job.job_id,
            state: job.state,
            priority: job.priority,
            run_at: job.run_at_ms,
            start_before: record.start_before_ms.filter(|_| record.attempts.is_empty()),
            key: Arc::from(record.concurrency.key.as_str()),
            limit: record.concurrency.limit,
            reserve_usd_micros: record.remaining().usd_micros.unwrap_or(0),
        });
    }
}

fn refused(id: JobId, refusal: Refusal) -> JobsError {
    match refusal {
        Refusal::NotPending(state) | Refusal::OutOfPlace(state) => JobsError::NotPending(state),
        Refusal::Running => JobsError::Running(id),
        Refusal::NotOver(state) => JobsError::NotOver(state),
    }
}
