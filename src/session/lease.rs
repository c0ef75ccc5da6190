//! Who is inside a session. It may leave memory only while nobody is, and once it leaves nobody gets
//! in any more: whoever comes then waits until it is gone and opens it anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Stands for a number of visits: nobody gets in.
const CLOSED: u32 = u32::MAX;

/// The door of one loaded session.
#[derive(Debug, Default)]
pub(super) struct LeaseCount {
    leases: AtomicU32,
    is_idle: AtomicBool,
    used: AtomicU64,
}

/// Somebody is inside, until this is dropped.
#[derive(Debug)]
pub(super) struct Lease(Arc<LeaseCount>);

impl LeaseCount {
    /// An open door; being made counts as a visit at this tick.
    pub fn new(tick: u64) -> Self {
        Self { used: AtomicU64::new(tick), ..Self::default() }
    }

    /// Lets somebody in; `None` once the session leaves. `tick` rises from visit to visit.
    pub fn acquire(self: &Arc<Self>, tick: u64) -> Option<Lease> {
        let step = |visits| (visits < CLOSED - 1).then(|| visits + 1);
        self.leases.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).ok()?;
        self.used.fetch_max(tick, Ordering::Relaxed);
        Some(Lease(Arc::clone(self)))
    }

    /// For the session: shuts for ever if nobody is inside.
    pub fn try_close(&self) -> bool {
        self.leases.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[cfg(test)]
    pub fn is_closed(&self) -> bool {
        self.leases.load(Ordering::Acquire) == CLOSED
    }

    /// For the session: whether it has nothing to do.
    pub fn set_idle(&self, rests: bool) {
        self.is_idle.store(rests, Ordering::Relaxed);
    }

    /// The tick of the last visit, if the session has nothing to do and nobody is inside.
    pub fn empty_since(&self) -> Option<u64> {
        let is_empty = self.is_idle.load(Ordering::Relaxed) && self.leases.load(Ordering::Relaxed) == 0;
        is_empty.then(|| self.used.load(Ordering::Relaxed))
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        // Somebody is inside already, so the door is open.
        self.0.leases.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.leases.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use crate::session::lease::*;

    #[test]
    fn lease_count_closes_only_after_last_lease() {
        let door = Arc::new(LeaseCount::default());
        let first = door.acquire(1).expect("it is open");
        let second = first.clone();
        drop(first);
        assert!(!door.try_close(), "somebody is inside");
        drop(second);
        assert!(door.try_close() && door.is_closed());
        assert!(door.acquire(2).is_none() && !door.try_close());
    }

    #[test]
    fn idle_session_without_leases_is_eviction_candidate() {
        let door = Arc::new(LeaseCount::default());
        let lease = door.acquire(7);
        door.set_idle(true);
        assert_eq!(door.empty_since(), None);
        drop(lease);
        assert_eq!(door.empty_since(), Some(7));
        door.set_idle(false);
        assert_eq!(door.empty_since(), None);
    }
}
