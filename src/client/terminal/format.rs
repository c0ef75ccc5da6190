//! Formats of durations, sizes and money, and the client's only clock.

use types::ids::SessionId;
use types::session::SessionView;
use types::time::Timestamp;
use types::usage::Usage;

/// The current time, for ages in listings.
#[expect(clippy::disallowed_methods, reason = "the one place of the client that asks what time it is")]
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
}

/// A duration in milliseconds as text.
pub fn format_ms(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// An age in milliseconds as one number with a unit.
pub fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// The sum of all tokens of a usage.
pub fn all_tokens(usage: &Usage) -> u64 {
    usage.all_tokens()
}

/// A cost that may be partly unknown: `?` if all of it is unknown, `≥$1.50` if a part of it is unknown.
pub fn cost(exact: Option<u64>, at_least: u64) -> String {
    match (exact, at_least) {
        (None, 1..) => format!("≥{}", money(Some(at_least))),
        (exact, _) => money(exact),
    }
}

/// Micro-dollars; `?` when the price is unknown.
pub fn money(micros: Option<u64>) -> String {
    match micros {
        None => "?".into(),
        Some(0) => "$0".into(),
        // Round up, so that a small cost never looks free.
        Some(micros @ 1..10_000) => format!("$0.{:03}", micros.div_ceil(1_000)),
        Some(micros) => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

/// The first part of a session's id, which encodes the milliseconds of its creation. It is unique among
/// sessions that one user creates by hand.
pub fn short_id(id: SessionId) -> String {
    let full = id.to_string();
    full.get(4..17).unwrap_or(&full).to_string()
}

/// The number of a session, such as `#12`. Returns its short id if the daemon gives no numbers.
pub fn session_name(session: &SessionView) -> String {
    match session.number {
        0 => short_id(session.session_id),
        number => format!("#{number}"),
    }
}

/// Parses `90`, `90s`, `15m`, `2h` or `1d`. Returns milliseconds.
pub fn parse_duration(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let factor = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use crate::terminal::format::*;

    #[test]
    fn sizes_and_durations_are_formatted_short() {
        let check = |shown: String, expected: &str| assert_eq!(shown, expected);
        check(format_ms(12), "12 ms");
        check(format_ms(1_250), "1.2 s");
        check(format_ms(61_000), "1 min 1 s");
        check(age(59_999), "59s");
        check(age(7_200_000), "2h");
        check(tokens(1_234), "1.2k");
        check(tokens(2_500_000), "2.5M");
        check(money(None), "?");
        check(money(Some(3_150)), "$0.004");
        check(cost(None, 0), "?");
        check(cost(None, 1_500_000), "≥$1.50");
        check(cost(Some(1_500_000), 1_500_000), "$1.50");
        check(cost(Some(0), 0), "$0");
        check(money(Some(1_234_567)), "$1.23");
    }

    #[test]
    fn duration_arguments_require_a_unit() {
        let check = |text, expected| assert_eq!(parse_duration(text), expected, "{text}");
        check("90s", Some(90_000));
        check("15m", Some(900_000));
        check("2h", Some(7_200_000));
        check("90", None);
        check("h", None);
        check("5 parsecs", None);
    }
}
