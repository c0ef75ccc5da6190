//! Errors of SQLite as errors of the index.

use rusqlite::ErrorCode;

use crate::types::{ErrorKind, KnowledgeError};

impl From<rusqlite::Error> for KnowledgeError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(inner, _) => match inner.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::new(
                    ErrorKind::Damaged,
                    "could not read the index: its file is damaged and was set aside; start knowledge.index to rebuild it",
                ),
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::new(
                    ErrorKind::Busy,
                    "could not use the index: another program has locked its file; try again when it is done",
                ),
                ErrorCode::DiskFull => Self::new(
                    ErrorKind::Storage,
                    "could not write the index: the disk is full; free some space and try again",
                ),
                _ => storage(&error),
            },
            // The columns have unexpected content, which only damage explains.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => Self::new(
                ErrorKind::Damaged,
                "could not read the index: its file is damaged and was set aside; start knowledge.index to rebuild it",
            ),
            _ => storage(&error),
        }
    }
}

fn storage(error: &rusqlite::Error) -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::Storage,
        format!(
            "could not use the index file: {error}; try again, or clear the index and start knowledge.index"
        ),
    )
}
