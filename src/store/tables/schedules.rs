//! Schedules and their firings.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::job_rows::ScheduleWrite;
use crate::sql_batch::{SqlBatch, values};
use types::ids::{JobId, ScheduleId};
use types::time::Timestamp;

impl StoreReader {
    /// The states of all schedules, oldest first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_rows::{JobCommit, JobRow, JobWrite};
    use crate::tests::TestStore;
    use types::ids::{Mint, Seed};
    use types::job::JobState;

    fn row(mint: &mut Mint, schedule_id: ScheduleId, state: JobState, at: i64) -> JobRow {
        JobRow {
            job_id: mint.job(),
            state,
            cwd: "/w".into(),
            schedule_id: Some(schedule_id),
            template: None,
            unique_key: None,
            created_at: Timestamp(at),
            started_at: None,
            ended_at: None,
            cost_usd_micros: 0,
            record: "{}".into(),
        }
    }

    async fn commit(test: &TestStore, writes: Vec<JobWrite>) -> Result<(), StoreError> {
        test.store.commit_job(JobCommit { writes, ..JobCommit::default() }).await
    }

    #[tokio::test]
    async fn slot_fires_once_together_with_its_job() {
        let test = TestStore::new().await;
        let mut mint = Mint::new(0, Seed(1));
        let id = mint.schedule();
        commit(&test, vec![JobWrite::Schedule(ScheduleWrite::Insert(id, "one".into()))])
            .await
            .expect("written");
        let fire = |row: &JobRow, record: &str| {
            vec![
                JobWrite::Insert(Box::new(row.clone()), "{}".into()),
                JobWrite::Schedule(ScheduleWrite::Fire {
                    schedule_id: id,
                    slot: Timestamp(60_000),
                    job_id: row.job_id,
                }),
                JobWrite::Schedule(ScheduleWrite::Update(id, record.into())),
            ]
        };
        let (first, second) =
            (row(&mut mint, id, JobState::Queued, 1), row(&mut mint, id, JobState::Queued, 2));
        commit(&test, fire(&first, "two")).await.expect("written");
        assert_eq!(commit(&test, fire(&second, "three")).await, Err(StoreError::Taken));
        assert_eq!(test.store.unfinished_jobs_of_schedule(id).await, Ok(vec![(first.job_id, false)]));
        assert_eq!(test.store.schedules().await, Ok(vec!["two".to_owned()]));
        commit(&test, vec![JobWrite::Schedule(ScheduleWrite::Delete(id))]).await.expect("written");
        assert_eq!(test.store.schedules().await, Ok(Vec::new()));
        assert_eq!(test.store.unfinished_jobs_of_schedule(id).await.expect("read").len(), 1, "jobs stay");
    }

    #[tokio::test]
    async fn failures_are_counted_up_to_the_newest_success() {
        let test = TestStore::new().await;
        let mut mint = Mint::new(0, Seed(1));
        let id = mint.schedule();
        use JobState::{Cancelled, Failed, Skipped, Succeeded};
        let states = [Failed, Succeeded, Failed, Skipped, Failed, Cancelled];
        for (at, state) in (1..).zip(states) {
            let row = row(&mut mint, id, state, at);
            commit(&test, vec![JobWrite::Insert(Box::new(row), "{}".into())]).await.expect("written");
        }
        let count = async |after, limit| test.store.schedule_failures(id, Timestamp(after), limit).await;
        assert_eq!(count(0, 100).await, Ok(2));
        assert_eq!(count(0, 1).await, Ok(1));
        assert_eq!(count(4, 100).await, Ok(1));
        assert_eq!(count(6, 100).await, Ok(0));
    }
}
