//! Tests that a transaction has the same guarantees on each path through the store.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::handle::{Store, StoreOwner};
use super::rows::{Append, Durability, Idempotency, ItemRow, NewSession, RequestRow, Row, SessionKey};
use types::ids::{PermissionId, RequestId, Seq, SessionId};
use types::permission::Mode;
use types::session::SessionSummary;
use types::session::{ItemKind, ItemStatus, SessionSpec, SessionState};
use types::time::Timestamp;
use types::usage::{Budgets, Usage};

/// Limit for waiting for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);

struct StoreFixture {
    store: Store,
    owner: StoreOwner,
    _dir: tempfile::TempDir,
}

impl StoreFixture {
    async fn open() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let (store, owner) = Store::open(&dir.path().join("a.db")).await.expect("opened");
        Self { store, owner, _dir: dir }
    }

    async fn append(&self, append: Append) -> Result<(), StoreError> {
        tokio::time::timeout(STORE_TIMEOUT, self.store.append(append)).await.expect("in time")
    }

    /// Creates a session and the seqs and texts of its rows.
    async fn create(&self) -> (SessionId, SessionKey) {
        let session_id = SessionId::from_uuid(Uuid::now_v7());
        let key = self.store.create(new(session_id, "key-of-create")).await.expect("created");
        (session_id, key)
    }

    async fn rows(&self, key: SessionKey) -> Vec<(Seq, String)> {
        let rows = self.store.events_after(key, 0, 1_000, usize::MAX).await.expect("read").rows;
        rows.into_iter().map(|row| (row.seq, row.body)).collect()
    }
}

fn spec() -> SessionSpec {
    SessionSpec {
        cwd: "/w".into(),
        title: "a title".into(),
        model: "p/m".into(),
        mode: Mode::Default,
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

fn new(session_id: SessionId, key: &str) -> NewSession {
    let idempotency = Some(idempotency(&format!("{key}-{session_id}"), &session_id.to_string()));
    NewSession {
        session_id,
        spec: spec(),
        at: Timestamp(5),
        items: Vec::new(),
        rows: vec![row(1, None)],
        blobs: Vec::new(),
        audit: Vec::new(),
        idempotency,
        history: Default::default(),
    }
}

fn idempotency(key: &str, reply: &str) -> Idempotency {
    Idempotency { method: "m", key: key.into(), digest: "d".into(), reply: reply.into() }
}

fn row(seq: Seq, delta_of: Option<Seq>) -> Row {
    Row { seq, at: Timestamp(7), kind: "notice", delta_of, body: Arc::from(format!("{{\"n\":{seq}}}")) }
}

fn append(key: SessionKey, seqs: impl IntoIterator<Item = Seq>) -> Append {
    Append {
        key,
        rows: seqs.into_iter().map(|seq| row(seq, None)).collect(),
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

fn expected(seqs: impl IntoIterator<Item = Seq>) -> Vec<(Seq, String)> {
    seqs.into_iter().map(|seq| (seq, format!("{{\"n\":{seq}}}"))).collect()
}

#[tokio::test]
async fn created_session_is_found_with_its_summary() {
    let fixture = StoreFixture::open().await;
    let (first_id, first) = fixture.create().await;
    let (second_id, second) = fixture.create().await;
    assert_eq!(fixture.store.find(first_id).await, Ok(Some(first)));
    assert_eq!(fixture.store.find(second_id).await, Ok(Some(second)));
    assert_eq!(fixture.rows(second).await, expected([1]));
    let view = fixture.store.view(second_id).await.expect("read").expect("there");
    assert_eq!(
        (view.summary.title.as_str(), view.cwd.as_str(), view.summary.model.as_str()),
        ("a title", "/w", "p/m")
    );
    assert_eq!((view.summary.state, view.background, view.last_seq), (SessionState::Idle, true, 1));
    assert_eq!((view.created_at_ms, view.summary.cost_usd_micros), (Timestamp(5), Some(0)));
    let reply = fixture.store.stored_reply("m", &format!("key-of-create-{second_id}")).await.expect("read");
    assert_eq!(reply.map(|reply| reply.reply), Some(second_id.to_string()));
    // A second create with the same id is refused and changes nothing. The writer continues.
    assert_eq!(fixture.store.create(new(first_id, "other")).await, Err(StoreError::Taken));
    assert_eq!(fixture.rows(first).await, expected([1]));
    assert_eq!(fixture.append(append(first, [2])).await, Ok(()));
    fixture.owner.close().await;
}

/// Checks a decision with every kind of change, and with `count` rows from seq 2 on.
async fn check_everything(count: Seq) {
    let fixture = StoreFixture::open().await;
    let (session_id, key) = fixture.create().await;
    let last = 1 + count;
    let request_id = PermissionId::from_uuid(Uuid::now_v7());
    let mut whole = append(key, 2..=last);
    whole.rows.iter_mut().skip(1).for_each(|row| row.delta_of = Some(2));
    let item = ItemRow { first_seq: 2, last_seq: 2, kind: ItemKind::ToolCall, status: ItemStatus::Running };
    whole.items = vec![item, ItemRow { last_seq: last, status: ItemStatus::Completed, ..item }];
    whole.requests = vec![RequestRow::Raised { request_id: RequestId::Permission(request_id), seq: 2 }];
    whole.summary = Some(SessionSummary {
        title: "it's \"new\"; -- really".into(),
        model: "p/other".into(),
        mode: Mode::AcceptEdits,
        thinking: None,
        sampling: Default::default(),
        state: SessionState::Running,
        requires: None,
        turn_id: None,
        updated_at_ms: Timestamp(9),
        usage: Usage { input_tokens: 3, ..Usage::default() },
        cost_usd_micros: None,
        cost_at_least_usd_micros: 0,
        last_line: "said".into(),
        last_turn: None,
        activity: Some("Bash make".into()),
        context_tokens: Some(7),
        notice: Some("a hook failed".into()),
    });
    whole.idempotency = Some(idempotency("k", "r"));
    whole.sync = Durability::Full;
    assert_eq!(fixture.append(whole).await, Ok(()), "{count} rows");

    assert_eq!(fixture.rows(key).await, expected(1..=last), "{count} rows");
    let view = fixture.store.view(session_id).await.expect("read").expect("there");
    assert_eq!(view.summary.title, "it's \"new\"; -- really");
    assert_eq!(
        (view.summary.model.as_str(), view.summary.mode, view.summary.state),
        ("p/other", Mode::AcceptEdits, SessionState::Running)
    );
    assert_eq!(
        (view.last_seq, view.summary.cost_usd_micros, view.summary.usage.input_tokens),
        (last, None, 3)
    );
    assert_eq!((view.summary.updated_at_ms, view.summary.last_line.as_str()), (Timestamp(9), "said"));
    let items = fixture.store.items_after(key, 0, 10, usize::MAX).await.expect("read").rows;
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].first_seq, items[0].last_seq, items[0].status.as_str()), (2, last, "completed"));
    let pending = fixture.store.pending_requests(Some(key), None, 10).await.expect("read");
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].request_id, request_id.to_string());
    let reply = fixture.store.stored_reply("m", "k").await.expect("read").expect("there");
    assert_eq!((reply.digest.as_str(), reply.reply.as_str()), ("d", "r"));

    // Then settle the request, and prune the rows of opener 2.
    let mut next = append(key, [last + 1]);
    next.prune_deltas_of = vec![2];
    next.requests =
        vec![RequestRow::Settled { request_id: RequestId::Permission(request_id), seq: last + 1 }];
    assert_eq!(fixture.append(next).await, Ok(()));
    assert_eq!(fixture.rows(key).await, expected([1, 2, last + 1]), "{count} rows");
    assert_eq!(fixture.store.pending_requests(None, None, 10).await, Ok(Vec::new()));
    fixture.owner.close().await;
}

