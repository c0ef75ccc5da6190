//! Patterns of cron: five fields, or one of four names.
//!
//! The parser is our own, because the libraries differ from what schedules promise. `croner` 4 lets a pattern with a
//! list or a step of minutes run twice in a repeated hour, and drops its times in a missing hour. `cron` 0.17 fires
//! fixed times twice and drops missing ones. With either one, only the parser would remain in use.

use jiff::civil::Date;

/// Longest accepted text in bytes.
const MAX_PATTERN_BYTES: usize = 256;

const MONTH_NAMES: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAY_NAMES: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Why a text is no pattern. `Display` says what is wrong with which field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// A set of local wall times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronPattern {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    /// 0 is Sunday.
    weekdays: Values,
    is_running_on: bool,
    /// A day must be in both sets of days, because one of them begins with `*`.
    needs_both_days: bool,
}

/// Numbers from 0 to 63, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Values(u64);

impl Values {
    const fn contains(self, value: u8) -> bool {
        self.0 >> value & 1 == 1
    }

    fn iter(self) -> impl Iterator<Item = i8> {
        (0..64_i8).filter(move |value| self.0 >> value & 1 == 1)
    }
}

/// A field of a pattern: its range and its names.
struct Field {
    title: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
}

const MINUTE: Field = Field { title: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { title: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { title: "day of the month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { title: "month", min: 1, max: 12, names: &MONTH_NAMES };
/// 7 is Sunday as well.
const WEEKDAY: Field = Field { title: "day of the week", min: 0, max: 7, names: &WEEKDAY_NAMES };

impl CronPattern {
    /// Reads five fields with lists, ranges, steps and English names, or `@hourly`, `@daily`, `@weekly`, `@monthly`.
    ///
    /// If neither field of days begins with `*`, a day needs to be in one of them, as in every cron.
    ///
    /// # Errors
    /// The text is no pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes")));
        }
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            name if name.starts_with('@') => {
                let why = "expected @hourly, @daily, @weekly, @monthly, or five fields";
                return Err(PatternError(format!("{why}, got {name:?}")));
            }
            fields => fields,
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            let why = "expected five fields (minute, hour, day of the month, month, day of the week)";
            return Err(PatternError(format!("{why}, got {}", fields.len())));
        };
        let mut week = WEEKDAY.parse(weekdays)?;
        week.0 = (week.0 | week.0 >> 7) & 0x7f;
        Ok(Self {
            minutes: MINUTE.parse(minutes)?,
            hours: HOUR.parse(hours)?,
            days: DAY.parse(days)?,
            months: MONTH.parse(months)?,
            weekdays: week,
            is_running_on: hours.contains(['*', '/']),
            needs_both_days: days.starts_with('*') || weekdays.starts_with('*'),
        })
    }

    /// Whether the pattern fires in both passes of an hour that the clock repeats: its hour field has `*` or `/`.
    #[must_use]
    pub const fn is_running_on(&self) -> bool {
        self.is_running_on
    }

    /// Whether the pattern has times on this day.
    #[must_use]
    pub fn matches_date(&self, date: Date) -> bool {
        let is_day = self.days.contains(date.day().unsigned_abs());
        let is_weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset().unsigned_abs());
        let is_match = if self.needs_both_days { is_day && is_weekday } else { is_day || is_weekday };
        is_match && self.months.contains(date.month().unsigned_abs())
    }

    /// Hours and minutes of a day, in order.
    pub fn times(&self) -> impl Iterator<Item = (i8, i8)> + '_ {
        self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (hour, minute)))
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<Values, PatternError> {
        let mut values = 0;
        for part in text.split(',') {
            values |= self.part(part)?;
        }
        Ok(Values(values))
    }

    /// `*`, `N`, `N-M`, and `*` or a range with `/STEP`.
    fn part(&self, text: &str) -> Result<u64, PatternError> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(text, step)?)),
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((first, last)) => (self.value(text, first)?, self.end(text, first, last)?),
            None if step.is_some() => {
                let why = format!("a step needs `*` or a range; write {range}-{}/…", self.max);
                return Err(self.wrong(text, &why));
            }
            None => {
                let value = self.value(text, range)?;
                (value, value)
            }
        };
        if first > last {
            return Err(self.wrong(text, "the range ends before it begins"));
        }
        Ok((first..=last).step_by(step.unwrap_or(1).into()).fold(0, |all, value| all | 1 << value))
    }

    /// The end of a range. Sunday may end one, as in `FRI-SUN`.
    fn end(&self, part: &str, first: &str, last: &str) -> Result<u8, PatternError> {
        let is_sunday = last.eq_ignore_ascii_case("SUN") && !first.eq_ignore_ascii_case("SUN");
        if is_sunday && self.max == 7 { Ok(7) } else { self.value(part, last) }
    }

    fn step(&self, part: &str, text: &str) -> Result<u8, PatternError> {
        let range = 1..=self.max;
        number(text)
            .filter(|step| range.contains(step))
            .ok_or_else(|| self.wrong(part, &format!("expected a step from 1 to {}", self.max)))
    }

    fn value(&self, part: &str, text: &str) -> Result<u8, PatternError> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = match named {
            Some(index) => u8::try_from(index).ok().map(|index| index + self.min),
            None => number(text).filter(|value| (self.min..=self.max).contains(value)),
        };
        value.ok_or_else(|| {
            let or_name =
                self.names.first().map(|name| format!(" or a name like {name}")).unwrap_or_default();
            self.wrong(part, &format!("expected a number from {} to {}{or_name}", self.min, self.max))
        })
    }

    fn wrong(&self, part: &str, why: &str) -> PatternError {
        PatternError(format!("{} {part:?}: {why}", self.title))
    }
}

