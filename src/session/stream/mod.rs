//! How clients follow a session: the newest events in memory, a cursor for each subscription, and
//! deltas that are rebuilt for late followers.

pub(super) mod feed;
pub(super) mod follow;
