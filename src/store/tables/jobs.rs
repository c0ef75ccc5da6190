//! Jobs and their events. The rows are the truth about a job: each step of a job is one transaction ([`JobCommit`]).

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::command::WriterCommand;
use crate::error::StoreError;
use crate::handle::{Store, StoreReader};
use crate::job_rows::{JobCommit, JobRow, JobWrite};
use crate::sql_batch::unsigned;
use crate::sql_batch::{SqlBatch, integer, values};
use crate::tables::blobs;
use crate::tables::deliveries;
use crate::tables::ledger::TREE;
use crate::tables::schedules;
use crate::tables::worktrees;
use types::event::{Envelope, Event};
use types::ids::{JobId, ScheduleId, SessionId};
use types::job::{JobEvent, JobState};
use types::time::Timestamp;

/// States of jobs that are not over, as a list of SQL.
const UNFINISHED: &str = "('scheduled', 'queued', 'running', 'waiting', 'retrying')";

/// Name of the stored value that says whether new starts of jobs are stopped.
pub const JOBS_PAUSED: &str = "jobs.paused";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredJob {
    /// Its position in the order of creation.
    pub position: i64,
    /// The whole state as JSON.
    pub record: String,
    /// The content as JSON.
    pub request: String,
}

/// Filters of the list of jobs. The default lists all.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobQuery<'q> {
    /// Accepted states; an empty list accepts all.
    pub states: &'q [JobState],
    /// Required schedule.
    pub schedule_id: Option<ScheduleId>,
    /// Required template.
    pub template: Option<&'q str>,
    /// Required label: its name, and its value if that matters.
    pub label: Option<(&'q str, Option<&'q str>)>,
    /// Required folder.
    pub cwd: Option<&'q str>,
    /// Leaves out jobs that ended before this time.
    pub not_ended_before: Option<Timestamp>,
}

/// Known cost of jobs in millionths of a dollar, by the time of the model calls in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSpending {
    /// All attempts since the time that was asked for, with sub-agents. It includes those of jobs that began earlier.
    pub total_usd_micros: u64,
    /// Each living attempt since its start, by its job. Attempts without a call are missing.
    pub attempts_usd_micros: HashMap<JobId, u64>,
}

impl StoreReader {
    /// One job; `None` if it does not exist.
    pub async fn job(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let read = async {
            let row = sqlx::query("select id, record, request from job where job_id = ?")
                .bind(id.to_string())
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.as_ref().map(stored).transpose()
        };
        self.report_damage(read.await)
    }

    /// The job that holds a unique key; `None` if none does.
    pub async fn job_with_unique_key(&self, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let read = async {
            let row = sqlx::query("select id, record, request from job where unique_key = ?")
                .bind(key)
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.as_ref().map(stored).transpose()
        };
        self.report_damage(read.await)
    }

