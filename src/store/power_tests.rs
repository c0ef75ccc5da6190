//! Tests of power loss and kills, based on the files that they leave.
//!
//! SQLite's guarantees for its log are in <https://sqlite.org/wal.html> and
//! <https://sqlite.org/pragma.html#pragma_synchronous>. FULL syncs the log after each commit, which includes
//! all earlier NORMAL commits in the log. A checkpoint syncs the log before it changes the database, with every
//! setting except OFF. A power loss removes only data that was written after the last sync.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use super::tests::{append, id, item, new_session, row, summary, with_timeout};
use super::*;

/// Size in bytes of a page and of the headers in the log (<https://sqlite.org/fileformat2.html>).
const PAGE_BYTES: usize = 4_096;
const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + PAGE_BYTES;

/// Files of a database after a power loss.
struct CopiedFiles(TempDir);

impl CopiedFiles {
    fn from_files(database: &[u8], log: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.db"), database).expect("written");
        std::fs::write(folder.path().join("a.db-wal"), log).expect("written");
        Self(folder)
    }

    async fn open(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.0.path().join("a.db"));
        options.journal_mode(SqliteJournalMode::Wal).foreign_keys(true).connect().await.expect("it opens")
    }
}

/// The bodies in the journal, after an integrity check.
async fn checked_bodies(connection: &mut SqliteConnection, why: &str) -> Vec<String> {
    let check: String =
        sqlx::query_scalar("pragma integrity_check").fetch_one(&mut *connection).await.unwrap();
    assert_eq!(check, "ok", "{why}");
    let orphans = sqlx::query("pragma foreign_key_check").fetch_all(&mut *connection).await.unwrap();
    assert!(orphans.is_empty(), "{why}");
    sqlx::query_scalar("select body from event").fetch_all(connection).await.unwrap()
}

/// One body per row, unique across sessions.
fn rows(session: u64, seqs: impl Iterator<Item = u64>, delta_of: Option<u64>) -> Vec<Row> {
    let body =
        |seq| format!("{{\"s\":{session},\"n\":{seq},\"text\":\"{}\"}}", "x".repeat(seq as usize * 37 % 900));
    seqs.map(|seq| Row { body: body(seq).into(), ..row(seq, delta_of) }).collect()
}

fn file_length(path: &Path) -> usize {
    usize::try_from(std::fs::metadata(path).expect("there").len()).expect("small")
}

#[tokio::test]
async fn synced_commits_survive_power_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let log = folder.path().join("a.db-wal");
    let (store, _owner) = Store::open(&path).await.unwrap();
    // The commits that were acknowledged as synced, each with the length of the log at that moment.
    let mut synced: Vec<(usize, Vec<String>)> = Vec::new();
    let mut facts: Vec<String> = Vec::new();
    let (mut one, mut keys) = (2, Vec::new());
    for session in 0..2 {
        keys.push(store.create(new_session(session, None)).await.unwrap());
    }
    for round in 0..6_u64 {
        let session = round % 2;
        let seqs = one..one + 3;
        let deltas = rows(session, seqs.clone(), Some(one));
        store.append(append(keys[session as usize], deltas)).await.unwrap();
        let fact = rows(session, one + 3..one + 5, None);
        facts.extend(fact.iter().map(|row| row.body.to_string()));
        let whole = Append {
            rows: fact,
            prune_deltas_of: vec![one],
            items: vec![item(one + 3, one + 4)],
            summary: Some(summary("t")),
            sync: Durability::Full,
            ..append(keys[session as usize], Vec::new())
        };
        store.append(whole).await.unwrap();
        synced.push((file_length(&log), facts.clone()));
        // Unsynced commits follow and must not change the result.
        let after = rows(session, one + 5..one + 7, Some(one + 5));
        store.append(append(keys[session as usize], after)).await.unwrap();
        one += 7;
    }
    let (database, bytes) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    assert_eq!((bytes.len() - HEADER_BYTES) % FRAME_BYTES, 0, "the log is as it is described");

    let mut cuts: Vec<usize> = Vec::new();
    for border in (HEADER_BYTES..=bytes.len()).step_by(FRAME_BYTES) {
        cuts.extend([border - 1, border, border + 1, border + 25]);
    }
    cuts.extend((0..bytes.len()).step_by(9_973));
    cuts.retain(|cut| *cut <= bytes.len() && *cut >= synced[0].0);
    cuts.sort_unstable();
    cuts.dedup();
    assert!(cuts.len() > 100, "{} cuts", cuts.len());
    for (number, cut) in cuts.into_iter().enumerate() {
        let expected = &synced.iter().rev().find(|(length, _)| *length <= cut).expect("one").1;
        let mut zeros = bytes[..cut].to_vec();
        zeros.resize(bytes.len(), 0);
        let mut garbage = bytes[..cut].to_vec();
        garbage.extend((cut..bytes.len()).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8));
        for (kind, log) in [("nothing", bytes[..cut].to_vec()), ("zeros", zeros), ("garbage", garbage)] {
            if kind != "nothing" && number % 3 != 0 {
                continue;
            }
            let why = format!("the log is cut at {cut} of {}, followed by {kind}", bytes.len());
            let left = CopiedFiles::from_files(&database, &log);
            let mut connection = left.open().await;
            let there = checked_bodies(&mut connection, &why).await;
            let lost: Vec<&String> = expected.iter().filter(|body| !there.contains(body)).collect();
            assert!(lost.is_empty(), "{why}: {lost:?}");
            connection.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn kill_during_checkpoint_loses_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (store, owner) = Store::open(&path).await.unwrap();
    let key = store.create(new_session(1, None)).await.unwrap();
    store.append(Append { sync: Durability::Full, ..append(key, rows(1, 2..40, None)) }).await.unwrap();
    let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("pragma wal_checkpoint(truncate)").execute(&mut other).await.unwrap();
    store.append(Append { sync: Durability::Full, ..append(key, rows(1, 40..90, None)) }).await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let log = std::fs::read(folder.path().join("a.db-wal")).unwrap();
    sqlx::query("pragma wal_checkpoint(passive)").execute(&mut other).await.unwrap();
    let after = std::fs::read(&path).unwrap();
    other.close().await.unwrap();
    with_timeout(owner.close()).await;
    assert!(after.len() > before.len() + 4 * PAGE_BYTES, "there are pages to checkpoint");

    // The pages are written one by one: any number of them may be complete, and the last one may be partial.
    for done in (0..=after.len()).step_by(PAGE_BYTES / 2 + 1) {
        let mut database = after[..done].to_vec();
        database.extend_from_slice(before.get(done..).unwrap_or_default());
        let left = CopiedFiles::from_files(&database, &log);
        let mut connection = left.open().await;
        let why = format!("{done} of {} bytes were checkpointed", after.len());
        assert_eq!(checked_bodies(&mut connection, &why).await.len(), 89, "{why}");
        connection.close().await.unwrap();
    }
}

