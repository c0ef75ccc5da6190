//! The handle through which clients of this crate create, change and read jobs. Besides the errors that a
//! function names, the job may not exist, the store may fail, and the daemon may be stopping.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::command::{CREATE, Cancelled, Command, Created, NewJob, corrupt, for_lists, parse, parse_record};
use crate::counts::JobCounters;
use crate::create;
use crate::decide::JobChange;
use crate::error::JobsError;
use crate::notify::{self, DeliveryHost, NotifyTarget};
use crate::record::JobRecord;
use crate::runner::JobRunner;
use crate::session_events;
use crate::settings::JobSettings;
use crate::task::{self, Reply};
use session::{IdempotencyKey, LedgerQuery, Registry};
use store::{DeliveryTry, JobQuery, PendingDelivery, Store};
use tools::Toolbox;
use types::daemon_event::JobNotification;
use types::event::Origin;
use types::ids::JobId;
use types::job::{FailedDelivery, Job, JobCounts, JobEvent, QueueReason};
use types::job_request::{JobRequest, RetryMode};
use types::time::Timestamp;
use types::usage::Budgets;

/// Capacity of the queue of commands. When it is full, callers wait.
const COMMAND_CAPACITY: usize = 256;
/// Number of changes that a subscriber may miss. If it misses more, it reads the list again.
const CHANGE_CAPACITY: usize = 4_096;

/// Maximum number of contents that are checked at the same time. Each check reads folders on a blocking thread, and such a
/// thread keeps its memory.
const CHECKS_AT_ONCE: usize = 8;

/// All jobs. Cloning is cheap.
#[derive(Clone)]
pub struct Jobs {
    registry: Registry,
    commands: mpsc::Sender<Command>,
    changes: broadcast::Sender<Arc<JobNotification>>,
    settings: watch::Receiver<JobSettings>,
    /// Told when a message about a job became owed.
    owed_messages: Arc<Notify>,
    counters: Arc<JobCounters>,
    checks: Arc<Semaphore>,
}

/// A change of a job by a client. Absent values stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobUpdate {
    pub priority: Option<i32>,
    /// Time at which it is due.
    pub run_at_ms: Option<Timestamp>,
    pub labels: Option<std::collections::BTreeMap<String, String>>,
    /// Higher limits.
    pub budgets: Option<Budgets>,
}

impl Jobs {
    /// The handle, and the runner that must run for it to answer.
    #[must_use]
    pub fn new(
        store: Store,
        registry: Registry,
        settings: watch::Receiver<JobSettings>,
    ) -> (Self, JobRunner) {
        let (commands, inbox) = mpsc::channel(COMMAND_CAPACITY);
        let changes = broadcast::channel(CHANGE_CAPACITY).0;
        let owed_messages = Arc::new(Notify::new());
        let told = Arc::clone(&owed_messages);
        let counters = Arc::new(JobCounters::default());
        let runner = JobRunner::new(
            store,
            registry.clone(),
            settings.clone(),
            inbox,
            changes.clone(),
            told,
            Arc::clone(&counters),
        );
        let checks = Arc::new(Semaphore::new(CHECKS_AT_ONCE));
        (Self { registry, commands, changes, settings, owed_messages, counters, checks }, runner)
    }

    /// Subscribes to all later changes of jobs.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<JobNotification>> {
        self.changes.subscribe()
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> JobSettings {
        self.settings.borrow().clone()
    }

    /// Checks a job's content as [`Self::create`] does, and creates nothing.
    ///
    /// # Errors
    /// A field is invalid.
    pub async fn check(&self, request: &JobRequest, origin: &Origin) -> Result<(), JobsError> {
        let _turn = self.checks.acquire().await.map_err(|_| JobsError::ShuttingDown)?;
        create::check(&self.registry, &self.settings(), request.clone(), origin, None, None).await.map(|_| ())
    }

    /// Creates a job. It is on disk when this returns. Not cancel-safe: after a dropped call the job may exist.
    ///
    /// # Errors
    /// A field is invalid, the unique key is taken and the job says `reject`, the queue is full, or the store failed.
    pub async fn create(&self, new: NewJob) -> Result<Created, JobsError> {
        // The first call's answer holds, whatever its template, folder or model is now.
        if let Some(job) = self.created_before(new.keyed.as_ref()).await? {
            return Ok(Created { job, existing: false });
        }
        let settings = self.settings();
        let (request, slot, job_id) = (new.request.clone(), new.slot, new.job_id);
        let checked = {
            let _turn = self.checks.acquire().await.map_err(|_| JobsError::ShuttingDown)?;
            create::check(&self.registry, &settings, request, &new.origin, slot, job_id).await?
        };
        self.ask(|reply| Command::Create(Box::new((checked, new)), reply)).await
    }