    /// States of a page of jobs with a position below `before`, newest first. The text of a damaged row is no state.
    pub async fn jobs(
        &self,
        before: Option<i64>,
        limit: u32,
        wanted: JobQuery<'_>,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let read = async {
            let mut query = sqlx::QueryBuilder::<sqlx::Sqlite>::new("select id, record from job where id < ");
            query.push_bind(before.unwrap_or(i64::MAX));
            if !wanted.states.is_empty() {
                query.push(" and state in (");
                let mut list = query.separated(", ");
                wanted.states.iter().for_each(|state| _ = list.push_bind(state.name()));
                query.push(")");
            }
            if let Some(schedule) = wanted.schedule_id {
                query.push(" and schedule_id = ").push_bind(schedule.to_string());
            }
            if let Some(template) = wanted.template {
                query.push(" and template = ").push_bind(template);
            }
            if let Some(cwd) = wanted.cwd {
                query.push(" and cwd = ").push_bind(cwd);
            }
            if let Some(time) = wanted.not_ended_before {
                query.push(" and (ended_at_ms is null or ended_at_ms >= ").push_bind(time.0).push(")");
            }
            if let Some((name, value)) = wanted.label {
                query.push(
                    " and exists (select 1 from json_each(case when json_valid(record) then record end, \
                     '$.job.labels') where key = ",
                );
                query.push_bind(name);
                if let Some(value) = value {
                    query.push(" and value = ").push_bind(value);
                }
                query.push(")");
            }
            query.push(" order by id desc limit ").push_bind(limit);
            let rows = query.build().persistent(false).fetch_all(&self.readers.current_pool().await).await?;
            // A text that cannot be read becomes an empty one, which is no state.
            rows.iter()
                .map(|row| Ok((row.try_get("id")?, row.try_get("record").unwrap_or_default())))
                .collect()
        };
        self.report_damage(read.await)
    }

    /// The states of all jobs that are not over, oldest first. The text of a damaged row is no state.
    pub async fn unfinished_jobs(&self) -> Result<Vec<String>, StoreError> {
        let read = async {
            let sql = format!("select record from job where state in {UNFINISHED} order by id");
            let rows =
                sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&self.readers.current_pool().await).await?;
            Ok(rows.iter().map(|row| row.try_get("record").unwrap_or_default()).collect())
        };
        self.report_damage(read.await)
    }

    /// The oldest jobs that ended before a time and keep no other job from being created on `today` (`YYYY-MM-DD`, UTC) or
    /// later, at most `limit`.
    pub async fn jobs_ended_before(
        &self,
        before: Timestamp,
        today: &str,
        limit: u32,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let read = async {
            // The key of a day is `day:YYYY-MM-DD:KEY`.
            let rows = sqlx::query(
                "select id, record, request from job where ended_at_ms < ? and (unique_key is null or \
                 (unique_key like 'day:%' and substr(unique_key, 5, 10) < ?)) order by id limit ?",
            )
            .bind(before.0)
            .bind(today)
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter().map(stored).collect()
        };
        self.report_damage(read.await)
    }

    /// Sessions of attempts that are over that nothing uses and that are not archived, at most `limit` with an id above
    /// `after`. Those that a client other than `daemon` restored from the archive are left out.
    pub async fn unarchived_attempts(
        &self,
        daemon: &str,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select s.session_id from session s join job j on j.job_id = s.job_id where s.job_id is not null \
                 and s.state in ('idle', 'failed') and s.session_id > ?1 and json_valid(j.record) \
                 and not (j.state in ('running', 'waiting') and j.record ->> '$.job.session_id' = s.session_id) \
                 and coalesce((select json_valid(body) and body ->> '$.archived' = 0 \
                 and coalesce(body ->> '$.origin.client', '') <> ?2 from event where session = s.id \
                 and kind = 'session.archived' order by seq desc limit 1), 0) = 0 order by s.session_id limit ?3",
            )
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(daemon)
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let ids = rows.iter().map(|row| row.try_get::<String, _>("session_id"));
            ids.map(|id| id?.parse().map_err(|_| StoreError::Corrupt("the id of a session".into()))).collect()
        };
        self.report_damage(read.await)
    }

    /// What jobs have spent: all of them since a time, and each living attempt since its start.
    pub async fn job_spending(&self, since: Timestamp) -> Result<JobSpending, StoreError> {
        let read = async {
            let pool = self.readers.current_pool().await;
            // Money of sub-agents counts for the job of the session that started them. A session may have been deleted
            // since; then the attempts of its job name it.
            let total = sqlx::query(
                "with recursive recent (session_id, cost) as materialized \
                 (select session_id, total(cost_usd_micros) from ledger indexed by ledger_by_time where at_ms >= ?1 \
                 group by session_id), \
                 up (start, id) as (select session_id, session_id from recent union \
                 select up.start, s.parent_session_id from up join session s on s.session_id = up.id \
                 where s.parent_session_id is not null) \
                 select cast(min(total(cost), 9e18) as integer) as cost from recent where session_id in \
                 (select up.start from up join session s on s.session_id = up.id where s.job_id is not null) \
                 or (session_id not in (select session_id from session) and exists (select 1 from job \
                 where started_at_ms is not null and (ended_at_ms is null or ended_at_ms >= ?1) \
                 and instr(record, recent.session_id) > 0))",
            )
            .bind(since.0)
            .fetch_one(&pool)
            .await?;
            let attempts = sqlx::query(
                "with recursive living (job_id, id, since) as (select job_id, record ->> '$.job.session_id', \
                 record ->> '$.attempts[#-1].started_at_ms' from job where state in ('running', 'waiting') \
                 and json_valid(record)), \
                 tree (job_id, id, since) as (select * from living union select tree.job_id, s.session_id, tree.since \
                 from session s join tree on s.parent_session_id = tree.id) \
                 select tree.job_id, cast(min(total(l.cost_usd_micros), 9e18) as integer) as cost from tree \
                 join ledger l on l.session_id = tree.id and l.at_ms >= tree.since group by tree.job_id",
            )
            .fetch_all(&pool)
            .await?;
            let cost = |row: &SqliteRow| Ok::<_, StoreError>(unsigned(row.try_get("cost")?));
            // A damaged row is left out.
            let of_attempt = |row: &SqliteRow| {
                let id: String = row.try_get("job_id").ok()?;
                Some((id.parse().ok()?, cost(row).ok()?))
            };
            let attempts_usd_micros = attempts.iter().filter_map(of_attempt).collect();
            Ok(JobSpending { total_usd_micros: cost(&total)?, attempts_usd_micros })
        };
        self.report_damage(read.await)
    }

    /// Events of a job after `after`, oldest first.
    pub async fn job_events(&self, id: JobId, after: u64, limit: u32) -> Result<Vec<JobEvent>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select body from job_event where job = (select id from job where job_id = ?) and seq > ? \
                 order by seq limit ?",
            )
            .bind(id.to_string())
            .bind(integer(after))
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter()
                .map(|row| {
                    let body: String = row.try_get("body")?;
                    read_job_event(&body).map_err(|error| StoreError::Corrupt(error.to_string()))
                })
                .collect()
        };
        self.report_damage(read.await)
    }

    /// The events about the calls with an unknown outcome in a session and its sub-agents: what was judged, started and
    /// completed, oldest first in each session.
    ///
    /// # Errors
    /// The database could not be read, or holds a row that is no event.
    pub async fn events_of_unknown_calls(&self, session_id: SessionId) -> Result<Vec<Event>, StoreError> {
        let read = async {
            let sql = format!(
                "{TREE}, part (session) as (select id from session where session_id in (select id from tree)), \
                 unknown (call_id) as (select body ->> '$.call_id' from event where session in part \
                 and kind = 'tool.completed' and json_valid(body) and body ->> '$.status' = 'unknown') \
                 select body from event where session in part and kind in ('tool.status', 'permission.requested', \
                 'permission.resolved', 'tool.started', 'tool.completed') and json_valid(body) \
                 and body ->> '$.call_id' in unknown order by session, seq"
            );
            let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(session_id.to_string())
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            let event = |row: &SqliteRow| {
                let body: String = row.try_get("body")?;
                let read: Result<Envelope, _> = serde_json::from_str(&body);
                read.map(|read| read.event).map_err(|error| StoreError::Corrupt(error.to_string()))
            };
            rows.iter().map(event).collect()
        };
        self.report_damage(read.await)
    }

    /// A value that outlives the daemon.
    pub async fn setting(&self, name: &'static str) -> Result<Option<String>, StoreError> {
        let value = sqlx::query_scalar("select value from daemon_setting where name = ?").bind(name);
        Ok(value.fetch_optional(&self.readers.current_pool().await).await?)
    }
}

