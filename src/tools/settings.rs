//! The settings of the tools: plain values without behaviour.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::AddressRanges;
use knowledge::registry::Indexes;
use types::tool::OfferUnsandboxedRetry;

/// Settings of the tools, filled by the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The user's home folder: `~` in paths, `HOME` of commands.
    pub home: PathBuf,
    /// The daemon's configuration, data and runtime folders. No tool may write them.
    pub protected: Vec<PathBuf>,
    /// Names of further environment variables that commands may see. `NAME_*` matches all names with this
    /// prefix except those that look like secrets; a secret must be listed by its full name.
    pub env_allow: Vec<String>,
    /// Default time limit of a command, in milliseconds.
    pub bash_timeout_ms: u64,
    /// Highest time limit of a command, in milliseconds.
    pub bash_timeout_max_ms: u64,
    /// Time limit of a background task.
    pub background_timeout: Duration,
    /// Characters of output that the model receives. Longer output is reduced to its head and tail.
    pub output_cap: usize,
    /// Whether the model must have read a file before it changes the file.
    pub edit_requires_read: bool,
    /// Maximum size in bytes of a file whose content is kept before a call changes it.
    pub checkpoint_bytes: u64,
    /// Bytes of progress that one call may send.
    pub max_progress_bytes: usize,
    /// The daemon's instance, set as `AGENTD_INSTANCE` of every process. It is the same after each restart with
    /// the same data folder.
    pub instance: String,
    /// The daemon's socket, set as `AGENTD_SOCKET` of every command. An `agentctl` in a script connects to this
    /// daemon, which recognises it as a tool's process, instead of the default daemon.
    pub socket: Option<PathBuf>,
    /// Resource limits of commands.
    pub limits: Limits,
    /// The folder in which the daemon creates a cgroup per call.
    pub cgroup: CgroupSetting,
    /// The program that converts documents if it is started with
    /// [`DOCUMENT_ARGUMENT`](super::DOCUMENT_ARGUMENT). `None` converts in this process without limits, for
    /// tests with trusted documents.
    pub converter: Option<PathBuf>,
    /// Non-public addresses that WebFetch may reach.
    pub web_allowed_private: AddressRanges,
    /// The proxy of WebFetch. Proxy variables of the environment are ignored.
    pub web_proxy: Option<String>,
    /// Settings of the sandbox.
    pub sandbox: SandboxSettings,
    /// The folder for the full output of commands, if it exceeds the excerpt for the model; `None` stores nothing.
    pub spools: Option<SpoolSettings>,
    /// The indexes of workspaces; `None` for none.
    pub knowledge: Option<Indexes>,
}

impl Settings {
    /// The defaults, for a user at `home`.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self {
            home,
            protected: Vec::new(),
            env_allow: Vec::new(),
            bash_timeout_ms: 120_000,
            bash_timeout_max_ms: 600_000,
            background_timeout: Duration::from_secs(12 * 3_600),
            output_cap: 30_000,
            edit_requires_read: true,
            checkpoint_bytes: 8 << 20,
            max_progress_bytes: 1 << 20,
            instance: String::new(),
            socket: None,
            limits: Limits::default(),
            cgroup: CgroupSetting::Off,
            converter: None,
            web_allowed_private: AddressRanges::default(),
            web_proxy: None,
            // The folder for temporary files and the hidden paths are not known yet.
            sandbox: SandboxSettings { level: LevelSetting::Off, ..SandboxSettings::default() },
            spools: None,
            knowledge: None,
        }
    }
}

/// Limits of commands; `None` sets none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
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

/// The location of the cgroups of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CgroupSetting {
    /// No cgroups.
    #[default]
    Off,
    /// In the daemon's own cgroup, if possible.
    Auto,
    /// In this folder of the cgroup v2 hierarchy.
    At(PathBuf),
}

/// `[sandbox] level`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub const fn name(self) -> &'static str {
        match self {
            LevelSetting::Auto => "auto",
            LevelSetting::Bubblewrap => "bubblewrap",
            LevelSetting::Landlock => "landlock",
            LevelSetting::Rlimits => "rlimits",
            LevelSetting::Off => "off",
        }
    }
}

/// `[sandbox] network`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkSetting {
    /// Network access in attended sessions only.
    #[default]
    Auto,
    /// Commands have network access.
    On,
    /// Commands have no network access.
    Off,
}

/// Settings of the sandbox for commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// The sandbox level.
    pub level: LevelSetting,
    /// Whether commands have network access.
    pub network: NetworkSetting,
    /// Files and folders outside the workspace that commands may write, absolute.
    pub writable: Vec<PathBuf>,
    /// Hidden files and folders: the daemon's own, and those with keys.
    pub hidden: Vec<PathBuf>,
    /// Files that configure the daemon, by the path that it opens. No command may replace one.
    pub daemon_files: Vec<PathBuf>,
    /// The parent of the sessions' folders for temporary files. It is created on first use.
    pub temp: PathBuf,
    /// Whether the user may repeat a blocked command without the sandbox.
    pub offer_unsandboxed_retry: OfferUnsandboxedRetry,
}

/// The folder of spools and their quotas in bytes.
#[derive(Clone, Debug)]
pub struct SpoolSettings {
    /// The folder; it is created with the first spool.
    pub folder: PathBuf,
    /// Longest spool.
    pub call_bytes: u64,
    /// All files of the folder.
    pub total_bytes: u64,
}
