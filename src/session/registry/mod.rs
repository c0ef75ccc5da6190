//! The map of loaded sessions: list, answer, delete, park. `create` creates sessions, and `load` loads and
//! unloads them.

pub(super) mod create;
pub(super) mod create_request;
pub(super) mod explain;
pub(super) mod grant_outbox;
pub(super) mod load;
pub(super) mod pending;
pub(super) mod rules;
pub(super) mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::task::TaskTracker;

use super::error::SessionError;
use super::handle::{
    AnswerOutcome, IdempotencyKey, LoadedSession, PendingCall, PermissionAnswer, QuestionAnswer,
    SubmitOutcome,
};
use crate::crash;
use crate::engine::EditedCall;
use crate::session::actor::commands;
use crate::session::actor::commands::SUBMIT;
use crate::session::shared::{Components, Shared};
use crate::store::{Idempotency, LedgerQuery, SessionQuery, StoredRequest, Sync};
use crate::types::audit::AuditNote;
use crate::types::blob::TruncatedField;
use crate::types::event::{Envelope, Event, Origin};
use crate::types::ids::{PermissionId, RequestId, Seq, SessionId};
use crate::types::ledger::{LedgerRow, ModelUsage};
use crate::types::message::ToolCall;
use crate::types::metrics::Metrics;
use crate::types::model::ModelView;
use crate::types::session::{PermissionRequest, SessionView};
use crate::types::time::Timestamp;
use crate::types::tool::{Confinement, PlannedChange, ToolDefinition};

/// How long one session may take to apply a new configuration.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(1);
/// Method name under which the replies to `session.delete` are stored.
const DELETE: &str = "session.delete";

/// The pointer of `[models]` for sessions that name no model.
const MAIN: &str = "main";
/// Maximum number of models in one session's view.
const MODELS: u32 = 1_000;

/// Maximum bytes of the events behind one page of pending requests.
const PAGE_BYTES: usize = 4 << 20;

/// A pending permission request.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The session of the request.
    pub session_id: SessionId,
    /// When the request was raised.
    pub at_ms: Timestamp,
    /// Its truncated fields.
    pub truncated_fields: Vec<TruncatedField>,
    /// The permission request.
    pub request: PermissionRequest,
    /// Whether the call changes nothing.
    pub read_only: bool,
    /// For calls that change a file: its content before and after.
    pub change: Option<PlannedChange>,
    /// For commands: their sandbox.
    pub sandbox: Option<Confinement>,
}

/// The map entry of one session. It is filled once, and unloading removes it.
pub(super) type SessionSlot = Arc<OnceCell<LoadedSession>>;

/// All sessions. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub shared: Arc<Shared>,
    pub live: DashMap<SessionId, SessionSlot>,
    pub actors: TaskTracker,
    closing: AtomicBool,
    /// Per method: serialises calls with an idempotency key that write to no journal.
    keyed_calls: DashMap<&'static str, Arc<Mutex<()>>>,
    /// Number of loaded sessions.
    pub loaded: Arc<AtomicUsize>,
    /// Rises with each lease.
    pub tick: AtomicU64,
}

impl Registry {
    /// Creates a registry without loaded sessions.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        let inner = Inner {
            shared: Arc::new(shared),
            live: DashMap::new(),
            actors: TaskTracker::new(),
            closing: AtomicBool::new(false),
            keyed_calls: DashMap::new(),
            loaded: Arc::default(),
            tick: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The services that the sessions share.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Replaces the components and notifies all loaded sessions. A session with attached clients or an open
    /// turn records an event. A session that does not respond in time uses them from its next turn.
    pub async fn reload(&self, components: Components, changed: &[String], needs_restart: &[String]) {
        self.inner.shared.replace(components);
        if changed.is_empty() && needs_restart.is_empty() {
            return;
        }
        // Do not hold a guard of the map while a session is notified.
        let slots: Vec<SessionSlot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let told = slots.iter().filter_map(|slot| slot.get()).map(|loaded| {
            tokio::time::timeout(RELOAD_TIMEOUT, loaded.reloaded(changed.to_vec(), needs_restart.to_vec()))
        });
        futures_util::future::join_all(told).await;
    }

