//! Messages about jobs that are owed to webhooks and commands. A message is owed in the transaction of the state that it
//! reports, so that a crash loses none.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::job_rows::{DeliveryTry, OwedDelivery};
use crate::sql_batch::unsigned;
use crate::sql_batch::{SqlBatch, values};
use types::ids::{JobId, MessageId};
use types::job::{Delivery, DeliveryStatus, FailedDelivery, JobState};
use types::time::Timestamp;

/// Maximum number of messages of a job that are read: the oldest ones.
const MAX_DELIVERIES_OF_JOB: u32 = 200;

/// A message that can be tried when its time has come: all earlier ones of its job to the same target are settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDelivery {
    pub job_id: JobId,
    pub message_id: MessageId,
    /// The table `[jobs.notify.NAME]`.
    pub target: String,
    /// The message.
    pub body: String,
    /// Number of tries so far.
    pub tries: u32,
    /// Time of the next try.
    pub next_try: Timestamp,
}

const COLUMNS: &str = "webhook_id, target, job_state, status, tries, next_try_ms, error";

impl StoreReader {
    /// The messages that are tried next: the earliest of each target first, then the second ones, at most `per_target` of
    /// one target and `limit` in all. A message waits for the earlier ones of its job to the same target.
    pub async fn pending_deliveries(
        &self,
        per_target: u32,
        limit: u32,
    ) -> Result<Vec<PendingDelivery>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "with waiting (id, nth) as (select d.id, \
                 row_number() over (partition by d.target order by d.next_try_ms, d.id) from job_delivery as d \
                 where d.status = 'pending' and d.next_try_ms is not null and not exists (select 1 \
                 from job_delivery as e where e.job = d.job and e.id < d.id and e.target = d.target \
                 and e.status = 'pending')) \
                 select job_id, webhook_id, target, body, tries, next_try_ms from waiting \
                 join job_delivery as d on d.id = waiting.id join job on job.id = d.job \
                 where nth <= ? order by nth, next_try_ms, d.id limit ?",
            )
            .bind(per_target)
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            // A damaged row keeps no other message from being sent.
            let message = |row: &SqliteRow| {
                Some(PendingDelivery {
                    job_id: id(row, "job_id").ok()?,
                    message_id: id(row, "webhook_id").ok()?,
                    target: row.try_get("target").ok()?,
                    body: row.try_get("body").ok()?,
                    tries: tries(row).ok()?,
                    next_try: Timestamp(row.try_get("next_try_ms").ok()?),
                })
            };
            Ok(rows.iter().filter_map(message).collect())
        };
        self.report_damage(read.await)
    }

    /// The messages about a job in the order in which they are owed.
    pub async fn deliveries_of(&self, job_id: JobId) -> Result<Vec<Delivery>, StoreError> {
        let read = async {
            let sql = format!(
                "select {COLUMNS} from job_delivery where job = (select id from job where job_id = ?) \
                 order by id limit {MAX_DELIVERIES_OF_JOB}"
            );
            let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(job_id.to_string())
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            rows.iter().map(delivery).collect()
        };
        self.report_damage(read.await)
    }

    /// The newest message owed since a time whose last try failed; `None` if there is none.
    pub async fn last_failed_delivery(&self, since: Timestamp) -> Result<Option<FailedDelivery>, StoreError> {
        let read = async {
            let sql = format!(
                "select job_id, {COLUMNS} from job_delivery as d join job on job.id = d.job \
                 where d.error is not null and d.owed_at_ms >= ? order by d.id desc limit 1"
            );
            let row = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(since.0)
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.as_ref()
                .map(|row| Ok(FailedDelivery { job_id: id(row, "job_id")?, delivery: delivery(row)? }))
                .transpose()
        };
        self.report_damage(read.await)
    }
}

fn id<T: std::str::FromStr>(row: &SqliteRow, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    text.parse().map_err(|_| StoreError::Corrupt(format!("a message about a job: {column}")))
}

fn tries(row: &SqliteRow) -> Result<u32, StoreError> {
    Ok(u32::try_from(unsigned(row.try_get("tries")?)).unwrap_or(u32::MAX))
}

fn delivery(row: &SqliteRow) -> Result<Delivery, StoreError> {
    let (state, status): (String, String) = (row.try_get("job_state")?, row.try_get("status")?);
    let corrupt = || StoreError::Corrupt("a message about a job: its state".into());
    Ok(Delivery {
        webhook_id: row.try_get("webhook_id")?,
        target: row.try_get("target")?,
        job_state: JobState::ALL.into_iter().find(|it| it.name() == state).ok_or_else(corrupt)?,
        status: DeliveryStatus::ALL.into_iter().find(|it| it.name() == status).ok_or_else(corrupt)?,
        tries: tries(row)?,
        next_try_ms: row.try_get::<Option<i64>, _>("next_try_ms")?.map(Timestamp),
        error: row.try_get("error")?,
    })
}

/// Adds the statement that owes a message.
pub(super) fn owe(script: &mut SqlBatch, owed: &OwedDelivery) {
    script.add(
        "insert into job_delivery (job, webhook_id, target, job_state, status, next_try_ms, owed_at_ms, body) \
         values ((select id from job where job_id = ?), ?, ?, ?, 'pending', ?, ?, ?)",
        values![
            owed.job_id.to_string(),
            owed.message_id.to_string(),
            &owed.target,
            owed.job_state.name(),
            owed.owed_at.0,
            owed.owed_at.0,
            &owed.body,
        ],
    );
}

/// Adds the statement for a try. The message itself is dropped when no try follows.
pub(super) fn record_try(script: &mut SqlBatch, tried: &DeliveryTry) {
    script.add(
        "update job_delivery set status = ?, tries = ?, next_try_ms = ?, error = ?, \
         body = case when ? = 'pending' then body else '' end where webhook_id = ?",
        values![
            tried.status.name(),
            i64::from(tried.tries),
            tried.next_try.map(|at| at.0),
            tried.error.clone(),
            tried.status.name(),
            tried.message_id.to_string(),
        ],
    );
}
