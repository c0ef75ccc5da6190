//! Checkpoints of the write-ahead log on a second thread, in parallel with the writer.
//!
//! SQLite runs a checkpoint inside the commit that finds the log too long (<https://www.sqlite.org/wal.html>,
//! "Automatic Checkpoint"). For tens of milliseconds no session can stream text then. Here a second thread runs
//! the checkpoint over its own connection while the writer continues. Few pages are added meanwhile. The writer
//! checkpoints these pages itself, so that SQLite can restart the log at its beginning.
//!
//! SQLite syncs the database only after it has copied the whole log, but it counts pages as copied before that.
//! If the writer continues meanwhile, this module syncs the database. If a sync fails, the kernel may have
//! dropped pages that count as copied (<https://wiki.postgresql.org/wiki/Fsync_Errors>). Only the log still has
//! them, so the whole log must be copied again. SQLite starts at the first frame if no other connection had the
//! database open before. Until that checkpoint succeeds, the writer writes nothing and no connection of the
//! daemon removes the log ([`Checkpointer::write_doubt`]).

use std::fs::File;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_UNLCK, F_WRLCK, SEEK_SET, c_short, flock};
use rusqlite::Connection;

use crate::database_file::DatabaseFile;
use crate::error::StoreError;
use crate::fault_injection::Faults;
use crate::health::Health;
use crate::wal;
use base::sync::lock;

/// Number of log pages at which a checkpoint starts: SQLite's own default.
const CHECKPOINT_PAGES: u32 = 1_000;
/// At this multiple of the threshold, the writer waits for a checkpoint: 32 MiB of log.
const MAX_ATTEMPTS: u32 = 8;
/// The bytes (`SHARED_FIRST` in SQLite's `os.h`) that SQLite locks in an open database. In WAL mode SQLite
/// holds this lock for as long as the database is open.
const IN_USE: (i64, i64) = (0x4000_0002, 510);

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;

/// State that the writer and the checkpoint thread share.
#[derive(Debug)]
struct CheckpointState {
    database_file: DatabaseFile,
    /// Held during a checkpoint. It contains the connection of the checkpoint thread once that thread has
    /// opened one.
    gate: Mutex<Option<Connection>>,
    phase: AtomicU8,
    /// Log pages that the checkpoint thread has copied and synced.
    checkpointed_pages: AtomicU32,
    /// Descriptor for syncing the database. It is opened before the first checkpoint, so that it reports every
    /// later sync error. Closing it would drop SQLite's locks (<https://www.sqlite.org/howtocorrupt.html>,
    /// 2.2). So it is closed only when nothing else in the process has the database open.
    database: File,
    doubt: Mutex<Option<StoreError>>,
    health: Health,
    faults: Faults,
}

/// The checkpoint thread, started on first use. The writer owns it and must drop it after its connection.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    shared: Arc<CheckpointState>,
    /// Wakes the thread. Dropping the sender ends it.
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Log pages at which a checkpoint starts.
    at: u32,
    /// `next`: number of log pages at which the writer checks the log again. `last`: number of pages at the
    /// last check.
    next: u32,
    last: u32,
    /// Whether the log has restarted since the thread was last asked for a checkpoint.
    has_restarted: bool,
}

impl Checkpointer {
    /// Creates the checkpointer of a database. The thread starts on first use.
    ///
    /// # Errors
    /// The database file could not be opened.
    pub fn new(database_file: DatabaseFile, health: Health, faults: Faults) -> Result<Self, StoreError> {
        let at = pages_at();
        let database = File::open(&database_file.path)
            .map_err(|error| StoreError::Unwritable(format!("{}: {error}", database_file.path.display())))?;
        let (phase, pages) = (AtomicU8::new(IDLE), AtomicU32::new(0));
        let (gate, doubt) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(CheckpointState {
            database_file,
            gate,
            phase,
            checkpointed_pages: pages,
            database,
            doubt,
            health,
            faults,
        });
        Ok(Self { shared, ask: None, thread: None, at, next: at, last: 0, has_restarted: false })
    }

