//! Tests of sessions that are unloaded, loaded again, too many, or broken, over a real store. There is
//! no model. Each turn fails immediately, and that is enough work for these tests.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use crate::actor::journal;
use crate::registry::load::*;
use crate::{Components, IdempotencyKey, NewSessionRequest, Settings, Shared, Submission, SubmittedInput};
use judge::Rules;
use model::Models;
use store::{Append, Store, StoreError, StoreOwner};
use tools::Toolbox;
use types::event::Envelope;
use types::event::{Event, Origin};
use types::ids::{Mint, Seed};
use types::message::InputBlock;
use types::outcome::SubmitOutcome;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::retry::RetrySettings;
use types::time::{Clock, Timestamp};
use types::tool::ProcessRecord;
use types::usage::Budgets;

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1)
    }
}

/// A registry over a temporary store.
pub(crate) struct RegistryFixture {
    folder: tempfile::TempDir,
    registry: Registry,
    _owner: StoreOwner,
}

impl RegistryFixture {
    pub(crate) async fn new(idle_unload: Duration, loaded_sessions: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, owner) = Store::open(&folder.path().join("journal.db")).await.unwrap();
        let home = folder.path().to_path_buf();
        let settings = Settings {
            engine: Arc::new(engine::Settings {
                retry: RetrySettings { attempts: 1, ..RetrySettings::default() },
                ..engine::Settings::default()
            }),
            mcp: Arc::from([]),
            key_variables: Arc::from([]),
            engine_with_index: Arc::default(),
            rules: Arc::new(Rules::parse::<&str>(&[], &[], &[]).unwrap()),
            configured: Arc::from([]),
            hooks: Arc::from([]),
            hook_failures: Default::default(),
            home: home.clone(),
            user_dir: None,
            config_files: Vec::new(),
            reports_dir: home.join("reports"),
            memory_dir: home.join("memory"),
            worktrees_dir: home.join("data/worktrees"),
            main_model: None,
            mode: Mode::Default,
            thinking: None,
            safe_mode: false,
            ablation: Default::default(),
            has_fixed_ablation: false,
            binary_feedback: false,
            safe_commands: false,
            bypass: Err("not here".into()),
            bypass_guard: true,
            budgets: Budgets::default(),
            idle_unload,
            subagent_depth: 3,
            loaded_sessions,
            journal_bytes: u64::MAX,
            delete_ended_after: None,
        };
        let models = Models::new(model::Settings::default()).unwrap();
        let tools = Toolbox::new(tools::Settings::new(home));
        let fixture = Shared::new(store, Arc::new(StoppedClock), Components { models, tools, settings });
        Self { folder, registry: Registry::new(fixture), _owner: owner }
    }

    pub(crate) fn fixture(&self) -> Arc<Shared> {
        Arc::clone(&self.registry.inner.shared)
    }

    async fn create(&self) -> SessionId {
        let cwd = self.folder.path().to_str().unwrap().into();
        let request = NewSessionRequest { cwd, ..NewSessionRequest::default() };
        self.registry.create(request).await.unwrap().session_id
    }

    async fn submit(&self, id: SessionId) -> Result<Seq, SessionError> {
        self.submit_keyed(id, None, Some(WhenBusy::Queue)).await.map(|submitted| submitted.seq)
    }

    async fn submit_keyed(
        &self,
        id: SessionId,
        keyed: Option<IdempotencyKey>,
        when_busy: Option<WhenBusy>,
    ) -> Result<SubmitOutcome, SessionError> {
        let (options, origin) = (Default::default(), Origin::default());
        let (raw, runs_hooks) = (false, true);
        let submission =
            Submission { when_busy, expected_turn: None, options, raw, runs_hooks, keyed, origin };
        let blocks = vec![InputBlock::Text { text: "go".into() }];
        let input = std::future::ready(Ok(SubmittedInput { blocks, blobs: Vec::new() }));
        self.registry.submit(id, submission, std::convert::identity, input).await
    }

    async fn events(&self, id: SessionId) -> Vec<Envelope> {
        let (key, _) = self.registry.journal(id).await.unwrap();
        let page = self.registry.shared().store.events_after(key, 0, u32::MAX, usize::MAX).await.unwrap();
        page.rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
    }

    async fn is_loaded(&self, id: SessionId) -> bool {
        let slot = self.registry.inner.slots.get(&id).map(|slot| Arc::clone(&slot));
        slot.is_some_and(|slot| slot.initialized())
    }

    async fn wait_loaded(&self, wanted: usize) {
        within_deadline(async {
            while self.registry.loaded() != wanted || self.registry.inner.slots.len() != wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    async fn panic_session(&self, id: SessionId) {
        let slot = Arc::clone(self.registry.inner.slots.get(&id).unwrap().value());
        let loaded_session = slot.get().unwrap();
        assert!(loaded_session.mailbox.send(Box::new(SessionCommand::Panic)).await.is_ok());
        within_deadline(loaded_session.wait_for_end()).await;
        assert!(loaded_session.has_crashed());
    }
}

async fn within_deadline<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

const NEVER: Duration = Duration::from_secs(100_000);

/// Only one task owns a session: two tasks would write the same seqs, and the second write would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_during_unload_is_accepted_once() {
    const CALLERS: usize = 3;
    const ROUNDS: usize = 200;
    let place = Arc::new(RegistryFixture::new(Duration::from_millis(1), 1_000).await);
    let id = place.create().await;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let place = Arc::clone(&place);
        callers.spawn(async move {
            let mut seqs = Vec::new();
            for round in 0..ROUNDS {
                // Use a different moment in each round.
                let pause = (round * 613 + caller * 331) % 2_500;
                tokio::time::sleep(Duration::from_micros(pause as u64)).await;
                seqs.push(place.submit(id).await.expect("no submit is refused"));
            }
            seqs
        });
    }
    let mut seqs: Vec<Seq> = within_deadline(callers.join_all()).await.concat();
    place.wait_loaded(0).await;
    let events = place.events(id).await;
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "the numbers have a gap");
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), CALLERS * ROUNDS, "every submit has an event of its own");
    let ended = events.iter().filter(|event| matches!(event.event, Event::TurnCompleted { .. }));
    assert_eq!(ended.count(), CALLERS * ROUNDS);
    assert!(!events.iter().any(|event| matches!(event.event, Event::TurnResumed { .. })));
}

