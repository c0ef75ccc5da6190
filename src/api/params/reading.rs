//! Parameters and replies of reading what a session holds: events, items, blobs, changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::event::Envelope;
use crate::types::ids::{BlobId, Seq, SessionId};
use crate::types::session::{FileDiff, Item};

/// `session.subscribe`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubscribeParams {
    /// The session.
    pub session_id: SessionId,
    /// Events after this one; 0, the default, for the whole journal.
    #[serde(default)]
    pub after_seq: Seq,
    /// How much of what there is is wanted; by default all of it.
    #[serde(default, skip_serializing_if = "Include::is_all")]
    pub include: Include,
}

/// How much of a session's events a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Include {
    /// How much of the models' thinking.
    pub thinking: ThinkingShown,
}

impl Include {
    /// Whether everything is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// How much of the models' thinking a client is shown. Events that are left out leave a gap in `seq`;
/// messages keep every block in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingShown {
    /// All of it, as it comes.
    #[default]
    Full,
    /// The first line of each thought, 200 characters at most, when its message is whole.
    Summary,
    /// Nothing of it: that there was some is all that shows.
    None,
}

/// `session.unsubscribe`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnsubscribeParams {
    /// What `session.subscribe` returned.
    pub subscription: String,
}

/// `session.events`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventsParams {
    /// The session.
    pub session_id: SessionId,
    /// Events after this one.
    #[serde(default)]
    pub after_seq: Seq,
    /// `next_cursor` of the page before; wins over `after_seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Events a page, 1 to 1,000, 500 by default; fewer where they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How much of what there is is wanted; by default all of it.
    #[serde(default, skip_serializing_if = "Include::is_all")]
    pub include: Include,
}

impl EventsParams {
    /// All events of a session from its beginning.
    #[must_use]
    pub fn of(session_id: SessionId) -> Self {
        Self { session_id, after_seq: 0, cursor: None, limit: None, include: Include::default() }
    }
}

/// Reply of `session.events`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsReply {
    /// A page of events.
    pub events: Vec<Envelope>,
    /// The journal's newest seq.
    pub last_seq: Seq,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.items`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ItemsParams {
    /// The session.
    pub session_id: SessionId,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Items a page, 1 to 500, 100 by default; fewer where they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Reply of `session.items`: oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemsReply {
    /// A page of items.
    pub items: Vec<Item>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `session.blob`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlobParams {
    /// The session that the blob belongs to.
    pub session_id: SessionId,
    /// The blob, as an event or an item names it.
    pub blob_id: BlobId,
    /// The first byte.
    #[serde(default)]
    pub offset: u64,
    /// Bytes to read, 1 to 1,048,576; 262,144 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// How the bytes of a blob are written into a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlobEncoding {
    /// As they are: they are UTF-8.
    Text,
    /// In base64.
    Base64,
}

/// Reply of `session.blob`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlobReply {
    /// The blob.
    pub blob_id: BlobId,
    /// What it is, for example `text/plain` or `image/png`.
    pub media_type: String,
    /// Length of the whole.
    pub bytes: u64,
    /// The first byte of this part.
    pub offset: u64,
    /// The part. Of a text it ends with a whole character, so it may be up to three bytes shorter than
    /// asked for.
    pub content: String,
    /// How `content` is to be read.
    pub encoding: BlobEncoding,
    /// `offset` of the next part, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// `session.diff`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffParams {
    /// The session.
    pub session_id: SessionId,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Files a page, 1 to 500, 100 by default; fewer where their diffs are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Reply of `session.diff`: by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReply {
    /// Files that the session changed, but for those that are as they were before it.
    pub files: Vec<FileDiff>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
