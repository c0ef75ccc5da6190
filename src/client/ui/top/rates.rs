//! Costs of sessions over time: dollars per hour, and the last minutes as a sparkline.

use std::collections::{HashMap, VecDeque};

use types::ids::SessionId;
use types::time::Timestamp;

/// Milliseconds of one cell of the sparkline.
const BUCKET_MS: u64 = 30_000;
/// Cells of the sparkline.
pub(super) const BUCKETS: usize = 20;
/// Minimum time for a rate. A rate over a shorter time is not meaningful.
const MIN_SPAN_MS: u64 = 20_000;
const HOUR_MS: u64 = 3_600_000;

/// The cost of one session over time.
#[derive(Debug, Default)]
struct History {
    /// The start of each bucket, with the newest total cost in it in micro-dollars, oldest first.
    samples: VecDeque<(Timestamp, u64)>,
}

/// The costs of all sessions over time, in micro-dollars.
#[derive(Debug, Default)]
pub(super) struct Rates {
    histories: HashMap<SessionId, History>,
}

impl Rates {
    /// Records the cost of a session until now.
    pub(super) fn record(&mut self, session: SessionId, now: Timestamp, micros: u64) {
        let samples = &mut self.histories.entry(session).or_default().samples;
        let has_base = samples.len() > 1;
        match samples.back_mut() {
            // Never overwrite the first sample, because it is the base of all differences.
            Some((at, amount)) if has_base && now.since(*at) < BUCKET_MS => *amount = micros,
            _ => samples.push_back((now, micros)),
        }
        while samples.len() > BUCKETS + 1 {
            samples.pop_front();
        }
    }

    /// Removes the costs of sessions that do not exist any more.
    pub(super) fn retain(&mut self, exists: impl Fn(SessionId) -> bool) {
        self.histories.retain(|session, _| exists(*session));
    }

    /// Cost in micro-dollars per hour; `None` if nothing was spent, or the time is too short for a rate.
    pub(super) fn per_hour(&self, session: SessionId, now: Timestamp) -> Option<u64> {
        let samples = &self.histories.get(&session)?.samples;
        let ((from, before), (_, after)) = (samples.front()?, samples.back()?);
        let (span, spent) = (now.since(*from), after.saturating_sub(*before));
        (span >= MIN_SPAN_MS && spent > 0).then(|| spent.saturating_mul(HOUR_MS) / span)
    }

    /// The cost of all sessions in each of the last buckets as bars, the newest last.
    pub(super) fn sparkline(&self, now: Timestamp) -> String {
        let mut spent = [0_u64; BUCKETS];
        for history in self.histories.values() {
            let pairs = history.samples.iter().zip(history.samples.iter().skip(1));
            for ((_, before), (at, after)) in pairs {
                let age = usize::try_from(now.since(*at) / BUCKET_MS).unwrap_or(BUCKETS);
                if age < BUCKETS {
                    let bucket = &mut spent[BUCKETS - 1 - age];
                    *bucket = bucket.saturating_add(after.saturating_sub(*before));
                }
            }
        }
        bars(&spent)
    }
}

/// One character for each amount, relative to the largest one. An amount of 0 is a blank.
fn bars(amounts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = amounts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |amount: u64| match amount {
        0 => ' ',
        amount => BARS[usize::try_from(u128::from(amount) * 7 / u128::from(largest)).unwrap_or(7).min(7)],
    };
    amounts.iter().map(|amount| bar(*amount)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionId {
        "ses_0190f2a4-0000-7000-8000-000000000001".parse().expect("an id")
    }

    #[test]
    fn rate_is_spending_since_first_sample_per_hour() {
        let mut rates = Rates::default();
        rates.record(session(), Timestamp(0), 1_000_000);
        assert_eq!(rates.per_hour(session(), Timestamp(60_000)), None, "nothing was spent");
        rates.record(session(), Timestamp(10_000), 1_010_000);
        assert_eq!(rates.per_hour(session(), Timestamp(10_000)), None, "too early");
        assert_eq!(rates.per_hour(session(), Timestamp(60_000)), Some(600_000));
    }

    #[test]
    fn sparkline_shows_newest_spending_at_its_end() {
        let mut rates = Rates::default();
        for (at, micros) in [(0, 0), (35_000, 100), (70_000, 800)] {
            rates.record(session(), Timestamp(at), micros);
        }
        let line = rates.sparkline(Timestamp(70_000));
        assert_eq!((line.chars().count(), line.trim_start()), (BUCKETS, "▂█"));
        assert_eq!(bars(&[0, 1, 8]), " ▁█");
    }
}
