//! Grants that are promised and not yet written where they belong: an outbox (P5).

use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::error::StoreError;
use super::open::Store;
use super::rows::OwedGrant;
use super::script::Script;
use super::writer::Command;

impl Store {
    /// All grants that are owed, oldest first.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn owed_grants(&self) -> Result<Vec<OwedGrant>, StoreError> {
        let rows = sqlx::query("select request_id, workspace, entry from owed_grant order by request_id")
            .fetch_all(&self.readers)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(OwedGrant {
                    request_id: row.try_get("request_id")?,
                    workspace: row.try_get("workspace")?,
                    entry: row.try_get("entry")?,
                })
            })
            .collect()
    }

    /// These grants stand where they belong, or are not wanted any more.
    ///
    /// # Errors
    /// None was removed.
    pub async fn grants_paid(&self, requests: Vec<String>) -> Result<(), StoreError> {
        self.ask(|answer| Command::Paid(requests, answer)).await
    }
}

pub(super) async fn owe(script: &mut Script<'_>, grant: &OwedGrant) -> Result<(), StoreError> {
    script.sql().push("insert into owed_grant (request_id, workspace, entry) ");
    script.sql().push_values([grant], |mut values, grant| {
        values.push_bind(&grant.request_id).push_bind(&grant.workspace).push_bind(&grant.entry);
    });
    script.end(true).await
}

pub(super) async fn pay(connection: &mut SqliteConnection, requests: &[String]) -> Result<(), StoreError> {
    let mut script = Script::begin(connection, false).await?;
    for request in requests {
        script.sql().push("delete from owed_grant where request_id = ").push_bind(request);
        script.end(true).await?;
    }
    script.commit().await
}
