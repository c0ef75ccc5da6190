//! `agentctl acp`: the Agent Client Protocol on standard streams, bridged to the daemon. An editor starts the bridge;
//! sessions live in the daemon and outlive both. Version 2 is a preview and answered only with `--experimental-v2`.
//!
//! - `wire`: JSON-RPC messages, one per line; `reader`: lines with a limit; `schema`: the types of the protocol, and
//!   how version 2 writes them.
//! - `mapper`: one function from events to updates, for stored and for live events.
//! - `prompt`: content blocks to the input of a submit; `options`: modes and settings; `mcp`: the editor's servers.
//! - `permission`, `question`, `trust`: requests to the user, and what an answer means.
//! - `daemon`: calls that survive a restart; `conversation`: the task of one open session; `listing`: all sessions;
//!   `initialize`: the version and the capabilities; `server`: the methods.
//!
//! The bridge never uses the editor's file system or terminals: the daemon reads the disk, and what an editor sends of
//! an unsaved buffer is named as such. End of input detaches; no session ends with its editor.

mod conversation;
mod daemon;
mod initialize;
mod listing;
mod mapper;
mod mcp;
mod options;
mod permission;
mod prompt;
mod question;
mod reader;
mod schema;
mod server;
mod trust;
mod wire;

pub(crate) use schema::Version;
pub(crate) use server::serve;
