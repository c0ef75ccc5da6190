//! The list of processes that may still run: written when one starts, read when a daemon starts.

use sqlx::Row as _;

use crate::command::WriterCommand;
use crate::error::StoreError;
use crate::handle::{Store, StoreReader};
use crate::rows::{ProcessRow, SessionKey};
use crate::sql_batch::integer;
use crate::sql_batch::{SqlBatch, values};
use types::ids::CallId;
use types::tool::ProcessRecord;

impl StoreReader {
    /// All recorded processes.
    pub async fn processes(&self) -> Result<Vec<ProcessRecord>, StoreError> {
        let rows = sqlx::query("select call_id, pid, started, boot_id from process")
            .fetch_all(&self.readers.current_pool().await)
            .await?;
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let call_id: String = row.try_get("call_id")?;
            // The daemon writes valid ids only, so this row describes none of its processes.
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
}

impl Store {
    /// Removes the records of these calls.
    ///
    /// # Errors
    /// None was removed.
    pub async fn forget_processes(&self, calls: Vec<CallId>) -> Result<(), StoreError> {
        self.ask(|answer| WriterCommand::Forget(calls, answer)).await
    }
}

pub(crate) fn update(script: &mut SqlBatch, key: SessionKey, row: &ProcessRow) {
    match row {
        ProcessRow::Started { record, at } => script.add(
            "insert or replace into process (call_id, session, pid, started, boot_id, at_ms) \
             values (?, ?, ?, ?, ?, ?)",
            values![
                record.call_id.to_string(),
                key.0,
                record.pid,
                integer(record.started),
                &record.boot_id,
                at.0,
            ],
        ),
        ProcessRow::Gone(call_id) => delete_process(script, *call_id),
    }
}

fn delete_process(script: &mut SqlBatch, call_id: CallId) {
    script.add("delete from process where call_id = ?", values![call_id.to_string()]);
}

pub(crate) fn delete_processes(calls: &[CallId]) -> SqlBatch {
    let mut script = SqlBatch::default();
    calls.iter().for_each(|call_id| delete_process(&mut script, *call_id));
    script
}
