//! Slots over changes of clocks. The expected times were written by hand, from the rules of each zone.

use std::collections::HashSet;

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{CronPattern, Timing, Zone};
use types::time::Timestamp;

fn moment(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().expect("a time").as_millisecond())
}

#[track_caller]
fn cron(zone: &str, pattern: &str) -> Timing {
    let zone = Zone::find(zone).unwrap_or_else(|| panic!("{zone} is missing"));
    Timing::Cron { pattern: CronPattern::parse(pattern).expect("a pattern"), zone }
}

fn show(zone: &str, slot: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(slot.0).expect("in range");
    let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).expect("a zone");
    let offset = zone.to_offset(at);
    format!("{}{offset}", zone.to_datetime(at).strftime("%m-%d %H:%M"))
}

/// Zone, pattern, a moment before, and the slots after it.
const SLOTS: &[(&str, &str, &str, &[&str])] = &[
    // Clocks go from 02:00 to 03:00, and from 03:00 to 02:00.
    (
        "Europe/Berlin",
        "30 2 * * *",
        "2026-03-28T00:00Z",
        &["03-28 02:30+01", "03-29 03:00+02", "03-30 02:30+02"],
    ),
    (
        "Europe/Berlin",
        "0,30 2,3 * * *",
        "2026-03-28T12:00Z",
        &["03-29 03:00+02", "03-29 03:30+02", "03-30 02:00+02"],
    ),
    (
        "Europe/Berlin",
        "*/15 2 * * *",
        "2026-03-28T12:00Z",
        &["03-29 03:00+02", "03-30 02:00+02", "03-30 02:15+02"],
    ),
    (
        "Europe/Berlin",
        "30 * * * *",
        "2026-03-28T23:45Z",
        &["03-29 01:30+01", "03-29 03:00+02", "03-29 03:30+02"],
    ),
    (
        "Europe/Berlin",
        "30 */2 * * *",
        "2026-03-28T23:00Z",
        &["03-29 00:30+01", "03-29 03:00+02", "03-29 04:30+02"],
    ),
    (
        "Europe/Berlin",
        "*/15 * * * *",
        "2026-03-29T00:20Z",
        &["03-29 01:30+01", "03-29 01:45+01", "03-29 03:00+02", "03-29 03:15+02"],
    ),
    (
        "Europe/Berlin",
        "30 2 * * *",
        "2026-10-24T12:00Z",
        &["10-25 02:30+02", "10-26 02:30+01", "10-27 02:30+01"],
    ),
    (
        "Europe/Berlin",
        "*/15 2 * * *",
        "2026-10-24T12:00Z",
        &["10-25 02:00+02", "10-25 02:15+02", "10-25 02:30+02", "10-25 02:45+02", "10-26 02:00+01"],
    ),
    (
        "Europe/Berlin",
        "0 1-3 * * *",
        "2026-10-24T12:00Z",
        &["10-25 01:00+02", "10-25 02:00+02", "10-25 03:00+01"],
    ),
    (
        "Europe/Berlin",
        "*/30 * * * *",
        "2026-10-24T23:40Z",
        &["10-25 02:00+02", "10-25 02:30+02", "10-25 02:00+01", "10-25 02:30+01", "10-25 03:00+01"],
    ),
    ("Europe/Berlin", "30 2 * * SUN", "2027-03-27T12:00Z", &["03-28 03:00+02", "04-04 02:30+02"]),
    ("Europe/Berlin", "30 2 * * *", "2027-10-30T12:00Z", &["10-31 02:30+02", "11-01 02:30+01"]),
    // Clocks go from 02:00 to 03:00, and from 02:00 to 01:00.
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00Z", &["03-08 03:00-04", "03-09 02:30-04"]),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00Z", &["11-01 01:30-04", "11-02 01:30-05"]),
    (
        "America/New_York",
        "@hourly",
        "2026-11-01T04:30Z",
        &["11-01 01:00-04", "11-01 01:00-05", "11-01 02:00-05"],
    ),
    ("America/New_York", "15 2 * * *", "2027-03-13T12:00Z", &["03-14 03:00-04", "03-15 02:15-04"]),
    ("America/New_York", "15 1 * * SUN", "2027-11-06T12:00Z", &["11-07 01:15-04", "11-14 01:15-05"]),
    // Half an hour: from 02:00 to 02:30, and from 02:00 to 01:30.
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00Z", &["10-04 02:30+11", "10-05 02:15+11"]),
    ("Australia/Lord_Howe", "30 2 * * *", "2026-10-03T00:00Z", &["10-04 02:30+11", "10-05 02:30+11"]),
    ("Australia/Lord_Howe", "10 * * * *", "2026-10-03T14:40Z", &["10-04 02:30+11", "10-04 03:10+11"]),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00Z", &["04-05 01:45+11", "04-06 01:45+10:30"]),
    (
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "2026-04-04T14:20Z",
        &["04-05 01:30+11", "04-05 01:45+11", "04-05 01:30+10:30", "04-05 01:45+10:30", "04-05 02:00+10:30"],
    ),
    ("Australia/Lord_Howe", "45 1 * * *", "2027-04-03T00:00Z", &["04-04 01:45+11", "04-05 01:45+10:30"]),
    // Ramadan has the time without an hour more: from 03:00 to 02:00 before it, from 02:00 to 03:00 after it.
    ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00Z", &["02-15 02:30+01", "02-16 02:30+00"]),
    ("Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00Z", &["03-22 03:00+01", "03-23 02:30+01"]),
    (
        "Africa/Casablanca",
        "*/20 * * * *",
        "2026-02-15T01:30Z",
        &["02-15 02:40+01", "02-15 02:00+00", "02-15 02:20+00"],
    ),
    // Since then, clocks stay as they are.
    ("Africa/Casablanca", "30 1 * * *", "2026-09-19T12:00Z", &["09-20 01:30+01", "09-21 01:30+00"]),
    ("Africa/Casablanca", "5 2 * * *", "2027-02-06T12:00Z", &["02-07 02:05+00", "02-08 02:05+00"]),
    // No changes.
    ("Asia/Kathmandu", "0 2 * * *", "2026-03-28T00:00Z", &["03-29 02:00+05:45", "03-30 02:00+05:45"]),
    ("Asia/Kathmandu", "*/30 * * * *", "2026-10-25T00:00Z", &["10-25 06:00+05:45", "10-25 06:30+05:45"]),
    ("America/Sao_Paulo", "0 0 * * *", "2026-10-17T12:00Z", &["10-18 00:00-03", "10-19 00:00-03"]),
    ("America/Sao_Paulo", "30 23 * * *", "2027-02-20T12:00Z", &["02-20 23:30-03", "02-21 23:30-03"]),
    ("America/Sao_Paulo", "0 */6 * * *", "2027-02-21T00:00Z", &["02-21 00:00-03", "02-21 06:00-03"]),
    ("Asia/Tehran", "30 0 * * *", "2026-03-21T12:00Z", &["03-22 00:30+03:30", "03-23 00:30+03:30"]),
    (
        "Asia/Tehran",
        "0 23 * * *",
        "2026-09-20T12:00Z",
        &["09-20 23:00+03:30", "09-21 23:00+03:30", "09-22 23:00+03:30"],
    ),
    ("Asia/Tehran", "0 * * * *", "2027-03-21T19:45Z", &["03-22 00:00+03:30", "03-22 01:00+03:30"]),
    // Clocks go from 03:45 to 02:45, and from 02:45 to 03:45.
    ("Pacific/Chatham", "0 3 * * *", "2026-04-04T00:00Z", &["04-05 03:00+13:45", "04-06 03:00+12:45"]),
    ("Pacific/Chatham", "0 3 * * *", "2026-09-26T00:00Z", &["09-27 03:45+13:45", "09-28 03:00+13:45"]),
    (
        "Pacific/Chatham",
        "*/30 * * * *",
        "2026-04-04T13:20Z",
        &["04-05 03:30+13:45", "04-05 03:00+12:45", "04-05 03:30+12:45", "04-05 04:00+12:45"],
    ),
    (
        "Pacific/Chatham",
        "*/30 * * * *",
        "2026-09-26T13:40Z",
        &["09-27 02:30+12:45", "09-27 03:45+13:45", "09-27 04:00+13:45"],
    ),
    // Clocks go from 01:00 to 02:00, and from 02:00 to 01:00.
    ("Europe/London", "0 1 * * *", "2026-03-28T12:00Z", &["03-29 02:00+01", "03-30 01:00+01"]),
    (
        "Europe/London",
        "0 */2 * * *",
        "2026-03-28T22:30Z",
        &["03-29 00:00+00", "03-29 02:00+01", "03-29 04:00+01"],
    ),
    (
        "Europe/London",
        "15,45 1 * * *",
        "2026-10-24T12:00Z",
        &["10-25 01:15+01", "10-25 01:45+01", "10-26 01:15+00"],
    ),
    (
        "Europe/London",
        "@hourly",
        "2026-10-24T23:30Z",
        &["10-25 01:00+01", "10-25 01:00+00", "10-25 02:00+00"],
    ),
    ("Europe/London", "@daily", "2027-03-27T12:00Z", &["03-28 00:00+00", "03-29 00:00+01"]),
    ("America/St_Johns", "5 2 * * *", "2026-03-07T12:00Z", &["03-08 03:00-02:30", "03-09 02:05-02:30"]),
    ("America/St_Johns", "59 1 * * *", "2026-10-31T12:00Z", &["11-01 01:59-02:30", "11-02 01:59-03:30"]),
    (
        "America/St_Johns",
        "*/40 * * * *",
        "2026-11-01T03:45Z",
        &["11-01 01:40-02:30", "11-01 01:00-03:30", "11-01 01:40-03:30", "11-01 02:00-03:30"],
    ),
    // Clocks go from 00:00 to 01:00, and at the end of a day back to 23:00.
    ("Africa/Cairo", "30 0 * * *", "2026-04-23T12:00Z", &["04-24 01:00+03", "04-25 00:30+03"]),
    ("Africa/Cairo", "30 23 * * *", "2026-10-28T22:00Z", &["10-29 23:30+03", "10-30 23:30+02"]),
    ("Africa/Cairo", "0 0 * * *", "2026-10-29T00:00Z", &["10-30 00:00+02", "10-31 00:00+02"]),
    (
        "Africa/Cairo",
        "*/30 * * * *",
        "2026-10-29T20:10Z",
        &["10-29 23:30+03", "10-29 23:00+02", "10-29 23:30+02", "10-30 00:00+02"],
    ),
    // Two hours.
    ("Antarctica/Troll", "30 1,2 * * *", "2026-03-28T12:00Z", &["03-29 03:00+02", "03-30 01:30+02"]),
    // One whole day was left out. In St. John's, clocks once changed a minute after midnight.
    (
        "Pacific/Apia",
        "0 12 * * *",
        "2011-12-29T12:00Z",
        &["12-29 12:00-10", "12-31 00:00+14", "12-31 12:00+14"],
    ),
    (
        "America/St_Johns",
        "0,30 0,23 * * *",
        "2010-11-07T01:45Z",
        &["11-06 23:30-02:30", "11-07 00:00-02:30", "11-07 00:30-03:30", "11-07 23:00-03:30"],
    ),
];

