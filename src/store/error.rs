//! What the store could not do.

use std::fmt;

/// A failure of the store. `Display` completes "could not …" for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The disk is full, read-only or failing: nothing was written, reads still work.
    Unwritable(String),
    /// The disk did not confirm what was written: what it says next is not to be believed.
    Unsynced(String),
    /// The write failed, and whether it came through after all could not be read: it may be there.
    CommitUnknown(String),
    /// The unique id or key is taken.
    Taken,
    /// The database was made by a newer version.
    NewerSchema(String),
    /// The file is not a database, or it is damaged.
    Corrupt(String),
    /// A copy could not be written where it was asked for.
    Target(String),
    /// The store was closed.
    Closed,
    /// Anything else SQLite said.
    Sql(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unwritable(why) | StoreError::Unsynced(why) => {
                write!(
                    f,
                    "write the journal ({why}): free space or mend the disk; what was there can still be read"
                )
            }
            StoreError::CommitUnknown(why) => {
                write!(
                    f,
                    "say whether the journal was written ({why}): free space or mend the disk, then ask again with the same idempotency key"
                )
            }
            StoreError::Taken => f.write_str("use this id: it is taken"),
            StoreError::NewerSchema(why) => {
                write!(f, "open the database: it was written by a newer agentd ({why}); use that version")
            }
            StoreError::Corrupt(why) => {
                write!(
                    f,
                    "read the database ({why}): it is damaged; a restart sets it aside and saves what can be saved"
                )
            }
            StoreError::Target(why) => write!(f, "write the copy ({why})"),
            StoreError::Closed => f.write_str("reach the store: it is closed"),
            StoreError::Sql(why) => write!(f, "use the database ({why})"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) => {
                let code = inner.code().and_then(|code| code.parse().ok()).unwrap_or(0);
                StoreError::of_code(code, inner.message().to_string())
            }
            // Each of its connections is a thread, and EAGAIN is what says that there can be no more (pthread_create(3)).
            sqlx::Error::Io(why) if why.kind() == std::io::ErrorKind::WouldBlock => {
                StoreError::Sql(format!("no thread could be started for it: {why}; end some processes"))
            }
            // The database's thread is gone: a new connection may do better.
            sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => StoreError::Unwritable(error.to_string()),
            sqlx::Error::PoolClosed => StoreError::Closed,
            // What we wrote was text: a column that is none was changed by somebody else.
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
                StoreError::of_code(inner.extended_code, text.unwrap_or_else(|| inner.to_string()))
            }
            // What we wrote was of the right kind: a column that is not was changed by somebody else.
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                StoreError::Corrupt(error.to_string())
            }
            _ => StoreError::Sql(error.to_string()),
        }
    }
}

impl StoreError {
    /// Whether the disk is full, read-only or failing.
    pub(super) fn is_of_the_disk(&self) -> bool {
        matches!(self, StoreError::Unwritable(_) | StoreError::Unsynced(_) | StoreError::CommitUnknown(_))
    }

    /// Of an extended result code of <https://sqlite.org/rescode.html>, whose low byte is the primary one.
    fn of_code(code: i32, text: String) -> Self {
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
            MigrateError::VersionMissing(version) => StoreError::NewerSchema(format!("schema {version}")),
            // A migration never changes once it is in use: what is noted of it did.
            MigrateError::VersionMismatch(version) => {
                StoreError::Corrupt(format!("what is noted of migration {version} is not what it was"))
            }
            MigrateError::Execute(inner) | MigrateError::ExecuteMigration(inner, _) => inner.into(),
            other => StoreError::Sql(other.to_string()),
        }
    }
}
