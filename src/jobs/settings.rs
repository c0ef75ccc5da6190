//! `[jobs]` of the configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use types::config_values::{ConfigDuration, dollars};

use crate::notify::{NotifyTarget, SettingsProblem};

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

    /// Checks what a single file cannot tell, because the tables of several files are merged.
    ///
    /// # Errors
    /// The first value that cannot work.
    pub fn check(&self) -> Result<(), SettingsProblem> {
        self.notify.iter().try_for_each(|(name, target)| target.check(name))
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
        if duration.0.is_zero() {
            return Err(de::Error::custom("must be at least 1ms; \"off\" keeps jobs for ever"));
        }
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