#[test]
fn slots_follow_local_time_over_changes_of_clocks() {
    for (zone, pattern, after, expected) in SLOTS {
        let timing = cron(zone, pattern);
        let slots: Vec<String> =
            timing.slots_after(moment(after)).take(expected.len()).map(|slot| show(zone, slot)).collect();
        assert_eq!(slots, *expected, "{pattern} in {zone}");
    }
}

#[test]
fn pattern_without_slot_in_four_years_has_none() {
    let now = moment("2026-11-29T11:00Z");
    for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        assert_eq!(cron("Europe/Berlin", never).slots_after(now).next(), None, "{never}");
    }
    let leap_days: Vec<String> =
        cron("UTC", "0 0 29 2 *").slots_after(now).take(2).map(|slot| slot.date()).collect();
    assert_eq!(leap_days, ["2028-02-29", "2032-02-29"]);
    let after_leap_day = moment("2028-02-29T00:00Z");
    assert_eq!(
        cron("UTC", "0 0 29 2 *").slots_after(after_leap_day).next(),
        Some(moment("2032-02-29T00:00Z"))
    );
    // 2100 has no leap day.
    assert_eq!(cron("UTC", "0 0 29 2 *").slots_after(moment("2096-03-01T00:00Z")).next(), None);
}

#[test]
fn intervals_count_from_their_start() {
    let timing = Timing::Every { start: Timestamp(1_000), interval_ms: 60_000 };
    let after =
        |after: i64| timing.slots_after(Timestamp(after)).take(2).map(|slot| slot.0).collect::<Vec<_>>();
    assert_eq!(after(-500_000), [61_000, 121_000]);
    assert_eq!(after(1_000), [61_000, 121_000]);
    assert_eq!(after(60_999), [61_000, 121_000]);
    assert_eq!(after(61_000), [121_000, 181_000]);
    assert_eq!(after(i64::MAX - 10), Vec::<i64>::new());
}

