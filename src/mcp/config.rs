//! The configuration of a server: `[mcp.NAME]` of `config.toml`, and the files of other programs that projects hold.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::restrictions;
use types::config_values::ConfigDuration;
use types::typed_json;

/// Maximum number of servers of one source.
pub(super) const MAX_SERVERS: usize = 100;

/// How the daemon reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// A child process with messages on its standard streams.
    Stdio,
    /// Streamable HTTP.
    #[serde(alias = "streamable_http", alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// HTTP with server-sent events, of 2024: not supported.
    Sse,
}

impl TransportKind {
    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TransportKind::Stdio => "stdio",
            TransportKind::Http => "http",
            TransportKind::Sse => "sse",
        }
    }
}

/// `[mcp.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The program of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its folder; the workspace if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The address of an HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A shell command that prints more headers as a JSON object. It runs before each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_command: Option<String>,
    /// The transport; by default `stdio` with `command` and `http` with `url`.
    #[serde(skip_serializing_if = "Option::is_none", alias = "type")]
    pub transport: Option<TransportKind>,
    /// Whether the server is used.
    pub enabled: bool,
    /// Whether it is not used, as other programs write it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Time limit of a call. The handshake takes at most this time and at most 30 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<ConfigDuration>,
    /// The only tools that are used; `*` stands for any characters.
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "includeTools",
        alias = "include_tools",
        alias = "allowedTools",
        alias = "allowed_tools",
        alias = "enabledTools",
        alias = "enabled_tools",
        alias = "allowTools"
    )]
    pub allow_tools: Option<Vec<String>>,
    /// Tools that are not used.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        alias = "disabledTools",
        alias = "disabled_tools",
        alias = "excludeTools",
        alias = "exclude_tools",
        alias = "disallowedTools",
        alias = "disallowed_tools",
        alias = "denyTools"
    )]
    pub deny_tools: Vec<String>,
    /// Tools that another program calls without a request. It has no effect: rules allow calls.
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "alwaysAllow",
        alias = "autoApprove",
        alias = "auto_approve"
    )]
    pub always_allow: Option<Value>,
    /// Whether the server runs in the sandbox of commands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sandbox: bool,
    /// Whether the server may ask users questions (elicitation).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elicitation: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            headers_command: None,
            transport: None,
            enabled: true,
            disabled: false,
            timeout: None,
            allow_tools: None,
            deny_tools: Vec::new(),
            always_allow: None,
            sandbox: false,
            elicitation: false,
        }
    }
}

impl ServerConfig {
    /// The transport.
    ///
    /// # Errors
    /// The configuration names none, or one that it does not fit.
    pub fn transport(&self) -> Result<TransportKind, String> {
        let kind = match (self.transport, &self.command, &self.url) {
            (_, Some(_), Some(_)) => return Err("set `command` or `url`, not both".into()),
            (Some(kind), ..) => kind,
            (None, Some(_), None) => TransportKind::Stdio,
            (None, None, Some(_)) => TransportKind::Http,
            (None, None, None) => {
                return Err("set `command` for a program or `url` for an HTTP server".into());
            }
        };
        match kind {
            TransportKind::Sse => {
                Err("the transport `sse` of 2024 is not supported; use the server's streamable \
                                       HTTP address with `transport = \"http\"`"
                    .into())
            }
            TransportKind::Stdio if self.command.is_none() => {
                Err("the transport `stdio` needs `command`".into())
            }
            TransportKind::Http if self.url.is_none() => Err("the transport `http` needs `url`".into()),
            TransportKind::Http if self.sandbox => {
                Err("`sandbox` is for programs; an HTTP server has none".into())
            }
            kind => Ok(kind),
        }
    }

    /// Whether the server is used.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.enabled && !self.disabled
    }

    /// Whether a tool of the server, which has this name in the configuration, is used.
    #[must_use]
    pub fn uses_tool(&self, server: &str, tool: &str) -> bool {
        let means = |pattern: &String| restrictions::means(pattern, server, tool);
        self.allow_tools.as_ref().is_none_or(|allowed| allowed.iter().any(means))
            && !self.deny_tools.iter().any(means)
    }

    /// What the configuration says without effect, for users.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let note = "alwaysAllow and autoApprove are not used: rules such as mcp__SERVER__TOOL allow calls";
        self.always_allow.iter().map(|_| note.to_owned()).collect()
    }
}

/// The source of a server's configuration, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerSource {
    /// The system's `config.toml`.
    System,
    /// Added with `mcp.add` for the user.
    Added,
    /// The user's `config.toml`.
    User,
    /// A file of the project.
    Project,
    /// Given for one session.
    Session,
}

