use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::handle::{Store, StoreOwner};
use crate::rows::{Append, Durability, Row, SessionKey};
use crate::tests::{append, new_session, row, with_timeout};
use crate::wal;
use crate::writer::checkpoint::*;

const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(60);

fn pages_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len() / 4_096)
}

/// A database with one text table, and the checkpointer of its log.
struct LogFixture {
    checkpointer: Checkpointer,
    connection: Connection,
    database_file: DatabaseFile,
    text: String,
    rows: u32,
    _dir: tempfile::TempDir,
}

impl LogFixture {
    fn new(text: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let database_file = DatabaseFile::create(&path).unwrap();
        let connection = database_file.open_to_write().unwrap();
        connection
            .execute_batch("pragma journal_mode = wal; create table t (id integer primary key, text text)")
            .unwrap();
        let checkpointer =
            Checkpointer::new(database_file.clone(), Health::from_path(&path), Faults::default()).unwrap();
        Self { checkpointer, connection, database_file, text: "x".repeat(text), rows: 0, _dir: dir }
    }

    fn write(&mut self) -> u32 {
        self.connection.execute("insert into t (text) values (?)", [&self.text]).unwrap();
        self.rows += 1;
        self.checkpointer.after_commit(&self.connection);
        wal::pages()
    }

    fn until_log_restarts(&mut self) {
        let (until, mut before) = (Instant::now() + CHECKPOINT_TIMEOUT, 0);
        loop {
            let pages = self.write();
            if pages < before {
                return;
            }
            before = pages;
            assert!(Instant::now() < until, "{} rows, {pages} pages", self.rows);
        }
    }
}

#[test]
fn checkpoint_thread_lets_wal_restart() {
    let mut bench = LogFixture::new(20_000);
    for _ in 0..3 {
        bench.until_log_restarts();
    }
    assert!(bench.checkpointer.thread.is_some(), "another thread did it");
    assert!(
        pages_of(&bench.database_file.path) > u64::from(CHECKPOINT_PAGES),
        "and it stands in the database"
    );
    assert_eq!(bench.checkpointer.write_doubt(), None);
    let LogFixture { checkpointer, connection, rows, .. } = bench;
    drop(checkpointer);
    let count: u32 = connection.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
    assert_eq!(count, rows);
    let whole: String = connection.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

#[test]
fn long_reader_does_not_block_writer() {
    let mut bench = LogFixture::new(40_000);
    let reader = bench.database_file.open_to_write().unwrap();
    reader.execute_batch("begin; select * from t").unwrap();
    let _: i64 = reader.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
    for _ in 0..1_000 {
        bench.write();
    }
    assert!(wal::pages() > CHECKPOINT_PAGES * MAX_ATTEMPTS, "the log goes on: {}", wal::pages());
    reader.execute_batch("commit").unwrap();
    bench.until_log_restarts();
}

#[test]
fn wal_restart_position_is_visible_until_database_closes() {
    let mut bench = LogFixture::new(20_000);
    for _ in 0..50 {
        bench.write();
    }
    assert_eq!(Checkpointer::starts_at_first_frame(&bench.connection), Ok(()));
    let reader = bench.database_file.open_to_write().unwrap();
    reader.execute_batch("begin").unwrap();
    let _: i64 = reader.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
    bench.write();
    assert_eq!(bench.checkpointer.shared.checkpoint(&bench.connection).map(|pages| pages > 50), Some(true));
    let refused = bench.checkpointer.checkpoint_all(&bench.connection).expect_err("it is read");
    assert!(refused.to_string().contains("a reader still uses"), "{refused}");
    let open_again = |bench: &mut LogFixture| {
        wal::keep_log(&bench.connection);
        bench.connection = Connection::open_in_memory().unwrap();
        bench.connection = bench.database_file.open_to_write().unwrap();
    };
    open_again(&mut bench);
    assert!(Checkpointer::starts_at_first_frame(&bench.connection).is_err(), "the reader had it open");
    wal::keep_log(&reader);
    drop(reader);
    open_again(&mut bench);
    assert_eq!(Checkpointer::starts_at_first_frame(&bench.connection), Ok(()));
    assert_eq!(bench.checkpointer.checkpoint_from_start(&bench.connection), Ok(()));
}

/// A store whose disk can be made to fail.
struct FailingStore {
    store: Store,
    owner: StoreOwner,
    key: SessionKey,
    /// The bodies of acknowledged commits.
    bodies: Vec<String>,
    unsynced: &'static AtomicBool,
    /// The database file before the first checkpoint.
    before: Vec<u8>,
    path: PathBuf,
    dir: tempfile::TempDir,
}

impl FailingStore {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let unsynced: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let faults = Faults { unsynced: Some(unsynced), ..Faults::default() };
        let (store, owner) = with_timeout(Store::open_with_faults(&path, faults)).await.unwrap();
        let key = with_timeout(store.create(new_session(1, None))).await.unwrap();
        let before = std::fs::read(&path).unwrap();
        let bodies = vec![row(1, None).body.to_string()];
        Self { store, owner, key, bodies, unsynced, before, path, dir }
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        let seq = self.bodies.len() as u64 + 1;
        let body = format!("{{\"n\":{seq},\"text\":\"{}\"}}", "x".repeat(20_000));
        let rows = vec![Row { body: body.clone().into(), ..row(seq, None) }];
        let done =
            with_timeout(self.store.append(Append { sync: Durability::Full, ..append(self.key, rows) }))
                .await;
        if done.is_ok() {
            self.bodies.push(body);
        }
        done
    }

    /// Writes until the sync of a checkpoint fails, then removes the pages that this checkpoint had copied.
    async fn lose_checkpointed_pages(&mut self) {
        self.unsynced.store(true, Ordering::SeqCst);
        let until = Instant::now() + CHECKPOINT_TIMEOUT;
        while self.write().await.is_ok() {
            assert!(Instant::now() < until, "{} rows", self.bodies.len());
        }
        assert!(pages_of(&self.path) > 500, "the log has pages");
        let file = std::fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        file.write_all_at(&self.before, 0).unwrap();
        file.set_len(self.before.len() as u64).unwrap();
        // Do not close the file: that would drop SQLite's locks.
        std::mem::forget(file);
    }

    async fn wait_until_written(&mut self) {
        let until = Instant::now() + CHECKPOINT_TIMEOUT;
        while let Err(error) = self.write().await {
            assert!(matches!(error, StoreError::Unsynced(_)), "{error:?}");
            assert!(Instant::now() < until, "{error}");
        }
    }

    async fn assert_all_rows(&self, store: &Store) {
        let page = with_timeout(store.events_after(self.key, 0, 10_000, 1 << 30)).await.unwrap();
        let there: Vec<String> = page.rows.into_iter().map(|row| row.body).collect();
        assert!(there == self.bodies, "{} of {} rows", there.len(), self.bodies.len());
        assert_eq!(with_timeout(store.problems()).await, Ok(Vec::new()));
    }
}

