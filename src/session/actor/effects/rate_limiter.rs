//! How fast a model's words are taken in beside other sessions (S13).
//!
//! No provider writes more than some thousand words a second. A model that floods does (a broken server, one that
//! repeats itself from a cache), and each of its words takes processor time from all sessions. Beside others it is
//! taken in at a measured pace; its connection fills up meanwhile, and it waits.

use std::time::{Duration, Instant};

/// What a delta costs beside its bytes, in bytes: most of it is not its text.
const BYTES_PER_DELTA: usize = 100;
/// What is taken in as it comes, of one answer.
const UNLIMITED_BYTES: usize = 100_000;
/// What is taken in of a flood in a second: some 9,000 deltas of the usual length.
const BYTES_PER_SECOND: usize = 1_000_000;
/// Rests shorter than this are not worth a timer.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// The pace of one answer.
#[derive(Debug)]
pub(in crate::session) struct RateLimiter {
    /// What was taken in as it came.
    unhurried: usize,
    /// When all that was taken in since would have come at the pace.
    due: Option<Instant>,
}

impl RateLimiter {
    pub fn new() -> Self {
        Self { unhurried: 0, due: None }
    }

    /// So many deltas of so many bytes together were taken in. Gives until when nothing more should be, if others
    /// wait for a model as well.
    pub fn record(
        &mut self,
        deltas: usize,
        bytes: usize,
        now: Instant,
        beside_others: bool,
    ) -> Option<Instant> {
        let cost = deltas.saturating_mul(BYTES_PER_DELTA).saturating_add(bytes);
        self.unhurried = self.unhurried.saturating_add(cost);
        if self.unhurried <= UNLIMITED_BYTES {
            return None;
        }
        let takes = Duration::from_secs_f64(cost as f64 / BYTES_PER_SECOND as f64);
        let due = self.due.filter(|due| *due > now).unwrap_or(now) + takes;
        // Whoever is alone owes nothing later for having been quick.
        self.due = beside_others.then_some(due);
        self.due.filter(|due| due.duration_since(now) >= MIN_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::session::actor::effects::rate_limiter::*;

    #[test]
    fn normal_delta_rate_is_never_limited() {
        let (mut pace, mut now) = (RateLimiter::new(), Instant::now());
        // 4,000 words a second for a minute.
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
            let (mut pace, began) = (RateLimiter::new(), Instant::now());
            let (mut now, mut all) = (began, 0);
            for (deltas, each) in pieces {
                all += deltas * (BYTES_PER_DELTA + each);
                if let Some(until) = pace.record(deltas, deltas * each, now, true) {
                    prop_assert!(until > now);
                    now = until;
                }
            }
            let least = all.saturating_sub(UNLIMITED_BYTES) as f64 / BYTES_PER_SECOND as f64;
            let took = (now - began).as_secs_f64();
            // The last rest may be too short to be taken, and the piece that crosses the line counts whole.
            prop_assert!(took + 0.006 >= least, "{took} s for what takes {least}");
            prop_assert!(took <= least + 0.25, "{took} s for what takes {least}");
        }
    }
}
