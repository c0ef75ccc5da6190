//! Schedules and their firings.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::sql_batch::{SqlBatch, values};
use types::ids::{JobId, ScheduleId};
use types::time::Timestamp;

/// A change of a row of schedules. It is a part of a step of a job, so that a slot fires together with its job.
#[derive(Clone, Debug)]
pub enum ScheduleWrite {
    /// A new schedule with its state as JSON.
    Insert(ScheduleId, String),
    /// The new state of a schedule as JSON.
    Update(ScheduleId, String),
    /// Deletes a schedule and its firings. Its jobs stay.
    Delete(ScheduleId),
    /// A slot fires. The step fails with `Taken` if it fired before.
    Fire {
        /// The schedule.
        schedule_id: ScheduleId,
        /// The slot.
        slot: Timestamp,
        /// The job of this slot.
        job_id: JobId,
    },
}

impl StoreReader {
    /// The states of all schedules, oldest first.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn schedules(&self) -> Result<Vec<String>, StoreError> {
        let read = async {
            let rows = sqlx::query("select record from schedule order by id")
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            rows.iter().map(|row| Ok(row.try_get("record")?)).collect()
        };
        self.report_damage(read.await)
    }

    /// How many of the newest jobs of a schedule failed in a row, of those that were created after a time; at most
    /// `limit`. Jobs that neither succeeded nor failed do not count.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn schedule_failures(
        &self,
        id: ScheduleId,
        after: Timestamp,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select state from job where schedule_id = ? and created_at_ms > ? \
                 and state in ('succeeded', 'failed') order by id desc limit ?",
            )
            .bind(id.to_string())
            .bind(after.0)
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let states = rows.iter().map(|row| row.try_get::<String, _>("state"));
            let states = states.collect::<Result<Vec<_>, _>>()?;
            Ok(states.iter().take_while(|state| *state == "failed").map(|_| 1).sum())
        };
        self.report_damage(read.await)
    }

    /// Ids of the jobs of a schedule that are not over, with whether they have started, oldest first.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn unfinished_jobs_of_schedule(
        &self,
        id: ScheduleId,
    ) -> Result<Vec<(JobId, bool)>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select job_id, started_at_ms is not null as started from job where schedule_id = ? \
                 and state in ('scheduled', 'queued', 'running', 'waiting', 'retrying') order by id",
            )
            .bind(id.to_string())
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter()
                .map(|row| {
                    let id: String = row.try_get("job_id")?;
                    let id = id.parse().map_err(|_| StoreError::Corrupt("the id of a job".to_owned()))?;
                    Ok((id, row.try_get::<i64, _>("started")? != 0))
                })
                .collect()
        };
        self.report_damage(read.await)
    }
}

/// Adds the statements of a write.
pub(crate) fn statements(script: &mut SqlBatch, write: &ScheduleWrite) {
    match write {
        ScheduleWrite::Insert(id, record) => script
            .add("insert into schedule (schedule_id, record) values (?, ?)", values![id.to_string(), record]),
        ScheduleWrite::Update(id, record) => {
            script
                .add("update schedule set record = ? where schedule_id = ?", values![record, id.to_string()]);
        }
        ScheduleWrite::Delete(id) => {
            script.add("delete from schedule where schedule_id = ?", values![id.to_string()]);
            script.add("delete from schedule_firing where schedule_id = ?", values![id.to_string()]);
        }
        ScheduleWrite::Fire { schedule_id, slot, job_id } => script.add(
            "insert into schedule_firing (schedule_id, slot_ms, job_id) values (?, ?, ?)",
            values![schedule_id.to_string(), slot.0, job_id.to_string()],
        ),
    }
}
