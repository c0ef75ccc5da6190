//! Cached model answers, and rows of index jobs.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::writer::Writer;
use crate::types::{ChunkId, KnowledgeError};
use types::knowledge::CacheKind;

/// Maximum number of stored answers to queries; the oldest are deleted. Each may contain a long text, and a changed
/// index makes them useless.
const MAX_QUERY_ANSWERS: i64 = 500;

/// An answer that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedAnswer {
    pub kind: CacheKind,
    /// Hash of everything that the answer depends on.
    pub key: String,
    pub value: String,
    /// The chunk that was read, for `Extract`.
    pub chunk: Option<ChunkId>,
}

/// An index job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredJob {
    pub id: String,
    /// Its request as JSON.
    pub request: String,
    /// `running`, `done`, `cancelled` or `failed`.
    pub state: String,
    /// The reason of the failure.
    pub error: Option<String>,
    /// Time at which the job began, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Time at which the state last changed, in milliseconds since the Unix epoch.
    pub updated_at_ms: i64,
}

/// An answer from the cache.
pub(super) fn cached(
    connection: &Connection,
    kind: CacheKind,
    key: &str,
) -> Result<Option<String>, KnowledgeError> {
    let mut statement =
        connection.prepare_cached("select value from kn_cache where kind = ?1 and key = ?2")?;
    Ok(statement.query_row([kind.as_str(), key], |row| row.get(0)).optional()?)
}

/// Stores an answer.
pub(super) fn put(
    connection: &Connection,
    kind: CacheKind,
    key: &str,
    value: &str,
    chunk: Option<&ChunkId>,
    now_ms: i64,
) -> Result<(), KnowledgeError> {
    connection
        .prepare_cached(
            "insert or replace into kn_cache (kind, key, value, chunk_id, created_ms) \
             values (?1, ?2, ?3, (select id from kn_chunk where key = ?4), ?5)",
        )?
        .execute(params![kind.as_str(), key, value, chunk.map(ChunkId::as_str), now_ms])?;
    if kind == CacheKind::Query {
        connection
            .prepare_cached(
                "delete from kn_cache where kind = 'query' and key in (select key from kn_cache where kind = 'query' \
                 order by created_ms desc, key limit -1 offset ?1)",
            )?
            .execute([MAX_QUERY_ANSWERS])?;
    }
    Ok(())
}

const JOB_COLUMNS: &str = "id, request, state, error, created_ms, updated_ms";

fn job_of_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredJob> {
    Ok(StoredJob {
        id: row.get(0)?,
        request: row.get(1)?,
        state: row.get(2)?,
        error: row.get(3)?,
        created_at_ms: row.get(4)?,
        updated_at_ms: row.get(5)?,
    })
}

pub(super) fn newest_job(connection: &Connection) -> Result<Option<StoredJob>, KnowledgeError> {
    let sql = format!("select {JOB_COLUMNS} from kn_job order by created_ms desc, id desc limit 1");
    Ok(connection.prepare_cached(&sql)?.query_row([], job_of_row).optional()?)
}

impl Writer {
    /// Stores answers.
    pub fn put_answers(&mut self, answers: &[CachedAnswer], now_ms: i64) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            for answer in answers {
                put(connection, answer.kind, &answer.key, &answer.value, answer.chunk.as_ref(), now_ms)?;
            }
            Ok(())
        })
    }

    /// An answer from the cache.
    pub fn cached_answer(&self, kind: CacheKind, key: &str) -> Result<Option<String>, KnowledgeError> {
        cached(self.connection(), kind, key)
    }

    /// Deletes the answers of these kinds (all if empty) and returns their number.
    pub fn clear_cache(&mut self, kinds: &[CacheKind]) -> Result<u64, KnowledgeError> {
        let kinds = if kinds.is_empty() { &CacheKind::ALL[..] } else { kinds };
        self.transaction(|connection| {
            let mut removed = 0;
            for kind in kinds {
                removed += connection.execute("delete from kn_cache where kind = ?1", [kind.as_str()])?;
            }
            Ok(removed as u64)
        })
    }

    /// Stores the beginning of a job. Older jobs that ended are deleted.
    pub fn begin_job(&mut self, id: &str, request: &str, now_ms: i64) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            connection.execute("delete from kn_job where state <> 'running' or id = ?1", [id])?;
            connection.execute(
                "insert into kn_job (id, state, request, created_ms, updated_ms) values (?1, 'running', ?2, ?3, ?3)",
                params![id, request, now_ms],
            )?;
            Ok(())
        })
    }

    /// Stores the request of a running job again, with the rest of its budget.
    pub fn update_job(&mut self, id: &str, request: &str) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            connection.execute("update kn_job set request = ?2 where id = ?1", params![id, request])?;
            Ok(())
        })
    }

    /// Stores the end of a job: `done`, `cancelled` or `failed`.
    pub fn end_job(
        &mut self,
        id: &str,
        state: &str,
        error: Option<&str>,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            connection.execute(
                "update kn_job set state = ?2, error = ?3, updated_ms = ?4 where id = ?1",
                params![id, state, error, now_ms],
            )?;
            Ok(())
        })
    }

    /// Jobs that began and did not end, because the daemon stopped meanwhile.
    pub fn unfinished_jobs(&self) -> Result<Vec<StoredJob>, KnowledgeError> {
        let sql = format!("select {JOB_COLUMNS} from kn_job where state = 'running' order by created_ms, id");
        let mut statement = self.connection().prepare_cached(&sql)?;
        let rows = statement.query_map([], job_of_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
