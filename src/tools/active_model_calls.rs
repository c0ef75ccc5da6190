//! Counts active model calls. A command with much output is read at full speed while no other session waits for
//! a model. Otherwise it is slowed down, because the answers share the processors and the disk with it.
//!
//! There is one counter for the whole process, because all sessions share the machine.

use std::sync::atomic::{AtomicUsize, Ordering};

static ACTIVE_CALLS: AtomicUsize = AtomicUsize::new(0);

/// A session waits for a model for as long as this value exists.
#[derive(Debug)]
pub struct ActiveModelCall(());

impl ActiveModelCall {
    /// Adds one to the counter.
    #[must_use]
    pub fn new() -> Self {
        ACTIVE_CALLS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether another model call is active in addition to the caller's own.
    #[must_use]
    pub fn are_others() -> bool {
        ACTIVE_CALLS.load(Ordering::Relaxed) > 1
    }

    /// Whether any model call is active.
    #[must_use]
    pub fn is_any() -> bool {
        ACTIVE_CALLS.load(Ordering::Relaxed) > 0
    }
}

impl Default for ActiveModelCall {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ActiveModelCall {
    fn drop(&mut self) {
        ACTIVE_CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}