    /// Resumes every session with an open turn and those that left processes. A session that fails to load does
    /// not affect the others.
    ///
    /// # Errors
    /// The list of these sessions could not be read.
    pub async fn recover(&self) -> Result<usize, SessionError> {
        let unfinished = self.inner.shared.store.unfinished().await?;
        crash::point("C21.listed");
        let mut recovered = 0;
        for id in unfinished {
            // A separate task contains the damage if a journal makes the reader panic.
            let registry = self.clone();
            let opened = tokio::spawn(async move { registry.open(id).await.map(|_| ()) }).await;
            match opened {
                Ok(Ok(())) => recovered += 1,
                Ok(Err(error)) => tracing::error!(session = %id, %error, "a session could not be picked up"),
                Err(error) => tracing::error!(session = %id, %error, "picking a session up failed"),
            }
        }
        Ok(recovered)
    }

    /// The outcome of an earlier submit with this key, if there was one.
    ///
    /// # Errors
    /// The key was used with other parameters, or the store failed.
    pub async fn submitted(
        &self,
        id: SessionId,
        keyed: &IdempotencyKey,
    ) -> Result<Option<SubmitOutcome>, SessionError> {
        commands::remembered(&self.inner.shared.store, SUBMIT, id, keyed).await
    }

    pub(super) fn check_open(&self) -> Result<(), SessionError> {
        if self.inner.closing.load(Ordering::Acquire) { Err(SessionError::ShuttingDown) } else { Ok(()) }
    }

    /// The summary of one session.
    ///
    /// # Errors
    /// The session does not exist.
    pub async fn view(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.inner.shared.store.view(id).await?.ok_or(SessionError::NotFound)?;
        Ok(self.with_live(view))
    }

    /// The summary of one session with its usage per model.
    ///
    /// # Errors
    /// The session does not exist.
    pub async fn view_with_models(&self, id: SessionId) -> Result<SessionView, SessionError> {
        let view = self.view(id).await?;
        let query = LedgerQuery { session_id: Some(id), ..LedgerQuery::default() };
        let rows = self.inner.shared.store.ledger(query, None, MODELS).await?;
        Ok(SessionView { models: rows.into_iter().map(|row| (row.model, row.spent)).collect(), ..view })
    }

