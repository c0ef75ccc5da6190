//! How clients follow a session: the newest events in memory, a cursor per subscription, and deltas that are
//! rebuilt for late readers.

pub(super) mod feed;
pub(super) mod follow;