    /// Starts or finishes a checkpoint if one is due. Call it after commits and outside of any transaction.
    pub fn after_commit(&mut self, connection: &Connection) {
        let pages = wal::pages();
        // Fewer pages than before mean that the log has restarted. Earlier checkpoint results do not apply to
        // the new log.
        self.has_restarted |= pages < self.last;
        self.last = pages;
        if self.has_restarted {
            self.next = self.at;
        }
        if self.has_restarted && self.shared.phase.load(Ordering::Acquire) != RUNNING {
            self.shared.phase.store(IDLE, Ordering::Release);
            self.has_restarted = false;
        }
        if pages < self.next || self.write_doubt().is_some() {
            return;
        }
        let is_long = pages >= self.at.saturating_mul(MAX_ATTEMPTS);
        match self.shared.phase.load(Ordering::Acquire) {
            RUNNING if !is_long => {}
            IDLE => self.start_thread(),
            // A reader held the log, so a large part of it is not copied yet. Ask the thread again.
            DONE if !is_long && pages.saturating_sub(self.shared.checkpointed_pages()) > self.at => {
                self.start_thread();
                self.next = pages.saturating_add(self.at / 16);
            }
            _ => self.finish(connection),
        }
    }

    fn finish(&mut self, connection: &Connection) {
        let _alone = self.shared.lock_connection();
        self.shared.checkpoint(connection);
        self.shared.phase.store(IDLE, Ordering::Release);
        // Readers prevent a complete checkpoint, so try again when the log has grown a little.
        self.next = self.last.saturating_add(self.at / 16);
    }

    /// Returns why no write is allowed until the whole log was checkpointed again; `None` if writes are
    /// allowed.
    pub fn write_doubt(&self) -> Option<StoreError> {
        lock(&self.shared.doubt).clone()
    }

    /// Checkpoints the rest of the log, so that SQLite restarts it. Waits for readers as long as the
    /// connection's busy timeout.
    ///
    /// # Errors
    /// The checkpoint failed, another process reads from the log, or [`Checkpointer::write_doubt`] returns an error.
    pub fn checkpoint_all(&self, connection: &Connection) -> Result<(), StoreError> {
        let _alone = self.shared.lock_connection();
        self.write_doubt().map_or(Ok(()), Err)?;
        self.shared.checkpoint_all(connection)
    }

    /// Checkpoints the whole log over a connection that was opened after all others had closed. SQLite then
    /// starts at the first frame, so success clears the doubt.
    ///
    /// # Errors
    /// Those of [`Checkpointer::checkpoint_all`], except the doubt.
    pub fn checkpoint_from_start(&self, connection: &Connection) -> Result<(), StoreError> {
        let _alone = self.shared.lock_connection();
        // This call may return the error of an earlier sync. That error is known already, and the next lines
        // repair its effect.
        let _ = self.shared.database.sync_data();
        self.shared.sync()?;
        self.shared.checkpoint_all(connection)?;
        *lock(&self.shared.doubt) = None;
        Ok(())
    }