    /// The job of an earlier call with this idempotency key.
    async fn created_before(&self, keyed: Option<&IdempotencyKey>) -> Result<Option<Job>, JobsError> {
        let shared = self.registry.shared();
        let reply = task::earlier_reply(&shared.store, CREATE, keyed, shared.clock.now()).await?;
        let Some(reply) = reply else { return Ok(None) };
        let id: JobId = reply.parse().map_err(|_| JobsError::NotFound)?;
        Ok(Some(self.record(id).await?.job))
    }

    /// Changes a job. See [`JobUpdate`].
    ///
    /// # Errors
    /// The job does not exist, is over, or runs; a value is invalid; or the store failed.
    pub async fn update(
        &self,
        id: JobId,
        update: JobUpdate,
        keyed: Option<IdempotencyKey>,
    ) -> Result<Job, JobsError> {
        create::check_priority(update.priority)?;
        create::check_time("run_at_ms", update.run_at_ms)?;
        if let Some(labels) = &update.labels {
            create::check_labels(labels)?;
        }
        create::check_budgets(&self.registry, &self.settings(), update.budgets)?;
        let JobUpdate { priority, run_at_ms, labels, budgets } = update;
        let change = Box::new(JobChange { priority, run_at_ms, labels, budgets });
        self.ask(|reply| Command::Update(id, change, keyed, reply)).await
    }

