//! Folding the log into the database beside the writer.
//!
//! SQLite folds it within the commit that finds it long (<https://www.sqlite.org/wal.html>, "Automatic
//! Checkpoint"): for tens of milliseconds nobody's text gets through. Here another thread does it over a
//! connection of its own, while the writer goes on; what was written meanwhile is little, and the writer
//! folds that itself, so that the log can begin anew.
//!
//! SQLite syncs the database only when it has folded all of the log, and counts pages as folded before.
//! Where the writer goes on meanwhile, it is synced here. If a sync fails, the kernel may have forgotten
//! pages that count as folded (<https://wiki.postgresql.org/wiki/Fsync_Errors>): only the log has them, and
//! all of it is to be folded once more. SQLite begins at its start if nobody had the database open before.
//! Until that was done nothing is written, and no connection of ours takes the log away ([`Folding::doubt`]).

use std::cell::Cell;
use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_UNLCK, F_WRLCK, SEEK_SET, c_short, flock};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::store::database_file::DatabaseFile;
use crate::store::error::StoreError;
use crate::store::fault_injection::Faults;
use crate::store::recovery::health::Health;

/// Pages of the log at which it is folded: SQLite's own default.
const AT: u32 = 1_000;
/// Times that, beyond which the writer waits until it is: 32 MiB.
const MOST: u32 = 8;
/// Bytes that SQLite locks of a database that somebody has open, `SHARED_FIRST` of its `os.h`: in the mode that
/// keeps a log, for as long as it is open.
const IN_USE: (i64, i64) = (0x4000_0002, 510);

thread_local! {
    /// Pages that the log had after the newest commit of this thread.
    static PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Has commits over a connection count the pages of the log, and fold nothing by themselves.
pub(in crate::store) fn count(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        PAGES.set(u32::try_from(pages).unwrap_or(0));
        Ok(())
    }));
}

/// The log outlives the connection, even if it is the last.
pub(in crate::store) fn keep_log(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::warn!(%error, "the database cannot be closed as it should be");
    }
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;

/// What both threads know.
#[derive(Debug)]
struct CheckpointState {
    database_file: DatabaseFile,
    /// Held by whoever folds; the other thread's connection, once it has one.
    gate: Mutex<Option<Connection>>,
    phase: AtomicU8,
    /// Pages of the log that the other thread left folded and synced.
    checkpointed_pages: AtomicU32,
    /// To sync by. Open from before the first fold: so every failure since is told to it. Closing it would
    /// take SQLite's locks away (<https://www.sqlite.org/howtocorrupt.html>, 2.2): it goes when nothing else
    /// has the database open.
    database: File,
    doubt: Mutex<Option<StoreError>>,
    health: Health,
    faults: Faults,
}

/// The other thread, which is there once it was needed. Owned by the writer, and to be dropped after its
/// connection.
#[derive(Debug)]
pub(in crate::store) struct Checkpointer {
    shared: Arc<CheckpointState>,
    /// Asks it; dropped, it ends.
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Pages at which the log is folded.
    at: u32,
    /// Pages of the log at which it is looked at again, and those that it last had.
    next: u32,
    last: u32,
    /// It has begun anew since the other thread was asked.
    is_anew: bool,
}

impl Checkpointer {
    /// For the database of the site.
    ///
    /// # Errors
    /// It could not be opened.
    pub fn new(database_file: DatabaseFile, health: Health, faults: Faults) -> Result<Self, StoreError> {
        let at = pages_at();
        let database = File::open(&database_file.path)
            .map_err(|error| StoreError::Unwritable(format!("{}: {error}", database_file.path.display())))?;
        let (phase, folded) = (AtomicU8::new(IDLE), AtomicU32::new(0));
        let (gate, doubt) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(CheckpointState {
            database_file,
            gate,
            phase,
            checkpointed_pages: folded,
            database,
            doubt,
            health,
            faults,
        });
        Ok(Self { shared, ask: None, thread: None, at, next: at, last: 0, is_anew: false })
    }

