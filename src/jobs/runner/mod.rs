//! The one task that owns all jobs. For each input it decides, writes the step in one transaction, tells subscribers,
//! and then starts or stops attempts. So a job never has two living attempts.

mod attempt;
mod commands;
mod content;
pub(crate) mod end;
mod steps;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::command::{Cancelled, Command};
use crate::counts::JobCounters;
use crate::decide::{AttemptEnd, JobInput};
use crate::error::JobsError;
use crate::queue::{AttemptMoney, JobQueue, QueueLimits, day_usd_micros_left};
use crate::record::{JobRecord, WorktreePlace};
use crate::services::Services;
use crate::settings::JobSettings;
use crate::task::{self, Reply};
use session::{Registry, SessionError, StatusChange};
use store::{JOBS_PAUSED, Store};
use types::daemon_event::JobNotification;
use types::ids::{JobId, Mint, Seed, SessionId};
use types::job::{JobError, JobState, WaitingFor};
use types::session::{Requires, SessionState};
use types::time::Timestamp;

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
    /// All jobs that are not over.
    queue: JobQueue,
    attempts: HashMap<JobId, LivingAttempt>,
    /// The jobs of living attempts.
    by_session: HashMap<SessionId, JobId>,
    /// Starting, ending and stopping attempts, each with its job.
    work: JoinSet<WorkDone>,
    work_of: HashMap<Id, JobId>,
    /// Whether the stored jobs are read.
    is_loaded: bool,
    is_paused: bool,
    counters: Arc<JobCounters>,
    /// Whether sessions are recovered. Before that no attempt starts.
    can_start: bool,
    mint: Mint,
    /// The names of the models of jobs.
    models: HashSet<Arc<str>>,
    /// Told when a message about a job became owed.
    owed_messages: Arc<Notify>,
}

/// An attempt whose end is not written.
struct LivingAttempt {
    session_id: SessionId,
    phase: Phase,
    /// Callers that wait until it has stopped.
    waiting_cancels: Vec<Reply<Cancelled>>,
}

/// What the runner does for a living attempt.
enum Phase {
    /// Nothing yet.
    Idle,
    /// The session is being created; the token stops that.
    Starting(CancellationToken),
    /// The session works, and its changes count.
    Following,
    /// The session is being stopped, or its result is read; the token leaves little time for that.
    Ending(CancellationToken),
}

