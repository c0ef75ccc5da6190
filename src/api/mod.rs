//! The wire contract, shared by the daemon and its clients. No async, no engine, no store.

#![warn(missing_docs)]

pub mod clients;
pub mod docs;
pub mod endpoint;
mod examples;
pub mod fault;
mod field_names;
pub mod methods;
pub mod openrpc;
pub mod params;
mod schema_shape;

pub use fault::{Code, Fault};
pub use methods::ApiMethod;

use types::embedded;

/// Version of the protocol. A client that requests another version gets the error `unsupported_version`.
pub const PROTOCOL_VERSION: u32 = 1;

/// The OpenRPC document of `proto-docs/openrpc.json`, on one line. The daemon contains the document, because the code
/// that generates it from the types would be larger. Tests compare the two.
#[must_use]
pub fn openrpc() -> Vec<u8> {
    embedded::decompressed(include_bytes!(concat!(env!("OUT_DIR"), "/openrpc.json")))
}

/// Method of the notifications that carry a session's events.
pub const SESSION_EVENT: &str = "session.event";
/// Method of the notifications of `permission.subscribe`.
pub const PERMISSION_EVENT: &str = "permission.event";
/// Method of the notifications of `knowledge.subscribe`.
pub const KNOWLEDGE_EVENT: &str = "knowledge.event";

/// Method of the notifications of `daemon.subscribe`.
pub const DAEMON_EVENT: &str = "daemon.event";

/// Exit codes of `agentd`, from sysexits(3) where it defines one. Scripts, service managers and `agentctl` depend on
/// them. `agentctl` has its own exit codes (`clients.md`).
pub mod exit {
    /// An internal failure.
    pub const INTERNAL: u8 = 4;
    /// Another daemon runs already, or another program uses the socket.
    pub const ALREADY_RUNNING: u8 = 75;
    /// The configuration, a folder or a path is wrong, or a newer agentd wrote the database: a restart does not help.
    pub const CONFIG: u8 = 78;
}
