//! Servers of the Model Context Protocol (MCP) and their tools, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mcp_names::ToolNames;
use super::tool::ToolDefinition;

pub use super::tool::MCP_PREFIX;

/// The tool with which the model loads the definitions of deferred tools.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// The state of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum McpState {
    /// The configuration turns it off.
    Disabled,
    /// The project configures it, and the user does not trust the current content of the project.
    Untrusted,
    /// It was started and is not ready yet.
    Starting,
    /// Its tools can be called.
    Ready,
    /// It could not be started, or it ended.
    Failed,
}

impl McpState {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The state of one server, for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpStatus {
    /// The name in the configuration.
    pub server: String,
    /// Its state.
    pub state: McpState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// Tools that are left out, and parts of its configuration that are not understood.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpTool {
    /// The name for the model, `mcp__SERVER__TOOL`.
    pub name: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The name on the server.
    pub tool: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
    /// Digest of description and schema. An approval is for one digest.
    pub digest: String,
}

impl McpTool {
    /// The names, to compare them with rules and lists of tools.
    #[must_use]
    pub fn names(&self) -> ToolNames<'_> {
        ToolNames { offered: &self.name, server: &self.server, tool: &self.tool }
    }

    /// The definition for the model.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: self.description.clone(),
            input_schema: self.input_schema.clone(),
            read_only: false,
        }
    }
}

/// Instructions of a server for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpInstructions {
    /// Name of the server.
    pub server: String,
    /// The text of the instructions.
    pub text: String,
}

/// The tools and instructions of a session's MCP servers for a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpCatalog {
    /// The tools, sorted by name.
    pub tools: Vec<McpTool>,
    /// The instructions, sorted by server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub instructions: Vec<McpInstructions>,
}

impl McpCatalog {
    /// Whether there are no tools and no instructions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.instructions.is_empty()
    }

    /// The tool with this name for the model.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&McpTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// One MCP server.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: McpState,
    /// `stdio` or `http`; empty if its configuration is wrong.
    pub transport: String,
    /// Source of its configuration: `system`, `user`, `project` or `session`.
    pub source: String,
    /// Names of its tools for the model.
    pub tools: Vec<String>,
    /// Why it is not ready.
    pub error: Option<String>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// Parts of its configuration without effect, and tools that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The result of `mcp.test`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpTest {
    /// The state after the start.
    pub state: McpState,
    /// Why it is not ready.
    pub error: Option<String>,
    /// The revision of the Model Context Protocol that the server uses.
    pub protocol: Option<String>,
    /// Names of its tools for the model.
    pub tools: Vec<String>,
    /// Tools that the daemon leaves out, each with the reason, and hints about the configuration.
    pub problems: Vec<String>,
    /// Duration of the start in milliseconds; 0 if the server ran already.
    pub duration_ms: u64,
}

/// One resource of an MCP server. A user attaches it with an input block `resource_link`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpResource {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its media type, as the server reports it.
    pub media_type: Option<String>,
    /// Its size in bytes, as the server reports it.
    pub size: Option<u64>,
}

/// A pattern of URIs that an MCP server can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpResourceTemplate {
    /// The pattern, for example `file:///{path}`.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The resources of an MCP server: the reply of `mcp.resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpResourceList {
    /// At most 1,000 resources in the order of the server.
    pub resources: Vec<McpResource>,
    /// Patterns of the URIs of further resources.
    pub templates: Vec<McpResourceTemplate>,
    /// Whether `resources` contains all resources of the server.
    pub is_complete: bool,
}
