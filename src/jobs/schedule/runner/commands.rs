//! Commands of clients.

use super::ScheduleRunner;
use crate::error::JobsError;
use crate::record::Creator;
use crate::schedule::command::ScheduleCommand;
use crate::schedule::record::ScheduleRecord;
use crate::schedule::timing::Zone;
use crate::task::earlier_reply;
use session::IdempotencyKey;
use store::{Idempotency, JobCommit, JobWrite, ScheduleWrite, StoreError};
use types::audit::{AuditKind, AuditNote};
use types::event::Origin;
use types::ids::ScheduleId;
use types::schedule::{NewSchedule, Schedule, ScheduleChange, ScheduleUpdate};

/// Most schedules of a daemon.
const MAX_SCHEDULES: usize = 1_000;

/// Methods under which replies are stored.
mod method {
    pub const CREATE: &str = "schedule.create";
    pub const UPDATE: &str = "schedule.update";
    pub const DELETE: &str = "schedule.delete";
}

/// What a client does with a schedule.
struct Change<'c> {
    method: &'static str,
    verdict: &'static str,
    keyed: Option<IdempotencyKey>,
    origin: &'c Origin,
}

impl ScheduleRunner {
    /// Handles one command. Errors of the command go to its caller.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub(super) async fn handle(&mut self, command: ScheduleCommand) -> Result<(), JobsError> {
        match command {
            ScheduleCommand::Create { new, keyed, origin, reply } => {
                let _ = reply.send(self.create(*new, keyed, &origin).await);
            }
            ScheduleCommand::Update { update, keyed, origin, reply } => {
                let _ = reply.send(self.update(*update, keyed, &origin).await);
            }
            ScheduleCommand::Delete { id, keyed, origin, reply } => {
                let _ = reply.send(self.delete(id, keyed, &origin).await);
            }
            ScheduleCommand::Trigger { id, keyed, origin, reply } => {
                let _ = reply.send(self.trigger(id, keyed, origin).await);
            }
            ScheduleCommand::Get(id, reply) => drop(reply.send(self.view(id).await)),
            ScheduleCommand::List(reply) => drop(reply.send(self.list().await)),
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Schedule>, JobsError> {
        let mut schedules = Vec::with_capacity(self.schedules.len());
        for id in self.schedules.keys() {
            schedules.push(self.view(*id).await?.without_texts());
        }
        Ok(schedules)
    }

    async fn create(
        &mut self,
        new: NewSchedule,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
    ) -> Result<Schedule, JobsError> {
        if let Some(known) = self.known(method::CREATE, keyed.as_ref()).await? {
            return Ok(known);
        }
        if self.schedules.len() >= MAX_SCHEDULES {
            return Err(JobsError::TooManySchedules { most: MAX_SCHEDULES });
        }
        let id = self.mint().schedule();
        let record = ScheduleRecord::new(id, new, Creator::from(origin), &Zone::of_system(), self.now())?;
        let write = ScheduleWrite::Insert(id, record.to_json());
        let change = Change { method: method::CREATE, verdict: "schedule_created", keyed, origin };
        self.write(change, write, &record).await?;
        self.track(record);
        self.notify(id, ScheduleChange::Created, None, None).await?;
        self.view(id).await
    }

    async fn update(
        &mut self,
        update: ScheduleUpdate,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
    ) -> Result<Schedule, JobsError> {
        if let Some(known) = self.known(method::UPDATE, keyed.as_ref()).await? {
            return Ok(known);
        }
        let id = update.schedule_id;
        let before = self.record(id)?;
        let next = before.updated(update, self.now())?;
        let change = Change { method: method::UPDATE, verdict: "schedule_updated", keyed, origin };
        self.write(change, next.update_write(), &next).await?;
        self.track(next);
        self.notify(id, ScheduleChange::Updated, None, None).await?;
        self.view(id).await
    }

    async fn delete(
        &mut self,
        id: ScheduleId,
        keyed: Option<IdempotencyKey>,
        origin: &Origin,
    ) -> Result<Schedule, JobsError> {
        if let Some(known) = self.known(method::DELETE, keyed.as_ref()).await? {
            return Ok(known);
        }
        let (record, last) = (self.record(id)?, self.view(id).await?);
        let change = Change { method: method::DELETE, verdict: "schedule_deleted", keyed, origin };
        self.write(change, ScheduleWrite::Delete(id), &record).await?;
        self.notify(id, ScheduleChange::Deleted, None, None).await?;
        self.schedules.remove(&id);
        Ok(last)
    }

    async fn trigger(
        &mut self,
        id: ScheduleId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        // The key is kept with the job, so that a repeated call makes no second one.
        let keyed =
            keyed.map(|keyed| IdempotencyKey { key: format!("schedule.trigger {}", keyed.key), ..keyed });
        let record = self.record(id)?;
        self.create_job_now(&record, keyed, origin).await?;
        self.view(id).await
    }

    fn record(&self, id: ScheduleId) -> Result<ScheduleRecord, JobsError> {
        self.schedules.get(&id).map(|it| it.record.clone()).ok_or(JobsError::NoSuchSchedule)
    }

    /// Writes a change with its audit row and its idempotency key.
    async fn write(
        &self,
        change: Change<'_>,
        write: ScheduleWrite,
        record: &ScheduleRecord,
    ) -> Result<(), JobsError> {
        let at = self.now();
        let schedule = &record.schedule;
        let reason = format!("{} {:?} in {}", schedule.schedule_id, schedule.name, schedule.job.cwd);
        let note =
            AuditNote::new(at, AuditKind::Job, change.verdict, reason).with_origin(Some(change.origin));
        let idempotency = change.keyed.map(|keyed| self.stored_key(change.method, keyed, schedule));
        let commit =
            JobCommit { writes: vec![JobWrite::Schedule(write)], audit: vec![note], idempotency, at };
        match self.store.commit_job(commit).await {
            // The same key arrived twice at the same time.
            Err(StoreError::Taken) => Err(JobsError::KeyConflict),
            done => Ok(done?),
        }
    }

    fn stored_key(&self, method: &'static str, keyed: IdempotencyKey, schedule: &Schedule) -> Idempotency {
        // The reply of a repeated call is the schedule as it is then, or what is stored here if it was deleted.
        let reply = serde_json::to_string(schedule).unwrap_or_default();
        Idempotency { method, key: keyed.key, digest: keyed.digest, reply }
    }

    /// The schedule of an earlier call with this key: as it is now, or as it was then if it was deleted.
    async fn known(
        &self,
        method: &'static str,
        keyed: Option<&IdempotencyKey>,
    ) -> Result<Option<Schedule>, JobsError> {
        let Some(reply) = earlier_reply(&self.store, method, keyed, self.now()).await? else {
            return Ok(None);
        };
        let then: Schedule = serde_json::from_str(&reply).map_err(|error| crate::command::corrupt(&error))?;
        match self.view(then.schedule_id).await {
            Err(JobsError::NoSuchSchedule) => Ok(Some(then)),
            now => now.map(Some),
        }
    }
}
