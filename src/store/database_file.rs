//! Path and identity of the database file, and its connection options.

use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::OpenFlags;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};

use crate::error::StoreError;
use crate::wal;

/// How long a connection waits for a lock of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Capacity of the writer's statement cache, larger than the number of statements.
const STATEMENT_CAPACITY: usize = 64;
/// The path and identity of one database file.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFile {
    pub path: PathBuf,
    options: SqliteConnectOptions,
    /// Device and inode number of the file.
    file: (u64, u64),
}

impl DatabaseFile {
    /// Creates the file with mode 0600 if it is missing. SQLite gives its companion files the same mode.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        Ok(Self { path: path.to_path_buf(), options, file: identity(path)? })
    }

    /// Opens a synced read-write connection for migrations and maintenance.
    pub async fn connect(&self) -> Result<SqliteConnection, StoreError> {
        self.check_identity()?;
        Ok(self.options.clone().pragma("temp_store", "memory").connect().await?)
    }

    /// Opens the connection that writes the journal. The caller sets the durability of its commits first.
    /// Blocking.
    ///
    /// # Errors
    /// The database could not be opened.
    pub fn open_to_write(&self) -> Result<rusqlite::Connection, StoreError> {
        self.check_identity()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // The page cache fits the pages that a thousand sessions write to at once; its memory grows with use.
        // Statement journals stay in memory, because SQLite would create and remove a file for each one.
        // Readers read single pages, so the log restarts about every 1000 pages (`checkpoint`). Only a copy
        // of the whole database delays the restart; afterwards the log is truncated again. Pages of deleted
        // sessions are reused, and the database file does not shrink. Setting the cache size reads the
        // schema, which acquires the connection's lock. While this connection holds the lock, no other
        // connection is the last to close, so none checkpoints the log.
        connection.execute_batch(
            "pragma foreign_keys = on; pragma cache_size = -16000; pragma temp_store = memory; \
             pragma journal_size_limit = 16777216;",
        )?;
        wal::count_pages(&connection);
        connection.set_prepared_statement_cache_capacity(STATEMENT_CAPACITY);
        Ok(connection)
    }

    /// Connection options of the readers.
    pub fn reader_options(&self) -> SqliteConnectOptions {
        self.options.clone().read_only(true).pragma("query_only", "1").pragma("cache_size", "-2000")
    }

    /// Checks that the path still names the file that was opened first. Rows written to another file would
    /// belong to sessions that it does not have.
    ///
    /// # Errors
    /// The path names another file or none.
    pub fn check_identity(&self) -> Result<(), StoreError> {
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

/// Opens a file read-only and unchanged, even if it may be damaged.
pub(super) async fn open_to_read(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
    Ok(options.connect().await?)
}

fn identity(path: &Path) -> Result<(u64, u64), StoreError> {
    let meta = std::fs::metadata(path)
        .map_err(|error| StoreError::Unwritable(format!("{}: {error}", path.display())))?;
    Ok((meta.dev(), meta.ino()))
}

/// Creates the file with mode 0600 if it is missing.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::Unwritable(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

pub(super) fn sibling_path(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Syncs the folder of `path`, so that file names in it survive a power loss.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}
