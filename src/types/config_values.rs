//! Values of configuration files with their own notation, for the user's files and for those of projects.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration with its unit: `"500ms"`, `"30s"`, `"10m"`, `"2h"`, `"1d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDuration(pub Duration);

/// Units of a duration in milliseconds, longest first.
const UNITS_MS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl ConfigDuration {
    /// A duration of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// A duration of whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }

    /// The duration in milliseconds.
    #[must_use]
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let Some((_, unit_ms)) = UNITS_MS.iter().find(|(name, _)| *name == unit.trim()) else {
            let wanted = "expected a duration with its unit, like \"30s\", \"10m\" or \"2h\"";
            return Err(de::Error::custom(format!("{wanted}, got {text:?}")));
        };
        let number: u64 = number.parse().map_err(de::Error::custom)?;
        Ok(ConfigDuration(Duration::from_millis(number.saturating_mul(*unit_ms))))
    }
}

impl Serialize for ConfigDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ms = self.millis();
        let whole = |(_, unit_ms): &&(&str, u64)| ms >= *unit_ms && ms.is_multiple_of(*unit_ms);
        match UNITS_MS.iter().find(whole) {
            Some((unit, unit_ms)) => serializer.collect_str(&format_args!("{}{unit}", ms / unit_ms)),
            None => serializer.serialize_str("0s"),
        }
    }
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]+(ms|s|m|h|d)$",
            "description": "A duration with its unit, like `90s`, `10m` or `2h`.",
        })
    }
}

/// Reads a duration above zero.
///
/// # Errors
/// The duration is zero, or it has no unit.
pub fn nonzero_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ConfigDuration, D::Error> {
    let span = ConfigDuration::deserialize(deserializer)?;
    if span.0.is_zero() {
        return Err(de::Error::custom("0 leaves no time for anything; give a time like \"30m\""));
    }
    Ok(span)
}

/// A number of bytes, with or without a unit: `4096`, `"512MiB"`, `"4GiB"`, `"2GB"`; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigSize(pub u64);

impl<'de> Deserialize<'de> for ConfigSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ByteValue {
            Bytes(i64),
            Text(String),
        }
        let (shown, bytes) = match ByteValue::deserialize(deserializer)? {
            ByteValue::Bytes(bytes) => (bytes.to_string(), u64::try_from(bytes).ok()),
            ByteValue::Text(text) => (format!("{text:?}"), bytes(&text)),
        };
        bytes.filter(|bytes| *bytes > 0).map(ConfigSize).ok_or_else(|| {
            de::Error::custom(format!(
                "expected a size of at least one byte, like \"512MiB\" or \"4GiB\", got {shown}"
            ))
        })
    }
}

impl Serialize for ConfigSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.iter().find(|(_, bits)| self.0.is_multiple_of(1 << bits)) {
            Some((unit, bits)) => serializer.collect_str(&format_args!("{}{unit}", self.0 >> bits)),
            None => serializer.serialize_u64(self.0),
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Converts dollars to millionths of a dollar. A negative amount gives 0.
#[must_use]
pub fn micros(usd: f64) -> u64 {
    (usd.max(0.0) * 1e6).round() as u64
}

/// Reads an amount in dollars: a finite number, at least 0, or no value.
///
/// # Errors
/// The value is negative, or it is not a finite number.
pub fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let sum = Option::<f64>::deserialize(deserializer)?;
    match sum {
        Some(sum) if !(sum.is_finite() && sum >= 0.0) => {
            Err(de::Error::custom(format!("{sum} is not an amount of money; give a number of 0 or more")))
        }
        sum => Ok(sum),
    }
}

/// Reads a fraction, above 0 and at most 1.
///
/// # Errors
/// The value is outside this range, or it is not a number.
pub fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let part = f64::deserialize(deserializer)?;
    if part > 0.0 && part <= 1.0 {
        return Ok(part);
    }
    Err(de::Error::custom(format!("{part} is not a fraction; give a number above 0 and at most 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_accepts_number_with_optional_unit() {
        #[derive(Deserialize)]
        struct Sized {
            size: ConfigSize,
        }
        for (value, expected) in [
            ("4096", Some(4096)),
            ("\"4096\"", Some(4096)),
            ("\"4GiB\"", Some(4 << 30)),
            ("\"4 GB\"", Some(4_000_000_000)),
            ("\"512M\"", Some(512 << 20)),
            ("0", None),
            ("-1", None),
            ("\"\"", None),
            ("\"4 apples\"", None),
            ("\"99999999999TiB\"", None),
            ("1.5", None),
        ] {
            let got = toml::from_str::<Sized>(&format!("size = {value}")).ok().map(|table| table.size.0);
            assert_eq!(got, expected, "{value}");
        }
    }

    #[test]
    fn written_values_are_read_back_unchanged() {
        for (ms, expected) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (1_800_000, "30m"),
            (86_400_000, "1d"),
        ] {
            let span = ConfigDuration(Duration::from_millis(ms));
            let text = serde_json::to_string(&span).expect("a text");
            assert_eq!(text, format!("{expected:?}"));
            assert_eq!(serde_json::from_str::<ConfigDuration>(&text).expect("a duration"), span);
        }
        for (bytes, expected) in [(1, "1"), (1_000, "1000"), (128 << 10, "\"128KiB\""), (8 << 30, "\"8GiB\"")]
        {
            let text = serde_json::to_string(&ConfigSize(bytes)).expect("a size");
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<ConfigSize>(&text).expect("a size"), ConfigSize(bytes));
        }
    }
}