#[test]
fn zones_are_found_by_iana_name_without_files() {
    assert_eq!(Zone::find("europe/berlin").expect("a zone").name(), "Europe/Berlin");
    assert_eq!(Zone::find("UTC").expect("a zone").name(), "UTC");
    for wrong in
        ["", "Mars/Olympus", "Etc/Unknown", "../../etc/passwd", "CET-1CEST", "+02:00", "Europe/Berlin "]
    {
        assert_eq!(Zone::find(wrong), None, "{wrong}");
    }
    assert!(Zone::find(Zone::of_system().name()).is_some());
}

const ZONES: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Pacific/Chatham",
    "Asia/Tehran",
    "America/St_Johns",
    "America/Santiago",
    "Antarctica/Troll",
];

fn patterns() -> impl Strategy<Value = String> {
    let minute = prop_oneof![
        Just("*".to_owned()),
        (1..30_u8).prop_map(|n| format!("*/{n}")),
        (0..60_u8).prop_map(|n| n.to_string())
    ];
    let hour = prop_oneof![
        Just("*".to_owned()),
        (1..7_u8).prop_map(|n| format!("*/{n}")),
        (0..4_u8, 0..4_u8).prop_map(|(a, b)| format!("{a}-{}", a + b)),
        prop_oneof![Just(23_u8), 0..4_u8].prop_map(|n| n.to_string()),
    ];
    let week = prop_oneof![3 => Just("*".to_owned()), 1 => (0..8_u8).prop_map(|n| n.to_string())];
    (minute, hour, week).prop_map(|(minute, hour, week)| format!("{minute} {hour} * * {week}"))
}

