//! Parameters of the methods about MCP servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use types::ids::SessionId;
use types::mcp::McpServerView;

/// `mcp.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct McpListParams {
    /// The folder whose project servers are listed as well, absolute. Programs without a configured folder start in
    /// it.
    pub cwd: Option<String>,
    /// The session whose servers are listed, including those that were given when it was created. Not together with
    /// `cwd`.
    pub session_id: Option<SessionId>,
}

/// Reply of `mcp.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpListReply {
    /// Sorted by name.
    pub servers: Vec<McpServerView>,
}

/// The scope in which a server is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpScope {
    /// For the user, in the daemon's data folder.
    User,
    /// For the project, in its `.mcp.json`.
    Project,
}

/// `mcp.add`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpAddParams {
    /// The name of the server.
    pub name: String,
    /// Its configuration, with the keys of `[mcp.NAME]`.
    pub config: Value,
    /// The scope in which it is added.
    pub scope: McpScope,
    /// The project's folder, absolute; needed with the scope `project`.
    pub cwd: Option<String>,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    pub idempotency_key: Option<String>,
}

/// `mcp.remove`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpRemoveParams {
    /// The name of the server.
    pub name: String,
    /// The scope in which it was added.
    pub scope: McpScope,
    /// The project's folder, absolute; needed with the scope `project`.
    pub cwd: Option<String>,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    pub idempotency_key: Option<String>,
}

/// Reply of `mcp.add` and `mcp.remove`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpChangeReply {
    /// The name of the server.
    pub name: String,
}

/// `mcp.test`: a configured server or a configuration.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct McpTestParams {
    /// The name of a configured server.
    pub name: Option<String>,
    /// A configuration, with the keys of `[mcp.NAME]`.
    pub config: Option<Value>,
    /// The folder, as in `mcp.list`.
    pub cwd: Option<String>,
    /// The session, as in `mcp.list`.
    pub session_id: Option<SessionId>,
    /// Repeating the call with the same key returns the first reply.
    pub idempotency_key: Option<String>,
}

/// `mcp.tools`, `mcp.resources` and `mcp.logs`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpServerParams {
    /// The name of the server.
    pub name: String,
    /// The folder, as in `mcp.list`.
    pub cwd: Option<String>,
    /// The session, as in `mcp.list`.
    pub session_id: Option<SessionId>,
}

/// One tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolView {
    /// The name for the model and for rules.
    pub name: String,
    /// The name on the server.
    pub tool: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// Reply of `mcp.tools`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolsReply {
    /// Sorted by name.
    pub tools: Vec<McpToolView>,
}

/// Reply of `mcp.logs`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpLogsReply {
    /// The newest lines that the running server wrote to standard error or sent as log messages, oldest first. Empty
    /// if the server does not run.
    pub lines: Vec<String>,
}
