//! What the store could not do.

use std::fmt;

/// A failure of the store. `Display` completes "could not …" for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The disk is full, read-only or failing: nothing was written, reads still work.
    Unwritable(String),
    /// The unique id or key is taken.
    Taken,
    /// The database was made by a newer version.
    NewerSchema(String),
    /// The file is not a database, or it is damaged.
    Corrupt(String),
    /// The store was closed.
    Closed,
    /// Anything else SQLite said.
    Sql(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unwritable(why) => {
                write!(f, "write the journal ({why}): free space or mend the disk")
            }
            StoreError::Taken => f.write_str("use this id: it is taken"),
            StoreError::NewerSchema(why) => {
                write!(f, "open the database: it was written by a newer agentd ({why}); use that version")
            }
            StoreError::Corrupt(why) => write!(f, "read the database ({why}): it is damaged"),
            StoreError::Closed => f.write_str("reach the store: it is closed"),
            StoreError::Sql(why) => write!(f, "use the database ({why})"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Database(inner) = &error {
            let text = inner.message().to_string();
            if inner.is_unique_violation() {
                return StoreError::Taken;
            }
            // Primary result codes of <https://sqlite.org/rescode.html>: the low byte.
            let code = inner.code().and_then(|code| code.parse::<i64>().ok()).unwrap_or(0) & 0xff;
            return match code {
                8 | 10 | 13 | 14 => StoreError::Unwritable(text), // READONLY, IOERR, FULL, CANTOPEN
                11 | 26 => StoreError::Corrupt(text),             // CORRUPT, NOTADB
                _ => StoreError::Sql(text),
            };
        }
        StoreError::Sql(error.to_string())
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::VersionMissing(version) => {
                StoreError::NewerSchema(format!("schema {version}"))
            }
            sqlx::migrate::MigrateError::Execute(inner) => inner.into(),
            other => StoreError::Sql(other.to_string()),
        }
    }
}
