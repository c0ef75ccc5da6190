//! The handle through which clients create, change and read schedules. Besides the errors that a function names,
//! the schedule may not exist, the store may fail, and the daemon may be stopping.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

use super::command::{ScheduleCommand, ScheduleEdit};
use super::record::timing_of_pattern;
use super::runner::ScheduleRunner;
use super::timing::Zone;
use crate::error::JobsError;
use crate::handle::Jobs;
use crate::task::{self, Reply};
use session::IdempotencyKey;
use store::Store;
use types::daemon_event::ScheduleNotification;
use types::event::Origin;
use types::ids::ScheduleId;
use types::job_request::JobRequest;
use types::schedule::{NewSchedule, Schedule, ScheduleUpdate};
use types::time::{Clock, Timestamp};

/// Capacity of the queue of commands. When it is full, callers wait.
const COMMAND_CAPACITY: usize = 64;
/// Number of changes that a subscriber may miss. If it misses more, it reads the list again.
const CHANGE_CAPACITY: usize = 1_024;

/// All schedules. Cloning is cheap.
#[derive(Clone)]
pub struct Schedules {
    jobs: Jobs,
    clock: Arc<dyn Clock>,
    commands: mpsc::Sender<ScheduleCommand>,
    changes: broadcast::Sender<Arc<ScheduleNotification>>,
}

impl Schedules {
    /// The handle, and the runner that must run for it to answer.
    #[must_use]
    pub fn new(store: Store, jobs: Jobs, clock: Arc<dyn Clock>) -> (Self, ScheduleRunner) {
        let (commands, inbox) = mpsc::channel(COMMAND_CAPACITY);
        let changes = broadcast::channel(CHANGE_CAPACITY).0;
        let runner = ScheduleRunner::new(store, jobs.clone(), Arc::clone(&clock), inbox, changes.clone());
        (Self { jobs, clock, commands, changes }, runner)
    }

    /// Subscribes to all later changes of schedules.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<ScheduleNotification>> {
        self.changes.subscribe()
    }

    /// Creates a schedule. It is on disk when this returns. Not cancel-safe: after a dropped call it may exist.
    ///
    /// # Errors
    /// A field is invalid, there are too many schedules, or the store failed.
    pub async fn create(
        &self,
        new: NewSchedule,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        self.check_job(&new.job, &origin).await?;
        self.edit(ScheduleEdit::Create(Box::new(new)), keyed, origin).await
    }

    /// Changes a schedule. Jobs that exist stay as they are.
    ///
    /// # Errors
    /// The schedule does not exist, a field is invalid, or the store failed.
    pub async fn update(
        &self,
        update: ScheduleUpdate,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        if let Some(job) = &update.job {
            self.check_job(job, &origin).await?;
        }
        self.edit(ScheduleEdit::Update(Box::new(update)), keyed, origin).await
    }

    /// Deletes a schedule. Its jobs stay, also those that wait for their start. Returns its last state.
    pub async fn delete(
        &self,
        id: ScheduleId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        self.edit(ScheduleEdit::Delete(id), keyed, origin).await
    }

    /// Creates a job of the schedule now, also if it is disabled or an earlier job is not over. It has no slot, and the
    /// times of the schedule stay.
    ///
    /// # Errors
    /// The schedule does not exist, or its job could not be created.
    pub async fn trigger(
        &self,
        id: ScheduleId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        self.ask(|reply| ScheduleCommand::Trigger { id, keyed, origin, reply }).await
    }

    /// One schedule.
    pub async fn get(&self, id: ScheduleId) -> Result<Schedule, JobsError> {
        self.ask(|reply| ScheduleCommand::Get(id, reply)).await
    }

    /// All schedules, oldest first, without the texts of their jobs.
    pub async fn list(&self) -> Result<Vec<Schedule>, JobsError> {
        self.ask(ScheduleCommand::List).await
    }

    /// The next `count` slots of a pattern, without a schedule. The zone of the machine is used if none is named.
    ///
    /// # Errors
    /// The pattern or the zone is invalid, or the pattern has no time within four years.
    pub fn preview(&self, cron: &str, zone: Option<&str>, count: usize) -> Result<Vec<Timestamp>, JobsError> {
        let system = Zone::of_system();
        let timing = timing_of_pattern(cron, zone.unwrap_or_else(|| system.name()))?;
        let slots: Vec<Timestamp> = timing.slots_after(self.clock.now()).take(count).collect();
        if slots.is_empty() && count > 0 {
            return Err(JobsError::bad("cron", "the pattern has no time within four years"));
        }
        Ok(slots)
    }

    /// Checks the content of the jobs as the creation of a job does. Errors have the path below `job`.
    async fn check_job(&self, job: &JobRequest, origin: &Origin) -> Result<(), JobsError> {
        self.jobs.check(job, origin).await.map_err(|error| match error {
            JobsError::BadParam { path, why } => JobsError::bad(format!("job.{path}"), why),
            other => other,
        })
    }

    async fn edit(
        &self,
        edit: ScheduleEdit,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        self.ask(|reply| ScheduleCommand::Edit { edit, keyed, origin, reply }).await
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> ScheduleCommand) -> Result<T, JobsError> {
        task::ask(&self.commands, make).await
    }
}
