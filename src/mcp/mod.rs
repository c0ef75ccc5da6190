//! Servers of the Model Context Protocol (MCP).
//!
//! - `config`: a server's configuration, from all its sources; `files` and `entry` read the forms of other programs,
//!   `restrictions` and `tool_lists` their lists of tools; `variables` substitutes `${VAR}`.
//! - `names`: names of tools for the model.
//! - `pool`: the running servers, shared by sessions with equal configuration; `server` runs one server.
//! - `connection`: one connection and its handshake; `stdio` and `http` are the transports.
//! - `calls`, `lists`: the requests over it; `server_requests`: what servers ask for during a call; `form` reads questions
//!   to users (elicitation), `sampling` model calls.
//! - `approvals`, `added`, `of_sessions`: files in the data folder.

mod added;
mod approvals;
mod calls;
mod catalog;
mod config;
mod connection;
mod entry;
mod files;
mod form;
mod handler;
mod handshake_filter;
mod http;
mod http_client;
mod launch;
mod listed_tool;
mod lists;
mod message_rate;
mod names;
mod of_sessions;
mod pool;
mod resource;
mod restrictions;
mod sampling;
mod schema;
mod server;
mod server_log;
mod server_requests;
mod settings;
mod stdio;
#[cfg(test)]
mod tests;
mod tool_lists;
mod tool_result;
mod variables;

pub use added::{AddedError, AddedServers};
pub use approvals::Approvals;
pub use calls::CallChannels;
pub use catalog::Prompt;
pub use config::{ScopedServer, ServerConfig, ServerSource, TransportKind, merge};
pub use entry::parse_config;
pub use files::{ProjectFile, parse_file};
pub use form::{Form, FormAnswer};
pub use launch::{LaunchedProcess, Launcher, ServerProcess};
pub use names::{is_tool_name, tool_name};
pub use of_sessions::SessionServerFiles;
pub use pool::{Lease, Pool, ServerUse};
pub use resource::ResourcePart;
pub use sampling::{SamplingAnswer, SamplingRequest, ServerModelCall};
pub use schema::{argument_mistakes, server_validator};
pub use server::{CallError, ServerView};
pub use server_requests::{ServerQuestion, ServerRequest};
pub use settings::PoolSettings;
pub use tool_result::{ResultMedia, ToolAnswer};
pub use types::mcp_names::server_part;
