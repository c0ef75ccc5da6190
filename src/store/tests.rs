//! Tests of the store's guarantees on real files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tempfile::TempDir;

use super::*;
use types::ids::{Mint, PermissionId, QuestionId, RequestId, Seed, Seq, SessionId};
use types::permission::Mode;
use types::session::SessionSummary;
use types::session::{ItemKind, ItemStatus, SessionSpec, SessionState};
use types::time::Timestamp;
use types::usage::{Budgets, Usage};

/// A store in a temporary folder.
pub(super) struct TestStore {
    pub folder: TempDir,
    pub store: Store,
    pub owner: StoreOwner,
}

impl TestStore {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, owner) = Store::open(&folder.path().join("journal.db")).await.expect("a new database");
        Self { folder, store, owner }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    pub async fn session(&self, number: u128) -> SessionKey {
        self.store.create(new_session(number, None)).await.expect("a new session")
    }

    /// Seqs of all rows of a session.
    pub async fn seqs(&self, key: SessionKey) -> Vec<Seq> {
        let rows = self.store.events_after(key, 0, 10_000, usize::MAX).await.expect("rows").rows;
        rows.into_iter().map(|row| row.seq).collect()
    }
}

pub(super) fn id(number: u128) -> SessionId {
    Mint::new(0, Seed(number)).session()
}

pub(super) fn request(number: u128) -> PermissionId {
    Mint::new(0, Seed(number)).permission()
}

pub(super) fn spec() -> SessionSpec {
    SessionSpec {
        cwd: "/w".into(),
        title: "a title".into(),
        model: "p/m".into(),
        mode: Mode::AcceptEdits,
        background: true,
        safe_mode: false,
        on_restart: None,
        budgets: Budgets::default(),
        thinking: None,
        sampling: Default::default(),
        system_prompt: None,
        append_system_prompt: None,
        tools: Default::default(),
        additional_dirs: Vec::new(),
        ..SessionSpec::default()
    }
}

pub(super) fn new_session(number: u128, idempotency: Option<Idempotency>) -> NewSession {
    NewSession {
        session_id: id(number),
        spec: spec(),
        at: Timestamp(1),
        blobs: Vec::new(),
        items: Vec::new(),
        rows: vec![row(1, None)],
        audit: Vec::new(),
        idempotency,
        history: Default::default(),
    }
}

pub(super) fn row(seq: Seq, delta_of: Option<Seq>) -> Row {
    let kind = if delta_of.is_some() { "message.text_delta" } else { "notice" };
    Row {
        seq,
        at: Timestamp(i64::try_from(seq).unwrap()),
        kind,
        delta_of,
        body: Arc::from(format!("{{\"n\":{seq}}}")),
    }
}

pub(super) fn append(key: SessionKey, rows: Vec<Row>) -> Append {
    Append {
        key,
        rows,
        prune_deltas_of: Vec::new(),
        items: Vec::new(),
        requests: Vec::new(),
        bookings: Vec::new(),
        summary: None,
        idempotency: None,
        processes: Vec::new(),
        blobs: Vec::new(),
        pending_grant: None,
        audit: Vec::new(),
        texts: Vec::new(),
        rewound_to: None,
        sync: Durability::Normal,
    }
}

pub(super) fn idempotency(method: &'static str, key: &str) -> Idempotency {
    Idempotency { method, key: key.into(), digest: "d".into(), reply: "{}".into() }
}

pub(super) fn item(first_seq: Seq, last_seq: Seq) -> ItemRow {
    ItemRow { first_seq, last_seq, kind: ItemKind::AssistantMessage, status: ItemStatus::Completed }
}

pub(super) fn summary(title: &str) -> SessionSummary {
    SessionSummary {
        title: title.into(),
        model: "p/m".into(),
        mode: Mode::Default,
        thinking: None,
        sampling: Default::default(),
        state: SessionState::Running,
        requires: None,
        turn_id: None,
        updated_at_ms: Timestamp(9),
        usage: Usage { input_tokens: 3, ..Usage::default() },
        cost_usd_micros: None,
        cost_at_least_usd_micros: 0,
        last_line: "a line".into(),
        last_turn: None,
        activity: Some("Bash make".into()),
        context_tokens: Some(7),
        notice: Some("a hook failed".into()),
    }
}

