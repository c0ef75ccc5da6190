//! Layer 1: the wire contract, shared by the daemon and its clients. No async, no engine, no store.

pub mod docs;
pub mod endpoint;
pub mod exit;
pub mod fault;
mod field_names;
pub mod methods;
pub mod params;

pub use fault::{Code, Fault};

/// Version of the protocol. A client that wants another gets `unsupported_version`.
pub const PROTOCOL_VERSION: u32 = 1;

/// Method of the notifications that carry a session's events.
pub const SESSION_EVENT: &str = "session.event";
/// Method of the notifications of `permission.subscribe`.
pub const PERMISSION_EVENT: &str = "permission.event";
