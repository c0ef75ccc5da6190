//! Commands of clients.

use super::JobRunner;
use super::steps::{Extras, PreparedStep};
use crate::command::{Cancelled, Command, Created, NewJob};
use crate::create::CheckedJob;
use crate::decide::{JobChange, JobInput, NextWork};
use crate::error::JobsError;
use crate::record::JobRecord;
use crate::task::{Reply, earlier_reply};
use session::IdempotencyKey;
use store::{Idempotency, JOBS_PAUSED, JobCommit, JobWrite, StoreError};
use types::audit::{AuditKind, AuditNote};
use types::event::Origin;
use types::ids::JobId;
use types::job::{Job, JobEventKind, JobState, QueueReason};
use types::job_request::{OnConflict, RetryMode};
use types::usage::Budgets;

/// Methods under which replies are stored.
mod method {
    pub(crate) use crate::command::CREATE;
    pub const UPDATE: &str = "job.update";
    pub const CANCEL: &str = "job.cancel";
    pub const RETRY: &str = "job.retry";
    pub const PAUSE: &str = "job.pause";
    pub const RESUME: &str = "job.resume";
}

/// Ends the stored reply of a cancel that stopped an attempt.
const STOPPED: &str = " stopped";

impl JobRunner {
    /// Handles one command. Errors of the command go to its caller.
    pub(super) async fn handle(&mut self, command: Command) -> Result<(), JobsError> {
        match command {
            Command::Create(new, reply) => {
                let (checked, new) = *new;
                let created = self.create(checked, new).await;
                let _ = reply.send(created);
            }
            Command::Update(id, change, keyed, reply) => {
                let updated = self.update(id, *change, keyed).await;
                let _ = reply.send(updated);
            }
            Command::Cancel { id, reason, keyed, origin, reply } => {
                self.cancel(id, reason, keyed, &origin, reply).await;
            }
            Command::Retry { id, mode, keyed, origin, reply } => {
                let retried = self.retry(id, mode, keyed, &origin).await;
                let _ = reply.send(retried);
            }
            Command::SetPaused { paused, keyed, reply } => {
                let done = self.set_paused(paused, keyed).await;
                let _ = reply.send(done);
            }
            Command::Reasons(ids, reply) => {
                let reasons = self.find_reasons(&ids).await;
                let _ = reply.send(reasons);
            }
            Command::DeliveryTried(tried, reply) => {
                let recorded = self.record_delivery(*tried).await;
                let _ = reply.send(recorded);
            }
        }
        Ok(())
    }

    async fn create(&mut self, checked: CheckedJob, new: NewJob) -> Result<Created, JobsError> {
        let CheckedJob { mut record, request } = checked;
        if let Some(job) = self.known(method::CREATE, new.keyed.as_ref()).await? {
            return Ok(Created { job, existing: false });
        }
        let mut extras = Extras { writes: new.extra_writes, ..Extras::default() };
        let mut replaced = None;
        if let (Some(unique), Some(key)) = (&request.unique, &record.unique_key)
            && let Some(stored) = self.store.job_with_unique_key(&key.text).await?
        {
            let existing = crate::command::parse(&stored)?;
            let has_not_started = matches!(existing.job.state, JobState::Scheduled | JobState::Queued)
                && existing.attempts.is_empty();
            match unique.on_conflict {
                OnConflict::Reject => return Err(JobsError::UniqueKeyTaken(existing.job.job_id)),
                OnConflict::Replace if has_not_started => {
                    let reason = format!("replaced by {}", record.job.job_id);
                    replaced = Some(self.prepare_cancel(&(existing, stored.request), reason)?);
                }
                OnConflict::Return | OnConflict::Replace => {
                    return Ok(Created { job: existing.job, existing: true });
                }
            }
        }
        let most = self.settings.borrow().max_queued;
        let waiting = self.queue.waiting().saturating_sub(usize::from(replaced.is_some()));
        if !new.is_skipped && waiting >= most as usize {
            return Err(JobsError::QueueFull { most });
        }
        let mut events = vec![JobEventKind::Created {}];
        if new.is_skipped {
            record.job.state = JobState::Skipped;
            record.job.ended_at_ms = Some(record.job.created_at_ms);
            events.push(JobEventKind::Completed { state: JobState::Skipped, result: None, error: None });
        } else if record.job.state == JobState::Queued {
            events.push(JobEventKind::Queued {});
        }
        record.job.seq = events.len() as u64;
        let job_id = record.job.job_id;
        extras.idempotency = self.stored_key(method::CREATE, new.keyed, job_id);
        extras.audit.push(self.audit_note(&record, "created", &new.origin));
        let content = serde_json::to_string(&request).unwrap_or_default();
        // The replaced job gives its key away before the new one takes it.
        let mut writes = replaced.as_mut().map(|step| std::mem::take(&mut step.writes)).unwrap_or_default();
        writes.push(JobWrite::Insert(Box::new(record.row()), content));
        base::crash::point("JC1.checked");
        let written = self.write_rows(&record, writes, events, 1, extras).await;
        base::crash::point("JC1.written");
        match written {
            Ok(()) => {
                if let Some(PreparedStep { next, events, .. }) = replaced {
                    self.announce(&next, &events);
                    self.owed_messages.notify_one();
                }
                Ok(Created { job: record.job, existing: false })
            }
            Err(JobsError::Store(StoreError::Taken)) if new.slot.is_some() => Err(JobsError::SlotFired),
            Err(error) => Err(error),
        }
    }

