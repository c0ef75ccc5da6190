//! The tables of `config.toml`, with their defaults.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::limits::Limits;
use super::source::Source;
use super::values::{CgroupChoice, Size, Span};
use crate::judge::Rule;
use crate::model::ReasoningBack;
use crate::types::permission::{Mode, OnTimeout};
use crate::types::sampling::{Temperature, TopP};
use crate::types::session::OnRestart;
use crate::types::thinking::Thinking;
use crate::types::usage::Price;

/// The whole configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The daemon itself.
    pub daemon: Daemon,
    /// Model providers by name.
    pub providers: BTreeMap<String, Provider>,
    /// Which model for what.
    pub models: Pointers,
    /// What we do not know of models, by `PROVIDER/MODEL`.
    pub model: BTreeMap<String, Model>,
    /// Defaults of sessions.
    pub session: Session,
    /// Permission rules.
    pub permissions: Permissions,
    /// The sandbox of tools.
    pub sandbox: Sandbox,
    /// What one client may ask for.
    pub limits: Limits,
    /// Retries of model calls.
    pub retry: Retry,
    /// Tools.
    pub tools: Tools,
    /// Tables of parts that are not built yet: accepted and kept.
    pub compaction: toml::Table,
    /// Likewise.
    pub hooks: toml::Table,
    /// Likewise.
    pub mcp: toml::Table,
    /// Likewise.
    pub knowledge: toml::Table,
    /// OpenTelemetry.
    pub telemetry: Telemetry,
    /// Files that were read.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// The same with their texts.
    #[serde(skip)]
    pub(super) sources: Vec<Source>,
    /// What they say together.
    #[serde(skip)]
    pub(super) table: toml::Table,
}

/// `[daemon]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Daemon {
    /// The socket.
    pub socket: Option<PathBuf>,
    /// The data folder.
    pub data_dir: Option<PathBuf>,
    /// How much is logged.
    pub log: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What becomes of interrupted turns of sessions that do not say.
    pub on_restart: OnRestart,
    /// Daily backups that are kept; 0 makes none.
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

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What went wrong.
    Error,
    /// And what is odd.
    Warn,
    /// And what happens.
    #[default]
    Info,
    /// And how.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level as it is written.
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

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

impl Provider {
    /// The name of the credential of systemd that is the key, if `api_key_file` says so.
    pub fn credential(&self) -> Option<&str> {
        self.api_key_file.as_ref()?.to_str()?.strip_prefix(super::paths::CREDENTIAL)
    }
}

/// `[providers.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Which API it speaks.
    pub kind: ProviderKind,
    /// Where.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Environment variable with the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File with the key, or `credential:NAME`.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Command that prints the key.
    #[serde(default)]
    pub api_key_command: Option<String>,
    /// Further HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// For `replay`: the file to answer from.
    #[serde(default)]
    pub cassette: Option<PathBuf>,
    /// File to record every answer into.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// For `openai_responses`: the provider keeps the conversation.
    #[serde(default)]
    pub store: bool,
    /// For `anthropic`: the version of the API, as its header names it.
    #[serde(default)]
    pub api_version: Option<String>,
}

/// Kinds of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    OpenaiResponses,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// A cassette.
    Replay,
}

/// `[models]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pointers {
    /// For sessions that name none.
    pub main: Option<String>,
    /// Small things. It, `task` and `reasoning` are used where a caller names them.
    pub quick: Option<String>,
    /// Tasks of their own.
    pub task: Option<String>,
    /// Hard questions.
    pub reasoning: Option<String>,
    /// After repeated overload, or where a model is missing or does not answer.
    pub fallback: Option<String>,
    /// On rate limits, if `[retry] on_rate_limit` is `backup`.
    pub backup: Option<String>,
    /// For conversations that do not fit.
    pub large_context: Option<String>,
    /// For images, where the session's model cannot see.
    pub vision: Option<String>,
}

impl Pointers {
    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("main", &self.main),
            ("quick", &self.quick),
            ("task", &self.task),
            ("reasoning", &self.reasoning),
            ("fallback", &self.fallback),
            ("backup", &self.backup),
            ("large_context", &self.large_context),
            ("vision", &self.vision),
        ]
    }
}

/// `[model."PROVIDER/MODEL"]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Tokens of input and output together.
    pub context_window: Option<u32>,
    /// Tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// Whether it takes tools.
    pub tools: Option<bool>,
    /// Whether it sees images.
    pub vision: Option<bool>,
    /// Whether it takes PDFs as they are.
    pub documents: Option<bool>,
    /// Whether it thinks.
    pub thinking: Option<bool>,
    /// Whether it decides by itself how much it thinks (Anthropic's adaptive thinking).
    pub adaptive_thinking: Option<bool>,
    /// Whether it is to think between the calls of a turn as well (Anthropic's models with budgets).
    pub interleaved_thinking: Option<bool>,
    /// The least effort of reasoning that it takes, for example `minimal` (OpenAI).
    pub least_effort: Option<String>,
    /// Whether it takes `temperature` and `top_p`.
    pub sampling: Option<bool>,
    /// Its temperature where nobody names one.
    pub temperature: Option<Temperature>,
    /// The same of the share of the likeliest words.
    pub top_p: Option<TopP>,
    /// Which of its earlier reasoning it is sent back (Chat Completions).
    pub reasoning_back: Option<ReasoningBack>,
    /// Whether it streams.
    pub streaming: Option<bool>,
    /// Whether it knows a system role.
    pub system_role: Option<bool>,
    /// US dollars per million tokens.
    pub price: Option<Price>,
}

