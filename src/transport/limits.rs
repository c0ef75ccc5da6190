//! How much one peer may ask for. Everything that can grow is bounded by a number in here.

use std::time::Duration;

/// Bounds of the transport. The defaults suit one person's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message taken in, in bytes. A longer one is skipped and answered with an error.
    pub max_message_bytes: usize,
    /// Longest reply sent, in bytes; a batch counts as one. A longer one becomes an error.
    pub max_response_bytes: usize,
    /// Most calls in one batch.
    pub max_batch: usize,
    /// Deepest nesting of `params`: 128 is also where serde_json stops.
    pub max_depth: usize,
    /// Most connections at once; further ones get an error line and are closed.
    pub max_connections: usize,
    /// Most calls that run at once on one connection; then its reader waits.
    pub max_in_flight: usize,
    /// Most bytes of calls that run at once on one connection; then its reader waits. One message
    /// is always let through, however long.
    pub max_in_flight_bytes: usize,
    /// Most subscriptions on one connection.
    pub max_subscriptions: usize,
    /// Bytes of notifications that wait for one slow reader; then its subscriptions wait, each with
    /// what it has read last. With that and the piece being written it stays below 1 MiB.
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
