//! Changes of sessions as `daemon.subscribe` reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::SessionView;

/// The change of a session that a notification reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionChangeKind {
    /// The session was created.
    #[serde(rename = "session.created")]
    Created,
    /// A value changed that `session.list` shows.
    #[serde(rename = "session.updated")]
    Updated,
    /// The session was killed or deleted.
    #[serde(rename = "session.ended")]
    Ended,
}

/// A notification `daemon.event` of `daemon.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonEvent {
    /// The change of the session.
    pub kind: SessionChangeKind,
    /// The session as `session.list` shows it, at the time of the notification.
    pub session: SessionView,
    /// Whether the session was deleted with its history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}
