//! Where the database lies and how it is opened, again and again if need be.

use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::OpenFlags;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};

use crate::store::error::StoreError;
use crate::store::writer::checkpoint;

/// How long one waits for another that holds the database.
const BUSY: Duration = Duration::from_secs(5);
/// Statements that the writer keeps prepared: more than there are.
const STATEMENTS: usize = 64;
/// The place of one database.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFile {
    pub path: PathBuf,
    options: SqliteConnectOptions,
    /// Device and number of the file.
    file: (u64, u64),
}

impl DatabaseFile {
    /// Makes the file if there is none, for its owner alone: SQLite gives its companions the same mode.
    pub fn make(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        Ok(Self { path: path.to_path_buf(), options, file: identity(path)? })
    }

    /// A connection that may write, to look after the whole database; its commits are synced.
    pub async fn connect(&self) -> Result<SqliteConnection, StoreError> {
        self.is_ours()?;
        Ok(self.options.clone().pragma("temp_store", "memory").connect().await?)
    }

    /// The connection that writes the journal. How sure its commits are is to be set first. Blocking.
    ///
    /// # Errors
    /// It could not be opened.
    pub fn open_to_write(&self) -> Result<rusqlite::Connection, StoreError> {
        self.is_ours()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        // Room for the pages that a thousand sessions write to at once; it fills as it is used. What a
        // statement keeps in case it fails stays in memory: a file would be made and removed each time.
        // Readers take a page at a time, so the log is begun anew about every 1000 pages
        // (`folding`). Only a copy of the whole database holds that up; what the log grew by meanwhile is
        // given back. Pages that deleted sessions leave in the database itself are used again, and the
        // file does not shrink.
        // The size of the cache is asked of the schema, with which the connection takes its lock: as long as it is
        // open, no other that closes is the last and folds the log.
        connection.execute_batch(
            "pragma foreign_keys = on; pragma cache_size = -16000; pragma temp_store = memory; \
             pragma journal_size_limit = 16777216;",
        )?;
        checkpoint::count(&connection);
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    }

    /// How readers open it.
    pub fn reading(&self) -> SqliteConnectOptions {
        self.options.clone().read_only(true).pragma("query_only", "1").pragma("cache_size", "-2000")
    }

    /// Whether the file is the one that was opened first. Rows written into another would belong to
    /// sessions that it does not have.
    ///
    /// # Errors
    /// It is not, or it is gone.
    pub fn is_ours(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            Ok(_) => Err(StoreError::Unwritable(format!(
                "{} was replaced while the daemon runs: restart it",
                self.path.display()
            ))),
            Err(error) => Err(error),
        }
    }
}

/// Opens a file as it is, to read only: also one that may be damaged.
pub(super) async fn open_to_read(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
    Ok(options.connect().await?)
}

fn identity(path: &Path) -> Result<(u64, u64), StoreError> {
    let meta = std::fs::metadata(path)
        .map_err(|error| StoreError::Unwritable(format!("{}: {error}", path.display())))?;
    Ok((meta.dev(), meta.ino()))
}

/// Makes the file for its owner alone, if it is not there.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::Unwritable(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