impl Store {
    /// Writes one step of a job, synced.
    ///
    /// # Errors
    /// `Taken` if the job's id, its unique key, its schedule's slot or the idempotency key is in use. Nothing was
    /// written.
    pub async fn commit_job(&self, step: JobCommit) -> Result<(), StoreError> {
        self.ask(|answer| WriterCommand::Job(Box::new(step), answer)).await
    }
}

fn stored(row: &SqliteRow) -> Result<StoredJob, StoreError> {
    Ok(StoredJob {
        position: row.try_get("id")?,
        record: row.try_get("record")?,
        request: row.try_get("request")?,
    })
}

/// Reads an event. In older rows of `job.retrying`, the time of the next attempt is a second field `at_ms`.
fn read_job_event(body: &str) -> Result<JobEvent, serde_json::Error> {
    let mut body: serde_json::Value = serde_json::from_str(body)?;
    if body["type"] == "job.retrying" && body.get("run_at_ms").is_none() {
        body["run_at_ms"] = body["at_ms"].clone();
    }
    serde_json::from_value(body)
}

/// Adds the statements of the writes.
pub(crate) fn statements(script: &mut SqlBatch, writes: &[JobWrite]) {
    for write in writes {
        match write {
            JobWrite::Insert(row, request) => insert(script, row, request),
            JobWrite::Update(row) => update(script, row),
            JobWrite::Request(id, request) => {
                script.add("update job set request = ? where job_id = ?", values![request, id.to_string()]);
            }
            JobWrite::Event(event) => script.add(
                "insert into job_event (job, seq, at_ms, body) values \
                 ((select id from job where job_id = ?), ?, ?, ?)",
                values![
                    event.job_id.to_string(),
                    integer(event.seq),
                    event.at_ms.0,
                    serde_json::to_string(event).unwrap_or_default(),
                ],
            ),
            JobWrite::Delete(id) => script.add("delete from job where job_id = ?", values![id.to_string()]),
            JobWrite::Blobs(key, blobs) => blobs::insert(script, *key, blobs),
            JobWrite::Owe(owed) => deliveries::owe(script, owed),
            JobWrite::DeliveryTry(tried) => deliveries::record_try(script, tried),
            JobWrite::Setting(name, Some(value)) => script.add(
                "insert or replace into daemon_setting (name, value) values (?, ?)",
                values![*name, value],
            ),
            JobWrite::Setting(name, None) => {
                script.add("delete from daemon_setting where name = ?", values![*name]);
            }
            JobWrite::Worktree(row) => worktrees::write(script, row),
            JobWrite::Schedule(write) => schedules::statements(script, write),
        }
    }
}

