//! Caches the edit of a large file from its preparation until it runs a moment later: reading, searching and
//! writing megabytes a second time is the slowest part.
//!
//! The cache is not trusted. The current content is compared with the prepared content before it is replaced,
//! and a call without a cached edit computes everything again. At most one edit is cached, and only for a call
//! that may run at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tools::files::edit::Input;
use crate::tools::files::edit_guard::Change;
use crate::types::ids::CallId;

/// The newest prepared edit.
#[derive(Default)]
pub(super) struct Ahead(Mutex<Option<(CallId, Look)>>);

/// A prepared edit.
pub(super) struct Look {
    pub(super) input: Input,
    pub(super) change: Change,
    /// Number of replacements.
    pub(super) replaced: usize,
}

impl Ahead {
    /// Replaces the cached edit.
    pub(super) fn keep(&self, call_id: CallId, look: Look) {
        *self.slot() = Some((call_id, look));
    }

    /// Takes the edit of this call; each is used once.
    pub(super) fn take(&self, call_id: CallId) -> Option<Look> {
        self.slot().take_if(|(whose, _)| *whose == call_id).map(|(_, look)| look)
    }

    /// Removes the cached edit.
    pub(super) fn clear(&self) {
        *self.slot() = None;
    }

    /// A panic cannot leave the value inconsistent.
    fn slot(&self) -> MutexGuard<'_, Option<(CallId, Look)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
