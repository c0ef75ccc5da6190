//! The one task that owns all schedules. It sleeps until a slot is due, decides, and creates the slot's job in the
//! transaction that marks the slot as fired.

mod commands;
mod fire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

use super::command::ScheduleCommand;
use super::decide::{UnfinishedJobs, decide};
use super::record::ScheduleRecord;
use super::timing::Timing;
use crate::error::JobsError;
use crate::handle::Jobs;
use crate::runner::retry_wait;
use crate::task;
use store::{JobCommit, JobWrite, Store};
use types::daemon_event::{JobNotification, ScheduleNotification};
use types::ids::{JobId, Mint, ScheduleId, Seed};
use types::job::JobState;
use types::schedule::{Schedule, ScheduleChange};
use types::time::{Clock, Timestamp};

/// Longest sleep while a schedule has a next slot. The system's clock may be set and a machine may sleep, and neither
/// ends a sleep of this task; a slot then fires within 5 s.
const MAX_SLEEP: Duration = Duration::from_secs(3);
/// Wait after a failure that passes: the queue of jobs is full, or the storage fails.
const RETRY_WAIT_MS: u64 = 5_000;
/// Most failures in a row that are counted.
const MAX_COUNTED_FAILURES: u32 = 1_000;

/// The task that owns all schedules. [`ScheduleRunner::run`] must run for the handle to answer.
pub struct ScheduleRunner {
    store: Store,
    jobs: Jobs,
    clock: Arc<dyn Clock>,
    inbox: mpsc::Receiver<ScheduleCommand>,
    changes: broadcast::Sender<Arc<ScheduleNotification>>,
    schedules: BTreeMap<ScheduleId, LoadedSchedule>,
    /// Cancels of earlier jobs, which end when their work has stopped.
    cancels: JoinSet<()>,
}

/// A schedule with what is computed from it.
struct LoadedSchedule {
    record: ScheduleRecord,
    /// `None` if the stored pattern or zone cannot be read any more.
    timing: Option<Timing>,
    /// When to decide about it; `None` if it is disabled or has no further slot.
    next: Option<Timestamp>,
}

impl ScheduleRunner {
    pub(super) fn new(
        store: Store,
        jobs: Jobs,
        clock: Arc<dyn Clock>,
        inbox: mpsc::Receiver<ScheduleCommand>,
        changes: broadcast::Sender<Arc<ScheduleNotification>>,
    ) -> Self {
        let (schedules, cancels) = (BTreeMap::new(), JoinSet::new());
        Self { store, jobs, clock, inbox, changes, schedules, cancels }
    }

