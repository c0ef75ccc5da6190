//! Time limits of servers.

use std::time::Duration;

/// Time limits of servers.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    /// How long a server runs without users.
    pub linger: Duration,
    /// How long a turn waits for a server that was never ready.
    pub turn_wait: Duration,
    /// Pause after the first failure; it doubles with each failure in a row.
    pub backoff: Duration,
    /// Pause after several failures in a row.
    pub breaker_pause: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            linger: Duration::from_secs(30),
            turn_wait: Duration::from_secs(5),
            backoff: Duration::from_secs(1),
            breaker_pause: Duration::from_secs(300),
        }
    }
}