#[tokio::test]
async fn least_recently_used_session_is_unloaded_first() {
    let place = RegistryFixture::new(NEVER, 3).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(place.create().await);
        tokio::task::yield_now().await;
    }
    // The oldest session is used again, and the second one keeps a lease.
    drop(within_deadline(place.registry.open(ids[0])).await.unwrap());
    let inside = within_deadline(place.registry.open(ids[1])).await.unwrap();
    for id in &ids {
        within_deadline(place.registry.open(*id)).await.unwrap();
    }
    drop(within_deadline(place.registry.open(ids[0])).await.unwrap());
    for _ in 0..2 {
        ids.push(place.create().await);
        place.wait_loaded(3).await;
    }
    let mut loaded = Vec::new();
    for id in &ids {
        loaded.push(place.is_loaded(*id).await);
    }
    assert_eq!(loaded, [false, true, false, true, true], "{ids:?}");
    drop(inside);
    // The submit loads the session again, and another session is unloaded.
    within_deadline(place.submit(ids[2])).await.unwrap();
    place.wait_loaded(3).await;
    assert!(place.is_loaded(ids[2]).await);
}

#[tokio::test]
async fn cancelled_attach_is_not_counted_as_lease() {
    let place = RegistryFixture::new(Duration::from_millis(2), 1_000).await;
    let id = place.create().await;
    let handle = within_deadline(place.registry.open(id)).await.unwrap();
    let (mut follower, attachment) =
        within_deadline(handle.attach(0, Origin::default(), "controller")).await.unwrap();
    // Drop the attach before its reply arrives: poll it once, then drop it.
    for _ in 0..5 {
        let attach = handle.attach(0, Origin::default(), "controller");
        let _ = tokio::time::timeout(Duration::ZERO, attach).await;
    }
    drop(handle);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(place.is_loaded(id).await, "a client is attached");
    assert!(within_deadline(follower.next()).await.unwrap().is_some());
    drop(attachment);
    place.wait_loaded(0).await;
    let events = place.events(id).await;
    let clients: Vec<u32> = events
        .iter()
        .filter_map(|event| match event.event {
            Event::SessionAttached { clients } | Event::SessionDetached { clients } => Some(clients),
            _ => None,
        })
        .collect();
    assert_eq!((clients.first(), clients.last()), (Some(&1), Some(&0)), "{clients:?}");
    assert_eq!(place.registry.view(id).await.unwrap().clients, 0);
}

#[tokio::test]
async fn panicked_session_is_reloaded_without_affecting_others() {
    let place = RegistryFixture::new(NEVER, 1_000).await;
    let (broken, healthy) = (place.create().await, place.create().await);
    within_deadline(place.submit(broken)).await.unwrap();
    let waiting = within_deadline(place.registry.open(broken)).await.unwrap();
    let (mut follower, _attachment) =
        within_deadline(waiting.attach(0, Origin::default(), "controller")).await.unwrap();
    place.panic_session(broken).await;
    // Owners of handles receive an error, followers end, and a view needs no task.
    let again = waiting.abort(None, None, None, Origin::default());
    assert_eq!(within_deadline(again).await, Err(SessionError::Crashed));
    while let Some(events) = within_deadline(follower.next()).await.unwrap() {
        assert!(!events.is_empty());
    }
    let before = place.events(broken).await.len();
    assert!(within_deadline(place.submit(healthy)).await.is_ok());
    let seq = within_deadline(place.submit(broken)).await.expect("it is loaded again");
    assert!(seq > before as Seq, "numbers do not repeat");
    place.wait_loaded(2).await;
    let events = place.events(broken).await;
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
}

