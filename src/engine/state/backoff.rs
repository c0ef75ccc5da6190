//! A wait before another attempt at a model call.

use types::time::Timestamp;

/// A wait, as of its last report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backoff {
    /// Remaining wait, in milliseconds.
    pub left_ms: u64,
    /// Time at which `left_ms` was valid.
    pub reported_at: Timestamp,
    /// Reason of the wait.
    pub reason: String,
    /// Number of the last failed attempt.
    pub attempt: u32,
    /// Maximum number of attempts; 0 for no maximum, `None` in old journals.
    pub max: Option<u32>,
}
