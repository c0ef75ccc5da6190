//! Parameters and replies of `hello` and of `daemon.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use types::daemon_event::DaemonSubject;
use types::job::{FailedDelivery, JobCounts};
use types::time::Timestamp;

/// The role of a client, which decides which methods it may call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientRole {
    /// May only read.
    Observer,
    /// May call every method.
    #[default]
    Controller,
    /// A process that a tool started. It may only identify the daemon. The daemon assigns this role; no client can
    /// request it.
    Tool,
}

impl ClientRole {
    /// All roles, for the reference.
    pub(crate) const ALL: [Self; 3] = [Self::Controller, Self::Observer, Self::Tool];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ClientRole::Observer => "observer",
            ClientRole::Controller => "controller",
            ClientRole::Tool => "tool",
        }
    }
}

/// `daemon.hello`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HelloParams {
    /// The protocol version of the client; absent for any.
    #[serde(default)]
    pub protocol_version: Option<u32>,
    /// The client's name, shown to other clients.
    #[serde(default)]
    pub name: Option<String>,
    /// The requested role: `observer` or `controller`.
    #[serde(default)]
    pub role: Option<ClientRole>,
}

/// Reply of `daemon.hello`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloReply {
    /// The protocol version of the daemon.
    pub protocol_version: u32,
    /// Version of the format of events. It rises when the meaning of an existing kind or field changes.
    #[serde(default)]
    pub event_version: u32,
    /// The daemon's own version.
    pub version: String,
    /// The name that other clients see.
    pub name: String,
    /// The role of the client.
    pub role: ClientRole,
}

/// Reply of `daemon.status`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReply {
    /// The daemon's version.
    pub version: String,
    /// The protocol version.
    pub protocol_version: u32,
    /// Its process id.
    pub pid: u32,
    /// Time of its start.
    pub started_at_ms: Timestamp,
    /// Path of its socket.
    pub socket: String,
    /// Path of its data folder.
    pub data_dir: String,
    /// Configuration files that were read.
    pub config_files: Vec<String>,
    /// Configured providers.
    pub providers: Vec<String>,
    /// The model used when a session names none.
    pub main_model: Option<String>,
    /// Variables of the environment from which configured providers take their keys, and which the daemon lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_key_variables: Vec<String>,
    /// Number of known sessions.
    pub sessions: u64,
    /// Number of sessions that run or wait for the user.
    pub active_sessions: u64,
    /// Sessions in memory; the others are loaded when they are used.
    #[serde(default)]
    pub loaded_sessions: u64,
    /// Resident memory of the daemon in bytes; 0 if it is not known.
    #[serde(default)]
    pub resident_bytes: u64,
    /// Size of the journal in bytes, a few seconds old at most.
    #[serde(default)]
    pub journal_bytes: u64,
    /// `ok`, or the problem of the storage.
    pub storage: String,
    /// How the daemon enforces limits on commands on this machine: by a cgroup and its controllers, or by rlimits.
    #[serde(default)]
    pub confinement: String,
    /// The sandbox of commands.
    #[serde(default)]
    pub sandbox: SandboxReply,
    /// Ids of processes of an earlier daemon that this daemon could not end at its start.
    #[serde(default)]
    pub leftovers: Vec<i32>,
    /// Result of the last reload of the configuration; absent if it was not reloaded since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reload: Option<LastReload>,
    /// How many jobs are in which state.
    #[serde(default)]
    pub jobs: JobCounts,
    /// The newest message about a job of the last seven days whose last try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_delivery: Option<FailedDelivery>,
    /// Notices about damaged databases, one text for each database that was replaced.
    #[serde(default)]
    pub storage_notices: Vec<String>,
    /// Daily backups of the database, newest first.
    #[serde(default)]
    pub backups: Vec<String>,
}

/// The sandbox of commands, from the configuration and the capabilities of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxReply {
    /// The confinement in attended sessions.
    pub attended: SandboxChoice,
    /// The confinement in unattended sessions (`background: true`).
    pub unattended: SandboxChoice,
    /// `works`, or why level 3 (bubblewrap) does not work on this machine.
    pub bubblewrap: String,
    /// `works`, followed by the protections that this machine lacks, or why level 2 (Landlock) does not work on it.
    pub landlock: String,
    /// Whether the levels were tested. `false` shortly after the start of the daemon; the texts then say so.
    #[serde(default = "is_true", rename = "tested")]
    pub is_tested: bool,
}

/// Older daemons answer after the test.
const fn is_true() -> bool {
    true
}

impl SandboxReply {
    /// The reply while the test runs.
    #[must_use]
    pub fn untested() -> Self {
        let text = "not tested yet; ask again in a moment";
        let choice = SandboxChoice { level: None, network: false, text: text.into() };
        Self {
            attended: choice.clone(),
            unattended: choice,
            bubblewrap: text.into(),
            landlock: text.into(),
            is_tested: false,
        }
    }
}

/// The confinement of commands in one kind of session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxChoice {
    /// 3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off; absent if no command can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Whether commands have network access.
    pub network: bool,
    /// The active protections, or why no command can run.
    pub text: String,
}

/// Result of a reload of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastReload {
    /// Time of the reload.
    pub at_ms: Timestamp,
    /// The error of a failed reload, with file and line. The previous configuration stays active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Keys that changed since the start and apply only after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// `daemon.config`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigParams {
    /// A folder, absolute. The reply then includes the values of its project's configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Reply of `daemon.config`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReply {
    /// Every key. Rules have one entry for each file that contains some.
    pub values: Vec<ConfigValue>,
    /// With `cwd`: the project's configuration file, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectFileState>,
}

/// A value of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigValue {
    /// Its dotted name.
    pub key: String,
    /// The value in force; `null` if it is not set. A value that may be a secret is replaced by `***`.
    pub value: Value,
    /// `default`, `flag`, `environment (NAME)`, `socket activation`, or the path of the file that sets it.
    pub origin: String,
    /// The line in the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// The state of a project's configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectFileState {
    /// Its path.
    pub file: String,
    /// Whether the folder is trusted in its current state. Without trust only ask and deny rules are used.
    pub trusted: bool,
    /// A mistake in the file, with its line. Until it is fixed, only ask and deny rules are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// `daemon.reload`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReloadParams {
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `daemon.reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReply {
    /// Keys that changed and apply from now on, for example `retry.attempts`.
    pub changed: Vec<String>,
    /// Keys that changed since the start and apply only after a restart.
    pub needs_restart: Vec<String>,
}

/// `daemon.backup`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BackupParams {
    /// Absolute path of the new file; it must not exist.
    pub path: String,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `daemon.backup`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupReply {
    /// Path of the new file.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Reply of `daemon.check`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReply {
    /// Problems of the database as texts; empty if there are none.
    pub problems: Vec<String>,
}

/// `daemon.subscribe`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DaemonSubscribeParams {
    /// Only notifications about these; by default all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<DaemonSubject>,
}

/// `daemon.shutdown`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownParams {
    /// How running tools are stopped.
    #[serde(default)]
    pub mode: ShutdownMode,
    /// Whether the caller starts another daemon afterwards. Other clients are told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
}

/// How the daemon stops. A repeated call with `now` speeds up a running stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShutdownMode {
    /// Running tools get a few seconds to end by themselves.
    #[default]
    Drain,
    /// Running tools are ended at once.
    Now,
}
