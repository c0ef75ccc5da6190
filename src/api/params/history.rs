//! Parameters and replies of the operations on a session's history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::history::{RewindConflict, RewoundFile};
use crate::types::ids::{ItemId, SessionId};

/// `session.fork`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForkParams {
    /// The session to copy.
    pub session_id: SessionId,
    /// The last item of the copied conversation; by default all of it. It must be complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// Title of the new session; by default the old title with `(fork)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Makes a repeated call return the first one's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.rewind`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RewindParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The item that becomes the last one of the conversation. It must be complete.
    pub item_id: ItemId,
    /// Whether the files that the session's file tools changed after the item get their content of that moment.
    /// What commands (Bash) changed is not rewound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files: bool,
    /// Whether the reply only tells what would happen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.rewind`. With conflicts, nothing was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RewindReply {
    /// Ids of the removed items, in their order.
    pub removed_items: Vec<ItemId>,
    /// With `files`: the files that the session changed after the item.
    pub files: Vec<RewoundFile>,
    /// Files that prevent the rewind, because their content is not what the session last wrote, or because
    /// their earlier content was not kept.
    pub conflicts: Vec<RewindConflict>,
}
