//! The map of loaded sessions. `create` creates sessions, and `load` loads and unloads them.
//!
//! Most other files handle one kind of request. `new_session_request`, `new_session_spec`, `coordinator`, `environment`
//! and `initial_items` are parts of creating a session. `keyed_calls` answers a repeated call that writes to no journal,
//! and `grant_outbox` writes the grants that a crash has left.
//!
//! Unless a function says more, its errors are a session that does not exist and a database that could not be read.

mod answer;
mod coordinator;
mod create;
mod earlier_requests;
mod environment;
pub(super) mod explain;
mod folders;
mod grant_outbox;
mod hooks;
pub(super) mod initial_items;
mod job_templates;
mod keyed_calls;
pub(super) mod load;
pub(super) mod mcp;
mod mcp_resources;
mod mcp_sessions;
mod memory;
pub(super) mod new_session_request;
mod new_session_spec;
mod next_request;
mod options;
pub(super) mod pending;
pub(super) mod project;
mod restrictions;
pub(super) mod rules;
pub(super) mod session_changes;
mod session_worktrees;
mod subagents;
mod submit;
pub(super) mod trust;
pub(super) mod usage_of_index;
pub(super) mod views;
mod wait;
pub(crate) mod worktrees;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::task::TaskTracker;

use super::error::SessionError;
use super::handle::LoadedSession;
use crate::idempotency::{IdempotencyKey, method};
use crate::loaded_workspaces::LoadedWorkspaces;
use crate::requests::{AbortOutcome, ParkPatience, Reloaded};
use crate::shared::{Components, Shared, StatusChange};
use crate::staged_imports::StagedImports;
use base::crash;
use base::sync::lock;
use store::{Idempotency, SessionQuery, StoreError};
use types::event::Origin;
use types::ids::{CallId, SessionId};
use types::metrics::Metrics;
use types::subagent::HIDDEN_AGENT;

/// Maximum number of sub-agents that are ended or deleted with their session. Further sub-agents stay.
const MAX_CHILDREN: u32 = 10_000;
/// How long one session may take to apply a new configuration before the reload continues.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(1);

/// Notifies loaded sessions of a reload, each for a limited time.
async fn notify_reload(slots: &[SessionSlot], reloaded: &Reloaded) {
    let notifications = slots
        .iter()
        .filter_map(|slot| slot.get())
        .map(|loaded| tokio::time::timeout(RELOAD_TIMEOUT, loaded.reloaded(reloaded.clone())));
    futures_util::future::join_all(notifications).await;
}

/// The map entry of one session. It is filled once, and unloading removes it.
pub(super) type SessionSlot = Arc<OnceCell<LoadedSession>>;

/// All sessions. Cloning is cheap.
#[derive(Clone)]
pub struct Registry {
    pub(super) inner: Arc<Inner>,
}

/// What all clones of a [`Registry`] share.
pub(super) struct Inner {
    pub shared: Arc<Shared>,
    /// The sessions that are loaded or being loaded.
    pub slots: DashMap<SessionId, SessionSlot>,
    /// The tasks of the loaded sessions.
    pub actor_tasks: TaskTracker,
    /// Whether the daemon stops, so that no session may be opened.
    is_closing: AtomicBool,
    /// Imports that wait for their last part.
    pub imports: StagedImports,
    /// Per method: a lock that serialises calls with an idempotency key, if these calls write to no journal.
    keyed_calls: DashMap<(&'static str, String), Arc<Mutex<()>>>,
    /// Number of running sub-agents by the first session of their tree.
    pub subagents: DashMap<SessionId, usize>,
    /// Number of loaded sessions.
    pub loaded: Arc<AtomicUsize>,
    /// Number of sessions that were unloaded since the start.
    pub unloaded: AtomicU64,
    /// Number of leases since the start. It orders the sessions by their last use.
    pub lease_count: AtomicU64,
}

impl Registry {
    /// Creates a registry without loaded sessions.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        let inner = Inner {
            shared: Arc::new(shared),
            slots: DashMap::new(),
            actor_tasks: TaskTracker::new(),
            is_closing: AtomicBool::new(false),
            subagents: DashMap::new(),
            imports: StagedImports::default(),
            keyed_calls: DashMap::new(),
            loaded: Arc::default(),
            unloaded: AtomicU64::new(0),
            lease_count: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The services that the sessions share.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Like [`Self::shared`], but for work on another thread.
    pub(crate) fn shared_arc(&self) -> Arc<Shared> {
        Arc::clone(&self.inner.shared)
    }

