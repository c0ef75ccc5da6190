//! Which folders are trusted, and as what (S22).

use sqlx::sqlite::SqliteConnection;

use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::writer::WriterCommand;
use crate::types::audit::AuditNote;

/// A folder is trusted from now on, or not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustChange {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// What it holds now; `None` takes the trust back.
    pub digest: Option<String>,
    /// What the audit log says of it.
    pub note: AuditNote,
}

impl Store {
    /// The digest with which a folder was trusted.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn trusted(&self, cwd: &str) -> Result<Option<String>, StoreError> {
        let digest = sqlx::query_scalar("select digest from trust where cwd = ?").bind(cwd);
        Ok(digest.fetch_optional(&self.readers.now().await).await?)
    }

    /// Gives trust or takes it back, synced, with its row of the audit log.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn trust(&self, change: TrustChange) -> Result<(), StoreError> {
        self.ask(|answer| WriterCommand::Trust(Box::new(change), answer)).await
    }
}

/// Copies what can be read of `source` to a new database.
pub(in crate::store) async fn copy(
    source: &mut SqliteConnection,
    new: &mut SqliteConnection,
) -> Result<(), StoreError> {
    // A table that cannot be read is trust that must be given again.
    let rows: Result<Vec<(String, String, i64)>, _> =
        sqlx::query_as("select cwd, digest, at_ms from trust").fetch_all(source).await;
    for (cwd, digest, at_ms) in rows.unwrap_or_default() {
        let insert = sqlx::query("insert or ignore into trust (cwd, digest, at_ms) values (?, ?, ?)");
        insert.bind(cwd).bind(digest).bind(at_ms).execute(&mut *new).await?;
    }
    Ok(())
}