/// Writes rows directly into the store, to make the journal long.
async fn append_rows(place: &RegistryFixture, id: SessionId, rows: u64) {
    let (key, last_seq) = place.registry.journal(id).await.unwrap();
    let notice = |seq| {
        let event = Event::Notice { kind: "test".into(), text: "long ago".into() };
        let envelope = Envelope {
            seq,
            session_id: id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: None,
            at_ms: Timestamp(1),
            origin: None,
            truncated_fields: Vec::new(),
            event,
        };
        journal::encode_event(&envelope, None).0
    };
    let rows = (last_seq + 1..=last_seq + rows).map(notice).collect();
    let process_start =
        ProcessRecord { call_id: Mint::new(0, Seed(1)).call(), pid: 1, started: 1, boot_id: "b".into() };
    let append =
        Append { rows, processes: Vec::new(), ..journal::process_start(key, process_start, Timestamp(1)) };
    place.registry.shared().database.journal_writer(key).append(append).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_journal_is_followed_while_session_loads() {
    let place = RegistryFixture::new(Duration::from_millis(1), 1_000).await;
    let id = place.create().await;
    within_deadline(place.submit(id)).await.unwrap();
    place.wait_loaded(0).await;
    append_rows(&place, id, 20_000).await;
    let (_, last) = place.registry.journal(id).await.unwrap();
    let handle = within_deadline(place.registry.open_soon(id)).await.unwrap();
    let (mut follower, attached) =
        within_deadline(handle.attach(0, Origin::default(), "controller")).await.unwrap();
    // Every event arrives once, and the attach event follows the end of the journal.
    let mut seen = Vec::new();
    while seen.len() as u64 <= last {
        seen.extend(within_deadline(follower.next()).await.unwrap().expect("it is there"));
    }
    let seen: Vec<Envelope> = seen.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert!(seen.iter().zip(1..).all(|(event, seq)| event.seq == seq), "the numbers have a gap");
    assert_eq!(seen.last().map(|event| event.event.kind()), Some("session.attached"));
    assert_eq!(handle.clients(), 1);
    // A client that leaves before loading ends is not counted permanently.
    drop((attached, follower, handle));
    place.wait_loaded(0).await;
    let handle = within_deadline(place.registry.open_soon(id)).await.unwrap();
    drop(within_deadline(handle.attach(0, Origin::default(), "controller")).await.unwrap());
    drop(handle);
    place.wait_loaded(0).await;
    assert_eq!(place.registry.view(id).await.unwrap().clients, 0);
}

#[tokio::test]
async fn unloadable_session_reports_same_error_each_time() {
    let place = RegistryFixture::new(Duration::from_millis(1), 1_000).await;
    let id = place.create().await;
    place.wait_loaded(0).await;
    let options = SqliteConnectOptions::new().filename(place.folder.path().join("journal.db"));
    let mut other = options.connect().await.unwrap();
    sqlx::query("delete from event").execute(&mut other).await.unwrap();
    for _ in 0..3 {
        let error = within_deadline(place.registry.open(id)).await.err();
        assert!(matches!(error, Some(SessionError::Store(StoreError::Corrupt(_)))), "{error:?}");
        place.wait_loaded(0).await;
    }
    let handle = within_deadline(place.registry.open_soon(id)).await.unwrap();
    let error = within_deadline(handle.attach(0, Origin::default(), "controller")).await.err();
    assert!(matches!(error, Some(SessionError::Store(StoreError::Corrupt(_)))), "{error:?}");
    let healthy = place.create().await;
    assert!(within_deadline(place.submit(healthy)).await.is_ok());
}

/// All callers may read the store before the first of them has committed its input, so no caller finds the
/// key. The commit or the running turn refuses the other callers, and they get the reply to the first one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_submits_with_one_key_share_one_turn() {
    let place = RegistryFixture::new(NEVER, 1_000).await;
    let key = |digest: &str| Some(IdempotencyKey { key: "k".into(), digest: digest.into() });
    for when_busy in [Some(WhenBusy::Queue), Some(WhenBusy::Reject)] {
        let id = place.create().await;
        let calls = (0..8).map(|_| place.submit_keyed(id, key("d"), when_busy));
        let replies = within_deadline(futures_util::future::join_all(calls)).await;
        assert!(replies.iter().all(|reply| reply.is_ok() && *reply == replies[0]), "{replies:?}");
        let events = place.events(id).await;
        let turns = events
            .iter()
            .filter(|it| matches!(it.event, Event::TurnStarted { .. } | Event::TurnQueued { .. }));
        assert_eq!(turns.count(), 1, "{when_busy:?}");
        let other = within_deadline(place.submit_keyed(id, key("other"), when_busy)).await;
        assert_eq!(other, Err(SessionError::Conflict("idempotency_key")));
    }
}