    /// To be called after commits, outside of any transaction.
    pub fn after_commit(&mut self, connection: &Connection) {
        let pages = PAGES.get();
        // What was done of a log that has begun anew meanwhile says nothing.
        self.is_anew |= pages < self.last;
        self.last = pages;
        if self.is_anew {
            self.next = self.at;
        }
        if self.is_anew && self.shared.phase.load(Ordering::Acquire) != RUNNING {
            self.shared.phase.store(IDLE, Ordering::Release);
            self.is_anew = false;
        }
        if pages < self.next || self.doubt().is_some() {
            return;
        }
        let is_long = pages >= self.at.saturating_mul(MOST);
        match self.shared.phase.load(Ordering::Acquire) {
            RUNNING if !is_long => {}
            // Where a reader held the log, much of it is left.
            IDLE => self.begin(),
            DONE if !is_long && pages.saturating_sub(self.shared.checkpointed_pages()) > self.at => {
                self.begin();
                self.next = pages.saturating_add(self.at / 16);
            }
            _ => self.finish(connection),
        }
    }

    fn finish(&mut self, connection: &Connection) {
        let _alone = self.shared.alone();
        self.shared.checkpoint(connection);
        self.shared.phase.store(IDLE, Ordering::Release);
        // Where readers keep it from being folded whole, it is tried again a little later.
        self.next = self.last.saturating_add(self.at / 16);
    }

    /// Why nothing may be written until all of the log was folded once more, if that is so.
    pub fn doubt(&self) -> Option<StoreError> {
        self.shared.lock().clone()
    }

    /// Folds what is left of the log and begins it anew. Waits for readers as long as the connection does.
    ///
    /// # Errors
    /// It could not, or somebody else reads what is in it, or there is a doubt.
    pub fn checkpoint_all(&self, connection: &Connection) -> Result<(), StoreError> {
        let _alone = self.shared.alone();
        self.doubt().map_or(Ok(()), Err)?;
        self.shared.checkpoint_all(connection)
    }

    /// The same over a connection that the database was opened with after everybody had closed it: all of the log
    /// is folded, and there is no doubt any more.
    ///
    /// # Errors
    /// As [`Folding::fold_whole`] has them, but for the doubt.
    pub fn checkpoint_from_start(&self, connection: &Connection) -> Result<(), StoreError> {
        let _alone = self.shared.alone();
        // What it says of what was before is known, and is made good now.
        let _ = self.shared.database.sync_data();
        self.shared.sync()?;
        self.shared.checkpoint_all(connection)?;
        *self.shared.lock() = None;
        Ok(())
    }

    /// Whether nothing of the log counts as folded.
    ///
    /// # Errors
    /// Something does: somebody had the database open all the time.
    pub fn starts_at_first_frame(connection: &Connection) -> Result<(), StoreError> {
        let folded: i64 = connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get(2))?;
        if folded == 0 {
            return Ok(());
        }
        Err(StoreError::Unwritable("somebody still has the database open".into()))
    }

    /// Whether no other process has the database open: it would keep what counts as folded.
    ///
    /// # Errors
    /// One has, or that cannot be seen.
    pub fn wait_for_exclusive_access(&self) -> Result<(), StoreError> {
        let mut lock = flock {
            l_type: F_WRLCK as c_short,
            l_whence: SEEK_SET as c_short,
            l_start: IN_USE.0,
            l_len: IN_USE.1,
            l_pid: 0,
        };
        fcntl(&self.shared.database, FcntlArg::F_GETLK(&mut lock))
            .map_err(|error| StoreError::Unwritable(format!("its locks cannot be seen: {error}")))?;
        if i32::from(lock.l_type) == F_UNLCK {
            return Ok(());
        }
        Err(StoreError::Unwritable(format!("process {} has the database open: end it", lock.l_pid)))
    }

    /// Says with the doubt what keeps it from being ended.
    pub fn explain(&self, error: &StoreError) {
        let why = match error {
            StoreError::Unwritable(why) | StoreError::Unsynced(why) => why.clone(),
            other => other.to_string(),
        };
        if let Some(doubt) = &mut *self.shared.lock() {
            let text = format!("the database could not be synced and must be opened anew, but {why}");
            *doubt = StoreError::Unsynced(text);
        }
    }

    /// Ends the other thread, and closes what it had open.
    pub fn end(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.release();
    }

    /// Closes the other thread's connection. It opens one when it is needed again.
    pub fn release(&self) {
        drop(self.shared.alone().take());
    }

    fn begin(&mut self) {
        if self.ask.is_none() {
            let (ask, asked) = sync_channel(1);
            let shared = Arc::clone(&self.shared);
            let run = move || {
                while asked.recv().is_ok() {
                    shared.checkpoint_in_background();
                    shared.phase.store(DONE, Ordering::Release);
                }
            };
            match std::thread::Builder::new().name("folding".into()).spawn(run) {
                Ok(thread) => (self.ask, self.thread) = (Some(ask), Some(thread)),
                Err(error) => tracing::debug!(%error, "no thread to fold the log"),
            }
        }
        self.shared.phase.store(RUNNING, Ordering::Release);
        if self.ask.as_ref().is_none_or(|ask| ask.try_send(()).is_err()) {
            // The writer does it the next time.
            self.shared.checkpointed_pages.store(u32::MAX, Ordering::Release);
            self.shared.phase.store(DONE, Ordering::Release);
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.end();
    }
}

