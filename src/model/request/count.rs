//! Token counts of servers: no value that a server sends fails a turn.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// The largest integer that all JSON parsers represent exactly (RFC 8259, section 6).
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An integer in any notation; `None` for other values.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.as_u64().or_else(|| whole_number(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

fn whole_number(number: f64) -> Option<u64> {
    (0.0..=MAX_EXACT_INTEGER).contains(&number).then_some(number as u64)
}

/// A group of counts; `None` for other values.
pub(crate) fn group<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

#[cfg(test)]
mod tests {
    use crate::request::count::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Counts {
        #[serde(default, deserialize_with = "count")]
        input: Option<u64>,
    }

    #[derive(Debug, Deserialize)]
    struct Answer {
        #[serde(default, deserialize_with = "group")]
        usage: Option<Counts>,
    }

    #[test]
    fn usage_count_is_read_in_any_number_form() {
        for (text, expected) in [
            ("7", Some(7)),
            ("12.0", Some(12)),
            ("1e3", Some(1_000)),
            ("\"12\"", Some(12)),
            ("18446744073709551615", Some(u64::MAX)),
            ("-1", None),
            ("99999999999999999999999", None),
            ("\"many\"", None),
            ("{}", None),
            ("true", None),
            ("null", None),
        ] {
            let counts: Counts = serde_json::from_str(&format!("{{\"input\":{text}}}")).expect(text);
            assert_eq!(counts, Counts { input: expected }, "{text}");
        }
        for text in ["{}", r#"{"usage":null}"#, r#"{"usage":"none"}"#, r#"{"usage":7}"#] {
            let answer: Answer = serde_json::from_str(text).expect(text);
            assert!(answer.usage.is_none_or(|counts| counts.input.is_none()), "{text}");
        }
    }
}
