//! Who is inside a session. It may leave memory only while nobody is, and once it leaves nobody gets
//! in any more: whoever comes then waits until it is gone and opens it anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Stands for a number of visits: nobody gets in.
const SHUT: u32 = u32::MAX;

/// The door of one loaded session.
#[derive(Debug, Default)]
pub(super) struct Door {
    visits: AtomicU32,
    rests: AtomicBool,
    used: AtomicU64,
}

/// Somebody is inside, until this is dropped.
#[derive(Debug)]
pub(super) struct Visit(Arc<Door>);

impl Door {
    /// An open door; being made counts as a visit at this tick.
    pub fn new(tick: u64) -> Self {
        Self { used: AtomicU64::new(tick), ..Self::default() }
    }

    /// Lets somebody in; `None` once the session leaves. `tick` rises from visit to visit.
    pub fn enter(self: &Arc<Self>, tick: u64) -> Option<Visit> {
        let step = |visits| (visits < SHUT - 1).then(|| visits + 1);
        self.visits.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).ok()?;
        self.used.fetch_max(tick, Ordering::Relaxed);
        Some(Visit(Arc::clone(self)))
    }

    /// For the session: shuts for ever if nobody is inside.
    pub fn shut(&self) -> bool {
        self.visits.compare_exchange(0, SHUT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[cfg(test)]
    pub fn is_shut(&self) -> bool {
        self.visits.load(Ordering::Acquire) == SHUT
    }

    /// For the session: whether it has nothing to do.
    pub fn rest(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    /// The tick of the last visit, if the session has nothing to do and nobody is inside.
    pub fn empty_since(&self) -> Option<u64> {
        let is_empty = self.rests.load(Ordering::Relaxed) && self.visits.load(Ordering::Relaxed) == 0;
        is_empty.then(|| self.used.load(Ordering::Relaxed))
    }
}

impl Clone for Visit {
    fn clone(&self) -> Self {
        // Somebody is inside already, so the door is open.
        self.0.visits.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.visits.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shuts_only_behind_the_last_and_then_for_ever() {
        let door = Arc::new(Door::default());
        let first = door.enter(1).expect("it is open");
        let second = first.clone();
        drop(first);
        assert!(!door.shut(), "somebody is inside");
        drop(second);
        assert!(door.shut() && door.is_shut());
        assert!(door.enter(2).is_none() && !door.shut());
    }

    #[test]
    fn only_who_rests_and_is_alone_may_be_asked_to_leave() {
        let door = Arc::new(Door::default());
        let visit = door.enter(7);
        door.rest(true);
        assert_eq!(door.empty_since(), None);
        drop(visit);
        assert_eq!(door.empty_since(), Some(7));
        door.rest(false);
        assert_eq!(door.empty_since(), None);
    }
}