    /// Replaces the components and notifies all loaded sessions. A session with attached clients or an open turn
    /// records an event. A session that does not respond in time uses the new components from its next turn.
    pub async fn reload(&self, components: Components, reloaded: &Reloaded) {
        self.inner.shared.replace(components);
        if reloaded.changed.is_empty() && reloaded.needs_restart.is_empty() {
            return;
        }
        // Do not hold a guard of the map while a session is notified.
        let slots: Vec<SessionSlot> =
            self.inner.slots.iter().map(|entry| Arc::clone(entry.value())).collect();
        notify_reload(&slots, reloaded).await;
    }

    /// The workspaces of loaded sessions.
    #[must_use]
    pub fn loaded_workspaces(&self) -> Arc<LoadedWorkspaces> {
        Arc::clone(&self.inner.shared.workspaces)
    }

    /// Notifies the loaded sessions of a workspace that files which extend them have changed. The changed kinds
    /// are `commands`, `skills`, `agents` or `instructions`. A session with attached clients or an open
    /// turn records an event.
    pub async fn files_changed(&self, cwd: &Path, changed: &Reloaded) {
        let ids = self.inner.shared.workspaces.sessions(cwd);
        let slots: Vec<SessionSlot> =
            ids.iter().filter_map(|id| self.inner.slots.get(id).map(|slot| Arc::clone(&slot))).collect();
        notify_reload(&slots, changed).await;
    }