    /// Owns the schedules until the future is dropped or the store is closed.
    pub async fn run(mut self) {
        let mut job_changes = self.jobs.subscribe();
        let mut failures = 0;
        while let Err(error) = self.load().await {
            if error == JobsError::ShuttingDown {
                return;
            }
            tracing::error!(%error, "could not read the schedules yet; none fires");
            tokio::time::sleep(retry_wait(failures)).await;
            failures += 1;
        }
        loop {
            if self.fire_due().await == Err(JobsError::ShuttingDown) {
                return;
            }
            let sleep = self.next_sleep();
            let done = tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.handle(command).await,
                    None => return,
                },
                change = job_changes.recv() => match change {
                    Ok(change) => self.job_changed(&change).await,
                    Err(RecvError::Lagged(_)) => self.check_failures_of_all().await,
                    Err(RecvError::Closed) => return,
                },
                Some(_) = self.cancels.join_next() => Ok(()),
                () = task::sleep(sleep) => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(JobsError::ShuttingDown) => return,
                Err(error) => tracing::error!(%error, "a step of a schedule failed"),
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Generates ids of this moment.
    fn mint(&self) -> Mint {
        Mint::new(self.now().0, Seed::random())
    }

    async fn load(&mut self) -> Result<(), JobsError> {
        for text in self.store.schedules().await? {
            match serde_json::from_str::<ScheduleRecord>(&text) {
                Ok(record) => self.track(record),
                // One damaged row must not keep the others from firing.
                Err(error) => tracing::error!(%error, "a schedule cannot be read and does not fire"),
            }
        }
        self.check_failures_of_all().await
    }

    /// Takes over the state of a schedule. It is decided about at once.
    fn track(&mut self, mut record: ScheduleRecord) {
        let timing = match record.timing() {
            Ok(timing) => Some(timing),
            Err(error) => {
                tracing::error!(schedule = %record.schedule.schedule_id, %error, "a schedule cannot fire");
                record.schedule.error = Some(error.to_string());
                None
            }
        };
        let next = Some(Timestamp(i64::MIN)).filter(|_| record.schedule.enabled && timing.is_some());
        self.schedules.insert(record.schedule.schedule_id, LoadedSchedule { record, timing, next });
    }

    /// How long nothing has to be done, if no input arrives; `None` if no schedule has a next slot.
    fn next_sleep(&self) -> Option<Duration> {
        let next = self.schedules.values().filter_map(|schedule| schedule.next).min()?;
        Some(Duration::from_millis(next.since(self.now()).max(1)).min(MAX_SLEEP))
    }

    /// Decides about all schedules whose time has come.
    ///
    /// # Errors
    /// The daemon is stopping. Other errors concern one schedule, which is tried again.
    async fn fire_due(&mut self) -> Result<(), JobsError> {
        let now = self.now();
        let is_due = |schedule: &&LoadedSchedule| schedule.next.is_some_and(|next| next <= now);
        let due: Vec<ScheduleId> =
            self.schedules.values().filter(is_due).map(|it| it.record.schedule.schedule_id).collect();
        for id in due {
            match self.decide_about(id, now).await {
                Ok(()) => {}
                Err(JobsError::ShuttingDown) => return Err(JobsError::ShuttingDown),
                Err(error) => {
                    tracing::warn!(schedule = %id, %error, "a schedule could not fire yet");
                    if let Some(schedule) = self.schedules.get_mut(&id) {
                        schedule.next = Some(now.plus(RETRY_WAIT_MS));
                    }
                }
            }
        }
        Ok(())
    }

    async fn decide_about(&mut self, id: ScheduleId, now: Timestamp) -> Result<(), JobsError> {
        let unfinished = self.store.unfinished_jobs_of_schedule(id).await?;
        let Some(LoadedSchedule { record, timing: Some(timing), .. }) = self.schedules.get(&id) else {
            return Ok(());
        };
        let started = unfinished.iter().filter(|(_, has_started)| *has_started).count();
        let counts = UnfinishedJobs { waiting: unfinished.len() - started, started };
        let due = decide(id, timing, &record.rules(), record.progress(), counts, now);
        for firing in due.firings {
            self.fire(id, firing, &unfinished).await?;
        }
        let Some(schedule) = self.schedules.get_mut(&id) else { return Ok(()) };
        // The last slot may have disabled the schedule.
        if !schedule.record.schedule.enabled {
            return Ok(());
        }
        schedule.next = due.next;
        if schedule.record.progress() != due.progress {
            let next = schedule.record.with_progress(due.progress);
            self.save(next).await?;
        }
        Ok(())
    }

    /// Writes the state of a schedule, and takes it over.
    async fn save(&mut self, next: ScheduleRecord) -> Result<(), JobsError> {
        let writes = vec![JobWrite::Schedule(next.update_write())];
        let commit = JobCommit { writes, at: self.now(), ..JobCommit::default() };
        self.store.commit_job(commit).await?;
        self.adopt(next);
        Ok(())
    }

    /// Takes over a written state that has the same times.
    fn adopt(&mut self, next: ScheduleRecord) {
        if let Some(schedule) = self.schedules.get_mut(&next.schedule.schedule_id) {
            schedule.record = next;
        }
    }

    async fn job_changed(&mut self, change: &JobNotification) -> Result<(), JobsError> {
        match change.job.schedule_id {
            Some(id) if change.job.state == JobState::Failed => self.check_failures(id).await,
            _ => Ok(()),
        }
    }

    async fn check_failures_of_all(&mut self) -> Result<(), JobsError> {
        let ids: Vec<ScheduleId> = self.schedules.keys().copied().collect();
        for id in ids {
            self.check_failures(id).await?;
        }
        Ok(())
    }

    /// Disables a schedule after too many failures in a row. Failures are counted in the rows of jobs, so none is lost
    /// if the daemon stops.
    async fn check_failures(&mut self, id: ScheduleId) -> Result<(), JobsError> {
        let Some(record) = self.schedules.get(&id).map(|schedule| schedule.record.clone()) else {
            return Ok(());
        };
        let most = record.schedule.max_failures;
        if most == 0 || !record.schedule.enabled || self.failures(&record).await? < most {
            return Ok(());
        }
        let mut next = record;
        next.schedule.enabled = false;
        let last =
            next.schedule.error.take().map(|error| format!("; the last one: {error}")).unwrap_or_default();
        next.schedule.error = Some(format!("disabled after {most} failures in a row{last}"));
        tracing::warn!(schedule = %id, name = next.schedule.name, "disabled a schedule after {most} failures in a row");
        self.save(next).await?;
        if let Some(schedule) = self.schedules.get_mut(&id) {
            schedule.next = None;
        }
        self.notify(id, ScheduleChange::Disabled, None, None).await
    }

    /// Failures in a row since the schedule was enabled.
    async fn failures(&self, record: &ScheduleRecord) -> Result<u32, JobsError> {
        let most = record.schedule.max_failures.max(MAX_COUNTED_FAILURES);
        let id = record.schedule.schedule_id;
        let failed = self.store.schedule_failures(id, record.enabled_at_ms, most).await?;
        Ok(failed.saturating_add(record.refusals))
    }

    /// A schedule as clients see it.
    async fn view(&self, id: ScheduleId) -> Result<Schedule, JobsError> {
        let schedule = self.schedules.get(&id).ok_or(JobsError::NoSuchSchedule)?;
        let failures = self.failures(&schedule.record).await?;
        // A schedule that was just changed was not decided about yet.
        let undecided = Timestamp(i64::MIN);
        let next = match (schedule.next, &schedule.timing) {
            (Some(next), Some(timing)) if next == undecided => {
                let record = &schedule.record;
                let nothing = UnfinishedJobs::default();
                decide(id, timing, &record.rules(), record.progress(), nothing, record.handled_until_ms).next
            }
            (next, _) => next,
        };
        Ok(Schedule { next_fire_ms: next, failures, ..schedule.record.schedule.clone() })
    }

    async fn notify(
        &self,
        id: ScheduleId,
        kind: ScheduleChange,
        slot_ms: Option<Timestamp>,
        job_id: Option<JobId>,
    ) -> Result<(), JobsError> {
        let schedule = self.view(id).await?.without_texts();
        // Sending fails if there is no subscriber.
        let _ = self.changes.send(Arc::new(ScheduleNotification { kind, slot_ms, job_id, schedule }));
        Ok(())
    }
}
