//! Values with a notation of their own.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A duration with its unit: `"500ms"`, `"30s"`, `"10m"`, `"2h"`, `"1d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit_ms: u64 = match unit.trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => {
                let wanted = "expected a duration with its unit, like \"30s\", \"10m\" or \"2h\"";
                return Err(de::Error::custom(format!("{wanted}, got {text:?}")));
            }
        };
        let number: u64 = number.parse().map_err(de::Error::custom)?;
        Ok(Span(Duration::from_millis(number.saturating_mul(unit_ms))))
    }
}

/// How much a model may think: `"off"`, `"auto"`, `"low"`, `"medium"`, `"high"`, or a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// As it likes.
    Auto,
    /// A little.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
    /// At most so many tokens.
    Tokens(u32),
}

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ThinkingVisitor)
    }
}

struct ThinkingVisitor;

impl de::Visitor<'_> for ThinkingVisitor {
    type Value = Thinking;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"off\", \"auto\", \"low\", \"medium\", \"high\" or a number of tokens")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Thinking, E> {
        match u32::try_from(number) {
            Ok(tokens @ 1..) => Ok(Thinking::Tokens(tokens)),
            _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Thinking, E> {
        match u32::try_from(number) {
            Ok(tokens @ 1..) => Ok(Thinking::Tokens(tokens)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Thinking, E> {
        Ok(match text {
            "off" => Thinking::Off,
            "auto" => Thinking::Auto,
            "low" => Thinking::Low,
            "medium" => Thinking::Medium,
            "high" => Thinking::High,
            _ => match text.parse::<u32>() {
                Ok(tokens @ 1..) if !text.starts_with('+') => Thinking::Tokens(tokens),
                _ => return Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Table {
        thinking: Thinking,
    }

    fn check(value: &str, expected: Option<Thinking>) {
        let got = toml::from_str::<Table>(&format!("thinking = {value}")).map(|table| table.thinking);
        match expected {
            Some(expected) => assert_eq!(got.as_ref().ok(), Some(&expected), "{value}: {got:?}"),
            None => {
                assert!(got.as_ref().is_err_and(|e| e.to_string().contains("number of tokens")), "{got:?}")
            }
        }
    }

    #[test]
    fn thinking_is_a_word_or_a_number_of_tokens() {
        check("\"off\"", Some(Thinking::Off));
        check("\"medium\"", Some(Thinking::Medium));
        check("4096", Some(Thinking::Tokens(4096)));
        check("\"4096\"", Some(Thinking::Tokens(4096)));
        check("0", None);
        check("-1", None);
        check("\"-1\"", None);
        check("\"hihg\"", None);
        check("99999999999", None);
        check("true", None);
    }
}