impl ServerSource {
    /// The name on the wire. Servers that were added with `mcp.add` are the user's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ServerSource::System => "system",
            ServerSource::Added | ServerSource::User => "user",
            ServerSource::Project => "project",
            ServerSource::Session => "session",
        }
    }
}

/// A server of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedServer {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: ServerSource,
    /// Its configuration, or a mistake in it.
    pub config: Result<ServerConfig, String>,
}

/// The servers of all sources by name. If several have the same name, the strongest source counts. Servers of a
/// project without trust only fill free names: they must not switch off one of the user's.
#[must_use]
pub fn merge(
    all: impl IntoIterator<Item = ScopedServer>,
    is_trusted: bool,
) -> BTreeMap<String, ScopedServer> {
    let rank = |source| match source {
        ServerSource::Project if !is_trusted => None,
        source => Some(source),
    };
    let mut merged: BTreeMap<String, ScopedServer> = BTreeMap::new();
    for server in all {
        match merged.get(&server.name) {
            Some(other) if rank(other.source) > rank(server.source) => {}
            _ => _ = merged.insert(server.name.clone(), server),
        }
    }
    merged
}

/// The content of a file with servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFile {
    /// The servers in the order of their names.
    pub servers: Vec<ScopedServer>,
    /// A mistake in the file; then it has no servers.
    pub problem: Option<String>,
}

/// An entry of `.mcp.json` or `.mcprc`. Keys of other programs are ignored.
#[derive(Deserialize)]
struct JsonEntry {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<TransportKind>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(alias = "headersHelper")]
    headers_command: Option<String>,
    #[serde(default)]
    disabled: bool,
    enabled: Option<bool>,
    timeout: Option<Timeout>,
    allow_tools: Option<Vec<String>>,
    #[serde(default)]
    deny_tools: Vec<String>,
    always_allow: Option<Value>,
    #[serde(default)]
    sandbox: bool,
    #[serde(default)]
    elicitation: bool,
}

/// Other programs write milliseconds.
#[derive(Deserialize)]
#[serde(untagged)]
enum Timeout {
    Milliseconds(u64),
    Text(ConfigDuration),
}

impl From<JsonEntry> for ServerConfig {
    fn from(entry: JsonEntry) -> Self {
        Self {
            command: entry.command,
            args: entry.args,
            env: entry.env,
            cwd: entry.cwd,
            url: entry.url,
            headers: entry.headers,
            headers_command: entry.headers_command,
            transport: entry.kind,
            enabled: entry.enabled.unwrap_or(true) && !entry.disabled,
            disabled: false,
            timeout: entry.timeout.map(|timeout| match timeout {
                Timeout::Milliseconds(ms) => ConfigDuration(std::time::Duration::from_millis(ms)),
                Timeout::Text(span) => span,
            }),
            allow_tools: entry.allow_tools,
            deny_tools: entry.deny_tools,
            always_allow: entry.always_allow,
            sandbox: entry.sandbox,
            elicitation: entry.elicitation,
        }
    }
}

/// An entry with the names that this daemon has for its restrictions.
fn renamed(mut value: Value) -> Result<Value, String> {
    if let Value::Object(entry) = &mut value {
        restrictions::rename_keys(entry)?;
    }
    Ok(value)
}

