//! `agentctl mcp serve`: an MCP server on standard streams that offers sessions as tools to other agents.
//!
//! - `protocol`: the messages; `tools`: the tools and their calls to the daemon.
//!
//! Permissions stay with users: no tool answers a request, changes a mode or adds a rule.

mod protocol;
mod tools;

pub(crate) use protocol::serve;
