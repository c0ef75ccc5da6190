//! The git worktrees that the daemon made.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::job_rows::{WorktreeOwner, WorktreeRow};
use crate::sql_batch::{SqlBatch, values};
use types::ids::SessionId;

/// Which sessions of a folder count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionActivity {
    /// Those that are neither ended nor archived.
    NotEnded,
    /// Those with an open turn.
    OpenTurn,
}

impl StoreReader {
    /// The worktrees that exist or are being made, oldest first.
    pub async fn worktrees(&self) -> Result<Vec<WorktreeRow>, StoreError> {
        let read = async {
            let rows = sqlx::query("select record from worktree where removed_at_ms is null order by id")
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            rows.iter().map(stored).collect()
        };
        self.report_damage(read.await)
    }

    /// The worktree with this name; `None` if there never was one.
    pub async fn worktree_named(&self, name: &str) -> Result<Option<WorktreeRow>, StoreError> {
        let read = async {
            let row = sqlx::query("select record from worktree where name = ?")
                .bind(name)
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.as_ref().map(stored).transpose()
        };
        self.report_damage(read.await)
    }

    /// The newest worktree of an owner, also if it was removed.
    pub async fn worktree_of(&self, owner: WorktreeOwner) -> Result<Option<WorktreeRow>, StoreError> {
        let read = async {
            let (sql, id) = match owner {
                WorktreeOwner::Job(id) => {
                    ("select record from worktree where job_id = ? order by id desc limit 1", id.to_string())
                }
                WorktreeOwner::Session(id) => (
                    "select record from worktree where session_id = ? order by id desc limit 1",
                    id.to_string(),
                ),
            };
            let pool = self.readers.current_pool().await;
            let row = sqlx::query(sql).bind(id).fetch_optional(&pool).await?;
            row.as_ref().map(stored).transpose()
        };
        self.report_damage(read.await)
    }

    /// A session that works in this folder or below it: that is neither ended nor archived, or that has an open turn.
    /// Sub-agents count with their session.
    pub async fn session_in_folder(
        &self,
        folder: &str,
        activity: SessionActivity,
    ) -> Result<Option<SessionId>, StoreError> {
        let states = match activity {
            SessionActivity::NotEnded => "state not in ('ended', 'archived')",
            SessionActivity::OpenTurn => "state in ('running', 'requires_action', 'paused')",
        };
        let read = async {
            let sql = format!(
                "select session_id from session where (cwd = ? or substr(cwd, 1, length(?)) = ?) \
                 and parent_session_id is null and {states} limit 1"
            );
            let id: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(folder)
                .bind(format!("{folder}/"))
                .bind(format!("{folder}/"))
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            let parse = |id: String| id.parse().map_err(|_| StoreError::Corrupt(format!("session id {id}")));
            id.map(parse).transpose()
        };
        self.report_damage(read.await)
    }
}

fn stored(row: &SqliteRow) -> Result<WorktreeRow, StoreError> {
    let record: String = row.try_get("record")?;
    serde_json::from_str(&record).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Adds the statement that writes or replaces a row. The position of a known name stays.
pub(crate) fn write(script: &mut SqlBatch, row: &WorktreeRow) {
    script.add(
        "insert into worktree (name, job_id, session_id, created_at_ms, finished_at_ms, removed_at_ms, record) \
         values (?, ?, ?, ?, ?, ?, ?) on conflict (name) do update set job_id = excluded.job_id, \
         session_id = excluded.session_id, finished_at_ms = excluded.finished_at_ms, \
         removed_at_ms = excluded.removed_at_ms, record = excluded.record",
        values![
            &row.name,
            row.job_id.map(|id| id.to_string()),
            row.session_id.map(|id| id.to_string()),
            row.created_at.0,
            row.finished_at.map(|at| at.0),
            row.removed_at.map(|at| at.0),
            serde_json::to_string(row).unwrap_or_default(),
        ],
    );
}
