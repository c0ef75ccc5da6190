//! How clients follow a session: the newest events in memory, a cursor for each subscription, and deltas that are built
//! again for late readers.

pub(super) mod feed;
pub(super) mod follow;
