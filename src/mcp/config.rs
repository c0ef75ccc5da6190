//! The configuration of a server: `[mcp.NAME]` of `config.toml`. `files` reads the forms of other programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool_lists::{self, ToolLists};
use types::config_values::ConfigDuration;

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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The program of a stdio server.
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its folder; the workspace if absent.
    pub cwd: Option<PathBuf>,
    /// The address of an HTTP server.
    pub url: Option<String>,
    /// Headers of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A shell command that prints more headers as a JSON object. It runs before each connection.
    pub headers_command: Option<String>,
    /// The transport; by default `stdio` with `command` and `http` with `url`.
    #[serde(alias = "type")]
    pub transport: Option<TransportKind>,
    /// Whether the server is used.
    pub enabled: bool,
    /// Whether it is not used, as other programs write it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Time limit of a call.
    pub timeout: Option<ConfigDuration>,
    /// Time limit of a start: the program, the handshake and the first lists.
    pub startup_timeout: Option<ConfigDuration>,
    /// Whether the server receives the workspace as its root.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub roots: bool,
    /// The only tools that are used; `*` stands for any characters.
    #[serde(
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
    #[serde(alias = "alwaysAllow", alias = "autoApprove", alias = "auto_approve")]
    pub always_allow: Option<Value>,
    /// Whether the server runs in the sandbox of commands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sandbox: bool,
    /// Whether the server may ask users questions (elicitation).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elicitation: bool,
    /// Whether the server may ask for model calls (sampling). A user decides about each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sampling: bool,
    /// The folder of the file that configures the server, if that is not the workspace. Relative paths start there.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
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
            startup_timeout: None,
            roots: true,
            allow_tools: None,
            deny_tools: Vec::new(),
            always_allow: None,
            sandbox: false,
            elicitation: false,
            sampling: false,
            folder: None,
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
        self.tool_lists().use_tool(server, tool)
    }

    pub(super) fn tool_lists(&self) -> ToolLists<'_> {
        ToolLists { allowed: self.allow_tools.as_deref(), denied: &self.deny_tools }
    }

    /// Checks the lists of tools of a configuration that is written now.
    ///
    /// # Errors
    /// An entry cannot be the name of a tool. The text is for users.
    pub fn check_written(&self, server: &str) -> Result<(), String> {
        tool_lists::written_problem(self.tool_lists(), server).map_or(Ok(()), Err)
    }

    /// What the configuration says without effect, for users.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let note = "alwaysAllow and autoApprove are not used: rules such as mcp__SERVER__TOOL allow calls";
        self.always_allow.iter().map(|_| note.to_owned()).collect()
    }

    /// Entries of the lists of tools that cannot be names of tools, as notes for users.
    #[must_use]
    pub fn odd_entries(&self, server: &str) -> Vec<String> {
        tool_lists::odd_entries(self.tool_lists(), server)
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedServer {
    pub name: String,
    pub source: ServerSource,
    /// Its configuration, or a mistake in it.
    pub config: Result<ServerConfig, String>,
    /// Parts of the file that are not used, for users.
    pub notes: Vec<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_source_replaces_server_of_same_name() {
        let server = |source, command: &str| ScopedServer {
            name: "a".into(),
            source,
            config: Ok(ServerConfig { command: Some(command.into()), ..ServerConfig::default() }),
            notes: Vec::new(),
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
