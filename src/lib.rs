//! agentd: a headless coding-agent daemon. The floors of the house, from the ground up; a floor
//! knows only those below it (`tests/floors.rs` guards it). ARCHITECTURE.md is the map.

pub mod crash;
pub mod proc;
pub mod types;

pub mod api;
pub mod engine;
pub mod judge;

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
