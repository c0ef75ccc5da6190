//! Into memory and out of it (S15). A session is loaded when it is used, and leaves when nobody used
//! it for a while or when there are too many. Nobody notices: whoever holds a handle keeps it loaded,
//! and whoever comes while it leaves waits for that moment and loads it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::actor::{Actor, Tending};
use super::door::Door;
use super::error::SessionError;
use super::feed::Feed;
use super::handle::{Command, Resident, SessionHandle};
use super::jobs::Jobs;
use super::registry::{Registry, Slot};
use crate::engine::{Engine, Input, Recovery};
use crate::store::{HISTORY_LOST, Page, SessionKey};
use crate::types::event::Event;
use crate::types::ids::{Seq, SessionId};

#[cfg(test)]
pub(super) mod tests;

/// Commands that may wait for one session; callers wait beyond that.
const MAILBOX: usize = 64;
/// Started processes that may wait to be recorded; tools wait beyond that.
const BIRTHS: usize = 16;
/// Rows read at once when a session is loaded.
const PAGE: u32 = 1_000;
/// Bytes read at once; one event is always read, however long.
const PAGE_BYTES: usize = 1024 * 1024;
/// How often a session that panics as soon as it is loaded is loaded again for one caller.
const CRASHES: usize = 3;

/// One of the loaded sessions, until it is dropped.
struct Loaded(Arc<AtomicUsize>);

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Registry {
    /// A handle on a session, loaded from the journal if need be. It stays in memory as long as the
    /// handle.
    ///
    /// # Errors
    /// There is no such session, or it could not be read.
    pub async fn open(&self, id: SessionId) -> Result<SessionHandle, SessionError> {
        let mut crashes = 0;
        loop {
            self.check_open()?;
            let slot = self.slot(id);
            let resident = match slot.get_or_try_init(|| self.load(id)).await {
                Ok(resident) => resident.clone(),
                Err(error) => {
                    // Only if nobody else loads into it now: a task in a place that is off the map
                    // would be a second owner. Places are taken under the same lock.
                    let is_last = |slot: &Slot| !slot.initialized() && Arc::strong_count(slot) <= 2;
                    self.inner.live.remove_if(&id, |_, known| Arc::ptr_eq(known, &slot) && is_last(known));
                    return Err(error);
                }
            };
            if resident.has_crashed() {
                crashes += 1;
                if crashes > CRASHES {
                    return Err(SessionError::Crashed);
                }
            } else {
                let tick = self.inner.tick.fetch_add(1, Ordering::Relaxed);
                if let Some(handle) = resident.enter(tick) {
                    // Whoever began to stop everything may not have seen this one.
                    if let Err(stopping) = self.check_open() {
                        handle.park(false).await;
                        return Err(stopping);
                    }
                    return Ok(handle);
                }
            }
            // Its last words come first: one task owns a session.
            resident.gone().await;
            self.inner.live.remove_if(&id, |_, known| Arc::ptr_eq(known, &slot));
        }
    }

    /// Key and newest published event of a session, which is not loaded for that.
    ///
    /// # Errors
    /// There is no such session, or the database could not be read.
    pub async fn journal(&self, id: SessionId) -> Result<(SessionKey, Seq), SessionError> {
        let slot = self.inner.live.get(&id).map(|slot| Arc::clone(&slot));
        if let Some(resident) = slot.as_ref().and_then(|slot| slot.get()).filter(|it| !it.has_crashed()) {
            return Ok((resident.key, resident.feed.last_seq()));
        }
        let store = &self.inner.house.store;
        let key = store.find(id).await?.ok_or(SessionError::NotFound)?;
        Ok((key, store.last_seq(key).await?))
    }

    /// Sessions in memory.
    #[must_use]
    pub fn loaded(&self) -> usize {
        self.inner.loaded.load(Ordering::Relaxed)
    }

    pub(super) fn slot(&self, id: SessionId) -> Slot {
        // The guard ends with the statement: nothing is awaited under it.
        Arc::clone(&self.inner.live.entry(id).or_default())
    }

    async fn load(&self, id: SessionId) -> Result<Resident, SessionError> {
        self.check_open()?;
        let house = &self.inner.house;
        let key = house.store.find(id).await?.ok_or(SessionError::NotFound)?;
        let mut engine = Engine::new(id, Arc::clone(&house.setup().settings.engine));
        let mut cursor: Seq = 0;
        // Whether the journal ends where a damaged database did.
        let mut is_cut = false;
        loop {
            let Page { rows, is_last } = house.store.events_after(key, cursor, PAGE, PAGE_BYTES).await?;
            cursor = rows.last().map_or(cursor, |last| last.seq);
            for row in &rows {
                // A kind of a later version: its number counts, its meaning is not known.
                let Some(envelope) = house.store.whole(key, row.seq, &row.body).await? else { continue };
                is_cut = matches!(&envelope.event, Event::Notice { kind, .. } if kind == HISTORY_LOST);
                engine.apply(&envelope);
            }
            if is_last {
                break;
            }
        }
        engine.skip_to(house.store.last_seq(key).await? + 1);
        // What was under way may have come to its end in the part that is lost: it is not done again.
        let first = if is_cut {
            Input::Abort { turn_id: None, call_id: None, origin: None }
        } else {
            let model = engine.model().parse().ok();
            Input::Recovered(Recovery { price: model.and_then(|model| house.setup().models.price(&model)) })
        };
        Ok(self.spawn(id, key, engine, Some(first)))
    }

    pub(super) fn spawn(
        &self,
        id: SessionId,
        key: SessionKey,
        engine: Engine,
        first: Option<Input>,
    ) -> Resident {
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let (leaving, left) = mpsc::unbounded_channel();
        let feed = Arc::new(Feed::new(engine.next_seq() - 1));
        let clients = Arc::new(AtomicU32::new(0));
        let door = Arc::new(Door::new(self.inner.tick.fetch_add(1, Ordering::Relaxed)));
        let house = Arc::clone(&self.inner.house);
        let resident = Resident {
            id,
            key,
            store: house.store.clone(),
            mailbox,
            leaving,
            feed: Arc::clone(&feed),
            clients: Arc::clone(&clients),
            door: Arc::clone(&door),
        };
        let (birth, births) = mpsc::channel(BIRTHS);
        let jobs = Jobs::new(Arc::clone(&house), key, birth);
        let actor = Actor {
            id,
            key,
            house,
            engine,
            feed,
            clients,
            inbox,
            leaving: left,
            births,
            jobs,
            door,
            state: Tending::default(),
        };
        self.inner.loaded.fetch_add(1, Ordering::Relaxed);
        let loaded = Loaded(Arc::clone(&self.inner.loaded));
        let inner = Arc::downgrade(&self.inner);
        self.inner.actors.spawn(async move {
            let _loaded = loaded;
            actor.run(first).await;
            if let Some(inner) = inner.upgrade() {
                // Only its own place: another with an open door may stand there already.
                let is_own = |slot: &Slot| slot.get().is_some_and(|resident| resident.door.is_shut());
                inner.live.remove_if(&id, |_, slot| is_own(slot));
            }
        });
        self.make_room();
        resident
    }

    /// Asks those that were not used for longest to leave, if there are too many.
    fn make_room(&self) {
        let most = self.inner.house.setup().settings.loaded_sessions;
        let excess = self.loaded().saturating_sub(most);
        if excess == 0 {
            return;
        }
        let empty_since = |slot: &Slot| {
            let resident = slot.get()?;
            Some((resident.door.empty_since()?, resident.mailbox.clone()))
        };
        let mut empty: Vec<(u64, mpsc::Sender<Command>)> =
            self.inner.live.iter().filter_map(|entry| empty_since(entry.value())).collect();
        empty.sort_unstable_by_key(|(tick, _)| *tick);
        for (_, mailbox) in empty.into_iter().take(excess) {
            // One whose mailbox is full is in use.
            let _ = mailbox.try_send(Command::Unload);
        }
    }
}
