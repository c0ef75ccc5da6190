//! Reads over a pool of connections: pages of events and summaries of sessions.

pub(super) mod events;
pub(super) mod requests;
pub(super) mod sessions;
