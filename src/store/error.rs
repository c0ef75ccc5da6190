//! Errors of the store.

/// A failure of the store. `Display` completes the sentence "could not …" for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, read-only or failing. Nothing was written; reads still work.
    #[error("write the journal ({0}): free space or repair the disk; what was there can still be read")]
    Unwritable(String),
    /// The disk did not confirm the write. Later results of the same connection are not reliable.
    #[error("write the journal ({0}): free space or repair the disk; what was there can still be read")]
    Unsynced(String),
    /// The write failed, and so did the check whether its commit succeeded. The rows may exist.
    #[error(
        "say whether the journal was written ({0}): free space or repair the disk, then ask again with the same \
         idempotency key"
    )]
    CommitUnknown(String),
    /// The unique id or key is in use.
    #[error("use this id: it is taken")]
    Taken,
    /// A newer version migrated the database.
    #[error("open the database: {0}; update agentd. The database is unchanged")]
    NewerSchema(String),
    /// The file is not a database, or it is damaged.
    #[error("read the database ({0}): it is damaged; a restart sets it aside and saves what can be saved")]
    Corrupt(String),
    /// A copy could not be written to the requested path.
    #[error("write the copy ({0})")]
    Target(String),
    #[error("reach the store: it is closed")]
    Closed,
    /// Any other error of SQLite.
    #[error("use the database ({0})")]
    Sql(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) => {
                let code = inner.code().and_then(|code| code.parse().ok()).unwrap_or(0);
                StoreError::from_code(code, inner.message().to_string())
            }
            // Each connection has a thread, and EAGAIN means that no further thread can be created
            // (pthread_create(3)).
            sqlx::Error::Io(why) if why.kind() == std::io::ErrorKind::WouldBlock => {
                StoreError::Sql(format!("no thread could be started for it: {why}; end some processes"))
            }
            // The database's thread has ended. A new connection may succeed.
            sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => StoreError::Unwritable(error.to_string()),
            sqlx::Error::PoolClosed => StoreError::Closed,
            // The daemon wrote text, so another program must have changed this column.
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                StoreError::Corrupt(error.to_string())
            }
            _ => StoreError::Sql(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(inner, text) => {
                StoreError::from_code(inner.extended_code, text.unwrap_or_else(|| inner.to_string()))
            }
            // The daemon wrote the right type, so another program must have changed this column.
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                StoreError::Corrupt(error.to_string())
            }
            _ => StoreError::Sql(error.to_string()),
        }
    }
}

impl StoreError {
    /// The database has a migration that this program does not know.
    pub(super) fn newer_schema(version: i64) -> Self {
        let own = env!("CARGO_PKG_VERSION");
        Self::NewerSchema(format!("a newer agentd wrote it (schema {version}), and this is agentd {own}"))
    }

    /// Whether the disk is full, read-only or failing.
    pub(super) fn is_disk_error(&self) -> bool {
        matches!(self, StoreError::Unwritable(_) | StoreError::Unsynced(_) | StoreError::CommitUnknown(_))
    }

    /// Maps an extended result code of <https://sqlite.org/rescode.html>. Its low byte is the primary code.
    fn from_code(code: i32, text: String) -> Self {
        match (code, code & 0xff) {
            // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE
            (1555 | 2067, _) => StoreError::Taken,
            // IOERR_FSYNC, IOERR_DIR_FSYNC
            (1034 | 1290, _) => StoreError::Unsynced(text),
            // PERM, BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN
            (_, 3 | 5 | 6 | 8 | 10 | 13 | 14) => StoreError::Unwritable(text),
            // CORRUPT, NOTADB
            (_, 11 | 26) => StoreError::Corrupt(text),
            _ => StoreError::Sql(text),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            MigrateError::VersionMissing(version) => StoreError::newer_schema(version),
            // A released migration never changes, so its stored checksum was changed.
            MigrateError::VersionMismatch(version) => {
                StoreError::Corrupt(format!("what is noted of migration {version} is not what it was"))
            }
            MigrateError::Execute(inner) | MigrateError::ExecuteMigration(inner, _) => inner.into(),
            other => StoreError::Sql(other.to_string()),
        }
    }
}