/// The moments of the two changes of a year that are near a random time.
fn near_a_change(zone: &str, after: Timestamp, back_ms: i64) -> Timestamp {
    let zone: TimeZone = jiff::tz::TimeZoneDatabase::bundled().get(zone).expect("a zone");
    let at = jiff::Timestamp::from_millisecond(after.0).expect("in range");
    let change = zone.following(at).next().map_or(at, |change| change.timestamp());
    let change = if change > at + (366 * 24).hours() { at } else { change };
    Timestamp(change.as_millisecond() - back_ms)
}

/// The slots within two days by trying each minute: what a clock on the wall would do.
fn tried_minute_by_minute(zone: &str, pattern: &CronPattern, after: Timestamp) -> Vec<Timestamp> {
    const MINUTE_MS: i64 = 60_000;
    let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).expect("a zone");
    let local = |ms: i64| zone.to_datetime(jiff::Timestamp::from_millisecond(ms).expect("in range"));
    let is_time = |at: jiff::civil::DateTime| {
        pattern.matches_date(at.date()) && pattern.times().any(|time| time == (at.hour(), at.minute()))
    };
    let first = after.0.div_euclid(MINUTE_MS) * MINUTE_MS;
    let mut seen = HashSet::new();
    let mut slots = Vec::new();
    for ms in (first - 24 * 60 * MINUTE_MS..first + 2 * 24 * 60 * MINUTE_MS).step_by(MINUTE_MS as usize) {
        let shown = local(ms);
        let mut is_slot = is_time(shown) && (seen.insert(shown) || pattern.is_running_on());
        let mut missing = local(ms - MINUTE_MS) + 1.minute();
        while missing < shown {
            is_slot |= is_time(missing);
            missing += 1.minute();
        }
        if is_slot && ms > after.0 {
            slots.push(Timestamp(ms));
        }
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_those_of_a_clock_on_the_wall(
        zone in proptest::sample::select(ZONES),
        pattern in patterns(),
        year_ms in 1_767_225_600_000..1_861_920_000_000_i64,
        back_ms in 0..100_000_000_i64,
    ) {
        let after = near_a_change(zone, Timestamp(year_ms), back_ms);
        let timing = cron(zone, &pattern);
        let end = after.0.div_euclid(60_000) * 60_000 + 2 * 24 * 3_600_000;
        let slots: Vec<Timestamp> = timing.slots_after(after).take_while(|slot| slot.0 < end).collect();
        let tried = tried_minute_by_minute(zone, &CronPattern::parse(&pattern).expect("a pattern"), after);
        prop_assert_eq!(slots, tried, "{} in {} after {}", pattern, zone, show(zone, after));
    }

    #[test]
    fn slots_rise_and_are_the_same_from_any_moment(
        zone in proptest::sample::select(ZONES),
        pattern in patterns(),
        year_ms in 1_767_225_600_000..1_861_920_000_000_i64,
        back_ms in 0..100_000_000_i64,
        skipped in 0..30_usize,
    ) {
        let after = near_a_change(zone, Timestamp(year_ms), back_ms);
        let timing = cron(zone, &pattern);
        let slots: Vec<Timestamp> = timing.slots_after(after).take(60).collect();
        prop_assert!(slots[0] > after);
        prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", slots);
        let later: Vec<Timestamp> = timing.slots_after(slots[skipped]).take(59 - skipped).collect();
        prop_assert_eq!(&slots[skipped + 1..], later.as_slice());
    }
}
