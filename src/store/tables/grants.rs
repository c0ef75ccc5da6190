//! The grant outbox: grants that are in a journal but not yet in their policy file.

use sqlx::Row as _;

use crate::command::WriterCommand;
use crate::error::StoreError;
use crate::handle::{Store, StoreReader};
use crate::rows::PendingGrant;
use crate::sql_batch::{SqlBatch, values};

impl StoreReader {
    /// All pending grants, oldest first.
    pub async fn pending_grants(&self) -> Result<Vec<PendingGrant>, StoreError> {
        let rows = sqlx::query("select request_id, workspace, entry from grant_outbox order by request_id")
            .fetch_all(&self.readers.current_pool().await)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(PendingGrant {
                    request_id: row.try_get("request_id")?,
                    workspace: row.try_get("workspace")?,
                    entry: row.try_get("entry")?,
                })
            })
            .collect()
    }
}

impl Store {
    /// Removes grants that are in their policy file now or that were revoked.
    ///
    /// # Errors
    /// None was removed.
    pub async fn discard_grants(&self, requests: Vec<String>) -> Result<(), StoreError> {
        self.ask(|answer| WriterCommand::Paid(requests, answer)).await
    }
}

pub(crate) fn enqueue(script: &mut SqlBatch, grant: &PendingGrant) {
    script.add(
        "insert into grant_outbox (request_id, workspace, entry) values (?, ?, ?)",
        values![&grant.request_id, &grant.workspace, &grant.entry],
    );
}

pub(crate) fn discard(requests: &[String]) -> SqlBatch {
    let mut script = SqlBatch::default();
    for request in requests {
        script.add("delete from grant_outbox where request_id = ?", values![request]);
    }
    script
}
