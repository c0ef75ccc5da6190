//! The connections that only read.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::StoreError;
use super::site::Site;

/// How many read at a time.
const READERS: u32 = 3;
/// How long one waits for those that read.
const PATIENCE: Duration = Duration::from_secs(2);

/// A small pool. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    site: Site,
    pool: Arc<RwLock<SqlitePool>>,
    /// One reads the whole database at a time, over a connection of its own.
    chores: Arc<Semaphore>,
    handle: Handle,
}

impl Readers {
    /// Of the database of the site. They are opened when they are needed. Needs a runtime.
    pub fn new(site: &Site) -> Self {
        Self {
            site: site.clone(),
            pool: Arc::new(RwLock::new(pool(site))),
            chores: Arc::new(Semaphore::new(1)),
            handle: Handle::current(),
        }
    }

    /// The pool as it is now.
    pub fn now(&self) -> SqlitePool {
        self.pool.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the turn to read the whole database over another connection, which is to be closed before this
    /// is dropped. Cancel-safe.
    ///
    /// # Errors
    /// The store is closed.
    pub async fn turn(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.chores).acquire_owned().await.map_err(|_| StoreError::Closed)
    }

    /// Closes all connections: reads fail until what is returned is dropped. Blocking; not for a task.
    ///
    /// # Errors
    /// Somebody went on reading. New reads fail until this was tried again and came through.
    pub fn close_for_now(&self) -> Result<Closed, StoreError> {
        let still = || StoreError::Unwritable("somebody still reads the database".into());
        let turn = Arc::clone(&self.chores).try_acquire_owned().map_err(|_| still())?;
        let pool = self.now();
        let (over, is_over) = std::sync::mpsc::sync_channel(1);
        let task = self.handle.spawn(async move {
            pool.close().await;
            let _ = over.send(());
        });
        if is_over.recv_timeout(PATIENCE).is_err() {
            task.abort();
            return Err(still());
        }
        Ok(Closed { readers: self.clone(), _turn: turn })
    }

    /// Closes them for good.
    pub async fn close(&self) {
        self.now().close().await;
    }
}

/// Nobody reads as long as this is there.
pub(super) struct Closed {
    readers: Readers,
    _turn: OwnedSemaphorePermit,
}

impl Drop for Closed {
    fn drop(&mut self) {
        *self.readers.pool.write().unwrap_or_else(PoisonError::into_inner) = pool(&self.readers.site);
    }
}

fn pool(site: &Site) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(READERS)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(site.reading())
}