/// Limits the waiting time of each test step.
pub(super) async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

#[tokio::test]
async fn failed_append_is_rolled_back_without_affecting_group() {
    let place = TestStore::new().await;
    let keys = [place.session(1).await, place.session(2).await, place.session(3).await];
    place.store.append(append(keys[1], vec![row(2, None), row(3, Some(2)), row(4, None)])).await.unwrap();

    // Seq 4 is in use. The rest of the second append is valid.
    let bad = Append {
        rows: vec![row(5, None), row(4, None)],
        prune_deltas_of: vec![2],
        items: vec![item(5, 5)],
        requests: vec![RequestRow::Raised { request_id: RequestId::Permission(request(9)), seq: 5 }],
        summary: Some(summary("changed")),
        idempotency: Some(idempotency("session.submit", "k")),
        ..append(keys[1], Vec::new())
    };
    let good = |key| Append { summary: Some(summary("good")), ..append(key, vec![row(2, None)]) };
    // All appends wait for the writer together. The writer first tries them as one group.
    let results = with_timeout(join_all([
        place.store.append(good(keys[0])),
        place.store.append(bad),
        place.store.append(good(keys[2])),
    ]))
    .await;
    assert_eq!(results, [Ok(()), Err(StoreError::Taken), Ok(())]);

    assert_eq!(place.seqs(keys[1]).await, [1, 2, 3, 4]);
    assert_eq!(place.store.items_after(keys[1], 0, 9, usize::MAX).await.unwrap().rows, []);
    assert_eq!(place.store.request(RequestId::Permission(request(9))).await.unwrap(), None);
    assert_eq!(place.store.stored_reply("session.submit", "k").await.unwrap(), None);
    assert_eq!(place.store.view(id(2)).await.unwrap().unwrap().summary.title, "a title");
    for (key, number) in [(keys[0], 1), (keys[2], 3)] {
        assert_eq!(place.seqs(key).await, [1, 2]);
        assert_eq!(place.store.view(id(number)).await.unwrap().unwrap().summary.title, "good");
    }
    // The corrected append is accepted.
    let mended = Append { prune_deltas_of: vec![2], ..append(keys[1], vec![row(5, None)]) };
    place.store.append(mended).await.unwrap();
    assert_eq!(place.seqs(keys[1]).await, [1, 2, 4, 5]);
}