    /// Checks that SQLite counts no frame of the log as copied.
    ///
    /// # Errors
    /// Some frames count as copied, because another process had the database open all the time.
    pub fn starts_at_first_frame(connection: &Connection) -> Result<(), StoreError> {
        let pages: i64 = connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get(2))?;
        if pages == 0 {
            return Ok(());
        }
        Err(StoreError::Unwritable("another connection still has the database open".into()))
    }

    /// Checks that no other process has the database open. Such a process would preserve SQLite's count of
    /// copied frames.
    ///
    /// # Errors
    /// Another process has the database open, or the lock could not be queried.
    pub fn check_exclusive_access(&self) -> Result<(), StoreError> {
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

    /// Adds to the doubt the reason why it cannot be cleared.
    pub fn explain(&self, error: &StoreError) {
        let why = match error {
            StoreError::Unwritable(why) | StoreError::Unsynced(why) => why.clone(),
            other => other.to_string(),
        };
        if let Some(doubt) = &mut *lock(&self.shared.doubt) {
            let text = format!("the database could not be synced and must be opened again, but {why}");
            *doubt = StoreError::Unsynced(text);
        }
    }

    /// Ends the checkpoint thread and closes its files.
    pub fn end(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.close_connection();
    }

    /// Closes the connection of the checkpoint thread. The thread opens a new one on demand.
    pub fn close_connection(&self) {
        drop(self.shared.lock_connection().take());
    }

    fn start_thread(&mut self) {
        if self.ask.is_none() {
            let (ask, requests) = sync_channel(1);
            let shared = Arc::clone(&self.shared);
            let run = move || {
                while requests.recv().is_ok() {
                    shared.checkpoint_in_background();
                    shared.phase.store(DONE, Ordering::Release);
                }
            };
            match std::thread::Builder::new().name("checkpoint".into()).spawn(run) {
                Ok(thread) => (self.ask, self.thread) = (Some(ask), Some(thread)),
                Err(error) => tracing::debug!(%error, "could not start the checkpoint thread"),
            }
        }
        self.shared.phase.store(RUNNING, Ordering::Release);
        if self.ask.as_ref().is_none_or(|ask| ask.try_send(()).is_err()) {
            // The thread is not available. `DONE` makes the writer run the checkpoint after its next commit.
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
    fn lock_connection(&self) -> MutexGuard<'_, Option<Connection>> {
        // A panic while the lock was held does not damage the connection.
        lock(&self.gate)
    }

    fn checkpoint_in_background(&self) {
        let mut own = self.lock_connection();
        if own.is_none() {
            match self.database_file.open_to_write() {
                Ok(connection) => {
                    wal::keep_log(&connection);
                    *own = Some(connection);
                }
                Err(error) => tracing::debug!(%error, "could not checkpoint the write-ahead log"),
            }
        }
        let pages = own.as_ref().and_then(|connection| self.checkpoint(connection));
        self.checkpointed_pages.store(pages.unwrap_or(0), Ordering::Release);
    }

    fn checkpointed_pages(&self) -> u32 {
        self.checkpointed_pages.load(Ordering::Acquire)
    }

    /// Checkpoints as far as readers allow, without waiting. Returns the log pages that are copied and synced.
    fn checkpoint(&self, connection: &Connection) -> Option<u32> {
        if lock(&self.doubt).is_some() {
            return None;
        }
        let pages = connection
            .query_row("pragma wal_checkpoint(passive)", [], |row| row.get::<_, i64>(2))
            .map_err(StoreError::from);
        match pages {
            // SQLite syncs only if it has copied the whole log and no commit was added meanwhile.
            Ok(pages) => self.sync().is_ok().then_some(u32::try_from(pages).unwrap_or(0)),
            Err(error @ StoreError::Unsynced(_)) => {
                self.report_doubt(error);
                None
            }
            // Return `None`, so that no frame counts as copied.
            Err(error) => {
                tracing::debug!(%error, "could not checkpoint the write-ahead log");
                None
            }
        }
    }

    fn checkpoint_all(&self, connection: &Connection) -> Result<(), StoreError> {
        let is_busy = connection
            .query_row("pragma wal_checkpoint(truncate)", [], |row| row.get::<_, bool>(0))
            .map_err(StoreError::from);
        if let Err(error @ StoreError::Unsynced(_)) = &is_busy {
            self.report_doubt(error.clone());
        }
        if is_busy? {
            // Sync the database, because SQLite may have copied a part of the log.
            self.sync()?;
            return Err(StoreError::Unwritable("a reader still uses the database's write-ahead log".into()));
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let synced = self.faults.sync_result(self.database.sync_data());
        synced.map_err(|error| {
            let error = StoreError::Unsynced(format!("the database could not be synced: {error}"));
            self.report_doubt(error.clone());
            error
        })
    }

    fn report_doubt(&self, error: StoreError) {
        *lock(&self.doubt) = Some(error.clone());
        self.health.record_write::<()>(&Err(error));
    }
}

#[cfg(not(debug_assertions))]
fn pages_at() -> u32 {
    CHECKPOINT_PAGES
}

/// The number of log pages at which a checkpoint starts. Tests set a low number, so that checkpoints run all
/// the time.
#[cfg(debug_assertions)]
fn pages_at() -> u32 {
    std::env::var("AGENTD_CHECKPOINT_PAGES")
        .ok()
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(CHECKPOINT_PAGES)
}

#[cfg(test)]
mod tests;
