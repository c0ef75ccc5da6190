//! The one task that owns all jobs. For each input it decides, writes the step in one transaction, tells subscribers,
//! and then starts or stops attempts. So a job never has two living attempts.

mod attempt;
mod commands;
mod steps;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::command::{Cancelled, Command, Reply};
use crate::counts::JobCounters;
use crate::decide::{AttemptEnd, JobInput};
use crate::error::JobsError;
use crate::queue::{self, AttemptMoney, QueueEntry, QueueLimits};
use crate::record::{JobRecord, WorktreePlace};
use crate::services::Services;
use crate::settings::JobSettings;
use session::{Registry, SessionError, StatusChange};
use store::Store;
use types::daemon_event::JobNotification;
use types::ids::{JobId, Mint, Seed, SessionId};
use types::job::{JobError, JobState, WaitingFor};
use types::session::{Requires, SessionState};
use types::time::Timestamp;

/// Name of the stored value that says that new starts are stopped.
const PAUSED: &str = "jobs.paused";
/// Wait before failed reads of the store are repeated; it doubles with each further failure, up to the second value.
const READ_RETRY_MS: (u64, u64) = (100, 5_000);
/// Longest sleep while a job waits for a time: the system's clock may be set, and a machine may sleep.
const MAX_SLEEP: Duration = Duration::from_secs(5);

/// The task that owns all jobs. [`JobRunner::run`] must run for the handle to answer.
pub struct JobRunner {
    store: Store,
    registry: Registry,
    settings: watch::Receiver<JobSettings>,
    inbox: mpsc::Receiver<Command>,
    changes: broadcast::Sender<Arc<JobNotification>>,
    /// All jobs that are not over, in the order of their creation.
    entries: BTreeMap<JobId, ActiveJob>,
    /// The jobs of living attempts.
    by_session: HashMap<SessionId, JobId>,
    /// Starting, ending and stopping attempts, each with its job.
    work: JoinSet<WorkDone>,
    work_of: HashMap<Id, JobId>,
    is_paused: bool,
    counters: Arc<JobCounters>,
    /// Whether sessions are recovered. Before that no attempt starts.
    can_start: bool,
    mint: Mint,
    /// Told when a message about a job became owed.
    owed_messages: Arc<Notify>,
}

/// A job that is not over.
struct ActiveJob {
    entry: QueueEntry,
    /// When it expires if it has not started.
    start_before: Option<Timestamp>,
    session_id: Option<SessionId>,
    phase: Phase,
    /// Callers that wait until the attempt has stopped.
    waiting_cancels: Vec<Reply<Cancelled>>,
}

/// What the runner does for a living attempt.
enum Phase {
    /// Nothing: there is no living attempt, or its session works.
    Idle,
    /// The session is being created; the token stops that.
    Starting(CancellationToken),
    /// The session works, and its changes count.
    Following,
    /// The result is being read, or the session is being stopped.
    Ending,
}

/// The end of a piece of work.
enum WorkDone {
    /// The attempt's input is on disk.
    Started(JobId),
    /// The attempt has its worktree.
    Placed(JobId, Box<WorktreePlace>),
    /// The attempt could not be started now, because the storage failed; it is tried again.
    StartAgain(JobId),
    /// The attempt is over.
    Ended(JobId, Box<AttemptEnd>, Vec<i32>),
}

impl JobRunner {
    pub(crate) fn new(
        store: Store,
        registry: Registry,
        settings: watch::Receiver<JobSettings>,
        inbox: mpsc::Receiver<Command>,
        changes: broadcast::Sender<Arc<JobNotification>>,
        owed_messages: Arc<Notify>,
        counters: Arc<JobCounters>,
    ) -> Self {
        Self {
            store,
            registry,
            settings,
            inbox,
            changes,
            entries: BTreeMap::new(),
            by_session: HashMap::new(),
            work: JoinSet::new(),
            work_of: HashMap::new(),
            is_paused: false,
            can_start: false,
            mint: Mint::new(0, Seed::random()),
            owed_messages,
            counters,
        }
    }

