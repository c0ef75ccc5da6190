//! Parameters and replies for reading a session: events, items, blobs, changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::event::Envelope;
use types::ids::{BlobId, Seq, SessionId};
use types::session::{FileDiff, Item, ItemKind};

/// `session.subscribe`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubscribeParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Only events after this seq; 0, the default, for the whole journal.
    #[serde(default)]
    pub after_seq: Seq,
    /// Filter of the events; by default all of them.
    #[serde(default, skip_serializing_if = "Include::is_all")]
    pub include: Include,
}

/// Filter of a session's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Include {
    /// Filter of the models' thinking.
    pub thinking: ThinkingShown,
}

impl Include {
    /// Whether nothing is filtered.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// Filter of the models' thinking. Omitted events leave a gap in `seq`; messages keep every block at its
/// position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingShown {
    /// All of it, as it arrives.
    #[default]
    Full,
    /// The first line of each thought, 200 characters at most, when its message is complete.
    Summary,
    /// No text; clients only see that there was some thinking.
    None,
}

/// `session.unsubscribe`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnsubscribeParams {
    /// Id that `session.subscribe` returned.
    pub subscription: String,
}

/// `session.events`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventsParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Only events after this seq.
    #[serde(default)]
    pub after_seq: Seq,
    /// `next_cursor` of the previous page; overrides `after_seq`.
    pub cursor: Option<String>,
    /// Events per page, 1 to 1,000, 500 by default; fewer if they are long.
    pub limit: Option<u32>,
    /// Filter of the events; by default all of them.
    #[serde(default, skip_serializing_if = "Include::is_all")]
    pub include: Include,
}

impl EventsParams {
    /// All events of a session from its beginning.
    #[must_use]
    pub fn for_session(session_id: SessionId) -> Self {
        Self { session_id, after_seq: 0, cursor: None, limit: None, include: Include::default() }
    }
}

/// Reply of `session.events`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsReply {
    /// Events of this page, in order.
    pub events: Vec<Envelope>,
    /// The journal's newest seq.
    pub last_seq: Seq,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.items`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ItemsParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Items per page, 1 to 500, 100 by default; fewer if they are long.
    pub limit: Option<u32>,
    /// Whether the newest item comes first. A cursor continues in the order of the call that returned it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub newest_first: bool,
    /// Only items of these kinds; by default all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ItemKind>,
}

impl ItemsParams {
    /// The first page of all items of a session.
    #[must_use]
    pub fn for_session(session_id: SessionId) -> Self {
        Self { session_id, cursor: None, limit: None, newest_first: false, kinds: Vec::new() }
    }
}

/// Reply of `session.items`: oldest first, unless `newest_first` was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemsReply {
    /// Items of this page, in order.
    pub items: Vec<Item>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.blob`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlobParams {
    /// The session that the blob belongs to.
    pub session_id: SessionId,
    /// Id of the blob, from an event or an item.
    pub blob_id: BlobId,
    /// Position of the first byte to read, from 0.
    #[serde(default)]
    pub offset: u64,
    /// Bytes to read, 1 to 1,048,576; 262,144 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Encoding of a blob's bytes in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlobEncoding {
    /// Unchanged: the bytes are UTF-8.
    Text,
    /// In base64.
    Base64,
}

/// Reply of `session.blob`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobReply {
    /// Id of the blob.
    pub blob_id: BlobId,
    /// Its media type, for example `text/plain` or `image/png`.
    pub media_type: String,
    /// Length of the complete blob in bytes.
    pub bytes: u64,
    /// Position of the first byte of this part, from 0.
    pub offset: u64,
    /// The content of this part. A text ends with a complete character, so it may be up to three bytes shorter
    /// than requested.
    pub content: String,
    /// Encoding of `content`.
    pub encoding: BlobEncoding,
    /// `offset` of the next part, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// `session.diff`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Files per page, 1 to 500, 100 by default; fewer if their diffs are long.
    pub limit: Option<u32>,
}

/// Reply of `session.diff`: the files sorted by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReply {
    /// Files that the session changed, except those that have their original content again.
    pub files: Vec<FileDiff>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
