//! Tests of opening, closing and replacing the database file, and of commits that are reported wrongly.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::tests::{TestStore, append, counts, id, new_session, row, summary, with_timeout};
use super::*;

#[tokio::test]
async fn acknowledged_append_survives_kill() {
    let place = TestStore::new().await;
    let key = place.session(1).await;
    place.store.append(append(key, vec![row(2, None), row(3, Some(2))])).await.unwrap();

    // Copy the files as a killed process leaves them, with nothing closed.
    let left = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        std::fs::copy(place.folder.path().join(name), left.path().join(name)).unwrap();
    }
    let (store, owner) = Store::open(&left.path().join("journal.db")).await.unwrap();
    let key = store.find(id(1)).await.unwrap().expect("the session");
    let rows = store.events_after(key, 0, 10, usize::MAX).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(rows[2].body, "{\"n\":3}");
    store.append(append(key, vec![row(4, None)])).await.unwrap();
    with_timeout(owner.close()).await;
}

#[tokio::test]
async fn dropped_store_reopens_with_all_events() {
    let TestStore { folder, store, owner } = TestStore::new().await;
    let path = folder.path().join("journal.db");
    let key = store.create(new_session(1, None)).await.unwrap();
    store.append(append(key, vec![row(2, None)])).await.unwrap();
    drop((store, owner));
    let (store, owner) = Store::open(&path).await.unwrap();
    assert_eq!(store.events_after(key, 1, 10, usize::MAX).await.unwrap().rows.len(), 1);
    with_timeout(owner.close()).await;
    assert_eq!(store.append(append(key, vec![row(3, None)])).await, Err(StoreError::Closed));
}

#[tokio::test]
async fn close_writes_all_pending_appends() {
    let TestStore { folder, store, owner } = TestStore::new().await;
    let key = store.create(new_session(1, None)).await.unwrap();
    let writes = join_all((2..50).map(|seq| store.append(append(key, vec![row(seq, None)]))));
    let (results, ()) = with_timeout(async { tokio::join!(writes, owner.close()) }).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert!(!folder.path().join("journal.db-wal").exists(), "a clean end leaves one file");
}

#[tokio::test]
async fn store_refuses_newer_database_and_leaves_it_unchanged() {
    let TestStore { folder, store, owner } = TestStore::new().await;
    let path = folder.path().join("journal.db");
    store.create(new_session(1, None)).await.unwrap();
    with_timeout(owner.close()).await;
    let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
                 values (99999999, 'later', 1, x'00', 0)";
    sqlx::query(newer).execute(&mut other).await.unwrap();
    other.close().await.unwrap();

    for refused in [Store::open(&path).await.map(|_| ()), check_schema(&path).await] {
        assert!(
            matches!(&refused, Err(StoreError::NewerSchema(why)) if why.contains("99999999")),
            "{refused:?}"
        );
    }
    assert_eq!(counts(&path).await, [1, 1, 0, 0, 0]);
}

#[tokio::test]
async fn non_database_file_is_reported_corrupt_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let text = "shopping list: milk, bread\n".repeat(400);
    std::fs::write(&path, &text).unwrap();
    let refused = Store::open(&path).await.map(|_| ());
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let folder_missing = Store::open(&folder.path().join("not/there.db")).await.map(|_| ());
    assert!(matches!(folder_missing, Err(StoreError::Unwritable(_))), "{folder_missing:?}");
}

#[tokio::test]
async fn older_database_is_backed_up_before_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let ours = sqlx::migrate!("../../migrations");
    let newest = ours.iter().map(|migration| migration.version).max().unwrap();
    // A database of the first version has one migration and one session.
    let first = sqlx::migrate::Migrator {
        migrations: ours.iter().filter(|migration| migration.version == 1).cloned().collect(),
        ..sqlx::migrate::Migrator::DEFAULT
    };
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut old = options.connect().await.unwrap();
    first.run(&mut old).await.unwrap();
    let row = "insert into session (session_id, title, cwd, model, mode, background, state, created_at_ms, \
               updated_at_ms, last_seq, usage, last_line) values ('s', '', '', '', 'default', 0, 'idle', 0, 0, 0, '{}', '')";
    sqlx::query(row).execute(&mut old).await.unwrap();
    old.close().await.unwrap();

    let (store, owner) = Store::open(&path).await.unwrap();
    assert_eq!(store.counts().await, Ok((1, 0)));
    with_timeout(owner.close()).await;
    let all: Vec<i64> = ours.iter().map(|migration| migration.version).collect();
    assert_eq!(applied_migrations(&path).await, all);
    let copy = folder.path().join(format!("journal.db.before-{newest}"));
    assert_eq!(counts(&copy).await, [1, 0, 0, 0, 0]);
    assert_eq!(applied_migrations(&copy).await, [1], "the copy is the old one");
}

