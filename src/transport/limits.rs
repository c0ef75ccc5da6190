//! Limits for one peer. Everything that can grow is bounded by a number in this module.

use std::time::Duration;

/// Limits of the transport. The defaults suit the daemon of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of an accepted message. A longer one is skipped and answered with an error.
    pub max_message_bytes: usize,
    /// Maximum bytes of a reply; a batch counts as one. A longer one becomes an error.
    pub max_response_bytes: usize,
    /// Maximum number of calls in one batch.
    pub max_batch: usize,
    /// Maximum nesting of `params`: serde_json stops at 128 as well.
    pub max_depth: usize,
    /// Maximum number of open connections; further ones get an error line and are closed.
    pub max_connections: usize,
    /// Maximum number of running calls on one connection; then its reader waits.
    pub max_in_flight: usize,
    /// Maximum bytes of running calls on one connection; then its reader waits. A single message always
    /// passes, however long.
    pub max_in_flight_bytes: usize,
    /// Maximum number of subscriptions on one connection.
    pub max_subscriptions: usize,
    /// Maximum bytes of notifications that wait for one slow reader. Beyond that its subscriptions
    /// wait, each with its last read batch. Including the batch that is being written, the total stays
    /// below 1 MiB.
    pub outbox_bytes: usize,
    /// How long a new connection may stay silent.
    pub first_byte_timeout: Duration,
    /// How long one message may take from its first byte to its last.
    pub half_frame_timeout: Duration,
    /// Whether root may connect to a daemon of another user.
    pub allow_root: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 16 << 20,
            max_response_bytes: 16 << 20,
            max_batch: 64,
            max_depth: 128,
            max_connections: 1024,
            max_in_flight: 64,
            max_in_flight_bytes: 32 << 20,
            max_subscriptions: 4096,
            outbox_bytes: 512 << 10,
            first_byte_timeout: Duration::from_secs(30),
            half_frame_timeout: Duration::from_secs(30),
            allow_root: false,
        }
    }
}