/// Splits a script into statements. A trigger is one statement.
fn statements(code: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for part in code.split_inclusive(';').filter(|part| !part.trim().is_empty()) {
        let is_open =
            |text: &String| text.trim_start().starts_with("create trigger") && !text.ends_with("end;");
        match statements.last_mut().filter(|last| is_open(last)) {
            Some(trigger) => trigger.push_str(part),
            None => statements.push(part.to_owned()),
        }
    }
    statements
}

#[tokio::test]
async fn migration_interrupted_at_any_statement_is_completed() {
    let ours = sqlx::migrate!("../../migrations");
    let newest = ours.iter().map(|migration| migration.version).max().unwrap();
    let mut cuts = 0;
    for migration in ours.iter() {
        let text = migration.sql.as_str();
        let code: String =
            text.lines().map(|line| line.split("--").next().unwrap_or_default().to_owned() + "\n").collect();
        let statements = statements(&code);
        for count in 0..=statements.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db");
            let earlier = sqlx::migrate::Migrator {
                migrations: ours.iter().filter(|known| known.version < migration.version).cloned().collect(),
                ..sqlx::migrate::Migrator::DEFAULT
            };
            let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let mut old = options.journal_mode(SqliteJournalMode::Wal).connect().await.unwrap();
            earlier.run(&mut old).await.unwrap();
            // Run the migration as sqlx does: its statements and its own row in one transaction, which is not
            // committed yet.
            sqlx::query("begin").execute(&mut old).await.unwrap();
            for statement in &statements[..count] {
                sqlx::raw_sql(sqlx::AssertSqlSafe(statement.clone())).execute(&mut old).await.unwrap();
            }
            let log = std::fs::read(folder.path().join("a.db-wal")).unwrap_or_default();
            let left = CopiedFiles::from_files(&std::fs::read(&path).unwrap(), &log);
            drop(old);
            let (store, owner) = Store::open(&left.0.path().join("a.db")).await.unwrap_or_else(|error| {
                panic!("migration {} cut after {count} statements: {error}", migration.version)
            });
            let key = store.create(new_session(1, None)).await.unwrap();
            assert_eq!(store.find(id(1)).await, Ok(Some(key)));
            with_timeout(owner.close()).await;
            let mut whole = left.open().await;
            let have: i64 = sqlx::query_scalar("select max(version) from _sqlx_migrations where success")
                .fetch_one(&mut whole)
                .await
                .unwrap();
            assert_eq!(have, newest);
            whole.close().await.unwrap();
            cuts += 1;
        }
    }
    assert!(cuts > 8, "{cuts} cuts");
}
