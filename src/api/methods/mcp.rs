//! The methods about servers of the Model Context Protocol.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// The MCP servers of a folder, or of the user, with their states and tools. Servers that may run are
    /// started, and end after a while without use.
    List = "mcp.list", p::McpListParams => p::McpListReply, READS.waits();
    /// The tools of an MCP server, with the schemas of their inputs.
    Tools = "mcp.tools", p::McpServerParams => p::McpToolsReply, READS.waits();
    /// The resources of an MCP server, which users can attach to their inputs.
    Resources = "mcp.resources", p::McpServerParams => types::mcp::McpResourceList, READS.waits();
    /// Start an MCP server and report how that went. A server that pauses after failures is started at once.
    Test = "mcp.test", p::McpTestParams => types::mcp::McpTest,
        CHANGES.waits().errors(&[Code::Conflict, Code::StorageReadOnly]);
    /// The newest lines that an MCP server wrote.
    Logs = "mcp.logs", p::McpServerParams => p::McpLogsReply, READS;
    /// Add an MCP server for the user, or to a project's .mcp.json. Sessions use it from their next turn.
    Add = "mcp.add", p::McpAddParams => p::McpChangeReply,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
    /// Remove an MCP server that was added.
    Remove = "mcp.remove", p::McpRemoveParams => p::McpChangeReply,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
}
