//! The settings of the tools: plain values without behaviour.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::address::AddressRanges;
use knowledge::registry::Indexes;
use types::config_values::{ConfigDuration, ConfigSize};
use types::tool::OfferUnsandboxedRetry;

/// Settings of the tools, filled by the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The user's home folder: `~` in paths, `HOME` of commands.
    pub home: PathBuf,
    /// The daemon's configuration, data and runtime folders. No tool may write them.
    pub protected: Vec<PathBuf>,
    /// The values of the configuration.
    pub config: ToolConfig,
    /// Characters of output that the model receives. Longer output is reduced to its head and tail.
    pub output_cap: usize,
    /// Bytes of progress that one call may send.
    pub max_progress_bytes: usize,
    /// Time after which a call without output says how far it is, and then again.
    pub progress_interval: Duration,
    /// The daemon's instance, set as `AGENTD_INSTANCE` of every process. It is the same after each restart with
    /// the same data folder.
    pub instance: String,
    /// The daemon's socket, set as `AGENTD_SOCKET` of every command. An `agentctl` in a script connects to this
    /// daemon, which recognises it as a tool's process, instead of the default daemon.
    pub socket: Option<PathBuf>,
    /// Open files of commands, soft and hard: the daemon's own initial limits.
    pub open_files: Option<(u64, u64)>,
    /// The program that converts documents if it is started with
    /// [`DOCUMENT_ARGUMENT`](super::DOCUMENT_ARGUMENT). `None` converts in this process without limits, for
    /// tests with trusted documents.
    pub converter: Option<PathBuf>,
    /// Non-public addresses that WebFetch may reach.
    pub web_allowed_private: AddressRanges,
    pub sandbox: SandboxSettings,
    /// The folder for the full output of commands, if it exceeds the excerpt for the model; `None` stores nothing.
    /// It is created with the first spool.
    pub spool_folder: Option<PathBuf>,
    /// The folder for undo records of files that are written in place; `None` for none.
    pub undo_folder: Option<PathBuf>,
    /// The folder with the daemon's worktrees, absolute and without links; `None` for none. It lies in a protected folder.
    /// A session that works in one of them may use this one as any workspace.
    pub worktrees: Option<PathBuf>,
    /// The indexes of workspaces; `None` for none.
    pub knowledge: Option<Indexes>,
}

impl Settings {
    /// The worktree that a session with this workspace may use.
    pub(crate) fn worktree_of(&self, workspace: &Path) -> Option<PathBuf> {
        let all = self.worktrees.as_ref()?;
        let name = workspace.strip_prefix(all).ok()?.iter().next()?;
        Some(all.join(name))
    }

    /// The defaults, for a user at `home`.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self {
            home,
            protected: Vec::new(),
            config: ToolConfig { cgroup: CgroupSetting::Off, ..ToolConfig::default() },
            output_cap: 30_000,
            max_progress_bytes: 1 << 20,
            progress_interval: Duration::from_secs(1),
            instance: String::new(),
            socket: None,
            open_files: None,
            converter: None,
            web_allowed_private: AddressRanges::default(),
            // The folder for temporary files and the hidden paths are not known yet.
            sandbox: SandboxSettings { level: LevelSetting::Off, ..SandboxSettings::default() },
            spool_folder: None,
            undo_folder: None,
            worktrees: None,
            knowledge: None,
        }
    }

    /// Resource limits of commands.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory: self.config.memory.map(|size| size.0),
            processes: self.config.processes.map(NonZeroU64::get),
            file_size: self.config.file_size.map(|size| size.0),
            cpu_time: self.config.cpu_time.map(|span| span.0),
            open_files: self.open_files,
        }
    }
}

/// `[tools]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolConfig {
    /// Whether the model must have read a file before it changes the file.
    pub edit_requires_read: bool,
    /// Maximum number of parallel calls.
    pub parallel: usize,
    /// Default time limit of a command.
    pub bash_timeout: ConfigDuration,
    /// Highest time limit of a command.
    pub bash_timeout_max: ConfigDuration,
    /// Time limit of a background task.
    pub background_timeout: ConfigDuration,
    /// Maximum number of background tasks per session.
    pub background_commands: usize,
    /// Names of further environment variables that commands may see. `NAME_*` matches all names with this
    /// prefix except those that look like secrets; a secret must be listed by its full name.
    pub env: Vec<String>,
    /// The folder in which the daemon creates a cgroup per call.
    pub cgroup: CgroupSetting,
    /// Memory limit of a command.
    pub memory: Option<ConfigSize>,
    /// Process limit of a command.
    pub processes: Option<NonZeroU64>,
    /// Maximum size of a file that a command may write.
    pub file_size: Option<ConfigSize>,
    /// Processor time limit of each process of a command.
    pub cpu_time: Option<ConfigDuration>,
    /// Private addresses and ranges that WebFetch may reach, unparsed: see [`Settings::web_allowed_private`].
    pub web_allowed_private: Vec<String>,
    /// The proxy of WebFetch. Proxy variables of the environment are ignored.
    pub web_proxy: Option<String>,
    /// Maximum size of one result for the model. The full result is stored as a blob.
    pub max_result_size: ConfigSize,
    /// Maximum size of all results of one message.
    pub max_results_total: ConfigSize,
    /// Maximum stored output of one command.
    pub max_spool_size: ConfigSize,
    /// Maximum stored output of all commands of all sessions.
    pub max_spool_total: ConfigSize,
    /// Maximum size of a file whose content is kept before a call changes it.
    pub max_checkpoint_size: ConfigSize,
}

