//! Files and environment → a checked configuration. Errors name file, line and key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::api::endpoint::{self, Env};
use crate::judge::Rule;
use crate::types::permission::Mode;
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
    /// The sandbox of tools; kept until it is built.
    pub sandbox: Sandbox,
    /// Retries of model calls.
    pub retry: Retry,
    /// Tools.
    pub tools: Tools,
    /// Tables of parts that are not built yet: accepted and kept.
    pub compaction: toml::Table,
    /// Likewise.
    pub limits: toml::Table,
    /// Likewise.
    pub hooks: toml::Table,
    /// Likewise.
    pub mcp: toml::Table,
    /// Likewise.
    pub knowledge: toml::Table,
    /// Likewise.
    pub telemetry: toml::Table,
    /// Files that were read.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
}

/// `[daemon]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Daemon {
    /// The socket.
    pub socket: Option<PathBuf>,
    /// The data folder.
    pub data_dir: Option<PathBuf>,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub log: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What becomes of interrupted turns; kept until it is built.
    pub on_restart: OnRestart,
}

impl Default for Daemon {
    fn default() -> Self {
        Self {
            socket: None,
            data_dir: None,
            log: "info".into(),
            log_format: LogFormat::Auto,
            on_restart: OnRestart::Resume,
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

/// What becomes of interrupted turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// They go on.
    #[default]
    Resume,
    /// They wait.
    Pause,
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
    /// File with the key.
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
}

/// Kinds of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses; known, not built yet.
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
    /// Titles, summaries; kept until it is used. So are the others.
    pub quick: Option<String>,
    /// Sub-agents.
    pub task: Option<String>,
    /// Hard questions.
    pub reasoning: Option<String>,
    /// After repeated overload.
    pub fallback: Option<String>,
    /// On rate limits.
    pub backup: Option<String>,
    /// For long conversations.
    pub large_context: Option<String>,
    /// For images.
    pub vision: Option<String>,
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
    /// Whether it thinks.
    pub thinking: Option<bool>,
    /// Whether it streams.
    pub streaming: Option<bool>,
    /// Whether it knows a system role.
    pub system_role: Option<bool>,
    /// US dollars per million tokens.
    pub price: Option<Price>,
}

/// `[session]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Approval mode.
    pub mode: Mode,
    /// Kept until it is built.
    pub thinking: Option<toml::Value>,
    /// Kept until it is built.
    pub simple: bool,
    /// Serial, and every call asks.
    pub safe_mode: bool,
    /// Limits of each turn.
    pub budgets: Budgets,
}

/// `[session.budgets]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// US dollars of one turn.
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: Option<u64>,
    /// Output tokens of one turn.
    pub output_tokens: Option<u64>,
    /// Wall time of one turn.
    pub wall_time: Option<Span>,
    /// US dollars of the whole session; kept until it is built.
    pub session_usd: Option<f64>,
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
    /// Rules that allow.
    #[serde(deserialize_with = "rules")]
    pub allow: Vec<String>,
    /// Rules that ask.
    #[serde(deserialize_with = "rules")]
    pub ask: Vec<String>,
    /// Rules that deny.
    #[serde(deserialize_with = "rules")]
    pub deny: Vec<String>,
    /// Unattended sessions; kept until it is built.
    pub unattended: toml::Table,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            safe_commands: true,
            allow_bypass: false,
            allow_bypass_as_root: false,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            unattended: toml::Table::new(),
        }
    }
}

/// Checked where they are read, so that an error names its line.
fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let rules = Vec::<String>::deserialize(deserializer)?;
    for rule in &rules {
        rule.parse::<Rule>().map_err(serde::de::Error::custom)?;
    }
    Ok(rules)
}

/// `[sandbox]`; kept until it is built.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// `auto`, `bubblewrap`, `landlock`, `rlimits` or `off`.
    pub level: Option<String>,
    /// `auto`, `on` or `off`.
    pub network: Option<String>,
    /// Further folders that tools may write.
    pub writable: Vec<PathBuf>,
}

