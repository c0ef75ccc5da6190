//! The slots of a schedule: the moments at which its jobs are due.
//!
//! Zones come from `jiff`, with its data inside of the program, so that they are the same on each machine and exist
//! without `/usr/share/zoneinfo`. Unlike `chrono-tz`, `jiff` tells a local time that does not exist from one that
//! occurs twice, with both offsets, and needs no build script and no macros.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use types::time::Timestamp;

use super::pattern::CronPattern;

/// Days in which a pattern must fire once: four years, the leap day, and the days around both ends.
const MAX_PAUSE_DAYS: u32 = 4 * 365 + 4;

/// All zones, by their IANA names.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone with an IANA name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone with an IANA name in any case; `None` if there is none.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let zone = ZONES.get(name).ok()?;
        zone.iana_name()?;
        Some(Self(zone))
    }

    /// The zone of the machine: the variable `TZ`, or the target of `/etc/localtime`. UTC if neither has an IANA name.
    #[must_use]
    pub fn of_system() -> Self {
        let zone = TimeZone::try_system().ok();
        zone.as_ref().and_then(TimeZone::iana_name).and_then(Self::find).unwrap_or(Self(TimeZone::UTC))
    }

    /// Its IANA name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The first moment at which clocks show this local time or a later one, and the second moment with the same time
    /// if the clocks repeat it.
    fn moments(&self, local: jiff::civil::DateTime) -> (Option<i64>, Option<i64>) {
        let with = |offset: jiff::tz::Offset| offset.to_timestamp(local).ok().map(|at| at.as_millisecond());
        match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => (with(offset), None),
            AmbiguousOffset::Fold { before, after } => (with(before), with(after)),
            // The offset after the gap gives a moment before the change of the clock, which is the next one.
            AmbiguousOffset::Gap { after, .. } => {
                let at = after.to_timestamp(local).ok();
                let change = at.and_then(|at| self.0.following(at).next());
                (change.map(|change| change.timestamp().as_millisecond()), None)
            }
        }
    }

    fn date(&self, at: Timestamp) -> Option<Date> {
        Some(self.0.to_datetime(jiff::Timestamp::from_millisecond(at.0).ok()?).date())
    }
}

/// When the jobs of a schedule are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At the local wall times of a pattern.
    Cron {
        pattern: CronPattern,
        /// Where they count.
        zone: Zone,
    },
    /// Again and again after the same time, whatever the clocks do.
    Every {
        /// The slots are whole intervals after it.
        start: Timestamp,
        /// At least 1.
        interval_ms: u64,
    },
}

impl Timing {
    /// The slots after a moment, in order, each once. The iterator ends if a pattern has none for four years.
    ///
    /// A local time that does not exist gives a slot at the first moment after it. A local time that occurs twice gives
    /// one slot, or two if the pattern runs on ([`CronPattern::is_running_on`]). Slots at the same moment are one.
    #[must_use]
    pub fn slots_after(&self, after: Timestamp) -> Slots<'_> {
        let source = match self {
            Self::Cron { pattern, zone } => {
                // Clocks that are set back over midnight show the times of the day before again.
                let day = zone.date(after).and_then(|date| date.yesterday().ok());
                Source::Days { pattern, zone, day, slots: BTreeSet::new() }
            }
            Self::Every { start, interval_ms } => {
                Source::Interval { start: start.0, interval_ms: *interval_ms }
            }
        };
        Slots { source, last: after.0 }
    }
}

/// Iterator of slots.
#[derive(Clone, Debug)]
pub struct Slots<'t> {
    source: Source<'t>,
    last: i64,
}

#[derive(Clone, Debug)]
enum Source<'t> {
    Days {
        pattern: &'t CronPattern,
        zone: &'t Zone,
        /// The next day whose times are not in `slots` yet.
        day: Option<Date>,
        slots: BTreeSet<i64>,
    },
    Interval {
        start: i64,
        interval_ms: u64,
    },
}

impl Iterator for Slots<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let slot = match &mut self.source {
            Source::Days { pattern, zone, day, slots } => next_of_days(pattern, zone, day, slots, self.last)?,
            Source::Interval { start, interval_ms } => {
                let interval = i64::try_from(*interval_ms).ok()?.max(1);
                let passed = self.last.checked_sub(*start)?.div_euclid(interval).max(0);
                start.checked_add(passed.checked_add(1)?.checked_mul(interval)?)?
            }
        };
        self.last = slot;
        Some(Timestamp(slot))
    }
}

fn next_of_days(
    pattern: &CronPattern,
    zone: &Zone,
    day: &mut Option<Date>,
    slots: &mut BTreeSet<i64>,
    last: i64,
) -> Option<i64> {
    let mut days_left = MAX_PAUSE_DAYS;
    loop {
        // All times of `day` and of later days come at or after its first moment.
        let complete_until = day.and_then(|day| zone.moments(day.at(0, 0, 0, 0)).0).unwrap_or(i64::MIN);
        if let Some(slot) = slots.first().copied().filter(|slot| *slot < complete_until) {
            slots.pop_first();
            if slot > last {
                return Some(slot);
            }
            continue;
        }
        let date = (*day)?;
        days_left = days_left.checked_sub(1)?;
        if pattern.matches_date(date) {
            for (hour, minute) in pattern.times() {
                let (first, second) = zone.moments(date.at(hour, minute, 0, 0));
                slots.extend(first);
                slots.extend(second.filter(|_| pattern.is_running_on()));
            }
        }
        *day = date.tomorrow().ok();
    }
}