/// `[session]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Approval mode.
    pub mode: Mode,
    /// How much models may think.
    pub thinking: Option<Thinking>,
    /// The same request within five minutes gets the same answer, from memory.
    pub response_cache: bool,
    /// Kept until it is built.
    pub simple: bool,
    /// Serial, and every call asks.
    pub safe_mode: bool,
    /// Tokens of an answer that are asked for at first; more only if that is too little.
    pub output_tokens: NonZeroU32,
    /// Limits of each turn.
    pub budgets: Budgets,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            thinking: None,
            simple: false,
            safe_mode: false,
            response_cache: false,
            output_tokens: NonZeroU32::new(32_000).unwrap_or(NonZeroU32::MIN),
            budgets: Budgets::default(),
        }
    }
}

/// `[session.budgets]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// US dollars of one turn.
    #[serde(deserialize_with = "dollars")]
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: Option<u64>,
    /// Output tokens of one turn.
    pub output_tokens: Option<u64>,
    /// Wall time of one turn.
    pub wall_time: Option<Span>,
    /// US dollars of the whole session.
    #[serde(deserialize_with = "dollars")]
    pub session_usd: Option<f64>,
    /// Model calls of the whole session.
    pub session_model_calls: Option<u64>,
    /// Output tokens of the whole session.
    pub session_output_tokens: Option<u64>,
    /// Wall time of all turns of the session together.
    pub session_wall_time: Option<Span>,
}

/// `[permissions]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Read-only commands pass by themselves; kept until it is built.
    pub safe_commands: bool,
    /// Whether the mode `bypass` may be used.
    pub allow_bypass: bool,
    /// Whether root may use it.
    pub allow_bypass_as_root: bool,
    /// Whether the mode `bypass` still asks before the root, the home folder or a folder above the workspace is
    /// deleted, and before SSH and GnuPG keys are written.
    pub bypass_guard: bool,
    /// Rules that allow.
    #[serde(deserialize_with = "rules")]
    pub allow: Vec<String>,
    /// Rules that ask.
    #[serde(deserialize_with = "rules")]
    pub ask: Vec<String>,
    /// Rules that deny.
    #[serde(deserialize_with = "rules")]
    pub deny: Vec<String>,
    /// Unattended sessions.
    pub unattended: Unattended,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            safe_commands: true,
            allow_bypass: false,
            allow_bypass_as_root: false,
            bypass_guard: true,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            unattended: Unattended::default(),
        }
    }
}

/// A sum that can be spent.
fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let sum = Option::<f64>::deserialize(deserializer)?;
    match sum {
        Some(sum) if !(sum.is_finite() && sum >= 0.0) => {
            Err(serde::de::Error::custom(format!("{sum} is no sum of money; give a number from 0 on")))
        }
        sum => Ok(sum),
    }
}

/// A time in which something can happen.
fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let span = Span::deserialize(deserializer)?;
    if span.0.is_zero() {
        return Err(serde::de::Error::custom("0 leaves no time for anything; give a time like \"30m\""));
    }
    Ok(span)
}

/// Checked where they are read, so that an error names its line.
fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let rules = Vec::<String>::deserialize(deserializer)?;
    for rule in &rules {
        let rule = rule.parse::<Rule>().map_err(serde::de::Error::custom)?;
        if rule.is_outside() {
            let why = "running outside the sandbox is granted to a session only, when it is asked";
            return Err(serde::de::Error::custom(format!("{rule}: {why}")));
        }
    }
    Ok(rules)
}

/// `[permissions.unattended]`: sessions made with `background` (P6). They always have limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Unattended {
    /// How long a request waits for a person; 0 asks nobody.
    pub deadline: Span,
    /// What becomes of it then.
    pub on_timeout: OnTimeout,
    /// US dollars of one turn.
    #[serde(deserialize_with = "dollars")]
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: NonZeroU64,
    /// Output tokens of one turn.
    pub output_tokens: NonZeroU64,
    /// Wall time of one turn.
    #[serde(deserialize_with = "some_time")]
    pub wall_time: Span,
    /// Program and arguments to start when something waits; it gets JSON on its standard input.
    pub notify_command: Vec<String>,
    /// Address to which the same JSON is posted.
    pub notify_url: Option<String>,
}

impl Default for Unattended {
    fn default() -> Self {
        Self {
            deadline: Span(Duration::from_secs(3_600)),
            on_timeout: OnTimeout::Deny,
            usd: None,
            model_calls: NonZeroU64::new(200).unwrap_or(NonZeroU64::MIN),
            output_tokens: NonZeroU64::new(400_000).unwrap_or(NonZeroU64::MIN),
            wall_time: Span(Duration::from_secs(4 * 3_600)),
            notify_command: Vec::new(),
            notify_url: None,
        }
    }
}

