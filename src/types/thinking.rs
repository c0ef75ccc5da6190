//! How much a model may think before it answers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How much a model may think: `"off"`, `"auto"`, `"low"`, `"medium"`, `"high"`, or a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thinking {
    /// No thinking, or as little as the model allows.
    Off,
    /// The model decides.
    Auto,
    /// Little thinking.
    Low,
    /// Moderate thinking.
    Medium,
    /// Much thinking.
    High,
    /// At most this many tokens; never 0.
    Tokens(u32),
}

const EXPECTED: &str = "\"off\", \"auto\", \"low\", \"medium\", \"high\" or a number of tokens";

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Thinking::Off => f.write_str("off"),
            Thinking::Auto => f.write_str("auto"),
            Thinking::Low => f.write_str("low"),
            Thinking::Medium => f.write_str("medium"),
            Thinking::High => f.write_str("high"),
            Thinking::Tokens(tokens) => tokens.fmt(f),
        }
    }
}

impl FromStr for Thinking {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "off" => Thinking::Off,
            "auto" => Thinking::Auto,
            "low" => Thinking::Low,
            "medium" => Thinking::Medium,
            "high" => Thinking::High,
            _ => match text.parse::<u32>() {
                Ok(tokens @ 1..) if !text.starts_with('+') => Thinking::Tokens(tokens),
                _ => return Err(format!("expected {EXPECTED}")),
            },
        })
    }
}

impl Serialize for Thinking {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Thinking::Tokens(tokens) => serializer.serialize_u32(*tokens),
            word => serializer.collect_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Thinking;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
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
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl JsonSchema for Thinking {
    fn schema_name() -> Cow<'static, str> {
        "Thinking".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How much a model may think: a level, or a maximum number of tokens.",
            "oneOf": [
                { "type": "string", "enum": ["off", "auto", "low", "medium", "high"] },
                { "type": "integer", "minimum": 1, "maximum": u32::MAX }
            ]
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
    fn thinking_setting_accepts_keyword_or_token_count() {
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

    #[test]
    fn thinking_values_round_trip_through_json() {
        let all = [Thinking::Off, Thinking::Auto, Thinking::Low, Thinking::Medium, Thinking::High];
        for thinking in all.into_iter().chain([Thinking::Tokens(1), Thinking::Tokens(u32::MAX)]) {
            let json = serde_json::to_string(&thinking).expect("written");
            assert_eq!(serde_json::from_str::<Thinking>(&json).expect("read"), thinking, "{json}");
            assert_eq!(thinking.to_string().parse::<Thinking>(), Ok(thinking));
        }
        assert_eq!(serde_json::from_str::<Thinking>("\"4096\"").ok(), Some(Thinking::Tokens(4096)));
    }

    #[test]
    fn invalid_thinking_error_names_valid_values() {
        for json in
            ["0", "-1", "1.5", "true", "null", "\"\"", "\"-1\"", "\"+7\"", "\"0\"", "\"High\"", "99999999999"]
        {
            let error = serde_json::from_str::<Thinking>(json).expect_err(json).to_string();
            assert!(error.contains("number of tokens"), "{json}: {error}");
        }
    }
}
