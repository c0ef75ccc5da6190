//! Limits how fast the deltas of a model are read while other sessions stream too.
//!
//! No provider writes more than a few thousand words per second. A flood comes from a broken server, or from
//! one that repeats a cached answer, and each delta takes processor time from all sessions. While other
//! sessions stream, the flood is read at a limited rate. Its connection fills up meanwhile, so the server
//! waits.

use std::time::{Duration, Instant};

/// Cost of a delta in addition to its text, in bytes, because most of a delta is not text.
const BYTES_PER_DELTA: usize = 100;
/// Bytes of one answer that are read without limit.
const UNLIMITED_BYTES: usize = 100_000;
/// Rate limit of a flood in bytes per second: about 9,000 deltas of usual length.
const BYTES_PER_SECOND: usize = 1_000_000;
/// Shorter pauses are skipped, because a timer costs more.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// The rate limiter of one answer.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// Bytes that were read without limit.
    unlimited_bytes: usize,
    /// Time at which all later bytes would have arrived at the limited rate.
    due: Option<Instant>,
}

impl RateLimiter {
    pub fn new() -> Self {
        Self { unlimited_bytes: 0, due: None }
    }

    /// Records deltas and their total bytes. Returns the end of the pause that the stream must make if
    /// other sessions also stream.
    pub fn record(
        &mut self,
        deltas: usize,
        bytes: usize,
        now: Instant,
        has_other_streams: bool,
    ) -> Option<Instant> {
        let cost = deltas.saturating_mul(BYTES_PER_DELTA).saturating_add(bytes);
        self.unlimited_bytes = self.unlimited_bytes.saturating_add(cost);
        if self.unlimited_bytes <= UNLIMITED_BYTES {
            return None;
        }
        let send_duration = Duration::from_secs_f64(cost as f64 / BYTES_PER_SECOND as f64);
        let due = self.due.filter(|due| *due > now).unwrap_or(now) + send_duration;
        // A stream without competition builds up no delay for later.
        self.due = has_other_streams.then_some(due);
        self.due.filter(|due| due.duration_since(now) >= MIN_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::actor::effects::rate_limiter::*;

    #[test]
    fn normal_delta_rate_is_never_limited() {
        let (mut pace, mut now) = (RateLimiter::new(), Instant::now());
        // 4,000 words per second for one minute.
        for _ in 0..240_000 {
            now += Duration::from_micros(250);
            assert_eq!(pace.record(1, 6, now, true), None);
        }
    }

    #[test]
    fn single_streaming_session_is_never_limited() {
        let (mut pace, now) = (RateLimiter::new(), Instant::now());
        for _ in 0..1_000 {
            assert_eq!(pace.record(1_000, 10_000, now, false), None);
        }
        let first = pace.record(1_000, 10_000, now, true).expect("others came");
        assert!(first - now < Duration::from_millis(200), "and what was before is not held against it");
    }

    proptest! {
        #[test]
        fn delta_flood_is_limited_to_configured_rate(pieces in proptest::collection::vec((1_usize..2_000, 0_usize..20), 50..200)) {
            let (mut pace, started_at) = (RateLimiter::new(), Instant::now());
            let (mut now, mut all) = (started_at, 0);
            for (deltas, each) in pieces {
                all += deltas * (BYTES_PER_DELTA + each);
                if let Some(until) = pace.record(deltas, deltas * each, now, true) {
                    prop_assert!(until > now);
                    now = until;
                }
            }
            let least = all.saturating_sub(UNLIMITED_BYTES) as f64 / BYTES_PER_SECOND as f64;
            let elapsed_seconds = (now - started_at).as_secs_f64();
            // The last pause may be too short to be taken, and the batch that crosses the limit counts
            // completely.
            prop_assert!(elapsed_seconds + 0.006 >= least, "{elapsed_seconds} s for what takes {least}");
            prop_assert!(elapsed_seconds <= least + 0.25, "{elapsed_seconds} s for what takes {least}");
        }
    }
}
