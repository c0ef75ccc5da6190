//! Tests of the ledger: calls from before it existed, retention, and reading.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::tests::{append, id, new_session, row, with_timeout};
use super::*;
use types::ids::Seq;
use types::ledger::UsageRecord;
use types::time::Timestamp;
use types::usage::{ModelSnapshot, Price, Usage};

fn booking(number: u128, seq: Seq, model: &str, cost_usd_micros: Option<u64>) -> UsageRecord {
    UsageRecord {
        session_id: id(number),
        seq,
        at: Timestamp(i64::try_from(seq).expect("small") * 10),
        model: model.into(),
        usage: Usage { input_tokens: seq, output_tokens: 1, ..Usage::default() },
        cost_usd_micros,
        model_snapshot: ModelSnapshot {
            context_window: Some(seq as u32),
            max_output_tokens: None,
            price: Some(Price::default()),
        },
        is_lost: false,
        is_estimated: false,
    }
}

async fn ledger_fixture(
    bookings: Vec<Vec<UsageRecord>>,
) -> (tempfile::TempDir, Store, StoreOwner, Vec<SessionKey>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, owner) = Store::open(&folder.path().join("journal.db")).await.expect("a new database");
    let mut keys = Vec::new();
    for (number, bookings) in bookings.into_iter().enumerate() {
        let key = store.create(new_session(number as u128 + 1, None)).await.expect("a session");
        store.append(Append { bookings, ..append(key, vec![row(2, None)]) }).await.expect("written");
        keys.push(key);
    }
    (folder, store, owner, keys)
}

#[tokio::test]
async fn ledger_pages_match_totals_with_deleted_session() {
    let calls = vec![
        vec![booking(1, 3, "p/a", Some(5)), booking(1, 4, "p/b", Some(7)), booking(1, 5, "p/a", Some(1))],
        vec![booking(2, 3, "p/a", None)],
    ];
    let (_folder, store, owner, keys) = ledger_fixture(calls).await;
    let every = LedgerQuery::default();
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let page = store.ledger(every, after.clone(), 1).await.expect("a page");
        let Some(last) = page.last() else { break };
        after = Some((last.session_id, last.model.clone()));
        seen.extend(page);
    }
    let shape: Vec<_> =
        seen.iter().map(|row| (row.session_id, row.model.as_str(), row.spent.calls)).collect();
    assert_eq!(shape, [(id(2), "p/a", 1), (id(1), "p/a", 2), (id(1), "p/b", 1)]);
    let older = &seen[1];
    assert_eq!((older.first_at_ms, older.last_at_ms), (Timestamp(30), Timestamp(50)));
    assert_eq!(
        (older.spent.cost_usd_micros, older.spent.context_window),
        (Some(6), Some(5)),
        "the newest window"
    );
    let total = store.ledger_total(every).await.expect("a total");
    assert_eq!((total.calls, total.cost_usd_micros, total.cost_at_least_usd_micros), (4, None, 13));
    let since = LedgerQuery { since: Some(Timestamp(40)), until: Some(Timestamp(50)), ..every };
    assert_eq!(store.ledger_total(since).await.expect("a total").cost_usd_micros, Some(7));

    store.delete(keys[0], None, Timestamp(9)).await.expect("deleted");
    assert_eq!(store.ledger_total(every).await.expect("a total"), total, "what was spent was spent");
    let rows = store.ledger(LedgerQuery { session_id: Some(id(1)), ..every }, None, 9).await.expect("rows");
    assert!(rows.len() == 2 && rows.iter().all(|row| row.title.is_none()), "{rows:?}");
    with_timeout(owner.close()).await;
}

#[tokio::test]
async fn ledger_total_saturates_with_huge_numbers() {
    let mut absurd = booking(1, 3, "p/a", Some(u64::MAX));
    absurd.usage.input_tokens = u64::MAX;
    let (_folder, store, owner, _) =
        ledger_fixture(vec![vec![absurd.clone(), UsageRecord { seq: 4, ..absurd }]]).await;
    let total = store.ledger_total(LedgerQuery::default()).await.expect("a total");
    assert!(total.usage.input_tokens > 1 << 62 && total.cost_at_least_usd_micros > 1 << 62, "{total:?}");
    with_timeout(owner.close()).await;
}

#[tokio::test]
async fn migration_fills_ledger_from_journals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal.db");
    let before = sqlx::migrate::Migrator {
        migrations: sqlx::migrate!("../../migrations")
            .iter()
            .filter(|migration| migration.version < 7)
            .cloned()
            .collect(),
        ..sqlx::migrate::Migrator::DEFAULT
    };
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut old = options.connect().await.expect("a database");
    before.run(&mut old).await.expect("an old one");
    let session = "insert into session (id, session_id, title, cwd, model, mode, background, state, created_at_ms, \
                   updated_at_ms, last_seq, usage, last_line) values (1, ?, 't', '', '', 'default', 0, 'idle', 0, 0, 9, '{}', '')";
    sqlx::query(session).bind(id(1).to_string()).execute(&mut old).await.expect("a session");
    for (seq, kind, body) in [
        (
            2,
            "message.completed",
            r#"{"model":"p/a","usage":{"input_tokens":11,"output_tokens":2},"cost_usd_micros":9}"#,
        ),
        (3, "message.completed", r#"{"item":{"role":"user"}}"#),
        (4, "usage", r#"{"model":"p/a","usage":{"input_tokens":5},"estimated":true}"#),
        (5, "message.completed", "no json"),
        (
            6,
            "usage",
            r#"{"model":"p/b","usage":{"input_tokens":1e30},"cost_usd_micros":1,"estimated":false}"#,
        ),
    ] {
        let event = "insert into event (session, seq, at_ms, kind, body) values (1, ?1, ?1, ?2, ?3)";
        sqlx::query(event).bind(seq).bind(kind).bind(body).execute(&mut old).await.expect("an event");
    }
    old.close().await.expect("closed");

    let (store, owner) = Store::open(&path).await.expect("it opens");
    let rows = store.ledger(LedgerQuery::default(), None, 9).await.expect("rows");
    let spent = &rows[0].spent;
    assert_eq!((rows.len(), rows[0].model.as_str(), spent.usage.input_tokens), (2, "p/a", 16));
    assert_eq!((spent.calls, spent.lost_attempts, spent.estimated_calls, spent.unpriced_calls), (2, 1, 1, 1));
    assert_eq!((spent.cost_usd_micros, spent.cost_at_least_usd_micros), (None, 9));
    let view = store.view(id(1)).await.expect("read").expect("the session");
    assert_eq!(view.summary.cost_at_least_usd_micros, 10);
    with_timeout(owner.close()).await;
}
