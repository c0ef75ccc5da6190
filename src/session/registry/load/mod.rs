//! Loads and unloads sessions. A session is loaded when it is used. It is unloaded when it was unused
//! for some time, or when too many sessions are loaded. Clients do not notice this: each handle keeps
//! its session loaded, and a caller during an unload waits and then loads the session again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{SetOnce, mpsc};

use crate::actor::command::SessionCommand;
use crate::actor::effects::EffectRunner;
use crate::actor::{Actor, ActorLinks};
use crate::attach::AttachedClients;
use crate::error::SessionError;
use crate::handle::{LoadedSession, SessionHandle};
use crate::lease::LeaseCount;
use crate::registry::{Registry, SessionSlot, subagents};
use crate::requests::ParkPatience;
use crate::stream::feed::Feed;
use base::sync::lock;
use engine::{Engine, Input, LATEST_ONLY_KINDS, Recovery, TRANSIENT_KINDS};
use store::{Page, SessionKey};
use types::event::{Event, HISTORY_LOST};
use types::ids::{Seq, SessionId};

#[cfg(test)]
pub(crate) mod tests;

/// Capacity of a session's mailbox. When it is full, callers wait.
const MAILBOX_CAPACITY: usize = 64;
/// Capacity of the queue of process records. When it is full, tools wait.
const PROCESS_START_CAPACITY: usize = 16;
/// Rows per read while a session is loaded.
const PAGE_ROWS: u32 = 1_000;
/// Bytes per read. At least one event is read, whatever its length.
const PAGE_BYTES: usize = 1024 * 1024;
/// How often a session that panics directly after loading is loaded again for one caller.
const MAX_CRASHES: usize = 3;

/// Counts one loaded session until it is dropped.
struct LoadedGuard(Arc<AtomicUsize>);

impl Drop for LoadedGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The source of a session's state.
enum StateSource {
    /// The session was just created.
    Made(Box<Engine>),
    Journal,
}

/// Reports the result of loading, even after a panic.
struct LoadOutcome {
    loaded: Arc<SetOnce<Result<Arc<str>, SessionError>>>,
    feed: Arc<Feed>,
}

impl LoadOutcome {
    fn is(self, result: Result<Arc<str>, SessionError>) {
        let has_failed = result.is_err();
        // Setting cannot fail, because no other code sets this value.
        let _ = self.loaded.set(result);
        if has_failed {
            self.feed.crash();
        }
    }
}

impl Drop for LoadOutcome {
    fn drop(&mut self) {
        if self.loaded.set(Err(SessionError::Crashed)).is_ok() {
            self.feed.crash();
        }
    }
}

