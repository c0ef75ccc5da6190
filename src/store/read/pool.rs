//! The connections that only read.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockWriteGuard, Semaphore};

use crate::store::database_file::DatabaseFile;
use crate::store::error::StoreError;

/// How many read at a time.
const READERS: u32 = 3;
/// How long one waits for those that read.
const PATIENCE: Duration = Duration::from_secs(2);

/// A small pool. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub(in crate::store) struct Readers {
    database_file: DatabaseFile,
    pool: Arc<RwLock<SqlitePool>>,
    /// One reads the whole database at a time, over a connection of its own.
    chores: Arc<Semaphore>,
    handle: Handle,
}

impl Readers {
    /// Of the database of the site. They are opened when they are needed. Needs a runtime.
    pub fn new(database_file: &DatabaseFile) -> Self {
        Self {
            database_file: database_file.clone(),
            pool: Arc::new(RwLock::new(pool(database_file))),
            chores: Arc::new(Semaphore::new(1)),
            handle: Handle::current(),
        }
    }

    /// The pool as it is now; while all are closed, waits until they are not. Cancel-safe.
    pub async fn now(&self) -> SqlitePool {
        self.pool.read().await.clone()
    }

    /// Waits for the turn to read the whole database over another connection. Cancel-safe; whoever is cancelled
    /// while it reads may have its connection open a little longer than its turn.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn turn(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.chores).acquire_owned().await.map_err(|_| StoreError::Closed)
    }

    /// Closes all connections: who wants to read waits until what is returned is dropped. Blocking; not for a task.
    ///
    /// # Errors
    /// Somebody went on reading.
    pub fn close_for_now(&self) -> Result<Closed<'_>, StoreError> {
        let still = || StoreError::Unwritable("somebody still reads the database".into());
        let turn = Arc::clone(&self.chores).try_acquire_owned().map_err(|_| still())?;
        let closed =
            Closed { pool: self.pool.blocking_write(), database_file: &self.database_file, _turn: turn };
        let pool = closed.pool.clone();
        let (over, is_over) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(async move {
            pool.close().await;
            let _ = over.send(());
        });
        is_over.recv_timeout(PATIENCE).map_err(|_| still())?;
        Ok(closed)
    }

    /// Closes them for good.
    pub async fn close(&self) {
        self.now().await.close().await;
    }
}

/// Nobody reads as long as this is there.
pub(in crate::store) struct Closed<'a> {
    pool: RwLockWriteGuard<'a, SqlitePool>,
    database_file: &'a DatabaseFile,
    _turn: OwnedSemaphorePermit,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        *self.pool = pool(self.database_file);
    }
}

fn pool(database_file: &DatabaseFile) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(READERS)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(database_file.reading())
}
