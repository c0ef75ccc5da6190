//! What an edit of a large file came to when it was looked at, kept until it is made a moment later: to read,
//! search and write together megabytes a second time takes longer than all the rest.
//!
//! Nothing rests on it. What is there is compared with what was looked at before it is replaced, as ever; and
//! a call that finds nothing kept works everything out again. One is kept at most, and only for a call that
//! may run at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tools::files::edit::Input;
use crate::tools::files::edit_guard::Change;
use crate::types::ids::CallId;

/// The newest look.
#[derive(Default)]
pub(super) struct Ahead(Mutex<Option<(CallId, Look)>>);

/// A change that was worked out.
pub(super) struct Look {
    pub(super) input: Input,
    pub(super) change: Change,
    /// In how many places.
    pub(super) replaced: usize,
}

impl Ahead {
    /// Keeps it in the place of the one before.
    pub(super) fn keep(&self, call_id: CallId, look: Look) {
        *self.slot() = Some((call_id, look));
    }

    /// The call's own, once.
    pub(super) fn take(&self, call_id: CallId) -> Option<Look> {
        self.slot().take_if(|(whose, _)| *whose == call_id).map(|(_, look)| look)
    }

    /// Lets go of whatever is kept.
    pub(super) fn clear(&self) {
        *self.slot() = None;
    }

    /// What is in it is whole at every moment.
    fn slot(&self) -> MutexGuard<'_, Option<(CallId, Look)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