/// The end of a piece of work.
enum WorkDone {
    /// The attempt's input is on disk.
    Started(JobId),
    /// The attempt has its worktree.
    Placed(JobId, Box<WorktreePlace>),
    /// The attempt could not be started now, because the storage failed; it is tried again.
    StartAgain(JobId),
    /// The attempt is not over: a client gave its session more work.
    GoesOn(JobId),
    /// The attempt is over.
    Ended(JobId, Box<AttemptEnd>, Vec<i32>),
    /// The daemon stops.
    ShuttingDown,
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
            queue: JobQueue::default(),
            attempts: HashMap::new(),
            by_session: HashMap::new(),
            work: JoinSet::new(),
            work_of: HashMap::new(),
            is_loaded: false,
            is_paused: false,
            can_start: false,
            mint: Mint::new(0, Seed::random()),
            models: HashSet::new(),
            owed_messages,
            counters,
        }
    }

    /// Reads the jobs. Call it before sessions are recovered: a turn whose job was cancelled must not go on. A failure is
    /// logged, and [`Self::run`] tries again.
    pub async fn prepare(&mut self) {
        if let Err(error) = self.load().await {
            tracing::error!(%error, "could not read the jobs yet; none runs");
        }
    }

    /// Owns the jobs until the future is dropped or the store is closed. No attempt starts before `recovered` says that
    /// sessions are recovered and leftover processes are gone.
    pub async fn run(mut self, recovered: oneshot::Receiver<()>) {
        let mut statuses = self.registry.shared().subscribe_status();
        let mut failures = 0;
        while !self.is_loaded {
            let Err(error) = self.load().await else { break };
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
            let sleep = match self.start_due().await {
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
                () = task::sleep(sleep) => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(JobsError::ShuttingDown) => return,
                Err(error) => tracing::error!(%error, "a step of a job failed"),
            }
        }
    }

    async fn load(&mut self) -> Result<(), JobsError> {
        self.is_paused = match self.store.setting(JOBS_PAUSED).await? {
            Some(value) => value == "true",
            None => self.settings.borrow().paused,
        };
        self.counters.set_paused(self.is_paused);
        for text in self.store.unfinished_jobs().await? {
            match crate::command::parse_record(&text) {
                Ok(record) => {
                    if let (Some(_), Some(session_id)) = (&record.cancelling, record.job.session_id) {
                        self.registry.abort_when_loaded(session_id);
                    }
                    self.track(&record);
                }
                // One damaged row must not keep the others from running.
                Err(error) => tracing::error!(%error, "a job cannot be read and does not run"),
            }
        }
        self.is_loaded = true;
        Ok(())
    }

    /// Goes on with the attempts that lived when the daemon stopped. Each step of a start can be repeated.
    async fn resume_attempts(&mut self) -> Result<(), JobsError> {
        self.can_start = true;
        // A cancel may have begun to stop an attempt already.
        let is_idle =
            |id: &JobId| self.attempts.get(id).is_some_and(|attempt| matches!(attempt.phase, Phase::Idle));
        for id in self.queue.living().filter(is_idle).collect::<Vec<_>>() {
            if let Some((record, _)) = self.read_or_forget(id).await? {
                self.go_on(record);
            }
        }
        Ok(())
    }

    /// Starts the newest attempt of a job, or stops it for a committed cancel. Both may be repeated.
    fn go_on(&mut self, record: JobRecord) {
        match record.cancelling.is_some() {
            true => self.spawn_stop(record),
            false => self.spawn_start(record),
        }
    }

    /// Starts what can start, and notes jobs whose time has come or is over.
    async fn start_due(&mut self) -> Result<(), JobsError> {
        if !self.can_start {
            return Ok(());
        }
        let now = self.now();
        self.queue.set_paused_models(self.registry.shared().rate_limits().paused_models(now));
        for id in self.queue.due(now) {
            self.step_or_forget(id, JobInput::Due).await?;
        }
        for id in self.queue.expired(now) {
            self.step_or_forget(id, JobInput::Expired).await?;
        }
        while self.queue.has_queued() {
            let limits = self.limits(now).await?;
            let Some(id) = self.queue.next_to_start(limits, now) else { return Ok(()) };
            base::crash::point("JC2.chosen");
            let session_id = self.mint_session();
            let Some((record, _)) = self.read_or_forget(id).await? else { continue };
            // The worktree of an attempt without changes is removed at its end.
            let can_continue = record.worktree_place.is_none_or(|place| Path::new(&place.path).is_dir());
            let claimed = self.step_or_forget(id, JobInput::Claim { session_id, can_continue }).await?;
            base::crash::point("JC2.claimed");
            if let Some(record) = claimed {
                self.spawn_start(record);
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
                    let reserve = self.queue.get(*id)?.reserve_usd_micros;
                    Some(AttemptMoney { reserve, spent: *spent })
                });
                Some(day_usd_micros_left(most, spending.total_usd_micros, living))
            }
            None => None,
        };
        Ok(QueueLimits { concurrent, is_paused: self.is_paused, day_usd_micros_left })
    }

    /// How long nothing has to be done, if no input arrives; `None` if no job waits for a time.
    fn next_sleep(&self) -> Option<Duration> {
        let now = self.now();
        let has_day_limit = self.settings.borrow().micros_per_day().is_some();
        // Tomorrow there is new money.
        let tomorrow = Timestamp((now.day() + 1) * 86_400_000);
        let money = Some(tomorrow).filter(|_| has_day_limit && self.queue.has_queued());
        let next = self.queue.next_time().into_iter().chain(money).min()?;
        Some(Duration::from_millis(next.since(now).max(1)).min(MAX_SLEEP))
    }

    /// A session has changed its state. The change may be an old one, for example that the session was restored for this
    /// attempt, so its state of now counts.
    async fn session_changed(&mut self, change: StatusChange) -> Result<(), JobsError> {
        let Some(id) = self.by_session.get(&change.session_id).copied() else { return Ok(()) };
        if !self.attempts.get(&id).is_some_and(|attempt| matches!(attempt.phase, Phase::Following)) {
            return Ok(());
        }
        self.look_at(id, change.session_id).await
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
        let is_waiting = self.queue.get(id).is_some_and(|entry| entry.state == JobState::Waiting);
        match waiting_for {
            Some(waiting_for) => _ = self.must_step(id, JobInput::AttemptWaits(waiting_for)).await?,
            None if is_waiting => _ = self.must_step(id, JobInput::AttemptRuns).await?,
            None => {}
        }
        Ok(())
    }

    /// Changes of sessions were lost, so look at all living attempts.
    async fn look_at_all(&mut self) -> Result<(), JobsError> {
        let followed = self.attempts.iter().filter(|(_, attempt)| matches!(attempt.phase, Phase::Following));
        let living: Vec<(JobId, SessionId)> =
            followed.map(|(id, attempt)| (*id, attempt.session_id)).collect();
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
            WorkDone::ShuttingDown => return Err(JobsError::ShuttingDown),
            WorkDone::Started(id) | WorkDone::GoesOn(id) => {
                let Some(attempt) = self.attempts.get_mut(&id) else { return Ok(()) };
                attempt.phase = Phase::Following;
                let session_id = attempt.session_id;
                let Some((record, _)) = self.read_or_forget(id).await? else { return Ok(()) };
                if record.cancelling.is_some() {
                    self.spawn_stop(record);
                } else {
                    // The turn may have ended before its changes were followed.
                    self.look_at(id, session_id).await?;
                }
            }
            WorkDone::Placed(id, place) => {
                let Some((mut record, _)) = self.read_or_forget(id).await? else { return Ok(()) };
                record.worktree_base.get_or_insert_with(|| place.base.clone());
                record.worktree_place = Some(*place);
                self.write_record(&record).await?;
                self.go_on(record);
            }
            WorkDone::StartAgain(id) => {
                if let Some((record, _)) = self.read_or_forget(id).await? {
                    self.go_on(record);
                }
            }
            WorkDone::Ended(id, end, survivors) => {
                base::crash::point("JC4.ended");
                let record = match self.must_step(id, JobInput::AttemptEnded(end)).await? {
                    Some(record) => Some(record),
                    // The end is written already, or the row is damaged.
                    None => self.read_or_forget(id).await?.map(|(record, _)| record),
                };
                if let Some(record) = record {
                    self.attempt_is_over(&record, &survivors);
                }
            }
        }
        Ok(())
    }

    /// Forgets an attempt, and answers those who wait for its end.
    fn attempt_is_over(&mut self, record: &JobRecord, survivors: &[i32]) {
        let Some(attempt) = self.attempts.remove(&record.job.job_id) else { return };
        self.by_session.remove(&attempt.session_id);
        for reply in attempt.waiting_cancels {
            let cancelled =
                Cancelled { job: record.job.clone(), stopped: true, survivors: survivors.to_vec() };
            let _ = reply.send(Ok(cancelled));
        }
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
