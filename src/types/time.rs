//! Time as a value, and the trait that provides it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch (`…_ms` on the wire).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The end of the year 9999 in UTC, the last time that clients may name.
    pub const END_OF_9999: Timestamp = Timestamp(253_402_300_799_999);

    /// Whether a client may name it: from 1970 to the end of the year 9999.
    #[must_use]
    pub const fn is_in_calendar(self) -> bool {
        0 <= self.0 && self.0 <= Self::END_OF_9999.0
    }

    /// Milliseconds from `earlier` to here; 0 if the clock went backwards.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// This time plus `ms` milliseconds.
    #[must_use]
    pub fn plus(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// This time minus `ms` milliseconds.
    #[must_use]
    pub fn before(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// This time, moved by a change of the clock of `by_ms` milliseconds.
    #[must_use]
    pub const fn moved(self, by_ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(by_ms))
    }

    /// Number of the day in UTC since 1970.
    #[must_use]
    pub const fn day(self) -> i64 {
        self.0.div_euclid(86_400_000)
    }

    /// The start of its day in UTC.
    #[must_use]
    pub const fn start_of_day(self) -> Timestamp {
        Timestamp(self.day().saturating_mul(86_400_000))
    }

    /// `YYYY-MM-DD` in UTC (days to civil date after Howard Hinnant's public algorithm).
    #[must_use]
    pub fn date(self) -> String {
        let days = self.0.div_euclid(86_400_000) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_index = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_index + 2) / 5 + 1;
        let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// ISO 8601 in UTC with milliseconds: `YYYY-MM-DDTHH:MM:SS.mmmZ`.
    #[must_use]
    pub fn iso8601(self) -> String {
        let ms = self.0.rem_euclid(86_400_000);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        format!("{}T{hour:02}:{minute:02}:{second:02}.{:03}Z", self.date(), ms % 1_000)
    }

    /// `YYYY-MM-DD HH:MM UTC`.
    #[must_use]
    pub fn minute(self) -> String {
        let minutes = self.0.rem_euclid(86_400_000) / 60_000;
        format!("{} {:02}:{:02} UTC", self.date(), minutes / 60, minutes % 60)
    }
}

/// The source of time: the system clock in the daemon, a counter in tests.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_formats_as_calendar_date() {
        assert_eq!(Timestamp(0).date(), "1970-01-01");
        assert_eq!(Timestamp(1_709_164_800_000).date(), "2024-02-29");
        assert_eq!(Timestamp(1_795_219_200_000).date(), "2026-11-21");
        assert_eq!(Timestamp(1_795_219_200_000 + 54_359_999).minute(), "2026-11-21 15:05 UTC");
        assert_eq!(Timestamp(1_795_219_200_000 + 54_359_007).iso8601(), "2026-11-21T15:05:59.007Z");
        assert_eq!(Timestamp::END_OF_9999.iso8601(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(-1).iso8601(), "1969-12-31T23:59:59.999Z");
    }
}
