//! Sampling settings of a model. They are stored in thousandths, so that the same setting always gives the same
//! request bytes, and are read and written as decimals.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Sampling settings. Absent values use the model's default.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// From 0, which nearly always selects the most likely token, to 2.
    pub temperature: Option<Temperature>,
    /// The probability mass of the most likely tokens to choose from, from 0 to 1.
    pub top_p: Option<TopP>,
}

impl Sampling {
    /// Whether all values use the model's default.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These settings; absent values are taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { temperature: self.temperature.or(other.temperature), top_p: self.top_p.or(other.top_p) }
    }
}

/// A temperature, from 0 to 2.
pub type Temperature = Thousandths<2_000>;

/// A probability mass of the most likely tokens, from 0 to 1.
pub type TopP = Thousandths<1_000>;

/// A number from 0 to `MAX_THOUSANDTHS` thousandths. More precise numbers are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thousandths<const MAX_THOUSANDTHS: u16>(u16);

impl<const MAX_THOUSANDTHS: u16> Thousandths<MAX_THOUSANDTHS> {
    /// A value in thousandths; `None` above `MAX_THOUSANDTHS`.
    #[must_use]
    pub const fn new(thousandths: u16) -> Option<Self> {
        if thousandths <= MAX_THOUSANDTHS { Some(Self(thousandths)) } else { None }
    }

    /// The value in thousandths.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    fn from_number(number: f64) -> Option<Self> {
        let is_inside = (0.0..=f64::from(MAX_THOUSANDTHS) / 1e3).contains(&number);
        // The range check guarantees that the cast fits.
        is_inside.then(|| Self((number * 1e3).round() as u16))
    }
}

impl<const MAX_THOUSANDTHS: u16> fmt::Display for Thousandths<MAX_THOUSANDTHS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / 1e3).fmt(f)
    }
}

impl<const MAX_THOUSANDTHS: u16> Serialize for Thousandths<MAX_THOUSANDTHS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1e3)
    }
}

impl<'de, const MAX_THOUSANDTHS: u16> Deserialize<'de> for Thousandths<MAX_THOUSANDTHS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor::<MAX_THOUSANDTHS>)
    }
}

struct Visitor<const MAX_THOUSANDTHS: u16>;

impl<const MAX_THOUSANDTHS: u16> de::Visitor<'_> for Visitor<MAX_THOUSANDTHS> {
    type Value = Thousandths<MAX_THOUSANDTHS>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from 0 to {}", f64::from(MAX_THOUSANDTHS) / 1e3)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Thousandths::from_number(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        // A number that a float cannot represent is far out of range.
        Thousandths::from_number(number as f64)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Thousandths::from_number(number as f64)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }
}

impl<const MAX_THOUSANDTHS: u16> JsonSchema for Thousandths<MAX_THOUSANDTHS> {
    fn schema_name() -> Cow<'static, str> {
        if MAX_THOUSANDTHS == 2_000 { "Temperature".into() } else { "TopP".into() }
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number with at most three decimals; finer ones are rounded.",
            "type": "number", "minimum": 0, "maximum": f64::from(MAX_THOUSANDTHS) / 1e3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_values_round_trip_as_same_bytes() {
        for thousandths in 0..=2_000 {
            let temperature = Temperature::new(thousandths).expect("inside");
            let json = serde_json::to_string(&temperature).expect("written");
            assert!(json.len() <= 5, "{json}");
            assert_eq!(serde_json::from_str::<Temperature>(&json).expect("read"), temperature, "{json}");
        }
        for (json, thousandths) in [("0", 0), ("1", 1_000), ("0.7", 700), ("0.7000001", 700), ("1.0", 1_000)]
        {
            assert_eq!(serde_json::from_str::<TopP>(json).expect(json).get(), thousandths);
        }
    }

    #[test]
    fn out_of_range_sampling_error_names_range() {
        for json in ["-0.1", "-1", "2.001", "3", "1e300", "99999999999999999999", "\"1\"", "true", "[]"] {
            let error = serde_json::from_str::<Temperature>(json).expect_err(json).to_string();
            assert!(error.contains("a number from 0 to 2"), "{json}: {error}");
        }
        let error = serde_json::from_str::<TopP>("1.1").expect_err("too much").to_string();
        assert!(error.contains("a number from 0 to 1"), "{error}");
        assert!(toml::from_str::<Sampling>("temperature = nan").is_err());
        assert_eq!((Temperature::new(2_001), TopP::new(1_001)), (None, None));
    }

    #[test]
    fn sampling_fields_fall_back_independently() {
        let one = Sampling { temperature: Temperature::new(300), top_p: None };
        let other = Sampling { temperature: Temperature::new(900), top_p: TopP::new(500) };
        assert_eq!(one.or(other), Sampling { temperature: Temperature::new(300), top_p: TopP::new(500) });
        assert!(Sampling::default().is_empty() && !one.is_empty());
        assert_eq!(serde_json::to_string(&one).expect("written"), "{\"temperature\":0.3}");
    }
}
