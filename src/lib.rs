//! agentd: a headless coding-agent daemon. The modules are listed in layer order; a layer
//! imports lower layers only (`tests/layers/` checks it). ARCHITECTURE.md is the map.

pub mod crash;
mod sync;
pub mod types;

pub mod api;
pub mod engine;
pub mod judge;
pub mod proc;
mod watch;

pub mod extensions;
mod hooks;
pub mod knowledge;
pub mod mcp;
pub mod model;
#[cfg(any(test, feature = "otel"))]
pub mod otel;
pub mod policy;
pub mod store;
pub mod tools;
pub mod transport;
pub mod workspace;

pub mod session;

pub mod rpc;

pub mod client;

pub mod daemon;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