#[tokio::test]
async fn unsynced_checkpoint_is_repeated_from_wal() {
    let mut disk = FailingStore::new().await;
    disk.lose_checkpointed_pages().await;
    let trouble = with_timeout(disk.store.check()).await.expect_err("it is said");
    assert!(trouble.to_string().contains("could not be synced"), "{trouble}");
    // While a backup or check of the whole database runs, the writer cannot reopen the database.
    let turn = with_timeout(disk.store.readers.acquire_full_read()).await.unwrap();
    disk.unsynced.store(false, Ordering::SeqCst);
    assert!(disk.write().await.is_err());
    drop(turn);
    disk.wait_until_written().await;
    assert_eq!(with_timeout(disk.store.check()).await, Ok(()));
    disk.assert_all_rows(&disk.store).await;
    for _ in 0..300 {
        disk.wait_until_written().await;
    }
    disk.assert_all_rows(&disk.store).await;
}

#[tokio::test]
async fn reader_waits_while_connections_are_closed() {
    let disk = FailingStore::new().await;
    let readers = disk.store.readers.clone();
    let (open, opened) = std::sync::mpsc::channel::<()>();
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let holder = tokio::task::spawn_blocking(move || {
        let no_readers = readers.close_for_now();
        let _ = closed.send(());
        let _ = opened.recv_timeout(CHECKPOINT_TIMEOUT);
        no_readers.is_ok()
    });
    with_timeout(is_closed).await.unwrap();
    let mut read = std::pin::pin!(disk.store.find(crate::tests::id(1)));
    let waits = |cx: &mut std::task::Context<'_>| std::task::Poll::Ready(read.as_mut().poll(cx).is_pending());
    assert!(std::future::poll_fn(waits).await);
    open.send(()).unwrap();
    assert_eq!(with_timeout(read).await, Ok(Some(disk.key)));
    assert!(with_timeout(holder).await.unwrap());
}

#[tokio::test]
async fn unsynced_checkpoint_keeps_wal_for_next_start() {
    let mut disk = FailingStore::new().await;
    disk.lose_checkpointed_pages().await;
    let FailingStore { store, owner, key, bodies, unsynced, before, path, dir } = disk;
    drop(store);
    with_timeout(owner.close()).await;
    let (store, owner) = with_timeout(Store::open_with_faults(&path, Faults::default())).await.unwrap();
    let disk = FailingStore { store, owner, key, bodies, unsynced, before, path, dir };
    disk.assert_all_rows(&disk.store).await;
    with_timeout(disk.owner.close()).await;
    assert!(disk.dir.path().exists());
}

const HELD_DATABASE: &str = "AGENTD_TEST_HELD_DATABASE";

/// Helper of other tests: a second process that keeps the database open until its input ends.
#[test]
fn child_process_holds_database_open() {
    let Some(path) = std::env::var_os(HELD_DATABASE) else { return };
    let connection = Connection::open(&path).unwrap();
    let _: i64 = connection.query_row("select count(*) from t", [], |row| row.get(0)).unwrap();
    println!("\nit is open");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn database_opened_by_other_process_is_detected() {
    let bench = LogFixture::new(10);
    assert_eq!(bench.checkpointer.check_exclusive_access(), Ok(()));
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["writer::checkpoint::tests::child_process_holds_database_open", "--exact", "--nocapture"])
        .env(HELD_DATABASE, &bench.database_file.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("it is open")));
    let why = bench.checkpointer.check_exclusive_access().expect_err("another has it").to_string();
    assert!(why.contains(&other.id().to_string()), "{why}");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    assert_eq!(bench.checkpointer.check_exclusive_access(), Ok(()));
}