    /// A page of the ledger, newest sessions first, and the sum over the whole query. Deleted sessions are
    /// included.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn ledger(
        &self,
        query: LedgerQuery,
        after: Option<(SessionId, String)>,
        limit: u32,
    ) -> Result<(Vec<LedgerRow>, ModelUsage, bool), SessionError> {
        let store = &self.inner.shared.store;
        let mut rows = store.ledger(query, after, limit.saturating_add(1)).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok((rows, store.ledger_total(query).await?, more))
    }

    /// Counters since the start. The caller adds the uptime.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let shared = &self.inner.shared;
        let (database_writes, database_write_errors) = shared.store.writes();
        // Do not hold a guard of the map while a session is inspected.
        let slots: Vec<SessionSlot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let clients = slots.iter().filter_map(|slot| slot.get());
        let subscribers = clients.map(|loaded| u64::from(loaded.clients.load(Ordering::Relaxed))).sum();
        let sessions_loaded = self.loaded() as u64;
        Metrics {
            sessions_loaded,
            subscribers,
            database_writes,
            database_write_errors,
            ..shared.counts.now()
        }
    }

    /// The tools that sessions offer to their models.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolDefinition]> {
        self.inner.shared.components().tools.cards()
    }

    /// The available models with their known properties.
    #[must_use]
    pub fn models(&self) -> Vec<ModelView> {
        let components = self.inner.shared.components();
        let settings = &components.settings;
        // `main` comes first; without a configuration its model comes from the environment.
        let others = settings.pointers.iter().filter(|(name, _)| **name != MAIN);
        let others = others.filter_map(|(name, model)| Some((*name, model.as_ref()?)));
        let pointers: Vec<(&str, &String)> =
            settings.main_model.iter().map(|model| (MAIN, model)).chain(others).collect();
        let mut models =
            components.models.list(&pointers.iter().map(|(_, model)| (*model).clone()).collect::<Vec<_>>());
        for view in &mut models {
            let own = pointers.iter().filter(|(_, model)| **model == view.model);
            view.pointers = own.map(|(name, _)| (*name).to_owned()).collect();
        }
        models
    }

    /// A page of sessions, newest first. The returned position is the start of the next page.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn views(
        &self,
        before: Option<i64>,
        limit: u32,
        wanted: SessionQuery<'_>,
    ) -> Result<(Vec<SessionView>, Option<i64>), SessionError> {
        let mut rows = self.inner.shared.store.views(before, limit + 1, wanted).await?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.last().map(|(position, _)| *position) } else { None };
        Ok((rows.into_iter().map(|(_, view)| self.with_live(view)).collect(), next))
    }

    fn with_live(&self, mut view: SessionView) -> SessionView {
        let slot = self.inner.live.get(&view.session_id).map(|slot| Arc::clone(&slot));
        if let Some(loaded) = slot.as_ref().and_then(|slot| slot.get()) {
            view.clients = loaded.clients.load(Ordering::Relaxed);
            view.last_seq = view.last_seq.max(loaded.feed.last_seq());
            view.background_commands = loaded.commands();
        }
        view
    }

    /// Answers a permission request of any session.
    ///
    /// # Errors
    /// The request does not exist or is settled.
    pub async fn answer(&self, answer: PermissionAnswer) -> Result<(SessionId, AnswerOutcome), SessionError> {
        let store = &self.inner.shared.store;
        let request_id = RequestId::Permission(answer.request_id);
        if let Some(grant) = &answer.grant {
            grant
                .parse::<crate::judge::Rule>()
                .map_err(|error| SessionError::BadParam("grant", error.to_string()))?;
        }
        let known = store.request(request_id).await?.ok_or(SessionError::NoSuchRequest)?;
        let handle = self.open(known.session_id).await?;
        let edited = match &answer.updated_input {
            Some(input) => match handle.pending_call(answer.request_id).await {
                Ok(asked) => Some(self.edited(asked, input.clone()).await?),
                // The following answer reports why the request is not pending.
                Err(_) => None,
            },
            None => None,
        };
        let answered = handle.answer(answer, edited).await;
        if answered == Err(SessionError::Refused(crate::engine::Refusal::NotPending))
            && let Some(settled) = store.request(request_id).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, answered?))
    }

    /// Prepares changed arguments like the model's own: checks them against the tool's schema without running
    /// the tool.
    async fn edited(&self, asked: PendingCall, input: serde_json::Value) -> Result<EditedCall, SessionError> {
        let components = self.inner.shared.components();
        let call = ToolCall { input: input.clone(), input_error: None, ..(*asked.call).clone() };
        match components.tools.prepare(&call, &asked.session_context).await {
            Ok(prepared) => Ok(EditedCall { input, prepared }),
            Err(outcome) => Err(SessionError::BadParam("updated_input", outcome.output)),
        }
    }

    /// Answers a question of any session. Returns the session and the seq of the answer.
    ///
    /// # Errors
    /// The question does not exist or is settled.
    pub async fn answer_question(&self, chosen: QuestionAnswer) -> Result<(SessionId, Seq), SessionError> {
        let store = &self.inner.shared.store;
        let request = RequestId::Question(chosen.request_id);
        let known = store.request(request).await?.ok_or(SessionError::NoSuchQuestion)?;
        let handle = self.open(known.session_id).await?;
        let resolved = handle.answer_question(chosen).await;
        if resolved == Err(SessionError::Refused(crate::engine::Refusal::NotPending))
            && let Some(settled) = store.request(request).await?.and_then(|known| known.settled)
        {
            return Err(SessionError::Settled(settled));
        }
        Ok((known.session_id, resolved?))
    }

    /// A page of pending permission requests, oldest first.
    ///
    /// # Errors
    /// The session does not exist, or the database could not be read.
    pub async fn pending(
        &self,
        session: Option<SessionId>,
        after: Option<PermissionId>,
        limit: u32,
    ) -> Result<(Vec<Pending>, Option<PermissionId>), SessionError> {
        let store = &self.inner.shared.store;
        let key = match session {
            Some(id) => Some(store.find(id).await?.ok_or(SessionError::NotFound)?),
            None => None,
        };
        let after = after.map(|id| id.to_string());
        let mut rows = store.pending_requests(key, after.as_deref(), limit + 1).await?;
        let mut bytes = 0;
        let mut fits = |row: &StoredRequest| {
            bytes += row.body.len();
            bytes <= PAGE_BYTES
        };
        let page = rows.iter().take(limit as usize).take_while(|row| fits(row)).count().max(1);
        let more = rows.len() > page;
        rows.truncate(page);
        let requests: Vec<Pending> = rows
            .iter()
            .filter_map(|row| serde_json::from_str::<Envelope>(&row.body).ok())
            .filter_map(|envelope| match envelope.event {
                Event::PermissionRequested { request, read_only, change, sandbox } => {
                    let Envelope { session_id, at_ms, truncated_fields, .. } = envelope;
                    Some(Pending { session_id, at_ms, truncated_fields, request, read_only, change, sandbox })
                }
                _ => None,
            })
            .collect();
        let next = if more { requests.last().map(|pending| pending.request.request_id) } else { None };
        Ok((requests, next))
    }

    /// Stops a session and removes it with its history.
    ///
    /// # Errors
    /// The session does not exist, or the store failed.
    pub async fn delete(
        &self,
        id: SessionId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<(), SessionError> {
        if let Some(keyed) = &keyed
            && let Some(known) = self.inner.shared.store.remembered(DELETE, &keyed.key).await?
        {
            return if known.digest == keyed.digest {
                Ok(())
            } else {
                Err(SessionError::Conflict("idempotency_key"))
            };
        }
        let handle = self.open(id).await?;
        handle.kill(None, origin).await?;
        handle.park(false).await;
        let idempotency = keyed.map(|keyed| Idempotency {
            method: DELETE,
            key: keyed.key,
            digest: keyed.digest,
            reply: String::new(),
        });
        self.inner.shared.store.delete(handle.key(), idempotency, self.inner.shared.clock.now()).await?;
        self.inner.live.remove(&id);
        Ok(())
    }

    /// Runs `work` unless a call of `method` with this key was answered before; then returns that reply again.
    /// Keys of calls without a session expire after 24 hours. The reply is stored after the work, so after a
    /// crash in between, a repeated call runs the work again. Errors are not stored.
    ///
    /// # Errors
    /// The key was used with other parameters, the store failed, or the work failed.
    pub async fn once<T, E>(
        &self,
        method: &'static str,
        session: Option<SessionId>,
        keyed: Option<IdempotencyKey>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
        E: From<SessionError>,
    {
        let Some(IdempotencyKey { key, digest }) = keyed else { return work.await };
        let one_at_a_time = Arc::clone(&self.inner.keyed_calls.entry(method).or_default());
        let _alone = one_at_a_time.lock().await;
        let (store, clock) = (&self.inner.shared.store, &self.inner.shared.clock);
        let failed = |error| E::from(SessionError::Store(error));
        let key = session.map_or_else(|| key.clone(), |id| commands::scoped(id, &key));
        let known = store.remembered_today(method, &key, clock.now()).await.map_err(failed)?;
        if let Some(known) = known {
            if known.digest != digest {
                return Err(E::from(SessionError::Conflict("idempotency_key")));
            }
            if let Ok(reply) = serde_json::from_str(&known.reply) {
                return Ok(reply);
            }
        }
        let row = match session {
            Some(id) => store.find(id).await.map_err(failed)?,
            None => None,
        };
        let reply = work.await?;
        let kept =
            Idempotency { method, key, digest, reply: serde_json::to_string(&reply).unwrap_or_default() };
        if let Err(error) = store.keep_reply(row, kept, clock.now()).await {
            // The work cannot be undone, so the caller receives its result.
            tracing::warn!(method, %error, "a reply could not be kept for its idempotency key");
        }
        Ok(reply)
    }

    /// Writes an audit row for a decision outside of any session.
    ///
    /// # Errors
    /// The row was not written.
    pub async fn note(&self, note: AuditNote) -> Result<(), SessionError> {
        Ok(self.inner.shared.store.record(vec![note], Sync::Normal).await?)
    }

    /// Number of sessions whose task runs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.inner.actors.len()
    }

    /// Stops all work and waits for it. Turns are parked, so that a restart can resume them. No session can be
    /// opened afterwards. The call may be dropped and repeated, also with a different `patient`.
    pub async fn park_all(&self, patient: bool) {
        self.inner.closing.store(true, Ordering::Release);
        let slots: Vec<SessionSlot> = self.inner.live.iter().map(|entry| Arc::clone(entry.value())).collect();
        let parked = slots.iter().filter_map(|slot| slot.get()).map(|loaded| loaded.park(patient));
        self.inner.actors.close();
        futures_util::future::join_all(parked).await;
        self.inner.live.clear();
        // This includes sessions that were being loaded: no task writes after this.
        self.inner.actors.wait().await;
    }
}
