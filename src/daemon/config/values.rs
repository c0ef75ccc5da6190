//! Value types with their own notation.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::tools::CgroupSetting;

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

/// A number of bytes, with or without a unit: `4096`, `"512MiB"`, `"4GiB"`, `"2GB"`; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Bytes(i64),
            Text(String),
        }
        let (shown, bytes) = match Given::deserialize(deserializer)? {
            Given::Bytes(bytes) => (bytes.to_string(), u64::try_from(bytes).ok()),
            Given::Text(text) => (format!("{text:?}"), bytes(&text)),
        };
        bytes.filter(|bytes| *bytes > 0).map(Size).ok_or_else(|| {
            de::Error::custom(format!(
                "expected a size of at least one byte, like \"512MiB\" or \"4GiB\", got {shown}"
            ))
        })
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

/// Where each command gets a separate cgroup: `"auto"`, `"off"`, or a folder of the v2 hierarchy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CgroupChoice {
    /// In the daemon's own cgroup, if that is possible.
    #[default]
    Auto,
    /// Nowhere.
    Off,
    /// In this folder.
    At(PathBuf),
}

impl CgroupChoice {
    /// Converts the choice to the setting of the tools.
    #[must_use]
    pub fn setting(&self) -> CgroupSetting {
        match self {
            CgroupChoice::Auto => CgroupSetting::Auto,
            CgroupChoice::Off => CgroupSetting::Off,
            CgroupChoice::At(dir) => CgroupSetting::At(dir.clone()),
        }
    }
}

impl<'de> Deserialize<'de> for CgroupChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "auto" => Ok(CgroupChoice::Auto),
            "off" => Ok(CgroupChoice::Off),
            path if path.starts_with('/') => Ok(CgroupChoice::At(path.into())),
            _ => Err(de::Error::custom(format!(
                "expected \"auto\", \"off\" or a folder of the cgroup v2 hierarchy, got {text:?}"
            ))),
        }
    }
}

/// A finite amount of money, at least 0.
pub(super) fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let sum = Option::<f64>::deserialize(deserializer)?;
    match sum {
        Some(sum) if !(sum.is_finite() && sum >= 0.0) => {
            Err(serde::de::Error::custom(format!("{sum} is no sum of money; give a number from 0 on")))
        }
        sum => Ok(sum),
    }
}

/// A part of a whole, above 0 and at most 1.
pub(super) fn part<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let part = f64::deserialize(deserializer)?;
    if part > 0.0 && part <= 1.0 {
        return Ok(part);
    }
    Err(serde::de::Error::custom(format!(
        "{part} is no part of a whole; give a number above 0 and at most 1"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::thinking::Thinking;

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
    fn size_accepts_number_with_optional_unit() {
        #[derive(Deserialize)]
        struct Sized {
            size: Size,
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
    fn cgroup_setting_accepts_keyword_or_folder() {
        #[derive(Deserialize)]
        struct Given {
            cgroup: CgroupChoice,
        }
        for (value, expected) in [
            ("auto", Some(CgroupChoice::Auto)),
            ("off", Some(CgroupChoice::Off)),
            ("/sys/fs/cgroup/a", Some(CgroupChoice::At("/sys/fs/cgroup/a".into()))),
            ("on", None),
        ] {
            let got = toml::from_str::<Given>(&format!("cgroup = {value:?}")).ok().map(|table| table.cgroup);
            assert_eq!(got, expected, "{value}");
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
}
