//! Notices when the system's clock is set, so that durations and limits of a running turn stay those of the time that
//! passed. The engine knows times only from events, so it learns of the change by an event.

use std::time::{Duration, Instant};

use crate::actor::Actor;
use engine::Input;
use types::time::{Clock, Timestamp};

/// Changes below this are not reported, in milliseconds: they include the daily corrections of a synchronised clock.
const MIN_CHANGE_MS: i64 = 1_000;
/// Two readings of the clocks that are further apart are not compared.
const MAX_READING_TIME: Duration = Duration::from_millis(100);

/// The time of both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    system: Timestamp,
    monotonic: Instant,
}

impl ClockReading {
    /// Reads both clocks; `None` if this process was interrupted between the readings.
    fn new(clock: &dyn Clock) -> Option<Self> {
        let monotonic = Instant::now();
        let system = clock.now();
        (monotonic.elapsed() < MAX_READING_TIME).then_some(Self { system, monotonic })
    }

    /// How much the system's clock moved since `before` in addition to the time that passed, in milliseconds.
    fn change_since(&self, before: &Self) -> i64 {
        let passed = self.monotonic.saturating_duration_since(before.monotonic).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.system.0.saturating_sub(before.system.0).saturating_sub(passed)
    }
}

/// The last reading of the clocks.
#[derive(Debug, Default)]
pub(super) struct ClockWatch(Option<ClockReading>);

impl Actor {
    /// Records a change of the system's clock while a turn runs. If it cannot be written, the next call finds it
    /// again.
    pub(super) async fn adopt_clock_change(&mut self) {
        let Some(now) = ClockReading::new(&*self.shared.clock) else { return };
        let by_ms = self.state.clock.0.map_or(0, |before| now.change_since(&before));
        if by_ms.abs() >= MIN_CHANGE_MS && self.engine.turn_id().is_some() {
            tracing::warn!(session = %self.id, by_ms, "the system's clock was set during a turn");
            if let Err(error) = self.decide_and_commit(Input::ClockSet { by_ms }).await {
                tracing::debug!(session = %self.id, %error, "could not record the change of the clock yet");
                return;
            }
        }
        self.state.clock.0 = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_that_did_not_pass_is_a_change_of_the_clock() {
        let start = Instant::now();
        let reading = |system: i64, seconds: u64| ClockReading {
            system: Timestamp(system),
            monotonic: start + Duration::from_secs(seconds),
        };
        let before = reading(1_000_000, 0);
        for (after, change) in [
            (reading(1_002_000, 2), 0),
            (reading(1_002_400, 2), 400),
            (reading(8_202_000, 2), 7_200_000),
            (reading(1_000_000 - 3_600_000, 2), -3_602_000),
            (reading(i64::MIN, 2), i64::MIN),
        ] {
            assert_eq!(after.change_since(&before), change, "{after:?}");
        }
    }
}
