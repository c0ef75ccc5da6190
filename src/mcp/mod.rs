//! Layer 2: servers of the Model Context Protocol (MCP).
//!
//! - `config`: a server's configuration, from all its sources; `variables` substitutes `${VAR}`.
//! - `names`: names of tools for the model.
//! - `pool`: the running servers, shared by sessions with equal configuration; `server` is one server's life.
//! - `connection`: one connection with its handshake, lists and calls; `stdio` and `http` are the transports.
//! - `approvals`, `added`: files in the data folder.

mod added;
mod approvals;
mod catalog;
mod config;
mod connection;
mod handler;
mod http;
mod launch;
mod names;
mod pool;
mod server;
mod server_log;
mod settings;
mod stdio;
mod tool_result;
mod variables;

pub use added::{AddedError, AddedServers};
pub use approvals::Approvals;
pub use catalog::Prompt;
pub use config::{ProjectFile, ScopedServer, ServerConfig, ServerSource, TransportKind, merge, parse_file};
pub use launch::{LaunchRequest, Launched, Launcher, ServerProcess};
pub use names::{is_tool_name, server_part, tool_name};
pub use pool::{Lease, Pool, Usage};
pub use server::{CallError, ServerView};
pub use settings::PoolSettings;
pub use tool_result::{Media, ToolAnswer};