    /// Owns the jobs until the future is dropped or the store is closed. No attempt starts before `recovered` says that
    /// sessions are recovered and leftover processes are gone.
    pub async fn run(mut self, recovered: oneshot::Receiver<()>) {
        let mut statuses = self.registry.shared().subscribe_status();
        let mut failures = 0;
        while let Err(error) = self.load().await {
            if error == JobsError::ShuttingDown {
                return;
            }
            tracing::error!(%error, "could not read the jobs yet; none runs");
            tokio::time::sleep(retry_wait(failures)).await;
            failures += 1;
        }
        failures = 0;
        let mut recovered = Some(recovered);
        loop {
            let started = if self.can_start { self.start_due().await } else { Ok(()) };
            let sleep = match started {
                Ok(()) => {
                    failures = 0;
                    self.next_sleep()
                }
                Err(JobsError::ShuttingDown) => return,
                Err(error) => {
                    tracing::error!(%error, "jobs could not be started yet");
                    failures += 1;
                    Some(retry_wait(failures - 1))
                }
            };
            let is_recovered = async {
                match &mut recovered {
                    Some(recovered) => _ = recovered.await,
                    None => std::future::pending().await,
                }
            };
            let nap = async {
                match sleep {
                    Some(sleep) => tokio::time::sleep(sleep).await,
                    None => std::future::pending().await,
                }
            };
            let done = tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.handle(command).await,
                    None => return,
                },
                status = statuses.recv() => match status {
                    Ok(change) => self.session_changed(change).await,
                    Err(RecvError::Lagged(_)) => self.look_at_all().await,
                    Err(RecvError::Closed) => return,
                },
                Some(done) = self.work.join_next_with_id() => self.work_done(done).await,
                () = is_recovered => {
                    recovered = None;
                    self.resume_attempts().await
                }
                changed = self.settings.changed() => match changed {
                    Ok(()) => Ok(()),
                    Err(_) => return,
                },
                () = nap => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(JobsError::ShuttingDown) => return,
                Err(error) => tracing::error!(%error, "a step of a job failed"),
            }
        }
    }

    async fn load(&mut self) -> Result<(), JobsError> {
        self.is_paused = match self.store.setting(PAUSED).await? {
            Some(value) => value == "true",
            None => self.settings.borrow().paused,
        };
        self.counters.set_paused(self.is_paused);
        for text in self.store.unfinished_jobs().await? {
            match crate::command::parse_record(&text) {
                Ok(record) => self.track(&record),
                // One damaged row must not keep the others from running.
                Err(error) => tracing::error!(%error, "a job cannot be read and does not run"),
            }
        }
        Ok(())
    }

    /// Goes on with the attempts that lived when the daemon stopped. Each step of a start can be repeated.
    async fn resume_attempts(&mut self) -> Result<(), JobsError> {
        self.can_start = true;
        let living: Vec<JobId> = self
            .entries
            .values()
            .filter(|job| job.entry.state.has_attempt())
            .map(|job| job.entry.job_id)
            .collect();
        for id in living {
            if let Some((record, _)) = self.read_or_forget(id).await? {
                self.go_on(record).await?;
            }
        }
        Ok(())
    }

    /// Starts the newest attempt of a job, or stops it for a committed cancel. Both may be repeated.
    async fn go_on(&mut self, record: JobRecord) -> Result<(), JobsError> {
        match record.cancelling.is_some() {
            true => self.spawn_stop(record),
            false => self.spawn_start(record).await?,
        }
        Ok(())
    }

    /// Starts what can start, and notes jobs whose time has come or is over.
    async fn start_due(&mut self) -> Result<(), JobsError> {
        let now = self.now();
        let is_due = |job: &&ActiveJob| {
            matches!(job.entry.state, JobState::Scheduled | JobState::Retrying) && job.entry.run_at <= now
        };
        let due: Vec<JobId> = self.entries.values().filter(is_due).map(|job| job.entry.job_id).collect();
        for id in due {
            self.step_or_forget(id, JobInput::Due).await?;
        }
        let is_expired = |job: &&ActiveJob| {
            !job.entry.state.has_attempt() && job.start_before.is_some_and(|before| before <= now)
        };
        let expired: Vec<JobId> =
            self.entries.values().filter(is_expired).map(|job| job.entry.job_id).collect();
        for id in expired {
            self.step_or_forget(id, JobInput::Expired).await?;
        }
        while self.entries.values().any(|job| job.entry.state == JobState::Queued) {
            let limits = self.limits(now).await?;
            let entries = self.entries.values().map(|job| &job.entry);
            let Some(id) = queue::next_to_start(entries, limits, now) else { return Ok(()) };
            base::crash::point("JC2.chosen");
            let session_id = self.mint_session();
            let Some((record, _)) = self.read_or_forget(id).await? else { continue };
            // The worktree of an attempt without changes is removed at its end.
            let place = record.worktree_place.as_ref();
            let can_continue = place.is_none_or(|place| Path::new(&place.path).is_dir());
            let claimed = self.step_or_forget(id, JobInput::Claim { session_id, can_continue }).await?;
            base::crash::point("JC2.claimed");
            if let Some(record) = claimed {
                self.spawn_start(record).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn limits(&self, now: Timestamp) -> Result<QueueLimits, JobsError> {
        let (concurrent, most) = {
            let settings = self.settings.borrow();
            (settings.concurrent.get(), settings.micros_per_day())
        };
        let day_usd_micros_left = match most {
            Some(most) => {
                let spending = self.store.job_spending(now.start_of_day()).await?;
                let living = spending.attempts_usd_micros.iter().filter_map(|(id, spent)| {
                    let reserve = self.entries.get(id)?.entry.reserve_usd_micros;
                    Some(AttemptMoney { reserve, spent: *spent })
                });
                Some(queue::day_usd_micros_left(most, spending.total_usd_micros, living))
            }
            None => None,
        };
        Ok(QueueLimits { concurrent, is_paused: self.is_paused, day_usd_micros_left })
    }

    /// How long nothing has to be done, if no input arrives; `None` if no job waits for a time.
    fn next_sleep(&self) -> Option<Duration> {
        let now = self.now();
        let has_day_limit = self.settings.borrow().micros_per_day().is_some();
        let waits = self.entries.values().filter_map(|job| {
            let entry = &job.entry;
            let start = match entry.state {
                JobState::Scheduled | JobState::Retrying => Some(entry.run_at),
                // Tomorrow there is new money.
                JobState::Queued if has_day_limit => Some(Timestamp((now.day() + 1) * 86_400_000)),
                _ => None,
            };
            let expiry = job.start_before.filter(|_| !entry.state.has_attempt());
            start.into_iter().chain(expiry).min()
        });
        let next = waits.min()?;
        Some(Duration::from_millis(next.since(now).max(1)).min(MAX_SLEEP))
    }

    async fn session_changed(&mut self, change: StatusChange) -> Result<(), JobsError> {
        let Some(id) = self.by_session.get(&change.session_id).copied() else { return Ok(()) };
        let Some(job) = self.entries.get(&id) else { return Ok(()) };
        if !matches!(job.phase, Phase::Following) {
            return Ok(());
        }
        self.follow(id, change.state, change.requires).await
    }

    /// Takes over the state of an attempt's session.
    async fn follow(
        &mut self,
        id: JobId,
        state: Option<SessionState>,
        requires: Option<Requires>,
    ) -> Result<(), JobsError> {
        let waiting_for = match (state, requires) {
            (Some(SessionState::Running), _) => None,
            (Some(SessionState::RequiresAction), Some(Requires::Question)) => Some(WaitingFor::Question),
            (Some(SessionState::RequiresAction), Some(Requires::UnknownOutcome)) => {
                Some(WaitingFor::UnknownOutcome)
            }
            (Some(SessionState::RequiresAction), _) => Some(WaitingFor::Permission),
            (Some(SessionState::Paused), _) => Some(WaitingFor::Resume),
            (
                Some(
                    SessionState::Idle | SessionState::Failed | SessionState::Ended | SessionState::Archived,
                ),
                _,
            )
            | (None, _) => {
                if let Some((record, _)) = self.read_or_forget(id).await? {
                    self.spawn_end(record);
                }
                return Ok(());
            }
        };
        let is_waiting = self.entries.get(&id).is_some_and(|job| job.entry.state == JobState::Waiting);
        match waiting_for {
            Some(waiting_for) => _ = self.must_step(id, JobInput::AttemptWaits(waiting_for)).await?,
            None if is_waiting => _ = self.must_step(id, JobInput::AttemptRuns).await?,
            None => {}
        }
        Ok(())
    }

    /// Changes of sessions were lost, so look at all living attempts.
    async fn look_at_all(&mut self) -> Result<(), JobsError> {
        let followed = self.entries.values().filter(|job| matches!(job.phase, Phase::Following));
        let living: Vec<(JobId, SessionId)> =
            followed.filter_map(|job| Some((job.entry.job_id, job.session_id?))).collect();
        for (id, session_id) in living {
            self.look_at(id, session_id).await?;
        }
        Ok(())
    }

    async fn look_at(&mut self, id: JobId, session_id: SessionId) -> Result<(), JobsError> {
        let mut failures = 0;
        loop {
            match self.registry.view(session_id).await.map_err(JobsError::from) {
                Ok(view) => return self.follow(id, Some(view.summary.state), view.summary.requires).await,
                Err(JobsError::ShuttingDown) => return Err(JobsError::ShuttingDown),
                Err(error) if error == JobsError::Session(SessionError::NotFound) || error.is_damage() => {
                    return self.follow(id, None, None).await;
                }
                Err(error) => {
                    tracing::warn!(job = %id, %error, "the session of an attempt cannot be read yet");
                    tokio::time::sleep(retry_wait(failures)).await;
                    failures += 1;
                }
            }
        }
    }

    async fn work_done(&mut self, done: Result<(Id, WorkDone), JoinError>) -> Result<(), JobsError> {
        let done = match done {
            Ok((task, done)) => {
                self.work_of.remove(&task);
                done
            }
            Err(error) => {
                let Some(id) = self.work_of.remove(&error.id()) else { return Ok(()) };
                tracing::error!(job = %id, %error, "the work of an attempt failed");
                let why = JobError::new(
                    "internal",
                    "the daemon failed while it worked on the attempt; see its log",
                );
                let end = AttemptEnd { error: Some(why), ..AttemptEnd::default() };
                WorkDone::Ended(id, Box::new(end), Vec::new())
            }
        };
        match done {
            WorkDone::Started(id) => {
                let Some(job) = self.entries.get_mut(&id) else { return Ok(()) };
                job.phase = Phase::Following;
                let session_id = job.session_id;
                let Some((record, _)) = self.read_or_forget(id).await? else { return Ok(()) };
                if record.cancelling.is_some() {
                    self.spawn_stop(record);
                } else if let Some(session_id) = session_id {
                    // The turn may have ended before its changes were followed.
                    self.look_at(id, session_id).await?;
                }
            }
            WorkDone::Placed(id, place) => {
                let Some((mut record, _)) = self.read_or_forget(id).await? else { return Ok(()) };
                record.worktree_base.get_or_insert_with(|| place.base.clone());
                record.worktree_place = Some(*place);
                self.write_record(&record).await?;
                self.go_on(record).await?;
            }
            WorkDone::StartAgain(id) => {
                if let Some((record, _)) = self.read_or_forget(id).await? {
                    self.go_on(record).await?;
                }
            }
            WorkDone::Ended(id, end, survivors) => {
                base::crash::point("JC4.ended");
                let session_id = self.entries.get(&id).and_then(|job| job.session_id);
                // If the row is damaged, the job is forgotten below.
                self.must_step(id, JobInput::AttemptEnded(end)).await?;
                self.attempt_is_over(id, session_id, survivors).await?;
            }
        }
        Ok(())
    }

    /// Answers those who wait for the end of an attempt.
    async fn attempt_is_over(
        &mut self,
        id: JobId,
        session_id: Option<SessionId>,
        survivors: Vec<i32>,
    ) -> Result<(), JobsError> {
        if let Some(session_id) = session_id {
            self.by_session.remove(&session_id);
        }
        let Some((record, _)) = self.read_or_forget(id).await? else { return Ok(()) };
        if let Some(job) = self.entries.get_mut(&id) {
            job.phase = Phase::Idle;
        }
        let waiting = self.finish_tracking(&record);
        for reply in waiting {
            let cancelled =
                Cancelled { job: record.job.clone(), stopped: true, survivors: survivors.clone() };
            let _ = reply.send(Ok(cancelled));
        }
        Ok(())
    }

    fn services(&self) -> Services {
        Services { registry: self.registry.clone(), store: self.store.clone() }
    }

    fn now(&self) -> Timestamp {
        self.registry.shared().clock.now()
    }

    fn mint_session(&mut self) -> SessionId {
        // Ids of one daemon are in order of time.
        self.mint = Mint::new(self.now().0, Seed::random());
        self.mint.session()
    }
}

/// The wait before something is tried again that failed `failures` times before.
pub(crate) fn retry_wait(failures: u32) -> Duration {
    let (first, most) = READ_RETRY_MS;
    Duration::from_millis(first.saturating_mul(1 << failures.min(16)).min(most))
}