/// One or two digits.
fn number(text: &str) -> Option<u8> {
    let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[track_caller]
    fn pattern(text: &str) -> CronPattern {
        CronPattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn lists_ranges_steps_and_names_are_read() {
        let same = [
            ("0 0 * * 7", "0 0 * * sun"),
            ("0 0 * * FRI-SUN", "0 0 * * 0,5,6"),
            ("0 0 * jan,Mar-MAY *", "0 0 * 1,3,4,5 *"),
            ("*/20 * * * *", "0,20,40 * * * *"),
            ("5-20/5,7 * * * *", "5,7,10,15,20 * * * *"),
            ("@hourly", "0 * * * *"),
            ("@daily", "0 0 * * *"),
            ("@weekly", "0 0 * * SUN"),
            ("@monthly", " 0  0\t1 * * "),
        ];
        for (left, right) in same {
            assert_eq!(pattern(left), pattern(right), "{left} and {right}");
        }
        assert_eq!(
            pattern("5,50 3,23 * * *").times().collect::<Vec<_>>(),
            [(3, 5), (3, 50), (23, 5), (23, 50)]
        );
    }

    #[test]
    fn hour_with_star_or_step_runs_on() {
        for text in ["0 * * * *", "0 */2 * * *", "30 1-5/2 * * *", "0 3,*/6 * * *"] {
            assert!(pattern(text).is_running_on(), "{text}");
        }
        for text in ["*/15 2 * * *", "0 2,3 * * *", "* 1-4 * * *"] {
            assert!(!pattern(text).is_running_on(), "{text}");
        }
    }

    #[test]
    fn day_needs_one_set_of_days_unless_one_begins_with_star() {
        let friday_the_thirteenth = date(2026, 11, 13);
        let (friday, thirteenth) = (date(2026, 11, 20), date(2026, 12, 13));
        let dates = [friday_the_thirteenth, friday, thirteenth];
        let matches = |text: &str| dates.map(|date| pattern(text).matches_date(date));
        assert_eq!(matches("0 0 13 * FRI"), [true, true, true]);
        assert_eq!(matches("0 0 13 * *"), [true, false, true]);
        assert_eq!(matches("0 0 * * FRI"), [true, true, false]);
        assert_eq!(matches("0 0 */2 * FRI"), [true, false, false]);
    }

    #[test]
    fn wrong_patterns_are_refused_with_the_field() {
        let wrong = [
            ("", "expected five fields"),
            ("* * * *", "expected five fields"),
            ("0 * * * * *", "got 6"),
            ("@yearly", "expected @hourly"),
            ("@reboot", "expected @hourly"),
            ("60 * * * *", "minute \"60\": expected a number from 0 to 59"),
            ("0 24 * * *", "hour \"24\""),
            ("0 0 0 * *", "day of the month \"0\": expected a number from 1 to 31"),
            ("0 0 * 13 *", "or a name like JAN"),
            ("0 0 * * 8", "day of the week \"8\""),
            ("0 0 * * FRY", "day of the week \"FRY\""),
            ("*/0 * * * *", "expected a step from 1 to 59"),
            ("*/61 * * * *", "expected a step from 1 to 59"),
            ("5/10 * * * *", "write 5-59/…"),
            ("5-1 * * * *", "the range ends before it begins"),
            ("1,,2 * * * *", "minute \"\""),
            ("-1 * * * *", "minute \"-1\""),
            ("+1 * * * *", "minute \"+1\""),
            ("1-2-3 * * * *", "minute \"1-2-3\""),
            ("*-5 * * * *", "minute \"*-5\""),
            ("** * * * *", "minute \"**\""),
            ("0 0 L * *", "day of the month \"L\""),
            ("0 0 ? * *", "day of the month \"?\""),
            ("0 0 * * 5#2", "day of the week \"5#2\""),
            ("001 * * * *", "minute \"001\""),
            ("١ * * * *", "minute \"١\""),
        ];
        for (text, expected) in wrong {
            let error = CronPattern::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(CronPattern::parse(&"1,".repeat(200)).is_err());
    }
}