/// Reads `.mcp.json` or `.mcprc`: an object of servers, in most files below `mcpServers`. A mistake in one entry
/// is that server's error.
#[must_use]
pub fn parse_file(name: &str, bytes: &[u8]) -> ProjectFile {
    let wrong = |why: String| ProjectFile { servers: Vec::new(), problem: Some(format!("{name}: {why}")) };
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return ProjectFile::default();
    }
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => return wrong(format!("could not read it as JSON: {error}")),
    };
    let Value::Object(mut top) = value else { return wrong("it must be a JSON object".into()) };
    let entries = match top.remove("mcpServers") {
        Some(Value::Object(entries)) => entries,
        Some(_) => return wrong("`mcpServers` must be an object".into()),
        None => top,
    };
    if entries.len() > MAX_SERVERS {
        return wrong(format!("it has more than {MAX_SERVERS} servers"));
    }
    let server = |(name, value): (String, Value)| {
        let config = renamed(value)
            .and_then(|value| typed_json::from_value::<JsonEntry>(value).map_err(|error| error.to_string()))
            .map(ServerConfig::from)
            .map_err(|error| format!("could not read its configuration: {error}"))
            .and_then(|config| config.transport().map(|_| config));
        ScopedServer { name, source: ServerSource::Project, config }
    };
    ProjectFile { servers: entries.into_iter().map(server).collect(), problem: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::typed_toml;

    #[test]
    fn project_file_gives_servers_and_errors_per_entry() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${A}"}, "alwaysAllow": ["y"]},
            "web": {"type": "http", "url": "http://h/mcp", "headers": {"Authorization": "Bearer ${T}"}, "timeout": 1500},
            "old": {"type": "sse", "url": "http://h/sse"},
            "off": {"command": "x", "disabled": true},
            "bad": {"command": 1}
        }}"#;
        let file = parse_file(".mcp.json", text.as_bytes());
        assert_eq!(file.problem, None);
        let merged = merge(file.servers, true);
        let config = |name: &str| merged[name].config.clone();
        let files = config("files").expect("right");
        assert_eq!((files.command.as_deref(), files.args.len()), (Some("npx"), 2));
        let web = config("web").expect("right");
        assert_eq!(web.transport(), Ok(TransportKind::Http));
        assert_eq!(web.timeout.map(ConfigDuration::millis), Some(1500));
        assert!(!config("off").expect("right").enabled);
        assert!(config("old").expect_err("refused").contains("sse"));
        assert!(config("bad").expect_err("refused").contains("command"));
    }

    #[test]
    fn restrictions_of_other_programs_hold_in_both_forms() {
        let text = r#"{"mcpServers": {
            "cline": {"command": "x", "disabledTools": ["rm"], "alwaysAllow": ["rm", "ls"]},
            "gemini": {"command": "x", "includeTools": ["ls", "rm"], "excludeTools": ["rm"]},
            "wrong": {"command": "x", "disabledTools": "rm"},
            "unclear": {"command": "x", "readOnly": true},
            "off": {"command": "x", "disabled": "yes"}
        }}"#;
        let merged = merge(parse_file(".mcp.json", text.as_bytes()).servers, true);
        for name in ["cline", "gemini"] {
            let config = merged[name].config.clone().expect("right");
            assert!(config.uses_tool(name, "ls") && !config.uses_tool(name, "rm"), "{name}");
            assert_eq!(config.notes().len(), usize::from(name == "cline"));
        }
        for (name, word) in [("wrong", "disabledTools"), ("unclear", "readOnly"), ("off", "disabled")] {
            assert!(merged[name].config.clone().expect_err("refused").contains(word), "{name}");
        }
        let table = |text: &str| typed_toml::from_str::<ServerConfig>(text);
        for key in ["deny_tools", "disabledTools", "excludeTools", "disallowed_tools"] {
            let config =
                table(&format!("command = \"x\"\n{key} = [\"rm\"]\nautoApprove = [\"rm\"]")).expect(key);
            assert!(
                config.uses_tool("s", "ls") && !config.uses_tool("s", "rm") && !config.notes().is_empty()
            );
        }
        for key in ["allow_tools", "includeTools", "allowedTools", "enabled_tools"] {
            let config = table(&format!("command = \"x\"\n{key} = [\"ls\"]")).expect(key);
            assert!(config.uses_tool("s", "ls") && !config.uses_tool("s", "rm"));
        }
        assert!(!table("command = \"x\"\ndisabled = true").expect("right").is_enabled());
        for wrong in ["disabledTools = \"rm\"", "readOnly = true", "deny_tools = []\ndisabledTools = []"] {
            assert!(table(&format!("command = \"x\"\n{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn broken_project_file_has_no_servers() {
        for text in ["{", "[]", r#"{"mcpServers": []}"#] {
            let file = parse_file(".mcprc", text.as_bytes());
            assert!(file.servers.is_empty() && file.problem.is_some(), "{text}");
        }
        assert_eq!(parse_file(".mcprc", b" \n"), ProjectFile::default());
        let plain = parse_file(".mcprc", br#"{"a": {"command": "x"}}"#);
        assert_eq!(plain.servers.len(), 1, "without `mcpServers`");
    }

    #[test]
    fn stronger_source_replaces_server_of_same_name() {
        let server = |source, command: &str| ScopedServer {
            name: "a".into(),
            source,
            config: Ok(ServerConfig { command: Some(command.into()), ..ServerConfig::default() }),
        };
        let all = [
            server(ServerSource::Project, "p"),
            server(ServerSource::User, "u"),
            server(ServerSource::System, "s"),
        ];
        assert_eq!(merge(all.clone(), true)["a"].source, ServerSource::Project);
        assert_eq!(
            merge(all, false)["a"].source,
            ServerSource::User,
            "a project without trust replaces nothing"
        );
    }

    #[test]
    fn tool_lists_allow_and_deny_by_pattern() {
        let config = ServerConfig {
            allow_tools: Some(vec!["read_*".into(), "list".into()]),
            deny_tools: vec!["read_secret".into()],
            ..ServerConfig::default()
        };
        let used = |tool: &str| config.uses_tool("s", tool);
        assert!(used("read_file") && used("list") && !used("write") && !used("read_secret"));
        assert!(ServerConfig::default().uses_tool("s", "any"));
    }
}
