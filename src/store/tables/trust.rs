//! The trusted folders and the digest that each trust applies to.

use sqlx::sqlite::SqliteConnection;

use crate::command::WriterCommand;
use crate::error::StoreError;
use crate::handle::{Store, StoreReader};
use crate::rows::TrustChange;

impl StoreReader {
    /// The digest for which a folder was trusted; `None` if the folder is not trusted.
    pub async fn trusted(&self, cwd: &str) -> Result<Option<String>, StoreError> {
        let digest = sqlx::query_scalar("select digest from trust where cwd = ?").bind(cwd);
        Ok(digest.fetch_optional(&self.readers.current_pool().await).await?)
    }
}

impl Store {
    /// Grants or revokes trust, synced, together with its audit row.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn trust(&self, change: TrustChange) -> Result<(), StoreError> {
        self.ask(|answer| WriterCommand::Trust(Box::new(change), answer)).await
    }
}

/// Copies the readable rows of `source` to a new database.
pub(crate) async fn copy(
    source: &mut SqliteConnection,
    new: &mut SqliteConnection,
) -> Result<(), StoreError> {
    // If the table cannot be read, the user must trust the folders again.
    let rows: Result<Vec<(String, String, i64)>, _> =
        sqlx::query_as("select cwd, digest, at_ms from trust").fetch_all(source).await;
    for (cwd, digest, at_ms) in rows.unwrap_or_default() {
        let insert = sqlx::query("insert or ignore into trust (cwd, digest, at_ms) values (?, ?, ?)");
        insert.bind(cwd).bind(digest).bind(at_ms).execute(&mut *new).await?;
    }
    Ok(())
}
