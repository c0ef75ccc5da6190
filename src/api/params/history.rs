//! Parameters and replies of the operations on a session's history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::Include;
use types::history::{ExportFormat, RewindConflict, RewoundFile};
use types::ids::{ItemId, SessionId};
use types::session::SessionView;

/// `session.fork`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForkParams {
    /// The session to copy.
    pub session_id: SessionId,
    /// The last item to copy; by default the whole conversation is copied. The item must be complete.
    pub item_id: Option<ItemId>,
    /// Title of the new session; by default the old title with `(fork)`.
    pub title: Option<String>,
    /// A repeated call with the same key returns the session of the first call.
    pub idempotency_key: Option<String>,
}

/// `session.rewind`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RewindParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The item that becomes the last one of the conversation. It must be complete.
    pub item_id: ItemId,
    /// Whether the files that the session's file tools changed after the item get back their content of that moment.
    /// Changes by commands (Bash) are not rewound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files: bool,
    /// Whether the daemon changes nothing and only reports what a rewind would change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// A repeated call with the same key returns the reply of the first call.
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
    /// Files that prevent the rewind. Either their content is not what the session last wrote, or their earlier
    /// content was not kept.
    pub conflicts: Vec<RewindConflict>,
}

/// `session.export`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The form of the export.
    pub format: ExportFormat,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Filter of the events, as in `session.events`; by default all of them.
    #[serde(default, skip_serializing_if = "Include::is_all")]
    pub include: Include,
}

/// Reply of `session.export`: the pages in their order form the export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportReply {
    /// The text of this page.
    pub data: String,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.import`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportParams {
    /// A part of an export as JSON Lines. All parts together have at most 64 MiB.
    pub data: String,
    /// Id of the import that this part continues; absent for the first part.
    pub import_id: Option<String>,
    /// Whether this is the last part. The last part creates the session, completely or not at all.
    pub last: bool,
    /// With `last`: a repeated call with the same key returns the session of the first call.
    pub idempotency_key: Option<String>,
}

/// Reply of `session.import`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportReply {
    /// Without `last`: the id of the import, for its next part.
    pub import_id: Option<String>,
    /// With `last`: the new session.
    pub session: Option<SessionView>,
}