    /// Cancels a job. Returns when its work has stopped.
    ///
    /// # Errors
    /// The reason is too long, the job does not exist or is over, or the store failed.
    pub async fn cancel(
        &self,
        id: JobId,
        reason: Option<String>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Cancelled, JobsError> {
        create::check_reason(reason.as_deref())?;
        self.ask(|reply| Command::Cancel { id, reason, keyed, origin, reply }).await
    }

    /// Gives a job that is over one more attempt.
    ///
    /// # Errors
    /// The job does not exist, is not over or has succeeded, or the store failed.
    pub async fn retry(
        &self,
        id: JobId,
        mode: Option<RetryMode>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Job, JobsError> {
        self.ask(|reply| Command::Retry { id, mode, keyed, origin, reply }).await
    }

    /// Stops new starts, or allows them again. It survives restarts. Returns whether new starts are stopped.
    pub async fn set_paused(&self, paused: bool, keyed: Option<IdempotencyKey>) -> Result<bool, JobsError> {
        self.ask(|reply| Command::SetPaused { paused, keyed, reply }).await
    }

    /// How many jobs are in which state. Never waits.
    #[must_use]
    pub fn counts(&self) -> JobCounts {
        self.counters.snapshot()
    }

    /// One job with its stored content.
    pub async fn get(&self, id: JobId) -> Result<(Job, JobRequest), JobsError> {
        let stored = self.registry.shared().store.job(id).await?.ok_or(JobsError::NotFound)?;
        let record = parse(&stored)?;
        let request = serde_json::from_str(&stored.request).map_err(|error| corrupt(&error))?;
        let mut jobs = vec![record];
        self.add_live_state(&mut jobs).await?;
        let mut record = jobs.pop().ok_or(JobsError::NotFound)?;
        record.job.deliveries = self.registry.shared().store.deliveries_of(id).await?;
        Ok((record.job, request))
    }

    /// The whole stored state of a job.
    pub async fn record(&self, id: JobId) -> Result<JobRecord, JobsError> {
        let stored = self.registry.shared().store.job(id).await?.ok_or(JobsError::NotFound)?;
        parse(&stored)
    }

    /// The newest message owed since a time whose last try failed.
    pub async fn last_failed_delivery(&self, since: Timestamp) -> Result<Option<FailedDelivery>, JobsError> {
        Ok(self.registry.shared().store.last_failed_delivery(since).await?)
    }

    /// Sends messages about jobs, and tells sessions of their jobs, until the future is dropped. Running commands are
    /// killed then.
    pub async fn deliver(self) {
        let wake = Arc::clone(&self.owed_messages);
        let telling = session_events::run(self.registry.clone(), self.subscribe());
        tokio::join!(notify::run(Arc::new(self), wake), telling);
    }

    /// A page of jobs, newest first, and the cursor of the next page. Results are left out, and so are jobs whose row is
    /// damaged.
    pub async fn list(
        &self,
        before: Option<i64>,
        limit: u32,
        wanted: JobQuery<'_>,
    ) -> Result<(Vec<Job>, Option<i64>), JobsError> {
        let mut rows = self.registry.shared().store.jobs(before, limit.saturating_add(1), wanted).await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().map(|(position, _)| *position).filter(|_| has_more);
        let parsed = |(position, record): &(i64, String)| match parse_record(record) {
            Ok(record) => Some(record),
            Err(error) => {
                tracing::warn!(position, %error, "a job cannot be read and is left out of a list");
                None
            }
        };
        let mut records: Vec<JobRecord> = rows.iter().filter_map(parsed).collect();
        self.add_live_state(&mut records).await?;
        Ok((records.into_iter().map(|record| for_lists(record.job)).collect(), next))
    }

    /// Events of a job after a number, oldest first.
    pub async fn events(&self, id: JobId, after: u64, limit: u32) -> Result<Vec<JobEvent>, JobsError> {
        let store = &self.registry.shared().store;
        let events = store.job_events(id, after, limit).await?;
        if events.is_empty() && store.job(id).await?.is_none() {
            return Err(JobsError::NotFound);
        }
        Ok(events)
    }

    /// Waits until a job is over, at most for `timeout`. Returns the job and whether the time was over first.
    /// Cancel-safe.
    ///
    /// # Errors
    /// The job does not exist, the daemon is stopping, or the database could not be read.
    pub async fn wait(
        &self,
        id: JobId,
        timeout: Option<Duration>,
        stop: &CancellationToken,
    ) -> Result<(Job, bool), JobsError> {
        // Subscribe before the state is read, so that no change between both is lost.
        let mut changes = self.subscribe();
        let over = async {
            loop {
                let (job, _) = self.get(id).await?;
                if job.state.is_final() {
                    return Ok(job);
                }
                loop {
                    match changes.recv().await {
                        Ok(change) if change.job.job_id == id => break,
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Lagged(_)) => break,
                        Err(broadcast::error::RecvError::Closed) => return Err(JobsError::ShuttingDown),
                    }
                }
            }
        };
        tokio::select! {
            biased;
            job = over => Ok((job?, false)),
            () = stop.cancelled() => Err(JobsError::ShuttingDown),
            () = task::sleep(timeout) => Ok((self.get(id).await?.0, true)),
        }
    }

    /// Adds what only the runner and living sessions know: why a job waits, and what a running attempt has used.
    async fn add_live_state(&self, records: &mut [JobRecord]) -> Result<(), JobsError> {
        let waiting = records.iter().filter(|it| !it.job.state.is_final() && !it.job.state.has_attempt());
        let ids: Vec<JobId> = waiting.map(|record| record.job.job_id).collect();
        if !ids.is_empty() {
            let reasons = self.ask(|reply| Command::Reasons(ids.clone(), reply)).await?;
            for (id, reason) in ids.into_iter().zip(reasons) {
                if let Some(record) = records.iter_mut().find(|record| record.job.job_id == id) {
                    record.job.reason = reason;
                }
            }
        }
        for record in records.iter_mut() {
            let Some(session_id) = record.living_session() else { continue };
            if let Ok(view) = self.registry.view(session_id).await {
                record.job.activity = view.summary.activity;
            }
            let shared = self.registry.shared();
            if shared.rate_limits().is_waiting(session_id, shared.clock.now()) {
                record.job.reason = Some(QueueReason::RateLimited);
            }
            let query = LedgerQuery { session_id: Some(session_id), ..LedgerQuery::default() };
            let is_continued = record.attempts.iter().filter(|it| it.session_id == session_id).count() > 1;
            if !is_continued {
                let mut models = record.spent.models.clone();
                models.add(&self.registry.shared().store.ledger_total(query).await?);
                record.job.usage = models.usage;
                record.job.cost_usd_micros = models.cost_usd_micros;
            }
        }
        Ok(())
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Command) -> Result<T, JobsError> {
        task::ask(&self.commands, make).await
    }
}

impl DeliveryHost for Jobs {
    fn now(&self) -> Timestamp {
        self.registry.shared().clock.now()
    }

    fn tools(&self) -> (Toolbox, PathBuf) {
        let components = self.registry.shared().components();
        (components.tools.clone(), components.settings.home.clone())
    }

    fn target(&self, name: &str) -> Option<NotifyTarget> {
        self.settings.borrow().notify.get(name).cloned()
    }

    async fn pending(&self, per_target: u32, limit: u32) -> Result<Vec<PendingDelivery>, JobsError> {
        Ok(self.registry.shared().store.pending_deliveries(per_target, limit).await?)
    }

    async fn record(&self, tried: DeliveryTry) -> Result<(), JobsError> {
        self.ask(|reply| Command::DeliveryTried(Box::new(tried), reply)).await
    }
}
