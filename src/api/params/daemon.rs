//! Parameters and replies of `hello` and of `daemon.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::time::Timestamp;

/// What a client may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientRole {
    /// Reads only.
    Observer,
    /// Everything.
    #[default]
    Controller,
    /// A process that a tool started: it may ask who the daemon is, and nothing else. Given, never asked for.
    Tool,
}

/// `daemon.hello`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HelloParams {
    /// The version the client speaks; absent for any.
    #[serde(default)]
    pub protocol_version: Option<u32>,
    /// The client's name, shown to others.
    #[serde(default)]
    pub name: Option<String>,
    /// What it wants to be: `observer` or `controller`.
    #[serde(default)]
    pub role: Option<ClientRole>,
}

/// Reply of `daemon.hello`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloReply {
    /// The version that is served.
    pub protocol_version: u32,
    /// The daemon's own version.
    pub version: String,
    /// The name others see.
    pub name: String,
    /// What the client is.
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
    /// When it started.
    pub started_at_ms: Timestamp,
    /// Its socket.
    pub socket: String,
    /// Its data folder.
    pub data_dir: String,
    /// Configuration files that were read.
    pub config_files: Vec<String>,
    /// Configured providers.
    pub providers: Vec<String>,
    /// The model used when a session names none.
    pub main_model: Option<String>,
    /// Known sessions.
    pub sessions: u64,
    /// Of these, running or waiting for a person.
    pub active_sessions: u64,
    /// Sessions in memory; the others are loaded when they are used.
    #[serde(default)]
    pub loaded_sessions: u64,
    /// What the journal holds, in bytes, as of the last seconds.
    #[serde(default)]
    pub journal_bytes: u64,
    /// `ok`, or what is wrong with the storage.
    pub storage: String,
    /// How commands are held to their limits here: by a cgroup and what it can do, or by rlimits.
    #[serde(default)]
    pub confinement: String,
    /// Which sandbox commands get.
    #[serde(default)]
    pub sandbox: SandboxReply,
    /// Processes of an earlier daemon that could not be ended at the start.
    #[serde(default)]
    pub leftovers: Vec<i32>,
    /// How the last reading of the configuration went, if it was read again since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reload: Option<LastReload>,
    /// What became of damaged databases, one text for each that was set aside.
    #[serde(default)]
    pub storage_notices: Vec<String>,
    /// Rolling backups, newest first.
    #[serde(default)]
    pub backups: Vec<String>,
}

/// Which sandbox commands get, as the configuration and this machine have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxReply {
    /// In sessions that people look on.
    pub attended: SandboxChoice,
    /// In sessions with `background: true`.
    pub unattended: SandboxChoice,
    /// `works`, or why level 3 (bubblewrap) does not here.
    pub bubblewrap: String,
    /// `works`, also with what it does not guard here, or why level 2 (Landlock) does not.
    pub landlock: String,
}

/// How commands of some sessions are held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxChoice {
    /// 3 bubblewrap, 2 Landlock, 1 limits of resources alone, 0 nothing; absent if no command is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Whether commands reach the network.
    pub network: bool,
    /// What holds, or why no command is run.
    pub text: String,
}

/// How a reading of the configuration went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastReload {
    /// When.
    pub at_ms: Timestamp,
    /// What is wrong with it, with file and line; the older one is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Keys that changed since the start and count only after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// `daemon.reload`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReloadParams {
    /// The same key with the same parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `daemon.reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReply {
    /// Keys that changed and count from now on, for example `retry.attempts`.
    pub changed: Vec<String>,
    /// Keys that changed since the start and count only after a restart.
    pub needs_restart: Vec<String>,
}

/// `daemon.backup`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BackupParams {
    /// Absolute path of the file to be made; it must not exist.
    pub path: String,
    /// The same key with the same parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `daemon.backup`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupReply {
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// Reply of `daemon.check`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReply {
    /// What is not sound in the database, in words; empty if all is well.
    pub problems: Vec<String>,
}

/// `daemon.shutdown`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownParams {
    /// How.
    #[serde(default)]
    pub mode: ShutdownMode,
}

/// How the daemon stops. Sent again with `now`, it hurries a stop that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShutdownMode {
    /// Running tools get a few seconds to end by themselves.
    #[default]
    Drain,
    /// Running tools are ended at once.
    Now,
}
