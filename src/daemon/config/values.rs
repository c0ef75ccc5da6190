//! Value types with their own notation.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use tools::CgroupSetting;

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

impl Serialize for CgroupChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CgroupChoice::Auto => serializer.serialize_str("auto"),
            CgroupChoice::Off => serializer.serialize_str("off"),
            CgroupChoice::At(dir) => dir.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::thinking::Thinking;

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
    fn cgroup_setting_accepts_keyword_or_folder() {
        #[derive(Deserialize)]
        struct CgroupTable {
            cgroup: CgroupChoice,
        }
        for (value, expected) in [
            ("auto", Some(CgroupChoice::Auto)),
            ("off", Some(CgroupChoice::Off)),
            ("/sys/fs/cgroup/a", Some(CgroupChoice::At("/sys/fs/cgroup/a".into()))),
            ("on", None),
        ] {
            let got =
                toml::from_str::<CgroupTable>(&format!("cgroup = {value:?}")).ok().map(|table| table.cgroup);
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
