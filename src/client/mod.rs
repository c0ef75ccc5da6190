//! `agentctl`, and the typed client that it is built on. It uses the contract (`api`) and the
//! values (`types`), and no internals of the daemon.
//!
//! A program starts with [`Client::connect`]. Calls are [`Client::call`] with the `…Params` and
//! `…Reply` of [`api::params`]. Events come from [`Client::subscribe`], or through restarts of
//! the daemon from [`SessionFollower`].

#![warn(missing_docs)]

mod acp;
mod answer;
mod args;
mod commands;
mod completions;
mod connection;
mod dispatch;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod mcp_serve;
mod resolve_id;
mod terminal;
mod ui;

#[cfg(test)]
mod fake_daemon;

pub use args::Cli;
pub use connection::client::{CallError, Client};
pub use connection::connector::Connector;
pub use connection::events::Events;
pub use connection::follow::{FollowStep, SessionFollower};
pub use connection::paths::ClientPaths;
pub use connection::remote::Machine;
pub use connection::ssh::{RemoteFailure, RemoteProblem, SshHost};
pub use connection::wire::ReceivedEvent;
pub use dispatch::run;
pub use failure::{Failure, code};
