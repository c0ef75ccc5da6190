//! What happens at a slot.

use super::ScheduleRunner;
use crate::command::NewJob;
use crate::create::FiredSlot;
use crate::error::JobsError;
use crate::schedule::decide::{Firing, Progress, SlotAction};
use crate::schedule::record::ScheduleRecord;
use session::{IdempotencyKey, SessionError};
use store::{JobCommit, JobWrite, ScheduleWrite};
use types::event::Origin;
use types::ids::{JobId, ScheduleId};
use types::schedule::ScheduleChange;
use types::time::Timestamp;

impl ScheduleRunner {
    /// Creates the job of a slot, in the transaction that marks the slot as fired. A slot whose job is refused is
    /// handled too, and counts as a failure.
    ///
    /// # Errors
    /// The slot is not handled yet, because the queue is full or the store failed.
    pub(super) async fn fire(
        &mut self,
        id: ScheduleId,
        firing: Firing,
        unfinished: &[(JobId, bool)],
    ) -> Result<(), JobsError> {
        let Some(record) = self.schedules.get(&id).map(|schedule| schedule.record.clone()) else {
            return Ok(());
        };
        let Firing { slot, action, missed } = firing;
        let job_id = self.mint().job();
        let next = record.with_job(job_id, Some(slot));
        base::crash::point("JC6.due");
        if action == SlotAction::Replace {
            self.cancel(&record, unfinished).await;
        }
        let mut request = record.request();
        if action == SlotAction::Skip {
            // A job that never runs keeps no other one from being created.
            request.unique = None;
        }
        let new = NewJob {
            job_id: Some(job_id),
            slot: Some(FiredSlot { schedule_id: id, slot_ms: Some(slot), missed_slots: missed }),
            is_skipped: action == SlotAction::Skip,
            extra_writes: vec![
                JobWrite::Schedule(ScheduleWrite::Fire { schedule_id: id, slot, job_id }),
                JobWrite::Schedule(next.update_write()),
            ],
            ..NewJob::new(request, origin(&record))
        };
        let created = self.jobs.create(new).await;
        base::crash::point("JC6.written");
        match created {
            Ok(created) if created.existing => {
                // A job with the same unique key does the work of this slot.
                let job_id = created.job.job_id;
                let next = record.with_job(job_id, Some(slot));
                let fire = ScheduleWrite::Fire { schedule_id: id, slot, job_id };
                let writes = vec![JobWrite::Schedule(fire), JobWrite::Schedule(next.update_write())];
                let commit = JobCommit { writes, at: self.now(), ..JobCommit::default() };
                match self.store.commit_job(commit).await {
                    Ok(()) => self.adopt(next),
                    Err(store::StoreError::Taken) => return self.slot_is_over(&record, slot).await,
                    Err(error) => return Err(error.into()),
                }
                self.notify(id, ScheduleChange::Fired, Some(slot), Some(job_id)).await
            }
            Ok(_) => {
                self.adopt(next);
                let kind = match action {
                    SlotAction::Skip => ScheduleChange::Skipped,
                    SlotAction::Create | SlotAction::Replace => ScheduleChange::Fired,
                };
                self.notify(id, kind, Some(slot), Some(job_id)).await
            }
            Err(JobsError::SlotFired) => self.slot_is_over(&record, slot).await,
            Err(error) if is_passing(&error) => Err(error),
            Err(error) => self.slot_is_refused(&record, slot, &error).await,
        }
    }

    /// The slot fired before: the result of that write was unknown, or the clock was set back and the schedule was
    /// enabled again.
    async fn slot_is_over(&mut self, record: &ScheduleRecord, slot: Timestamp) -> Result<(), JobsError> {
        let mut next = record.with_progress(Progress { handled_until: slot, missed: record.missed });
        next.schedule.last_slot_ms = next.schedule.last_slot_ms.max(Some(slot));
        self.save(next).await
    }

    async fn slot_is_refused(
        &mut self,
        record: &ScheduleRecord,
        slot: Timestamp,
        error: &JobsError,
    ) -> Result<(), JobsError> {
        let id = record.schedule.schedule_id;
        tracing::warn!(schedule = %id, name = record.schedule.name, %error, "a slot of a schedule made no job");
        let progress = Progress { handled_until: slot, missed: record.missed + 1 };
        let mut next = record.with_progress(progress);
        next.refusals = next.refusals.saturating_add(1);
        next.schedule.error = Some(error.to_string());
        self.save(next).await?;
        self.notify(id, ScheduleChange::Failed, Some(slot), None).await?;
        self.check_failures(id).await
    }

    /// Cancels earlier jobs. Their work may take seconds to stop, and meanwhile other schedules fire.
    async fn cancel(&mut self, record: &ScheduleRecord, unfinished: &[(JobId, bool)]) {
        for (job_id, _) in unfinished.iter().copied() {
            let (jobs, origin) = (self.jobs.clone(), origin(record));
            let reason = Some("the next slot of its schedule came".to_owned());
            let mut cancel = Box::pin(async move {
                match jobs.cancel(job_id, reason, None, origin).await {
                    Ok(_) | Err(JobsError::NotPending(_) | JobsError::ShuttingDown) => {}
                    Err(error) => {
                        tracing::warn!(job = %job_id, %error, "could not cancel a job of a schedule")
                    }
                }
            });
            // The first poll sends the command, so it is handled before the new job is created.
            let is_done = tokio::select! {
                biased;
                () = &mut cancel => true,
                () = std::future::ready(()) => false,
            };
            if !is_done {
                self.cancels.spawn(cancel);
            }
        }
    }

    /// Creates a job that has no slot.
    ///
    /// # Errors
    /// The job was refused, or the store failed.
    pub(super) async fn create_job_now(
        &mut self,
        record: &ScheduleRecord,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<(), JobsError> {
        let id = record.schedule.schedule_id;
        let job_id = self.mint().job();
        let next = record.with_job(job_id, None);
        let new = NewJob {
            job_id: Some(job_id),
            slot: Some(FiredSlot { schedule_id: id, slot_ms: None, missed_slots: 0 }),
            extra_writes: vec![JobWrite::Schedule(next.update_write())],
            keyed,
            ..NewJob::new(record.request(), origin)
        };
        let created = self.jobs.create(new).await?;
        // With a unique key or a repeated call, an earlier job does the work.
        if created.job.job_id == job_id {
            self.adopt(next);
            self.notify(id, ScheduleChange::Fired, None, Some(job_id)).await?;
        }
        Ok(())
    }
}

/// The jobs of a schedule belong to the client that created it.
fn origin(record: &ScheduleRecord) -> Origin {
    Origin { client: record.creator.client.clone(), uid: record.creator.uid, pid: None, exe: None }
}

/// Whether the same job may be created later.
fn is_passing(error: &JobsError) -> bool {
    matches!(
        error,
        JobsError::QueueFull { .. }
            | JobsError::ShuttingDown
            | JobsError::Store(_)
            | JobsError::Session(
                SessionError::Store(_) | SessionError::JournalFull { .. } | SessionError::Crashed
            )
    )
}