/// `[retry]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts at one model call.
    pub attempts: u32,
    /// First wait.
    pub base_ms: u64,
    /// Longest wait.
    pub max_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 10, base_ms: 500, max_ms: 32_000 }
    }
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
    /// Environment variables that tools may see beyond the usual ones.
    pub env: Vec<String>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            edit_requires_read: true,
            parallel: 10,
            bash_timeout: Span(Duration::from_secs(120)),
            bash_timeout_max: Span(Duration::from_secs(600)),
            env: Vec::new(),
        }
    }
}

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
                return Err(serde::de::Error::custom(format!("{wanted}, got {text:?}")));
            }
        };
        let number: u64 = number.parse().map_err(serde::de::Error::custom)?;
        Ok(Span(Duration::from_millis(number.saturating_mul(unit_ms))))
    }
}

/// What is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, if it lies in one.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What, and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads the files that `config.md` names, later ones win, and fills in from the environment.
    ///
    /// # Errors
    /// A named file is missing, or a file is wrong: file, line and key are told.
    pub fn load(env: Env<'_>, flag: Option<PathBuf>) -> Result<Self, ConfigError> {
        let files = endpoint::config_files(env, flag).map_err(|error| ConfigError {
            file: None,
            line: None,
            message: error.to_string(),
        })?;
        let mut merged = toml::Table::new();
        let mut read = Vec::new();
        for (file, must_exist) in files {
            let text = match std::fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => continue,
                Err(error) => {
                    let message = format!("could not be read: {error}");
                    return Err(ConfigError { file: Some(file), line: None, message });
                }
            };
            // Checked by itself first, so that an error names its own line.
            Self::parse(&text, &file)?;
            let table = text.parse::<toml::Table>().map_err(|error| explain(&text, &file, None, &error))?;
            merge(&mut merged, table);
            read.push(file);
        }
        let text = toml::to_string(&merged).unwrap_or_default();
        let mut config = Self::parse(&text, read.last().map_or(Path::new("config.toml"), PathBuf::as_path))?;
        config.files = read;
        if config.providers.is_empty() {
            config.fill_from_environment(env);
        }
        Ok(config)
    }

    fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let deserializer =
            toml::Deserializer::parse(text).map_err(|error| explain(text, file, None, &error))?;
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            let key = error.path().to_string();
            explain(text, file, Some(&key), error.inner())
        })
    }

    /// With no provider configured, keys and addresses in the environment make some.
    fn fill_from_environment(&mut self, env: Env<'_>) {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let provider = |kind, base_url: Option<String>, api_key_env: Option<&str>| Provider {
            kind,
            base_url,
            api_key_env: api_key_env.map(String::from),
            api_key_file: None,
            api_key_command: None,
            headers: BTreeMap::new(),
            cassette: None,
            record: None,
        };
        let mut main = None;
        if let Some(host) = set("OLLAMA_HOST") {
            let host = if host.contains("://") { host } else { format!("http://{host}") };
            let base_url = format!("{}/v1", host.trim_end_matches('/'));
            self.providers.insert("ollama".into(), provider(ProviderKind::OpenaiChat, Some(base_url), None));
        }
        if set("OPENAI_API_KEY").is_some() {
            let base_url = set("OPENAI_BASE_URL").unwrap_or_else(|| "https://api.openai.com/v1".into());
            let made = provider(ProviderKind::OpenaiChat, Some(base_url), Some("OPENAI_API_KEY"));
            self.providers.insert("openai".into(), made);
            main = Some("openai/gpt-5.1");
        }
        if set("ANTHROPIC_API_KEY").is_some() {
            let made = provider(ProviderKind::Anthropic, None, Some("ANTHROPIC_API_KEY"));
            self.providers.insert("anthropic".into(), made);
            main = Some("anthropic/claude-sonnet-4-5");
        }
        if self.models.main.is_none() {
            self.models.main = main.map(String::from);
        }
    }
}

fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn explain(text: &str, file: &Path, key: Option<&str>, error: &toml::de::Error) -> ConfigError {
    let line = error.span().map(|span| {
        let start = span.start.min(text.len());
        text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    });
    let mut message = error.message().trim().to_string();
    // An unknown key names itself; a wrong value does not say whose it is.
    if let Some(key) = key.filter(|key| *key != "." && !message.starts_with("unknown field")) {
        message = format!("{key}: {message}");
    }
    if let Some(nearest) = nearest_known(&message) {
        message.push_str(&format!("; did you mean `{nearest}`?"));
    }
    ConfigError { file: Some(file.to_path_buf()), line, message }
}

/// The known name most like the unknown one that serde complains of.
fn nearest_known(message: &str) -> Option<String> {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = names.split_first()?;
    if !message.contains("unknown field") && !message.contains("unknown variant") {
        return None;
    }
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(unknown, name), *name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn an_error_names_file_line_key_and_the_nearest_name() {
        let error = Config::parse("[daemon]\nlog = \"info\"\nsokcet = \"/x\"\n", Path::new("c.toml"))
            .expect_err("a typo");
        assert_eq!(error.line, Some(3));
        assert!(error.to_string().starts_with("c.toml:3: unknown field `sokcet`"), "{error}");
        assert!(error.to_string().ends_with("did you mean `socket`?"), "{error}");
    }

    #[test]
    fn a_wrong_value_is_named_by_its_key_and_line() {
        for (text, expected) in [
            ("[daemon]\nlog = 5", "c.toml:2: daemon.log: invalid type"),
            ("[session]\nmode = \"defualt\"", "c.toml:2: session.mode: unknown variant `defualt`"),
            ("[tools]\nparallel = -1", "c.toml:2: tools.parallel: "),
            ("[permissions]\n\ndeny = [\"Bash(\"]", "c.toml:3: permissions.deny: "),
            ("[daemon", "c.toml:1: "),
        ] {
            let error = Config::parse(text, Path::new("c.toml")).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn durations_carry_their_unit() {
        let config = Config::parse("[session.budgets]\nwall_time = \"30m\"", Path::new("c")).expect("right");
        assert_eq!(config.session.budgets.wall_time, Some(Span(Duration::from_secs(1_800))));
        assert!(Config::parse("[session.budgets]\nwall_time = \"30\"", Path::new("c")).is_err());
    }

    #[test]
    fn keys_in_the_environment_make_providers() {
        let mut config = Config::default();
        config.fill_from_environment(&|name| (name == "OLLAMA_HOST").then(|| "127.0.0.1:11434".into()));
        assert_eq!(config.providers["ollama"].base_url.as_deref(), Some("http://127.0.0.1:11434/v1"));
        assert_eq!(config.models.main, None);
        config.fill_from_environment(&|name| (name == "ANTHROPIC_API_KEY").then(|| "k".into()));
        assert_eq!(config.models.main.as_deref(), Some("anthropic/claude-sonnet-4-5"));
    }

    #[test]
    fn a_later_file_wins_key_by_key() {
        let mut merged: toml::Table = "[daemon]\nlog = \"info\"\nsocket = \"/a\"".parse().expect("toml");
        merge(&mut merged, "[daemon]\nlog = \"debug\"".parse().expect("toml"));
        let config: Config = merged.try_into().expect("right");
        assert_eq!(config.daemon.log, "debug");
        assert_eq!(config.daemon.socket, Some("/a".into()));
    }

    #[test]
    fn a_named_file_must_exist() {
        let error = Config::load(&none, Some("/nonexistent/c.toml".into())).expect_err("no file");
        assert!(error.to_string().contains("/nonexistent/c.toml"), "{error}");
    }
}