fn insert(script: &mut SqlBatch, row: &JobRow, request: &String) {
    script.add(
        "insert into job (job_id, state, cwd, schedule_id, template, unique_key, created_at_ms, \
         started_at_ms, ended_at_ms, cost_usd_micros, record, request) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values![
            row.job_id.to_string(),
            row.state.name(),
            &row.cwd,
            row.schedule_id.map(|id| id.to_string()),
            row.template.clone(),
            row.unique_key.clone(),
            row.created_at.0,
            row.started_at.map(|at| at.0),
            row.ended_at.map(|at| at.0),
            integer(row.cost_usd_micros),
            &row.record,
            request,
        ],
    );
}

fn update(script: &mut SqlBatch, row: &JobRow) {
    script.add(
        "update job set state = ?, unique_key = ?, started_at_ms = ?, ended_at_ms = ?, cost_usd_micros = ?, \
         record = ? where job_id = ?",
        values![
            row.state.name(),
            row.unique_key.clone(),
            row.started_at.map(|at| at.0),
            row.ended_at.map(|at| at.0),
            integer(row.cost_usd_micros),
            &row.record,
            row.job_id.to_string(),
        ],
    );
}

/// Copies the readable rows of `source` to a new database, table by table, and returns how many jobs and schedules it
/// added. Rows that exist stay unchanged. A row is left out if a value of it cannot be read, or if its job is missing.
pub(crate) async fn copy(
    source: &mut SqliteConnection,
    new: &mut SqliteConnection,
) -> Result<u64, StoreError> {
    let mut added = 0;
    for (table, columns) in TABLES {
        let names = columns.join(", ");
        let marks = vec!["?"; columns.len()].join(", ");
        let read = format!("select {names} from {table}");
        let mut rows = sqlx::query(sqlx::AssertSqlSafe(read)).fetch(&mut *source);
        // A page that cannot be read ends the table; what was read before it counts.
        while let Ok(Some(row)) = rows.try_next().await {
            let sql = format!("insert or ignore into {table} ({names}) values ({marks})");
            let mut insert = sqlx::query(sqlx::AssertSqlSafe(sql));
            let mut is_readable = true;
            for index in 0..columns.len() {
                let (number, text) =
                    (row.try_get::<Option<i64>, _>(index), row.try_get::<Option<String>, _>(index));
                insert = match (number, text) {
                    (Ok(number), _) => insert.bind(number),
                    (_, Ok(text)) => insert.bind(text),
                    _ => {
                        is_readable = false;
                        break;
                    }
                };
            }
            if !is_readable {
                continue;
            }
            match insert.execute(&mut *new).await {
                Ok(done) if ["job", "schedule"].contains(table) => added += done.rows_affected(),
                Ok(_) => {}
                Err(error) if error.as_database_error().is_some_and(|it| it.is_foreign_key_violation()) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(added)
}

/// The tables that a recovery copies, with all columns.
const TABLES: &[(&str, &[&str])] = &[
    (
        "job",
        &[
            "id",
            "job_id",
            "state",
            "cwd",
            "schedule_id",
            "template",
            "unique_key",
            "created_at_ms",
            "started_at_ms",
            "ended_at_ms",
            "cost_usd_micros",
            "record",
            "request",
        ],
    ),
    ("job_event", &["job", "seq", "at_ms", "body"]),
    (
        "job_delivery",
        &[
            "id",
            "job",
            "webhook_id",
            "target",
            "job_state",
            "status",
            "tries",
            "next_try_ms",
            "owed_at_ms",
            "error",
            "body",
        ],
    ),
    ("daemon_setting", &["name", "value"]),
    (
        "worktree",
        &["id", "name", "job_id", "session_id", "created_at_ms", "finished_at_ms", "removed_at_ms", "record"],
    ),
    ("schedule", &["id", "schedule_id", "record"]),
    ("schedule_firing", &["schedule_id", "slot_ms", "job_id"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use types::job::JobEventKind;

    #[test]
    fn older_row_with_a_field_twice_is_read() {
        let row = r#"{"job_id":"job_0193abcd-ef01-7000-8000-000000000000","seq":4,"at_ms":5,"type":"job.retrying","at_ms":9,"reason":"r"}"#;
        let event = read_job_event(row).expect("read").event;
        assert_eq!(event, JobEventKind::Retrying { run_at_ms: Timestamp(9), reason: "r".into() });
    }
}