impl CheckpointState {
    fn alone(&self) -> MutexGuard<'_, Option<Connection>> {
        // A connection is not broken by a panic beside it.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.doubt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoint_in_background(&self) {
        let mut own = self.alone();
        if own.is_none() {
            match self.database_file.open_to_write() {
                Ok(connection) => {
                    keep_log(&connection);
                    *own = Some(connection);
                }
                Err(error) => tracing::debug!(%error, "the log could not be folded"),
            }
        }
        let folded = own.as_ref().and_then(|connection| self.checkpoint(connection));
        self.checkpointed_pages.store(folded.unwrap_or(0), Ordering::Release);
    }

    fn checkpointed_pages(&self) -> u32 {
        self.checkpointed_pages.load(Ordering::Acquire)
    }

    /// As far as readers let it; it never waits for anybody. Gives the pages of the log that are folded and synced.
    fn checkpoint(&self, connection: &Connection) -> Option<u32> {
        if self.lock().is_some() {
            return None;
        }
        let folded = connection
            .query_row("pragma wal_checkpoint(passive)", [], |row| row.get::<_, i64>(2))
            .map_err(StoreError::from);
        match folded {
            // SQLite syncs it only if it has folded all of the log, and nobody wrote meanwhile.
            Ok(folded) => self.sync().is_ok().then_some(u32::try_from(folded).unwrap_or(0)),
            Err(error @ StoreError::Unsynced(_)) => {
                self.doubts(error);
                None
            }
            // As far as it came, nothing counts as folded.
            Err(error) => {
                tracing::debug!(%error, "the log could not be folded");
                None
            }
        }
    }

    fn checkpoint_all(&self, connection: &Connection) -> Result<(), StoreError> {
        let is_busy = connection
            .query_row("pragma wal_checkpoint(truncate)", [], |row| row.get::<_, bool>(0))
            .map_err(StoreError::from);
        if let Err(error @ StoreError::Unsynced(_)) = &is_busy {
            self.doubts(error.clone());
        }
        if is_busy? {
            // Some of it may be folded.
            self.sync()?;
            return Err(StoreError::Unwritable("somebody reads what is in the log of the database".into()));
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let synced = self.faults.synced(self.database.sync_data());
        synced.map_err(|error| {
            let error = StoreError::Unsynced(format!("the database could not be synced: {error}"));
            self.doubts(error.clone());
            error
        })
    }

    fn doubts(&self, error: StoreError) {
        *self.lock() = Some(error.clone());
        self.health.wrote::<()>(&Err(error));
    }
}

#[cfg(not(feature = "failpoints"))]
fn pages_at() -> u32 {
    AT
}

/// Tests have it folded all the time.
#[cfg(feature = "failpoints")]
fn pages_at() -> u32 {
    std::env::var("AGENTD_FOLD_AT").ok().and_then(|pages| pages.parse().ok()).unwrap_or(AT)
}

#[cfg(test)]
mod tests;