#[tokio::test]
async fn sqlite_failure_of_one_append_spares_other_appends() {
    let place = TestStore::new().await;
    let keys = [place.session(1).await, place.session(2).await];
    let mut other = SqliteConnectOptions::new().filename(place.path()).connect().await.unwrap();
    let trigger = "create trigger boom before insert on item begin select raise(abort, 'boom'); end";
    sqlx::query(trigger).execute(&mut other).await.unwrap();

    let bad = Append { items: vec![item(2, 2)], ..append(keys[0], vec![row(2, None)]) };
    let results = with_timeout(join_all([
        place.store.append(bad),
        place.store.append(append(keys[1], vec![row(2, None)])),
    ]))
    .await;
    assert!(matches!(&results[0], Err(StoreError::Sql(why)) if why.contains("boom")), "{results:?}");
    assert_eq!(results[1], Ok(()));
    assert_eq!(place.seqs(keys[0]).await, [1]);
    assert_eq!(place.seqs(keys[1]).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn grouped_commits_keep_order_of_each_session() {
    const SESSION_COUNT: u128 = 8;
    const MESSAGE_COUNT: u64 = 40;
    let place = TestStore::new().await;
    let mut keys = Vec::new();
    for number in 0..SESSION_COUNT {
        keys.push(place.session(number).await);
    }
    let writers = keys.iter().map(|key| {
        let (store, key) = (place.store.clone(), *key);
        tokio::spawn(async move {
            // All appends of a session are sent at once. The last append of each message prunes the rows of
            // the message's earlier appends. In the wrong order, rows would remain.
            let appends = (0..MESSAGE_COUNT).flat_map(|message| {
                let at = 2 + message * 4;
                let opens = append(key, vec![row(at, None), row(at + 1, Some(at))]);
                let ends = Append {
                    rows: vec![row(at + 2, Some(at)), row(at + 3, None)],
                    prune_deltas_of: vec![at],
                    items: vec![item(at, at + 3)],
                    sync: if message % 2 == 0 { Durability::Full } else { Durability::Normal },
                    ..append(key, Vec::new())
                };
                [opens, ends]
            });
            for result in join_all(appends.map(|append| store.append(append))).await {
                result.expect("an append");
            }
        })
    });
    for writer in with_timeout(join_all(writers)).await {
        writer.expect("a writer");
    }
    let expected: Vec<Seq> = std::iter::once(1)
        .chain((0..MESSAGE_COUNT).flat_map(|message| [2 + message * 4, 5 + message * 4]))
        .collect();
    for key in keys {
        assert_eq!(place.seqs(key).await, expected);
        let items = place.store.items_after(key, 0, 100, usize::MAX).await.unwrap().rows;
        assert!(items.iter().all(|item| item.last_seq == item.first_seq + 3 && item.status == "completed"));
        assert_eq!(items.len(), 40);
    }
}

#[tokio::test]
async fn pruning_removes_deltas_of_one_item_only() {
    let place = TestStore::new().await;
    let (one, two) = (place.session(1).await, place.session(2).await);
    let rows =
        || vec![row(2, None), row(3, Some(2)), row(4, None), row(5, Some(4)), row(6, Some(2)), row(7, None)];
    place.store.append(append(one, rows())).await.unwrap();
    place.store.append(append(two, rows())).await.unwrap();

    let pruning = Append { prune_deltas_of: vec![2], ..append(one, vec![row(8, None)]) };
    place.store.append(pruning.clone()).await.unwrap();
    assert_eq!(place.seqs(one).await, [1, 2, 4, 5, 7, 8]);
    assert_eq!(place.seqs(two).await, [1, 2, 3, 4, 5, 6, 7]);

    // Rows of the same transaction are pruned as well. An opener without rows is no error.
    let again = Append { prune_deltas_of: vec![4, 2], rows: vec![row(9, Some(4)), row(10, None)], ..pruning };
    place.store.append(again).await.unwrap();
    assert_eq!(place.seqs(one).await, [1, 2, 4, 7, 8, 10]);
}

#[tokio::test]
async fn last_seq_counts_pruned_rows() {
    let place = TestStore::new().await;
    let key = place.session(1).await;
    assert_eq!(place.store.last_seq(key).await, Ok(1));
    // This append does not write the summary, so `last_seq` must count the rows themselves.
    place.store.append(append(key, vec![row(2, None), row(3, Some(2)), row(4, Some(2))])).await.unwrap();
    assert_eq!(place.store.last_seq(key).await, Ok(4));
    // The newest row is pruned in its own transaction. Its seq is not used again.
    let pruning = Append {
        rows: vec![row(5, None), row(6, Some(2))],
        prune_deltas_of: vec![2],
        summary: Some(summary("t")),
        ..append(key, Vec::new())
    };
    place.store.append(pruning).await.unwrap();
    assert_eq!(place.seqs(key).await, [1, 2, 5]);
    assert_eq!(place.store.last_seq(key).await, Ok(6));
    assert_eq!(place.store.view(id(1)).await.unwrap().unwrap().last_seq, 6);
}

#[tokio::test]
async fn idempotency_key_is_unique_per_method() {
    let place = TestStore::new().await;
    let key = place.session(1).await;
    let keyed = |method, seq| Append {
        idempotency: Some(idempotency(method, "k")),
        ..append(key, vec![row(seq, None)])
    };
    place.store.append(keyed("session.submit", 2)).await.unwrap();
    assert_eq!(place.store.append(keyed("session.submit", 3)).await, Err(StoreError::Taken));
    assert_eq!(place.seqs(key).await, [1, 2], "a refused append writes nothing");
    place.store.append(keyed("session.approve", 3)).await.unwrap();

    let created = new_session(2, Some(idempotency("session.create", "k")));
    place.store.create(created).await.unwrap();
    let other = new_session(3, Some(idempotency("session.create", "k")));
    assert_eq!(place.store.create(other).await, Err(StoreError::Taken));
    assert_eq!(place.store.find(id(3)).await, Ok(None), "a refused session is not there");
    assert_eq!(place.store.create(new_session(2, None)).await, Err(StoreError::Taken));
    let reply = place.store.stored_reply("session.create", "k").await.unwrap();
    assert_eq!(reply, Some(IdempotentReply { digest: "d".into(), reply: "{}".into() }));
}

#[tokio::test]
async fn deleted_session_leaves_no_rows_and_others_stay() {
    let place = TestStore::new().await;
    let full = |key, number| Append {
        rows: vec![row(2, None), row(3, None)],
        items: vec![item(2, 3)],
        requests: vec![
            RequestRow::Raised { request_id: RequestId::Permission(request(number)), seq: 2 },
            RequestRow::Settled { request_id: RequestId::Permission(request(number)), seq: 3 },
        ],
        idempotency: Some(idempotency("session.submit", if number == 1 { "one" } else { "two" })),
        ..append(key, Vec::new())
    };
    let (one, two) = (place.session(1).await, place.session(2).await);
    place.store.append(full(one, 1)).await.unwrap();
    place.store.append(full(two, 2)).await.unwrap();
    place.store.delete(two, None, Timestamp(0)).await.unwrap();
    place.store.delete(two, None, Timestamp(0)).await.expect("deleting twice is the same as once");

    assert_eq!(place.store.find(id(2)).await, Ok(None));
    assert_eq!(place.store.view(id(2)).await, Ok(None));
    assert_eq!(place.store.request(RequestId::Permission(request(2))).await, Ok(None));
    let settled = place.store.request(RequestId::Permission(request(1))).await.unwrap().unwrap();
    assert_eq!(settled, SettledRequest { session_id: id(1), settled: Some("{\"n\":3}".into()) });
    assert_eq!(place.store.stored_reply("session.submit", "two").await, Ok(None));
    assert!(place.store.stored_reply("session.submit", "one").await.unwrap().is_some());
    assert_eq!(place.seqs(one).await, [1, 2, 3]);
    assert_eq!(counts(&place.path()).await, [1, 3, 1, 1, 1], "session, event, item, permission, idempotency");

    // An append after the deletion is an error, and the key is never reused.
    assert!(matches!(place.store.append(append(two, vec![row(4, None)])).await, Err(StoreError::Sql(_))));
    assert_ne!(place.session(4).await, two);
}

pub(super) async fn counts(path: &Path) -> Vec<i64> {
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let mut counts = Vec::new();
    for table in ["session", "event", "item", "permission_request", "idempotency"] {
        let query = sqlx::AssertSqlSafe(format!("select count(*) as n from {table}"));
        counts.push(sqlx::query(query).fetch_one(&mut connection).await.unwrap().get("n"));
    }
    connection.close().await.unwrap();
    counts
}

#[tokio::test]
async fn permission_requests_are_pending_until_settled() {
    let place = TestStore::new().await;
    let (one, two) = (place.session(1).await, place.session(2).await);
    let raised = |number, seq| RequestRow::Raised { request_id: RequestId::Permission(request(number)), seq };
    let mut ids = [request(1), request(2), request(3)];
    let first = Append {
        requests: vec![raised(1, 2), raised(2, 3)],
        ..append(one, vec![row(2, None), row(3, None)])
    };
    let second = Append { requests: vec![raised(3, 2)], ..append(two, vec![row(2, None)]) };
    place.store.append(first).await.unwrap();
    place.store.append(second).await.unwrap();
    ids.sort();
    let pending = async |session, after: Option<&str>, limit| -> Vec<String> {
        let rows = place.store.pending_requests(session, after, limit).await.expect("requests");
        rows.into_iter().map(|row| row.request_id).collect()
    };
    let all: Vec<String> = ids.iter().map(PermissionId::to_string).collect();
    assert_eq!(pending(None, None, 9).await, all);
    assert_eq!(pending(None, Some(&all[0]), 1).await, [all[1].clone()]);
    assert_eq!(pending(Some(two), None, 9).await, [request(3).to_string()]);

    let settled = RequestRow::Settled { request_id: RequestId::Permission(request(1)), seq: 4 };
    let settle = Append { requests: vec![settled], ..append(one, vec![row(4, None)]) };
    place.store.append(settle).await.unwrap();
    assert_eq!(pending(Some(one), None, 9).await, [request(2).to_string()]);
}

#[tokio::test]
async fn question_is_found_before_and_after_settlement() {
    let place = TestStore::new().await;
    let one = place.session(1).await;
    let question_id = QuestionId::from_uuid(uuid::Uuid::now_v7());
    let request_id = RequestId::Question(question_id);
    let raised = Append {
        requests: vec![RequestRow::Raised { request_id, seq: 2 }],
        ..append(one, vec![row(2, None)])
    };
    assert_eq!(place.store.request(request_id).await, Ok(None));
    place.store.append(raised).await.unwrap();
    let known = |settled: Option<&str>| {
        Ok(Some(SettledRequest { session_id: id(1), settled: settled.map(String::from) }))
    };
    assert_eq!(place.store.request(request_id).await, known(None));
    // An answer to a permission request never settles a question, and the reverse.
    let other = RequestId::Permission(PermissionId::from_uuid(uuid::Uuid::now_v7()));
    assert_eq!(place.store.request(other).await, Ok(None));
    assert_eq!(place.store.pending_requests(None, None, 9).await.unwrap(), Vec::new());
    let settled = Append {
        requests: vec![RequestRow::Settled { request_id, seq: 3 }],
        ..append(one, vec![row(3, None)])
    };
    place.store.append(settled).await.unwrap();
    assert_eq!(place.store.request(request_id).await, known(Some("{\"n\":3}")));
}

#[tokio::test]
async fn store_lists_sessions_by_state_folder_and_text() {
    let place = TestStore::new().await;
    let busy = place.session(1).await;
    place.session(2).await;
    place.session(3).await;
    let change = Append { summary: Some(summary("100%_Sure")), ..append(busy, vec![row(2, None)]) };
    place.store.append(change).await.unwrap();
    let listed = async |before, states: &[SessionState], cwd, search| -> Vec<SessionId> {
        let page = place
            .store
            .views(before, 2, SessionQuery { states, cwd, search, ..SessionQuery::default() })
            .await
            .expect("a page");
        page.into_iter().map(|(_, view)| view.session_id).collect()
    };
    assert_eq!(listed(None, &[], None, None).await, [id(3), id(2)]);
    let (position, _) = place.store.views(None, 2, SessionQuery::default()).await.unwrap()[1].clone();
    assert_eq!(listed(Some(position), &[], None, None).await, [id(1)]);
    assert_eq!(listed(None, &[SessionState::Running], None, None).await, [id(1)]);
    assert_eq!(listed(None, &[], Some("/w/"), None).await, []);
    assert_eq!(listed(None, &[], Some("/w"), Some("100%_s")).await, [id(1)]);
    assert_eq!(listed(None, &[], None, Some("100__")).await, [], "a word is not a pattern");
    assert_eq!(place.store.counts().await, Ok((3, 1)));
    assert_eq!(place.store.unfinished().await, Ok(vec![id(1)]));
}

#[tokio::test]
async fn event_page_is_bounded_in_bytes_and_never_empty() {
    let place = TestStore::new().await;
    let key = place.session(1).await;
    let long = |seq, bytes: usize| Row { body: "é".repeat(bytes / 2).into(), ..row(seq, None) };
    let rows = vec![long(10, 100), long(11, 100), long(12, 100), long(13, 5_000), long(14, 2)];
    place.store.append(append(key, rows)).await.unwrap();
    for (after, limit, bytes, expected, is_last) in [
        (9, 100, 300, &[10, 11, 12][..], false),
        (9, 100, 299, &[10, 11], false),
        (9, 2, 10_000, &[10, 11], false),
        (9, 5, 10_000, &[10, 11, 12, 13, 14], false), // Possibly more rows exist, because the page is full.
        (9, 6, 10_000, &[10, 11, 12, 13, 14], true),
        (12, 100, 300, &[13], false),
        (12, 100, 0, &[13], false),
        (13, 100, 0, &[14], true),
        (14, 100, 300, &[], true),
    ] {
        let page = place.store.events_after(key, after, limit, bytes).await.unwrap();
        let seqs: Vec<Seq> = page.rows.iter().map(|row| row.seq).collect();
        assert_eq!((&seqs[..], page.is_last), (expected, is_last), "after {after}, {limit}, {bytes}");
    }
}