#[tokio::test]
async fn new_database_gets_its_schema_in_one_transaction() {
    let TestStore { folder, store: _store, owner } = TestStore::new().await;
    let path = folder.path().join("journal.db");
    let log = std::fs::read(folder.path().join("journal.db-wal")).unwrap();
    // The header of the log has 32 bytes. Each frame has a header of 24 bytes and a page; the second number of the
    // header of a commit is not 0 (sqlite.org/fileformat2.html, "WAL File Format").
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let frame = 24 + number(8) as usize;
    let commits = (32..log.len()).step_by(frame).filter(|at| number(at + 4) != 0).count();
    assert_eq!(commits, 1);
    let all: Vec<i64> =
        sqlx::migrate!("../../migrations").iter().map(|migration| migration.version).collect();
    assert_eq!(applied_migrations(&path).await, all);
    with_timeout(owner.close()).await;
}

/// The migrations that a database has run.
async fn applied_migrations(path: &Path) -> Vec<i64> {
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let query = "select version from _sqlx_migrations order by version";
    let versions = sqlx::query_scalar(query).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    versions
}

/// A store that reports its `commits`th commit as failed although it succeeded.
async fn store_with_false_error(commits: u32, blind: bool) -> TestStore {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = crate::fault_injection::Faults { commits, blind, unsynced: None };
    let path = folder.path().join("journal.db");
    let (store, owner) = Store::open_with_faults(&path, faults).await.expect("a new database");
    TestStore { folder, store, owner }
}

#[tokio::test]
async fn commit_reported_as_failed_is_found_committed() {
    let place = store_with_false_error(1, false).await;
    let key = place.session(1).await;
    // The append prunes its own last row, so the row before it must prove the commit.
    let both = Append {
        prune_deltas_of: vec![2],
        summary: Some(summary("t")),
        ..append(key, vec![row(2, None), row(3, None), row(4, Some(2))])
    };
    assert_eq!(place.store.append(both).await, Ok(()));
    assert_eq!(place.seqs(key).await, [1, 2, 3]);
    assert_eq!(place.store.check().await, Ok(()));
}

#[tokio::test]
async fn unknown_commit_is_reported_and_found_by_retry() {
    let place = store_with_false_error(1, true).await;
    let key = place.session(1).await;
    let rows = append(key, vec![row(2, None), row(3, None)]);
    let doubtful = place.store.append(rows.clone()).await;
    assert!(matches!(doubtful, Err(StoreError::CommitUnknown(_))), "{doubtful:?}");
    assert_eq!(place.store.append(rows).await, Ok(()), "the very same is there");
    assert_eq!(place.seqs(key).await, [1, 2, 3]);
    // A different decision with the same seqs must not count as committed.
    let mut other = append(key, vec![row(2, None), row(3, None)]);
    other.rows[1].body = Arc::from("{}");
    assert_eq!(place.store.append(other).await, Err(StoreError::Taken));
}

#[tokio::test]
async fn replaced_database_file_is_not_written() {
    let place = TestStore::new().await;
    assert_eq!(place.store.check().await, Ok(()));
    std::fs::rename(place.path(), place.folder.path().join("elsewhere.db")).unwrap();
    assert!(matches!(place.store.check().await, Err(StoreError::Unwritable(_))));
    std::fs::write(place.path(), "").unwrap();
    let why = place.store.check().await.expect_err("another file");
    assert!(why.to_string().contains("was replaced"), "{why}");
}
