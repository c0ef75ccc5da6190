//! Commands of clients.

use super::ScheduleRunner;
use crate::error::JobsError;
use crate::record::Creator;
use crate::schedule::command::{ScheduleCommand, ScheduleEdit};
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

/// How an edit is recorded.
struct Change<'c> {
    /// The method under which the reply is stored.
    method: &'static str,
    /// The verdict of the audit row.
    verdict: &'static str,
    keyed: Option<IdempotencyKey>,
    origin: &'c Origin,
}

impl ScheduleRunner {
    /// Handles one command. Errors of the command go to its caller.
    pub(super) async fn handle(&mut self, command: ScheduleCommand) -> Result<(), JobsError> {
        match command {
            ScheduleCommand::Edit { edit, keyed, origin, reply } => {
                drop(reply.send(self.edit(edit, keyed, origin).await));
            }
            ScheduleCommand::Trigger { id, keyed, origin, reply } => {
                drop(reply.send(self.trigger(id, keyed, origin).await));
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

    async fn edit(
        &mut self,
        edit: ScheduleEdit,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Schedule, JobsError> {
        let (method, verdict) = match &edit {
            ScheduleEdit::Create(_) => ("schedule.create", "schedule_created"),
            ScheduleEdit::Update(_) => ("schedule.update", "schedule_updated"),
            ScheduleEdit::Delete(_) => ("schedule.delete", "schedule_deleted"),
        };
        if let Some(schedule) = self.earlier_result(method, keyed.as_ref()).await? {
            return Ok(schedule);
        }
        let change = Change { method, verdict, keyed, origin: &origin };
        match edit {
            ScheduleEdit::Create(new) => self.create(*new, change).await,
            ScheduleEdit::Update(update) => self.update(*update, change).await,
            ScheduleEdit::Delete(id) => self.delete(id, change).await,
        }
    }

    async fn create(&mut self, new: NewSchedule, change: Change<'_>) -> Result<Schedule, JobsError> {
        if self.schedules.len() >= MAX_SCHEDULES {
            return Err(JobsError::TooManySchedules { most: MAX_SCHEDULES });
        }
        let id = self.mint().schedule();
        let creator = Creator::from(change.origin);
        let record = ScheduleRecord::new(id, new, creator, &Zone::of_system(), self.now())?;
        self.write(change, ScheduleWrite::Insert(id, record.to_json()), &record).await?;
        self.track(record);
        self.notify(id, ScheduleChange::Created, None, None).await?;
        self.view(id).await
    }

    async fn update(&mut self, update: ScheduleUpdate, change: Change<'_>) -> Result<Schedule, JobsError> {
        let id = update.schedule_id;
        let next = self.record(id)?.updated(update, self.now())?;
        self.write(change, next.update_write(), &next).await?;
        self.track(next);
        self.notify(id, ScheduleChange::Updated, None, None).await?;
        self.view(id).await
    }

    async fn delete(&mut self, id: ScheduleId, change: Change<'_>) -> Result<Schedule, JobsError> {
        let (record, last) = (self.record(id)?, self.view(id).await?);
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
    async fn earlier_result(
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
