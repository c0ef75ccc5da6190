//! Floor 4: `agentctl`, and the typed client that it is built on. Knows the contract (`api`) and
//! the values (`types`), nothing of the daemon's inside.
//!
//! A program starts with [`Client::connect`]: calls are [`Client::call`] with the `…Params` and
//! `…Reply` of [`crate::api::params`]; events come from [`Client::subscribe`], or through restarts
//! of the daemon from [`Follow`].

mod abort;
mod answer;
mod approve;
mod args;
mod ask;
mod attach;
mod audit;
mod backup;
mod connect;
mod cost;
mod daemon;
mod demo;
mod diff;
mod dispatch;
mod doctor;
mod edit;
mod editor;
pub mod escape;
mod events;
mod explain;
mod failure;
mod follow;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod given;
mod holder;
mod keys;
mod list;
mod logs;
mod measure;
mod models;
mod names;
mod out;
mod paint;
mod places;
mod prompt;
mod reach;
mod render;
mod request_timing;
mod rpc;
mod rules;
mod run;
mod stdin;
mod submit;
mod summary;
mod trust;
mod undo;
mod watch;
mod whole;
mod wire;

#[cfg(test)]
mod fake;

pub use args::Cli;
pub use connect::{CallError, Client};
pub use dispatch::run;
pub use events::Events;
pub use failure::{Failure, code};
pub use follow::{Follow, Step};
pub use places::Places;
pub use reach::Connector;
pub use wire::Received;
