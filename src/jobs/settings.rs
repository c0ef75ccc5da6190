//! `[jobs]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use types::config_values::{ConfigDuration, dollars};

/// `[jobs]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSettings {
    /// How many jobs run at a time; at least 1.
    pub concurrent: std::num::NonZeroU32,
    /// Money that jobs may spend on one day (UTC), in US dollars; 0 or absent for no limit.
    #[serde(deserialize_with = "dollars")]
    pub usd_per_day: Option<f64>,
    /// How many jobs may wait for their start.
    pub max_queued: u32,
    /// How long jobs that are over are kept, with their sessions; `off` keeps them until a user removes them.
    pub keep: KeepJobs,
    /// How long a worktree is kept after its job, if all of it is committed.
    pub keep_worktrees: ConfigDuration,
    /// Whether jobs start only after `job.resume`.
    pub paused: bool,
    /// Who can be told of jobs, by name.
    pub notify: BTreeMap<String, NotifyTarget>,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            concurrent: std::num::NonZeroU32::MIN.saturating_add(1),
            usd_per_day: None,
            max_queued: 10_000,
            keep: KeepJobs(None),
            keep_worktrees: ConfigDuration::from_secs(7 * 24 * 3_600),
            paused: false,
            notify: BTreeMap::new(),
        }
    }
}

impl JobSettings {
    /// The day's money in millionths of a dollar; `None` without a limit.
    #[must_use]
    pub fn micros_per_day(&self) -> Option<u64> {
        self.usd_per_day.map(types::config_values::micros).filter(|micros| *micros > 0)
    }
}

/// How long something is kept: `"off"` for ever, or a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepJobs(pub Option<ConfigDuration>);

impl<'de> Deserialize<'de> for KeepJobs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text == "off" {
            return Ok(Self(None));
        }
        let duration = ConfigDuration::deserialize(de::value::StringDeserializer::<D::Error>::new(text))?;
        Ok(Self(Some(duration)))
    }
}

impl Serialize for KeepJobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(duration) => duration.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

/// `[jobs.notify.NAME]`: exactly one of `url` and `command`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyTarget {
    /// Address that gets a signed POST.
    pub url: Option<String>,
    /// Name of the environment variable with the secret of the signature.
    pub secret_env: Option<String>,
    /// File with the secret of the signature.
    pub secret_file: Option<PathBuf>,
    /// Program and arguments; it gets the same JSON on its standard input.
    pub command: Vec<String>,
    /// What the message contains in addition: `result`, `prompt`.
    pub include: Vec<String>,
}