    async fn update(
        &mut self,
        id: JobId,
        change: JobChange,
        keyed: Option<IdempotencyKey>,
    ) -> Result<Job, JobsError> {
        if let Some(job) = self.known(method::UPDATE, keyed.as_ref()).await? {
            return Ok(job);
        }
        let budgets = change.budgets;
        self.check_raise(id, budgets).await?;
        let extras = Extras { idempotency: self.stored_key(method::UPDATE, keyed, id), ..Extras::default() };
        let (record, _) = self.step(id, JobInput::Update(change), extras).await?;
        if let (Some(_), Some(session_id)) = (budgets, record.living_session()) {
            self.raise_session_limits(&record, session_id).await;
        }
        Ok(record.job)
    }

    /// Refuses to give a living attempt more money than the day has left. Other jobs wait for it in the queue.
    async fn check_raise(&self, id: JobId, budgets: Option<Budgets>) -> Result<(), JobsError> {
        let Some(wanted) = budgets.and_then(|budgets| budgets.usd_micros) else { return Ok(()) };
        let (record, _) = self.read(id).await?;
        let more = record.budgets.usd_micros.map_or(0, |usd| wanted.saturating_sub(usd));
        if more == 0 || !record.job.state.has_attempt() {
            return Ok(());
        }
        let limits = self.limits(self.now()).await?;
        match self.queue.unreserved_usd_micros(limits).filter(|left| more > *left) {
            Some(left) => {
                let why = format!(
                    "the attempt runs, and of the day's money ([jobs] usd_per_day) only {left} micro-dollars are left"
                );
                Err(JobsError::bad("budgets.usd_micros", why))
            }
            None => Ok(()),
        }
    }

    async fn cancel(
        &mut self,
        id: JobId,
        reason: Option<String>,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
        reply: Reply<Cancelled>,
    ) {
        let done = self.begin_cancel(id, reason, keyed, origin).await;
        match done {
            Ok(Some(done)) => _ = reply.send(Ok(done)),
            // The attempt is being stopped.
            Ok(None) => match self.attempts.get_mut(&id) {
                Some(attempt) => attempt.waiting_cancels.push(reply),
                None => _ = reply.send(Err(JobsError::NotFound)),
            },
            Err(error) => _ = reply.send(Err(error)),
        }
    }

