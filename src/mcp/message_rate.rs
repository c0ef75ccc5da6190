//! Limits the number of messages of a server.

use tokio::time::{Duration, Instant};

/// Maximum number of messages in one interval. A server that sends more is ended.
pub(super) const MAX_MESSAGES: u32 = 20_000;
/// Maximum bytes in one interval.
const MAX_BYTES: usize = 64 << 20;
/// The interval of these limits.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts the messages of one connection.
pub(super) struct MessageRate {
    messages: u32,
    bytes: usize,
    since: Instant,
}

impl MessageRate {
    pub fn new(now: Instant) -> Self {
        Self { messages: 0, bytes: 0, since: now }
    }

    /// Counts what arrived.
    ///
    /// # Errors
    /// A limit is exceeded; the text names it.
    pub fn count(&mut self, messages: usize, bytes: usize, now: Instant) -> Result<(), String> {
        if now.duration_since(self.since) >= INTERVAL {
            (self.messages, self.bytes, self.since) = (0, 0, now);
        }
        self.messages = self.messages.saturating_add(u32::try_from(messages).unwrap_or(u32::MAX));
        self.bytes = self.bytes.saturating_add(bytes);
        if self.messages > MAX_MESSAGES || self.bytes > MAX_BYTES {
            return Err(format!(
                "it sent more than {MAX_MESSAGES} messages or {} MiB in {} s",
                MAX_BYTES >> 20,
                INTERVAL.as_secs()
            ));
        }
        Ok(())
    }
}
