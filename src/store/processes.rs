//! The list of processes that may be alive (S9): written when one starts, read when a daemon starts.

use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::error::StoreError;
use super::open::Store;
use super::rows::{ProcessRow, SessionKey};
use super::script::Script;
use super::writer::{Command, integer};
use crate::types::ids::CallId;
use crate::types::tool::ProcessRecord;

impl Store {
    /// All recorded processes.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn processes(&self) -> Result<Vec<ProcessRecord>, StoreError> {
        let rows = sqlx::query("select call_id, pid, started, boot_id from process")
            .fetch_all(&self.readers)
            .await?;
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let call_id: String = row.try_get("call_id")?;
            // What is no id was not written by us, and no process of ours is behind it.
            let Ok(call_id) = call_id.parse() else { continue };
            let started: i64 = row.try_get("started")?;
            records.push(ProcessRecord {
                call_id,
                pid: row.try_get("pid")?,
                started: u64::try_from(started).unwrap_or(0),
                boot_id: row.try_get("boot_id")?,
            });
        }
        Ok(records)
    }

    /// Removes the records of these calls.
    ///
    /// # Errors
    /// None was removed.
    pub async fn forget_processes(&self, calls: Vec<CallId>) -> Result<(), StoreError> {
        self.ask(|answer| Command::Forget(calls, answer)).await
    }
}

pub(super) async fn update(
    script: &mut Script<'_>,
    key: SessionKey,
    row: &ProcessRow,
) -> Result<(), StoreError> {
    match row {
        ProcessRow::Born { record, at } => {
            script
                .sql()
                .push("insert or replace into process (call_id, session, pid, started, boot_id, at_ms) ");
            script.sql().push_values([record], |mut values, record| {
                values
                    .push_bind(record.call_id.to_string())
                    .push_bind(key.0)
                    .push_bind(record.pid)
                    .push_bind(integer(record.started))
                    .push_bind(&record.boot_id)
                    .push_bind(at.0);
            });
        }
        ProcessRow::Gone(call_id) => {
            script.sql().push("delete from process where call_id = ").push_bind(call_id.to_string());
        }
    }
    script.end(true).await
}

pub(super) async fn forget(connection: &mut SqliteConnection, calls: &[CallId]) -> Result<(), StoreError> {
    let mut script = Script::begin(connection, false).await?;
    for call_id in calls {
        script.sql().push("delete from process where call_id = ").push_bind(call_id.to_string());
        script.end(true).await?;
    }
    script.commit().await
}
