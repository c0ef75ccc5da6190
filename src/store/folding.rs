//! Folding the log into the database beside the writer.
//!
//! SQLite folds it within the commit that finds it long (<https://www.sqlite.org/wal.html>, "Automatic
//! Checkpoint"): for tens of milliseconds nobody's text gets through. Here another thread does it over a
//! connection of its own, while the writer goes on; what was written meanwhile is little, and the writer
//! folds that itself, so that the log can begin anew.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::site::Site;

/// Pages of the log at which it is folded: SQLite's own default.
const AT: u32 = 1_000;
/// Pages beyond which the writer waits until it is: 32 MiB.
const MOST: u32 = 8_000;

thread_local! {
    /// Pages that the log had after the newest commit of this thread.
    static PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Has commits over a connection count the pages of the log, and fold nothing by themselves.
pub(super) fn count(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        PAGES.set(u32::try_from(pages).unwrap_or(0));
        Ok(())
    }));
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;

#[derive(Debug, Default)]
struct Shared {
    /// Held by whoever folds.
    gate: Mutex<()>,
    phase: AtomicU8,
}

/// The other thread, which is there once it was needed. Owned by the writer.
#[derive(Debug)]
pub(super) struct Folding {
    site: Site,
    shared: Arc<Shared>,
    /// Asks it; dropped, it ends.
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Pages of the log at which it is looked at again.
    next: u32,
}

impl Folding {
    pub fn new(site: Site) -> Self {
        Self { site, shared: Arc::default(), ask: None, thread: None, next: AT }
    }

    /// To be called after commits, outside of any transaction.
    pub fn after_commit(&mut self, connection: &Connection) {
        let pages = PAGES.get();
        if pages < AT {
            // It has begun anew.
            self.next = AT;
        }
        if pages < self.next {
            return;
        }
        match self.shared.phase.load(Ordering::Acquire) {
            IDLE => self.begin(),
            RUNNING if pages < MOST => {}
            _ => {
                let shared = Arc::clone(&self.shared);
                let _alone = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
                fold(connection);
                shared.phase.store(IDLE, Ordering::Release);
                // Where readers keep it from being folded whole, it is tried again later.
                self.next = pages.saturating_add(AT);
            }
        }
    }

    /// While this is held nobody else folds.
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&mut self) {
        if self.ask.is_none() {
            let (ask, asked) = sync_channel(1);
            let (site, shared) = (self.site.clone(), Arc::clone(&self.shared));
            let run = move || {
                while asked.recv().is_ok() {
                    let alone = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
                    match site.open_to_write() {
                        Ok(connection) => fold(&connection),
                        Err(error) => tracing::debug!(%error, "the log could not be folded"),
                    }
                    drop(alone);
                    shared.phase.store(DONE, Ordering::Release);
                }
            };
            match std::thread::Builder::new().name("folding".into()).spawn(run) {
                Ok(thread) => (self.ask, self.thread) = (Some(ask), Some(thread)),
                Err(error) => tracing::debug!(%error, "no thread to fold the log"),
            }
        }
        let is_asked = self.ask.as_ref().is_some_and(|ask| {
            self.shared.phase.store(RUNNING, Ordering::Release);
            ask.try_send(()).is_ok()
        });
        if !is_asked {
            // The writer does it the next time.
            self.shared.phase.store(DONE, Ordering::Release);
        }
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// As far as readers let it. It never waits for anybody. Its commits are synced before it changes the database, and
/// the database before the log begins anew, as SQLite does it at `synchronous = normal` and above.
fn fold(connection: &Connection) {
    if let Err(error) = connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(())) {
        tracing::debug!(%error, "the log could not be folded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn pages_of(path: &Path) -> u64 {
        std::fs::metadata(path).map_or(0, |meta| meta.len() / 4_096)
    }

    #[test]
    fn the_log_is_folded_beside_its_writer_and_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let site = Site::make(&path).unwrap();
        let connection = site.open_to_write().unwrap();
        connection
            .execute_batch("pragma journal_mode = wal; create table t (id integer primary key, text text)")
            .unwrap();
        let mut folding = Folding::new(site);
        let text = "x".repeat(20_000);
        let (mut rows, mut restarts, mut before) = (0_u32, 0, 0);
        let until = Instant::now() + Duration::from_secs(60);
        while restarts < 3 {
            assert!(Instant::now() < until, "{rows} rows, {} pages, {restarts} restarts", PAGES.get());
            connection.execute("insert into t (text) values (?)", [&text]).unwrap();
            rows += 1;
            folding.after_commit(&connection);
            let pages = PAGES.get();
            assert!(pages <= MOST + 10, "{pages}");
            restarts += u32::from(pages < before);
            before = pages;
        }
        assert!(folding.thread.is_some(), "another thread did it");
        assert!(pages_of(&path) > u64::from(AT), "and it stands in the database");
        drop(folding);
        let count: u32 = connection.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, rows);
        let whole: String = connection.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
    }

    #[test]
    fn a_reader_that_stays_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::make(&dir.path().join("a.db")).unwrap();
        let connection = site.open_to_write().unwrap();
        connection
            .execute_batch("pragma journal_mode = wal; create table t (id integer primary key, text text)")
            .unwrap();
        let reader = site.open_to_write().unwrap();
        reader.execute_batch("begin; select * from t").unwrap();
        let _: i64 = reader.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
        let mut folding = Folding::new(site);
        let text = "x".repeat(40_000);
        for _ in 0..1_000 {
            connection.execute("insert into t (text) values (?)", [&text]).unwrap();
            folding.after_commit(&connection);
        }
        assert!(PAGES.get() > MOST, "the log goes on: {}", PAGES.get());
        reader.execute_batch("commit").unwrap();
        let mut before = PAGES.get();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < until, "{before} pages");
            connection.execute("insert into t (text) values (?)", [&text]).unwrap();
            folding.after_commit(&connection);
            if PAGES.get() < before {
                break;
            }
            before = PAGES.get();
        }
    }
}