impl Registry {
    /// A handle on a session, loaded from the journal if necessary. The session stays loaded as long as the
    /// handle exists.
    ///
    /// # Errors
    /// The session does not exist or could not be read.
    pub async fn open(&self, id: SessionId) -> Result<SessionHandle, SessionError> {
        let mut crashes = 0;
        loop {
            let handle = self.open_soon(id).await?;
            match handle.loaded().await {
                Ok(_) => return Ok(handle),
                Err(error) => {
                    self.remove_ended(&handle).await;
                    crashes += 1;
                    if error != SessionError::Crashed || crashes > MAX_CRASHES {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Like [`Registry::open`], but does not wait until the session is loaded. Requests to the handle
    /// wait for the loading, and fail if loading fails.
    ///
    /// # Errors
    /// The session does not exist, or its existence could not be checked.
    pub async fn open_soon(&self, id: SessionId) -> Result<SessionHandle, SessionError> {
        let mut crashes = 0;
        loop {
            self.check_open()?;
            let slot = self.slot(id);
            let loaded_session = match slot.get_or_try_init(|| self.load(id)).await {
                Ok(loaded_session) => loaded_session.clone(),
                Err(error) => {
                    // Remove the slot only if no other call loads into it: a task in a removed slot would be a
                    // second owner. Slots are acquired under the same lock.
                    let is_last = |slot: &SessionSlot| !slot.initialized() && Arc::strong_count(slot) <= 2;
                    self.inner.slots.remove_if(&id, |_, known| Arc::ptr_eq(known, &slot) && is_last(known));
                    return Err(error);
                }
            };
            if loaded_session.has_crashed() {
                crashes += 1;
                if crashes > MAX_CRASHES {
                    return Err(SessionError::Crashed);
                }
            } else {
                let tick = self.inner.lease_count.fetch_add(1, Ordering::Relaxed);
                if let Some(handle) = loaded_session.acquire(tick) {
                    // A concurrent shutdown may not have seen this session.
                    if let Err(stopping) = self.check_open() {
                        handle.park(ParkPatience::StopTools).await;
                        return Err(stopping);
                    }
                    return Ok(handle);
                }
            }
            // The old task handles its last messages first, because only one task may own a session.
            loaded_session.wait_for_end().await;
            self.inner.slots.remove_if(&id, |_, known| Arc::ptr_eq(known, &slot));
        }
    }

    /// Key and newest published seq of a session, without loading it.
    pub async fn journal(&self, id: SessionId) -> Result<(SessionKey, Seq), SessionError> {
        let slot = self.inner.slots.get(&id).map(|slot| Arc::clone(&slot));
        if let Some(loaded_session) = slot.as_ref().and_then(|slot| slot.get()).filter(|it| !it.has_crashed())
        {
            return Ok((loaded_session.key, loaded_session.feed.last_seq()));
        }
        let store = &self.inner.shared.store;
        let key = store.find(id).await?.ok_or(SessionError::NotFound)?;
        Ok((key, store.last_seq(key).await?))
    }

    /// Waits until the session's task has ended, then removes its slot from the map.
    async fn remove_ended(&self, handle: &SessionHandle) {
        handle.ended().await;
        let is_own_slot = |slot: &SessionSlot| slot.get().is_some_and(|loaded| handle.is_handle_on(loaded));
        self.inner.slots.remove_if(&handle.id(), |_, slot| is_own_slot(slot));
    }

    /// Number of loaded sessions.
    #[must_use]
    pub fn loaded(&self) -> usize {
        self.inner.loaded.load(Ordering::Relaxed)
    }

    /// Number of sessions that were unloaded since the start.
    #[must_use]
    pub fn unloaded(&self) -> u64 {
        self.inner.unloaded.load(Ordering::Relaxed)
    }

    pub(crate) fn slot(&self, id: SessionId) -> SessionSlot {
        // The guard ends with this statement, so no await happens under it.
        Arc::clone(&self.inner.slots.entry(id).or_default())
    }

    async fn load(&self, id: SessionId) -> Result<LoadedSession, SessionError> {
        self.check_open()?;
        let store = &self.inner.shared.store;
        let key = store.find(id).await?.ok_or(SessionError::NotFound)?;
        let last_seq = store.last_seq(key).await?;
        Ok(self.spawn(id, key, last_seq, StateSource::Journal))
    }

    /// Loads a session that was just created.
    pub(crate) fn insert_created(&self, id: SessionId, key: SessionKey, engine: Engine) -> LoadedSession {
        let last_seq = engine.next_seq() - 1;
        self.spawn(id, key, last_seq, StateSource::Made(Box::new(engine)))
    }

    /// Replays a journal. Returns the state and the session's first input. Of settled turns, only the
    /// rows that a replay needs are read.
    async fn read(
        &self,
        id: SessionId,
        key: SessionKey,
        last_seq: Seq,
    ) -> Result<(Engine, Input), SessionError> {
        let shared = &self.inner.shared;
        let mut engine = Engine::new(id, Arc::clone(&shared.components().settings.engine));
        let settled = shared.store.settled_turns(key, TRANSIENT_KINDS, LATEST_ONLY_KINDS).await?;
        let mut cursor: Seq = 0;
        // Whether the journal ends where a damaged database was truncated.
        let mut is_cut = false;
        loop {
            self.check_open()?;
            let Page { rows, is_last } =
                shared.store.lasting_events_after(key, cursor, &settled, PAGE_ROWS, PAGE_BYTES).await?;
            cursor = rows.last().map_or(cursor, |last| last.seq);
            for row in &rows {
                // This event has a kind of a later version. Its seq counts, but its meaning is unknown.
                let Some(envelope) = shared.store.restored_event(key, row.seq, &row.body).await? else {
                    continue;
                };
                is_cut = matches!(&envelope.event, Event::Notice { kind, .. } if kind == HISTORY_LOST);
                engine.apply(&envelope);
            }
            if is_last {
                break;
            }
        }
        // An open turn continues with the tools that it had before.
        let components = shared.components();
        engine.replace_settings(components.engine_settings(Path::new(&engine.spec().cwd)));
        engine.skip_to(last_seq + 1);
        let is_aborted = lock(&shared.aborted_at_load).remove(&id);
        // Interrupted work may have finished in the lost part, so it must not run again.
        let first = if is_cut || is_aborted {
            Input::Abort { turn_id: None, call_id: None, origin: None }
        } else {
            let model = engine.model().parse().ok();
            Input::Recovered(Recovery {
                model_snapshot: model
                    .map(|model| shared.components().models.model_snapshot(&model))
                    .unwrap_or_default(),
            })
        };
        Ok((engine, first))
    }

    fn spawn(&self, id: SessionId, key: SessionKey, last_seq: Seq, source: StateSource) -> LoadedSession {
        let (mailbox, inbox) = mpsc::channel(MAILBOX_CAPACITY);
        let (leaving, left) = mpsc::unbounded_channel();
        let shared = Arc::clone(&self.inner.shared);
        let feed = Arc::new(Feed::new(last_seq, Arc::clone(&shared.feed_pool)));
        let clients = Arc::<AttachedClients>::default();
        let leases = Arc::new(LeaseCount::new(self.inner.lease_count.fetch_add(1, Ordering::Relaxed)));
        let loaded = Arc::new(SetOnce::new());
        let commands = Arc::default();
        let loaded_session = LoadedSession {
            id,
            key,
            store: shared.store.clone(),
            mailbox,
            leaving,
            feed: Arc::clone(&feed),
            clients: Arc::clone(&clients),
            leases: Arc::clone(&leases),
            commands: Arc::clone(&commands),
            loaded: Arc::clone(&loaded),
        };
        self.inner.loaded.fetch_add(1, Ordering::Relaxed);
        let counted = LoadedGuard(Arc::clone(&self.inner.loaded));
        let inner = Arc::downgrade(&self.inner);
        let outcome = LoadOutcome { loaded, feed: Arc::clone(&feed) };
        self.inner.actor_tasks.spawn(async move {
            let _counted = counted;
            let known = match source {
                StateSource::Made(engine) => Ok((*engine, None)),
                StateSource::Journal => match inner.upgrade().map(|inner| Registry { inner }) {
                    // Boxed, because the future is large and short-lived.
                    Some(registry) => Box::pin(registry.read(id, key, last_seq))
                        .await
                        .map(|(engine, first)| (engine, Some(first))),
                    None => Err(SessionError::ShuttingDown),
                },
            };
            match known {
                Ok((engine, first)) => {
                    outcome.is(Ok(engine.spec().cwd.as_str().into()));
                    // Boxed, because otherwise this task would reserve the space twice for its whole life.
                    let running = {
                        let (process_start, process_starts) = mpsc::channel(PROCESS_START_CAPACITY);
                        let links =
                            ActorLinks { inbox, leaving: left, process_starts, feed, clients, commands };
                        let host = Arc::new(subagents::RegistryHost(inner.clone()));
                        let effects = EffectRunner::new(Arc::clone(&shared), key, process_start, host);
                        let journal = shared.database.journal_writer(key);
                        let actor = Actor::new(shared, engine, journal, effects, links, Arc::clone(&leases));
                        Box::pin(actor.run(first))
                    };
                    running.await;
                }
                // The feed and the waiting callers receive the reason.
                Err(error) => {
                    outcome.is(Err(error));
                    drop(inbox);
                }
            }
            if let Some(inner) = inner.upgrade() {
                // Remove the slot only if it is this session's own: a later load may have filled
                // another one already.
                let is_own = |slot: &SessionSlot| {
                    slot.get().is_some_and(|loaded_session| Arc::ptr_eq(&loaded_session.leases, &leases))
                };
                inner.slots.remove_if(&id, |_, slot| is_own(slot));
                inner.unloaded.fetch_add(1, Ordering::Relaxed);
            }
        });
        self.unload_excess();
        loaded_session
    }

    /// Asks the least recently used sessions to unload if there are too many.
    fn unload_excess(&self) {
        let most = self.inner.shared.components().settings.loaded_sessions;
        let excess = self.loaded().saturating_sub(most);
        if excess == 0 {
            return;
        }
        let empty_since = |slot: &SessionSlot| {
            let loaded_session = slot.get()?;
            Some((loaded_session.leases.empty_since()?, loaded_session.mailbox.clone()))
        };
        let mut empty: Vec<(u64, mpsc::Sender<Box<SessionCommand>>)> =
            self.inner.slots.iter().filter_map(|entry| empty_since(entry.value())).collect();
        empty.sort_unstable_by_key(|(tick, _)| *tick);
        for (_, mailbox) in empty.into_iter().take(excess) {
            // A session with a full mailbox is in use.
            let _ = mailbox.try_send(Box::new(SessionCommand::Unload));
        }
    }
}