/// `[sandbox]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// How strong.
    pub level: SandboxLevel,
    /// Whether tools reach the network.
    pub network: Network,
    /// Further folders that tools may write.
    pub writable: Vec<PathBuf>,
    /// Whether a command that the sandbox stopped may be offered to run outside; absent: in attended sessions.
    pub offer_outside: Option<bool>,
}

/// How strong the sandbox is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// The strongest that works here; in attended sessions the fastest of those that hold files.
    #[default]
    Auto,
    /// Namespaces by bubblewrap.
    Bubblewrap,
    /// Landlock.
    Landlock,
    /// Resource limits only.
    Rlimits,
    /// None.
    Off,
}

/// Whether tools reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// In attended sessions, not in others.
    #[default]
    Auto,
    /// They do.
    On,
    /// They do not.
    Off,
}

/// `[telemetry]`: where traces and metrics are sent. Only in a build with the feature `otel`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address of an OTLP receiver that takes JSON over HTTP; nothing is sent without.
    pub endpoint: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Further headers, whose values stand in these environment variables of the daemon.
    pub headers_env: BTreeMap<String, String>,
    /// What this daemon is called there.
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

/// `[retry]`: of model calls, and of turns after restarts.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts at one model call.
    pub attempts: u32,
    /// First wait.
    pub base_ms: u64,
    /// Longest wait.
    pub max_ms: u64,
    /// Longest wait in unattended sessions for rate limits and overloads, which are tried without end.
    pub unattended_max_ms: u64,
    /// A provider that asks to wait longer makes the turn fail, in attended sessions.
    pub longest_wait: Span,
    /// How often a long wait is told of.
    pub heartbeat: Span,
    /// What a rate limit leads to.
    pub on_rate_limit: OnRateLimit,
    /// A stream without a byte for so long is warned of.
    pub idle_warn: Span,
    /// A stream without a byte for so long is dropped and tried again.
    pub idle_timeout: Span,
    /// The same for a stream that only says that it is alive.
    pub content_timeout: Span,
    /// The longest one attempt may take.
    pub attempt_timeout: Span,
    /// Resumes of one turn after restarts of the daemon.
    pub resumes: u32,
    /// The wait before the second resume; it doubles with each further one.
    pub resume_base_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        let span = |seconds| Span(Duration::from_secs(seconds));
        Self {
            attempts: 10,
            base_ms: 500,
            max_ms: 32_000,
            unattended_max_ms: 300_000,
            longest_wait: span(600),
            heartbeat: span(30),
            on_rate_limit: OnRateLimit::Wait,
            idle_warn: span(30),
            idle_timeout: span(90),
            content_timeout: span(600),
            attempt_timeout: span(3_600),
            resumes: 3,
            resume_base_ms: 2_000,
        }
    }
}

/// What a rate limit leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRateLimit {
    /// A wait.
    #[default]
    Wait,
    /// The model of `[models] backup`.
    Backup,
}

/// `[tools]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// A file must be read before it is edited.
    pub edit_requires_read: bool,
    /// Calls that run beside each other at most.
    pub parallel: usize,
    /// Time limit of a command that names none.
    pub bash_timeout: Span,
    /// Longest time limit a command may name.
    pub bash_timeout_max: Span,
    /// How long a command may run in the background.
    pub background_time: Span,
    /// Commands that run in the background at once, in one session.
    pub background_commands: usize,
    /// Environment variables that tools may see beyond the usual ones.
    pub env: Vec<String>,
    /// Where commands get a cgroup of their own.
    pub cgroup: CgroupChoice,
    /// Memory of a command.
    pub memory: Option<Size>,
    /// Processes of a command.
    pub processes: Option<NonZeroU64>,
    /// Longest file that a command may write.
    pub file_size: Option<Size>,
    /// Processor time of each process of a command.
    pub cpu_time: Option<Span>,
    /// Addresses and ranges that WebFetch may reach although they are not public.
    pub web_private: Vec<String>,
    /// The proxy of WebFetch.
    pub web_proxy: Option<String>,
    /// What a model is shown of one result; the whole is kept as a blob.
    pub result_size: Size,
    /// The same of all results of one message.
    pub results_size: Size,
    /// What is kept of the output of one command, beyond what the model is shown.
    pub spool_size: Size,
    /// The same of all commands of all sessions.
    pub spools_size: Size,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            edit_requires_read: true,
            parallel: 10,
            bash_timeout: Span(Duration::from_secs(120)),
            bash_timeout_max: Span(Duration::from_secs(600)),
            background_time: Span(Duration::from_secs(12 * 3_600)),
            background_commands: 8,
            env: Vec::new(),
            cgroup: CgroupChoice::default(),
            memory: None,
            processes: None,
            file_size: None,
            cpu_time: None,
            web_private: Vec::new(),
            web_proxy: None,
            result_size: Size(128 << 10),
            results_size: Size(256 << 10),
            spool_size: Size(1 << 30),
            spools_size: Size(8 << 30),
        }
    }
}
