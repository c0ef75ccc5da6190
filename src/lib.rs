//! agentd: a headless coding-agent daemon. This package has the two programs, the integration tests and the benchmarks;
//! the code is in the crates that it exports again, in layer order. ARCHITECTURE.md is the map.

pub use types;

pub use base::{crash, proc, sync, watch};

pub use api;
pub use transport;

pub use client;

#[cfg(feature = "daemon")]
pub use daemon;
#[cfg(feature = "daemon")]
pub use project::{extensions, hooks, policy, workspace};
#[cfg(feature = "daemon")]
pub use {engine, judge, knowledge, mcp, model, otel, rpc, session, store, tools};

#[cfg(feature = "daemon")]
#[doc(hidden)]
pub mod fuzzing;
