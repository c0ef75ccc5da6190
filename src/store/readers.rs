//! The pool of read-only connections.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockWriteGuard, Semaphore};

use crate::database_file::DatabaseFile;
use crate::error::StoreError;

/// Number of parallel readers.
const MAX_READERS: u32 = 3;
/// How long the writer waits for readers to finish.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A small pool of read-only connections. Cheap to clone; all clones share one pool.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    database_file: DatabaseFile,
    pool: Arc<RwLock<SqlitePool>>,
    /// Permits one reader of the whole database at a time. That reader uses a separate connection.
    full_read_permit: Arc<Semaphore>,
    handle: Handle,
}

impl Readers {
    /// Creates the pool of a database. Connections are opened on demand. Requires a tokio runtime.
    pub fn new(database_file: &DatabaseFile) -> Self {
        Self {
            database_file: database_file.clone(),
            pool: Arc::new(RwLock::new(pool(database_file))),
            full_read_permit: Arc::new(Semaphore::new(1)),
            handle: Handle::current(),
        }
    }

    /// The current pool. While it is closed, this waits until it opens again. Cancel-safe.
    pub async fn current_pool(&self) -> SqlitePool {
        self.pool.read().await.clone()
    }

    /// Waits for permission to read the whole database over a separate connection. Cancel-safe. A cancelled
    /// read may keep its connection open for a moment after it has released its permit.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn acquire_full_read(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.full_read_permit).acquire_owned().await.map_err(|_| StoreError::Closed)
    }

    /// Closes all connections. New reads wait until the returned value is dropped. Blocking; do not call it
    /// from a task.
    ///
    /// # Errors
    /// A reader did not finish in time.
    pub fn close_for_now(&self) -> Result<ReadBlock<'_>, StoreError> {
        let still = || StoreError::Unwritable("a reader still uses the database".into());
        let turn = Arc::clone(&self.full_read_permit).try_acquire_owned().map_err(|_| still())?;
        let closed =
            ReadBlock { pool: self.pool.blocking_write(), database_file: &self.database_file, _turn: turn };
        let pool = closed.pool.clone();
        let (over, is_over) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(async move {
            pool.close().await;
            let _ = over.send(());
        });
        is_over.recv_timeout(CLOSE_TIMEOUT).map_err(|_| still())?;
        Ok(closed)
    }

    /// Closes the pool permanently.
    pub async fn close(&self) {
        self.current_pool().await.close().await;
    }
}

/// Prevents reads while it exists.
pub(crate) struct ReadBlock<'a> {
    pool: RwLockWriteGuard<'a, SqlitePool>,
    database_file: &'a DatabaseFile,
    _turn: OwnedSemaphorePermit,
}

impl Drop for ReadBlock<'_> {
    fn drop(&mut self) {
        *self.pool = pool(self.database_file);
    }
}

fn pool(database_file: &DatabaseFile) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(MAX_READERS)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(database_file.reader_options())
}