    /// Loads and resumes every session with an open turn, and every session that left processes. A
    /// session that fails to load does not affect the others. Returns the number of sessions that were loaded.
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
                Ok(Err(error)) => tracing::error!(session = %id, %error, "could not resume a session"),
                Err(error) => tracing::error!(session = %id, %error, "could not resume a session"),
            }
        }
        Ok(recovered)
    }

    /// When this session is loaded next, its open turn is aborted instead of resumed.
    pub fn abort_when_loaded(&self, id: SessionId) {
        lock(&self.inner.shared.aborted_at_load).insert(id);
    }

    /// Refuses with `ShuttingDown` if the daemon stops.
    pub(super) fn check_open(&self) -> Result<(), SessionError> {
        if self.inner.is_closing.load(Ordering::Acquire) { Err(SessionError::ShuttingDown) } else { Ok(()) }
    }

    /// Counters since the start. The caller adds the uptime.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let shared = &self.inner.shared;
        let (database_writes, database_write_errors) = shared.store.writes();
        // Do not hold a guard of the map while a session is inspected.
        let slots: Vec<SessionSlot> =
            self.inner.slots.iter().map(|entry| Arc::clone(entry.value())).collect();
        let clients = slots.iter().filter_map(|slot| slot.get());
        let subscribers = clients.map(|loaded| u64::from(loaded.clients.count())).sum();
        let sessions_loaded = self.loaded() as u64;
        Metrics {
            sessions_loaded,
            subscribers,
            database_writes,
            database_write_errors,
            ..shared.counts.snapshot()
        }
    }

    /// Stops a session and removes it with its history.
    pub async fn delete(
        &self,
        id: SessionId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<(), SessionError> {
        if let Some(keyed) = &keyed
            && let Some(stored) = self.inner.shared.store.stored_reply(method::DELETE, &keyed.key).await?
        {
            return if stored.digest == keyed.digest {
                Ok(())
            } else {
                Err(SessionError::Conflict("idempotency_key"))
            };
        }
        let view = self.view(id).await?;
        if view.agent.as_deref() == Some(HIDDEN_AGENT) {
            let why =
                "it holds the costs of a workspace's index; `agentctl knowledge clear` deletes the index";
            return Err(SessionError::BadParam("session_id", why.into()));
        }
        let handle = self.open(id).await?;
        handle.kill(None, origin.clone()).await?;
        handle.park(ParkPatience::StopTools).await;
        let view = self.view(id).await?;
        for child in self.children(id).await? {
            Box::pin(self.delete(child, None, origin.clone())).await?;
        }
        let idempotency = keyed.map(|keyed| Idempotency {
            method: method::DELETE,
            key: keyed.key,
            digest: keyed.digest,
            reply: String::new(),
        });
        self.inner.shared.database.delete(handle.key(), idempotency, self.inner.shared.clock.now()).await?;
        self.inner.slots.remove(&id);
        self.finish_worktree_of_session(id).await;
        self.finish_worktree_left_to(id, &view.cwd).await;
        self.remove_servers(id).await;
        self.remove_environment(id).await;
        self.inner.shared.notify_status(StatusChange { session_id: id, state: None, requires: None });
        self.inner.shared.notify_deleted(view);
        Ok(())
    }

    /// Stops the turn of a session and ends it and its sub-agents. Returns what was stopped in the session itself,
    /// without its sub-agents.
    pub async fn kill(
        &self,
        id: SessionId,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<AbortOutcome, SessionError> {
        let outcome = self.open(id).await?.kill(keyed, origin.clone()).await?;
        for child in self.children(id).await? {
            Box::pin(self.kill(child, None, origin.clone())).await?;
        }
        self.finish_worktree_of_session(id).await;
        self.finish_worktree_left_to(id, &self.view(id).await?.cwd).await;
        Ok(outcome)
    }

    /// The sub-agents that calls of a session started.
    async fn children(&self, id: SessionId) -> Result<Vec<SessionId>, SessionError> {
        let query = SessionQuery { parent: Some(id), ..SessionQuery::default() };
        let rows = self.inner.shared.store.views(None, MAX_CHILDREN, query).await?;
        Ok(rows.into_iter().map(|(_, view)| view.session_id).collect())
    }

    /// Returns the current error of the storage. If the last write failed, tries a write first.
    ///
    /// # Errors
    /// The current error of the storage.
    pub async fn check_storage(&self) -> Result<(), StoreError> {
        self.inner.shared.database.check().await
    }

    /// Removes the process records of these calls.
    ///
    /// # Errors
    /// The store failed, and no record was removed.
    pub async fn forget_processes(&self, calls: Vec<CallId>) -> Result<(), StoreError> {
        self.inner.shared.database.forget_processes(calls).await
    }

    /// Number of sessions whose task runs.
    #[must_use]
    pub fn running(&self) -> usize {
        self.inner.actor_tasks.len()
    }

    /// Stops all work and waits for its end. Turns are parked, so that a restart can resume them. No session
    /// can be opened afterwards. A caller may drop this call and repeat it, also with a different `patience`.
    pub async fn park_all(&self, patience: ParkPatience) {
        self.inner.is_closing.store(true, Ordering::Release);
        let slots: Vec<SessionSlot> =
            self.inner.slots.iter().map(|entry| Arc::clone(entry.value())).collect();
        let parked = slots.iter().filter_map(|slot| slot.get()).map(|loaded| loaded.park(patience));
        self.inner.actor_tasks.close();
        futures_util::future::join_all(parked).await;
        self.inner.slots.clear();
        // This also waits for sessions that were being loaded, so no task writes after this.
        self.inner.actor_tasks.wait().await;
    }
}