    /// Commits a cancel. `None` if an attempt is being stopped.
    async fn begin_cancel(
        &mut self,
        id: JobId,
        reason: Option<String>,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
    ) -> Result<Option<Cancelled>, JobsError> {
        let known = earlier_reply(&self.store, method::CANCEL, keyed.as_ref(), self.now()).await?;
        let (record, _) = self.read(id).await?;
        if record.cancelling.is_some() && record.job.state.has_attempt() {
            return Ok(None);
        }
        let reply_of = |stopped: bool, job: Job| Some(Cancelled { job, stopped, survivors: Vec::new() });
        // The job may run again since then.
        if let Some(known) = known {
            return Ok(reply_of(known.ends_with(STOPPED), record.job));
        }
        let mut idempotency = self.stored_key(method::CANCEL, keyed, id);
        if let Some(stored) = idempotency.as_mut().filter(|_| record.job.state.has_attempt()) {
            stored.reply.push_str(STOPPED);
        }
        let extras = Extras {
            idempotency,
            audit: vec![self.audit_note(&record, "cancelled", origin)],
            ..Extras::default()
        };
        let (next, work) = self.step(id, JobInput::Cancel { reason }, extras).await?;
        base::crash::point("JC7.cancelled");
        if work == NextWork::Stop {
            self.stop_attempt(next);
            return Ok(None);
        }
        Ok(reply_of(false, next.job))
    }

    async fn retry(
        &mut self,
        id: JobId,
        mode: Option<RetryMode>,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
    ) -> Result<Job, JobsError> {
        if let Some(job) = self.known(method::RETRY, keyed.as_ref()).await? {
            return Ok(job);
        }
        let (record, _) = self.read(id).await?;
        let extras = Extras {
            idempotency: self.stored_key(method::RETRY, keyed, id),
            audit: vec![self.audit_note(&record, "retried", origin)],
            ..Extras::default()
        };
        match self.step(id, JobInput::Retry { mode }, extras).await {
            Ok((next, _)) => {
                base::crash::point("JC7.retried");
                Ok(next.job)
            }
            // Another job has taken its unique key meanwhile.
            Err(JobsError::Store(StoreError::Taken)) => {
                let key = record.unique_key.map(|key| key.text).unwrap_or_default();
                match self.store.job_with_unique_key(&key).await? {
                    Some(other) => Err(JobsError::UniqueKeyTaken(crate::command::parse(&other)?.job.job_id)),
                    None => Err(JobsError::KeyConflict),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn set_paused(&mut self, paused: bool, keyed: Option<IdempotencyKey>) -> Result<bool, JobsError> {
        let method = if paused { method::PAUSE } else { method::RESUME };
        if earlier_reply(&self.store, method, keyed.as_ref(), self.now()).await?.is_some() {
            return Ok(paused);
        }
        let idempotency = keyed.map(|keyed| Idempotency {
            method,
            key: keyed.key,
            digest: keyed.digest,
            reply: String::new(),
        });
        let writes = vec![JobWrite::Setting(JOBS_PAUSED, Some(paused.to_string()))];
        let commit = JobCommit { writes, idempotency, at: self.now(), ..JobCommit::default() };
        self.store.commit_job(commit).await?;
        self.is_paused = paused;
        self.counters.set_paused(paused);
        Ok(paused)
    }

    async fn find_reasons(&mut self, ids: &[JobId]) -> Result<Vec<Option<QueueReason>>, JobsError> {
        let now = self.now();
        let limits = self.limits(now).await?;
        self.queue.set_paused_models(self.registry.shared().rate_limits().paused_models(now));
        Ok(ids.iter().map(|id| self.queue.find_reason(*id, limits)).collect())
    }

    /// The job of an earlier call with this key.
    async fn known(
        &self,
        method: &'static str,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<Job>, JobsError> {
        let Some(reply) = earlier_reply(&self.store, method, keyed, self.now()).await? else {
            return Ok(None);
        };
        let id: JobId = reply.parse().map_err(|_| JobsError::NotFound)?;
        self.read(id).await.map(|(record, _)| Some(record.job))
    }

    fn stored_key(
        &self,
        method: &'static str,
        keyed: Option<IdempotencyKey>,
        id: JobId,
    ) -> Option<Idempotency> {
        keyed.map(|keyed| Idempotency { method, key: keyed.key, digest: keyed.digest, reply: id.to_string() })
    }

    fn audit_note(&self, record: &JobRecord, verdict: &str, origin: &Origin) -> AuditNote {
        let reason = format!("{} in {}", record.job.job_id, record.job.cwd);
        AuditNote::new(self.now(), AuditKind::Job, verdict, reason).with_origin(Some(origin))
    }
}
