//! Time limits of servers.

use std::time::Duration;

/// Time limits of servers.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// How long a server runs without users.
    pub linger: Duration,
    /// Maximum time of a handshake with the first lists.
    pub handshake_limit: Duration,
    /// Pause after the first failure; it doubles with each failure in a row.
    pub backoff: Duration,
    /// Pause after several failures in a row.
    pub breaker_pause: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            linger: Duration::from_secs(30),
            handshake_limit: Duration::from_secs(30),
            backoff: Duration::from_secs(1),
            breaker_pause: Duration::from_secs(300),
        }
    }
}
