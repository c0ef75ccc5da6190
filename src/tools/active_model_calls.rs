//! Who waits for a model at this moment (S13). A command that floods is read as fast as it writes while
//! nobody does; beside others it is held back, since their words share the processors and the disk with it.
//!
//! One number for the whole process: what it stands for, the machine, is shared by all of it.

use std::sync::atomic::{AtomicUsize, Ordering};

static PRESENT: AtomicUsize = AtomicUsize::new(0);

/// Somebody waits for a model as long as this lives.
#[derive(Debug)]
pub struct ActiveModelCall(());

impl ActiveModelCall {
    /// Counts one more.
    #[must_use]
    pub fn new() -> Self {
        PRESENT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether anybody does beside the one that asks, who does as well.
    #[must_use]
    pub fn are_others() -> bool {
        PRESENT.load(Ordering::Relaxed) > 1
    }

    /// Whether anybody does.
    #[must_use]
    pub fn is_any() -> bool {
        PRESENT.load(Ordering::Relaxed) > 0
    }
}

impl Default for ActiveModelCall {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ActiveModelCall {
    fn drop(&mut self) {
        PRESENT.fetch_sub(1, Ordering::Relaxed);
    }
}
