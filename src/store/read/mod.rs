//! Reads over a pool of connections: pages of events and summaries of sessions.
//!
//! Unless a function says more, its error is that the database could not be read.

pub(super) mod events;
pub(super) mod requests;
pub(super) mod sessions;
