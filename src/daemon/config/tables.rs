//! The tables of `config.toml` and their defaults.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::knowledge::Knowledge;
use super::limits::Limits;
use super::permission_tables::Permissions;
use super::source::Source;
use jobs::JobSettings;
use mcp::ServerConfig;
use model::{ModelFacts, Provider};
use tools::{SandboxSettings, ToolConfig};
use types::ablation::Ablation;
use types::compaction::CompactionSettings;
use types::model_pointers::ModelPointers;
use types::permission::Mode;
use types::retry::RetrySettings;
use types::session::OnRestart;
use types::thinking::Thinking;
use types::usage::BudgetSettings;

/// The whole configuration.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[daemon]`: socket, folders and log.
    pub daemon: Daemon,
    /// Model providers by name.
    pub providers: BTreeMap<String, Provider>,
    /// Pointers from a purpose to a model.
    pub models: ModelPointers,
    /// Properties of models that the daemon does not know, by `PROVIDER/MODEL`.
    pub model: BTreeMap<String, ModelFacts>,
    /// Defaults of sessions.
    pub session: Session,
    /// Permission rules.
    pub permissions: Permissions,
    /// The sandbox of tools.
    pub sandbox: SandboxSettings,
    /// Limits per client and limits of memory.
    pub limits: Limits,
    /// Retries of model calls.
    pub retry: RetrySettings,
    /// Settings of the tools.
    pub tools: ToolConfig,
    /// How conversations are made to fit the model's context window.
    pub compaction: CompactionSettings,
    /// Hooks, and `on_failure`.
    pub hooks: toml::Table,
    /// `[mcp.NAME]`: MCP servers of the user.
    pub mcp: BTreeMap<String, ServerConfig>,
    /// The indexes of workspaces.
    pub knowledge: Knowledge,
    /// Unattended work, and who is told of it.
    pub jobs: JobSettings,
    /// OpenTelemetry export.
    pub telemetry: Telemetry,
    /// Tables and keys that environment variables define, with the names of the variables.
    #[serde(skip)]
    pub(super) from_environment: BTreeMap<String, &'static str>,
    /// Paths of the files that were read.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// The same files with their texts.
    #[serde(skip)]
    pub(super) sources: Vec<Source>,
    /// The merged content of all files.
    #[serde(skip)]
    pub(super) table: toml::Table,
}

/// `[daemon]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Daemon {
    pub socket: Option<PathBuf>,
    /// Path of the data folder.
    pub data_dir: Option<PathBuf>,
    pub log: LogLevel,
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Policy for interrupted turns of sessions that set none.
    pub on_restart: OnRestart,
    /// Number of daily backups to keep; 0 disables them.
    pub backups: usize,
}

impl Default for Daemon {
    fn default() -> Self {
        Self {
            socket: None,
            data_dir: None,
            log: LogLevel::Info,
            log_format: LogFormat::Auto,
            on_restart: OnRestart::Resume,
            backups: 3,
        }
    }
}

/// Log level. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Unusual conditions.
    Warn,
    /// Normal operation.
    #[default]
    Info,
    /// Details for debugging.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level as written in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Fields for journald if systemd connected stderr to it, otherwise text.
    #[default]
    Auto,
    /// Text, for users.
    Human,
    /// One JSON object per line.
    Json,
}

/// `[session]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Approval mode.
    pub mode: Mode,
    /// Thinking setting.
    pub thinking: Option<Thinking>,
    /// Whether an identical request within five minutes is answered from memory.
    pub response_cache: bool,
    /// Whether every optimisation of `[session.ablation]` is turned off.
    pub simple: bool,
    /// Optimisations that are turned off.
    pub ablation: Ablation,
    /// Whether calls run one at a time and each needs a permission request.
    pub safe_mode: bool,
    /// Whether the model answers twice and a client chooses the answer.
    pub binary_feedback: bool,
    /// Output tokens of the first request for an answer. The daemon requests more only if they do not suffice.
    pub output_tokens: NonZeroU32,
    /// Number of identical calls in a row with identical results after which the user is asked; 0 for never.
    pub repeat_limit: u32,
    /// Limits of each turn.
    pub budgets: BudgetSettings,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            thinking: None,
            simple: false,
            ablation: Ablation::default(),
            safe_mode: false,
            response_cache: false,
            binary_feedback: false,
            output_tokens: NonZeroU32::new(32_000).unwrap_or(NonZeroU32::MIN),
            repeat_limit: 8,
            budgets: BudgetSettings::default(),
        }
    }
}

/// `[telemetry]`: export of traces and metrics.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address of an OTLP receiver for JSON over HTTP. Without it nothing is sent.
    pub endpoint: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Additional headers with the names of the environment variables that contain their values.
    pub headers_env: BTreeMap<String, String>,
    /// Name of this daemon at the receiver.
    pub service_name: String,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            headers_env: BTreeMap::new(),
            service_name: "agentd".into(),
        }
    }
}