#[tokio::test]
async fn append_of_any_size_writes_all_rows() {
    for count in [1, 3, 8, 9, 64, 65, 150] {
        check_everything(count).await;
    }
}

/// Checks that a decision whose last statement fails leaves no rows, and that the next decision is written.
async fn check_failure(count: Seq) {
    let fixture = StoreFixture::open().await;
    let (_, key) = fixture.create().await;
    for round in 0..3 {
        let mut bad = append(key, 2..2 + count);
        bad.idempotency = Some(idempotency("taken", "x"));
        if round == 0 {
            let mut first = append(key, [900]);
            first.idempotency.clone_from(&bad.idempotency);
            assert_eq!(fixture.append(first).await, Ok(()));
        }
        assert_eq!(fixture.append(bad).await, Err(StoreError::Taken), "{count} rows, round {round}");
        assert_eq!(fixture.rows(key).await, expected([1, 900]), "{count} rows, round {round}");
    }
    assert_eq!(fixture.append(append(key, 2..2 + count)).await, Ok(()));
    assert_eq!(fixture.rows(key).await, expected((1..2 + count).chain([900])), "{count} rows");
    fixture.owner.close().await;
}

#[tokio::test]
async fn append_of_any_size_is_atomic() {
    for count in [1, 8, 100] {
        check_failure(count).await;
    }
}

#[tokio::test]
async fn invalid_append_in_group_fails_alone() {
    let fixture = StoreFixture::open().await;
    let (_, one) = fixture.create().await;
    let (_, other) = fixture.create().await;
    let calls = (2..40).map(|seq| {
        // A bad append uses the session's first seq, which is in use.
        let bad = seq % 10 == 0;
        let (key, seq) = if seq % 2 == 0 { (one, seq) } else { (other, seq) };
        let mut append = append(key, [if bad { 1 } else { seq }]);
        if bad {
            // An identical append would be a retry of the existing rows.
            append.rows[0].body = Arc::from("{}");
        }
        let fixture = &fixture;
        async move { (bad, fixture.append(append).await) }
    });
    for (bad, result) in futures_util::future::join_all(calls).await {
        assert_eq!(result, if bad { Err(StoreError::Taken) } else { Ok(()) });
    }
    let even = (2..40).filter(|seq| seq % 2 == 0 && seq % 10 != 0);
    assert_eq!(fixture.rows(one).await, expected([1].into_iter().chain(even)));
    assert_eq!(
        fixture.rows(other).await,
        expected([1].into_iter().chain((2..40).filter(|seq| seq % 2 == 1)))
    );
    fixture.owner.close().await;
}

#[tokio::test]
async fn deleted_session_is_removed_with_its_rows() {
    let fixture = StoreFixture::open().await;
    let (id, key) = fixture.create().await;
    let (_, intact_session) = fixture.create().await;
    assert_eq!(fixture.append(append(key, 2..20)).await, Ok(()));
    assert_eq!(fixture.store.delete(key, None, Timestamp(0)).await, Ok(()));
    assert_eq!(fixture.store.find(id).await, Ok(None));
    assert_eq!(fixture.rows(key).await, expected([]));
    assert_eq!(fixture.rows(intact_session).await, expected([1]));
    fixture.owner.close().await;
}
