//! The methods about servers of the Model Context Protocol.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the MCP servers of a folder, or of the user, with their states and tools. It starts the servers that may
    /// run; they end after a while without use.
    List = "mcp.list", p::McpListParams => p::McpListReply, READS.waits();
    /// Returns the tools of an MCP server with the schemas of their inputs.
    Tools = "mcp.tools", p::McpServerParams => p::McpToolsReply, READS.waits();
    /// Returns the resources of an MCP server, which users can attach to their inputs.
    Resources = "mcp.resources", p::McpServerParams => types::mcp::McpResourceList, READS.waits();
    /// Starts an MCP server and returns the result of the start. A server that pauses after failures starts at once.
    Test = "mcp.test", p::McpTestParams => types::mcp::McpTest,
        CHANGES.waits().errors(&[Code::Conflict, Code::StorageReadOnly]);
    /// Returns the newest lines that an MCP server wrote.
    Logs = "mcp.logs", p::McpServerParams => p::McpLogsReply, READS;
    /// Adds an MCP server for the user, or to a project's .mcp.json, and returns its name. Sessions use it from their
    /// next turn on.
    Add = "mcp.add", p::McpAddParams => p::McpChangeReply,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
    /// Removes an MCP server that was added and returns its name.
    Remove = "mcp.remove", p::McpRemoveParams => p::McpChangeReply,
        CHANGES.errors(&[Code::Conflict, Code::StorageReadOnly]);
}
