//! Leases of a loaded session. A session may be unloaded only while it has no leases. Once unloading has
//! begun, no lease can be acquired. A later caller waits until the session is unloaded and loads it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Value of the lease count after it was closed.
const CLOSED_COUNT: u32 = u32::MAX;

/// The lease count of one loaded session.
#[derive(Debug, Default)]
pub(super) struct LeaseCount {
    leases: AtomicU32,
    is_idle: AtomicBool,
    used: AtomicU64,
}

/// Keeps the session loaded until it is dropped.
#[derive(Debug)]
pub(super) struct Lease(Arc<LeaseCount>);

impl LeaseCount {
    /// Creates an open count. `tick` is the tick of its first use.
    pub fn new(tick: u64) -> Self {
        Self { used: AtomicU64::new(tick), ..Self::default() }
    }

    /// Acquires a lease; `None` if the session is being unloaded. `tick` rises with each lease.
    pub fn acquire(self: &Arc<Self>, tick: u64) -> Option<Lease> {
        let step = |visits| (visits < CLOSED_COUNT - 1).then(|| visits + 1);
        self.leases.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).ok()?;
        self.used.fetch_max(tick, Ordering::Relaxed);
        Some(Lease(Arc::clone(self)))
    }

    /// Closes the count permanently if there are no leases. Only the session's task may call this.
    pub fn try_close(&self) -> bool {
        self.leases.compare_exchange(0, CLOSED_COUNT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[cfg(test)]
    pub fn is_closed(&self) -> bool {
        self.leases.load(Ordering::Acquire) == CLOSED_COUNT
    }

    /// Records whether the session has no work. Only the session's task may call this.
    pub fn set_idle(&self, rests: bool) {
        self.is_idle.store(rests, Ordering::Relaxed);
    }

    /// Tick of the newest lease, if the session has no work and no leases.
    pub fn empty_since(&self) -> Option<u64> {
        let is_empty = self.is_idle.load(Ordering::Relaxed) && self.leases.load(Ordering::Relaxed) == 0;
        is_empty.then(|| self.used.load(Ordering::Relaxed))
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        // A lease exists already, so the count is not closed.
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
    use crate::lease::*;

    #[test]
    fn lease_count_closes_only_after_last_lease() {
        let door = Arc::new(LeaseCount::default());
        let first = door.acquire(1).expect("it is open");
        let second = first.clone();
        drop(first);
        assert!(!door.try_close(), "a lease is held");
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