impl Default for ToolConfig {
    fn default() -> Self {
        Self {
            edit_requires_read: true,
            parallel: 10,
            bash_timeout: ConfigDuration::from_secs(120),
            bash_timeout_max: ConfigDuration::from_secs(600),
            background_timeout: ConfigDuration::from_secs(12 * 3_600),
            background_commands: 8,
            env: Vec::new(),
            cgroup: CgroupSetting::Auto,
            memory: None,
            processes: None,
            file_size: None,
            cpu_time: None,
            web_allowed_private: Vec::new(),
            web_proxy: None,
            max_result_size: ConfigSize(128 << 10),
            max_results_total: ConfigSize(256 << 10),
            max_spool_size: ConfigSize(1 << 30),
            max_spool_total: ConfigSize(8 << 30),
            max_checkpoint_size: ConfigSize(8 << 20),
        }
    }
}

/// Limits of commands; `None` sets none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of memory: of all processes of a call in a cgroup, otherwise of the data segment of each process.
    pub memory: Option<u64>,
    /// Processes and threads: of a call in a cgroup, otherwise of the user. Without a cgroup, root has no
    /// limit.
    pub processes: Option<u64>,
    /// Bytes of the longest file that a command may write.
    pub file_size: Option<u64>,
    /// CPU time of each process.
    pub cpu_time: Option<Duration>,
    /// Open files, soft and hard: the daemon's own initial limits.
    pub open_files: Option<(u64, u64)>,
}

/// The location of the cgroups of calls: `"auto"`, `"off"`, or a folder of the v2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupSetting {
    /// No cgroups.
    Off,
    /// In the daemon's own cgroup, if possible.
    Auto,
    /// In this folder of the cgroup v2 hierarchy.
    At(PathBuf),
}

impl<'de> Deserialize<'de> for CgroupSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "auto" => Ok(CgroupSetting::Auto),
            "off" => Ok(CgroupSetting::Off),
            path if path.starts_with('/') => Ok(CgroupSetting::At(path.into())),
            _ => Err(de::Error::custom(format!(
                "expected \"auto\", \"off\" or a folder of the cgroup v2 hierarchy, got {text:?}"
            ))),
        }
    }
}

impl Serialize for CgroupSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CgroupSetting::Auto => serializer.serialize_str("auto"),
            CgroupSetting::Off => serializer.serialize_str("off"),
            CgroupSetting::At(folder) => folder.serialize(serializer),
        }
    }
}

/// `[sandbox] level`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LevelSetting {
    /// Landlock in attended sessions, bubblewrap in unattended ones; otherwise the next available level.
    #[default]
    Auto,
    /// Bubblewrap; no command runs without it.
    Bubblewrap,
    /// Landlock; no command runs without it.
    Landlock,
    /// Resource limits only.
    Rlimits,
    /// No sandbox.
    Off,
}

impl LevelSetting {
    /// The value in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// `[sandbox] network`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkSetting {
    /// Network access in attended sessions only.
    #[default]
    Auto,
    /// Commands have network access.
    On,
    /// Commands have no network access.
    Off,
}

/// `[sandbox]`: the sandbox of commands. The daemon adds the paths, which no file sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    pub level: LevelSetting,
    /// Whether commands have network access.
    pub network: NetworkSetting,
    /// Files and folders outside the workspace that commands may write, absolute.
    pub writable: Vec<PathBuf>,
    /// Whether the user may repeat a blocked command without the sandbox.
    pub offer_unsandboxed_retry: OfferUnsandboxedRetry,
    /// Hidden files and folders: the daemon's own, and those with keys.
    #[serde(skip)]
    pub hidden: Vec<PathBuf>,
    /// Files that configure the daemon, by the path that it opens. No command may replace one.
    #[serde(skip)]
    pub daemon_files: Vec<PathBuf>,
    /// The parent of the sessions' folders for temporary files. It is created on first use.
    #[serde(skip)]
    pub temp: PathBuf,
}

#[cfg(test)]
mod tests {
    use crate::settings::*;

    #[test]
    fn cgroup_setting_accepts_keyword_or_folder() {
        for (value, expected) in [
            ("auto", Some(CgroupSetting::Auto)),
            ("off", Some(CgroupSetting::Off)),
            ("/sys/fs/cgroup/a", Some(CgroupSetting::At("/sys/fs/cgroup/a".into()))),
            ("on", None),
        ] {
            assert_eq!(serde_json::from_value(value.into()).ok(), expected, "{value}");
        }
    }
}
