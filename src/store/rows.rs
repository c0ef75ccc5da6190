//! Plain rows that the session passes to the store.

use std::sync::Arc;

use types::audit::AuditNote;
use types::blob::Blob;
use types::event::{Envelope, Event};
use types::ids::{BlobId, CallId, ItemId, RequestId, Seq, SessionId};
use types::ledger::UsageRecord;
use types::session::{ItemKind, ItemStatus, SessionSpec, SessionSummary};
use types::time::Timestamp;
use types::tool::ProcessRecord;

/// Short key of a session inside the store. No session has the default key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionKey(pub(super) i64);

/// Durability of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives a kill of the daemon, but perhaps not a power loss.
    Normal,
    /// Survives a power loss.
    Full,
}

/// One row of the journal.
#[derive(Clone, Debug)]
pub struct Row {
    /// Position in the journal, from 1.
    pub seq: Seq,
    /// Time of the event.
    pub at: Timestamp,
    /// The event's `type`.
    pub kind: &'static str,
    /// Only for deltas: seq of the event that opened their item. A prune of that seq removes the row.
    pub delta_of: Option<Seq>,
    /// The event as JSON on the wire. Truncated values are blobs of the same transaction.
    pub body: Arc<str>,
}

/// A change of an item's summary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRow {
    /// Seq of the event that opened the item.
    pub first_seq: Seq,
    /// Seq of the item's newest event that is not a delta.
    pub last_seq: Seq,
    pub kind: ItemKind,
    /// Whether the item is complete.
    pub status: ItemStatus,
}

/// A change of a permission request's or question's summary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRow {
    /// The event `seq` raised a request.
    Raised {
        request_id: RequestId,
        /// Seq of the event.
        seq: Seq,
    },
    /// The event `seq` settled a request.
    Settled {
        request_id: RequestId,
        /// Seq of the event.
        seq: Seq,
    },
}

/// A change of the list of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessRow {
    /// A call started a process.
    Started {
        /// Identity of the process.
        record: ProcessRecord,
        /// Time of the record.
        at: Timestamp,
    },
    /// All processes of a call have ended.
    Gone(CallId),
}

/// A stored reply of an idempotent call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The RPC method.
    pub method: &'static str,
    /// The caller's idempotency key.
    pub key: String,
    /// Digest of the parameters.
    pub digest: String,
    /// The reply as JSON.
    pub reply: String,
}

/// One transaction of one session, written completely or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    pub key: SessionKey,
    /// Journal rows, in order of seq.
    pub rows: Vec<Row>,
    /// Prune keys: rows whose `delta_of` has one of these values are removed.
    pub prune_deltas_of: Vec<Seq>,
    /// Changes of item summaries.
    pub items: Vec<ItemRow>,
    /// Changes of permission requests and questions.
    pub requests: Vec<RequestRow>,
    /// The new session summary, if it changed.
    pub summary: Option<SessionSummary>,
    /// Usage records of the model calls in these rows.
    pub bookings: Vec<UsageRecord>,
    /// A reply to store.
    pub idempotency: Option<Idempotency>,
    /// Changes of the list of processes.
    pub processes: Vec<ProcessRow>,
    /// Blobs that the rows refer to. An existing blob stays unchanged.
    pub blobs: Vec<Blob>,
    /// A grant to write to a policy file after the commit.
    pub pending_grant: Option<PendingGrant>,
    /// Audit rows of the decisions in these rows.
    pub audit: Vec<AuditNote>,
    /// The text of messages that these rows complete.
    pub texts: Vec<MessageText>,
    /// For a rewind: items and texts that began after this seq are removed.
    pub rewound_to: Option<Seq>,
    /// Durability of the commit.
    pub sync: Durability,
}

/// The text of a message, for search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText {
    /// Seq of the event that opened the message's item.
    pub seq: Seq,
    pub item_id: ItemId,
    /// The text, shortened.
    pub text: String,
}

/// Maximum bytes of a message's text that can be searched.
const SEARCHED_BYTES: usize = 16 * 1024;

impl MessageText {
    /// The text of the message that an event completes.
    #[must_use]
    pub fn from_envelope(envelope: &Envelope) -> Option<Self> {
        let Event::MessageCompleted { item, .. } = &envelope.event else { return None };
        let is_searched = matches!(item.kind, ItemKind::UserMessage | ItemKind::AssistantMessage)
            && item.status == ItemStatus::Completed;
        let text = item.text.as_deref().filter(|text| is_searched && !text.trim().is_empty())?;
        let text = text[..text.floor_char_boundary(SEARCHED_BYTES)].to_owned();
        Some(Self { seq: item.first_seq, item_id: item.item_id, text })
    }

    /// The texts of a whole journal, without those that were rewound.
    #[must_use]
    pub fn from_journal<'e>(events: impl IntoIterator<Item = &'e Envelope>) -> Vec<Self> {
        let mut texts: Vec<Self> = Vec::new();
        for envelope in events {
            if let Event::SessionRewound(rewound) = &envelope.event {
                texts.retain(|text| text.seq <= rewound.last_item_seq);
            }
            texts.extend(Self::from_envelope(envelope));
        }
        texts
    }
}

/// Rows of a session that is created with a history.
#[derive(Clone, Debug, Default)]
pub struct InitialHistory {
    /// The text of its messages.
    pub texts: Vec<MessageText>,
    /// Blobs to copy from another session.
    pub copied_blobs: Option<(SessionKey, Vec<BlobId>)>,
    /// The session summary after the history.
    pub summary: Option<SessionSummary>,
}

/// A grant that a user gave and that is not yet in its policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingGrant {
    /// Id of the request whose answer gave the grant.
    pub request_id: String,
    /// The workspace's real path.
    pub workspace: String,
    /// The policy file entry as JSON.
    pub entry: String,
}

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub session_id: SessionId,
    /// Folder, parent and other fixed properties of the session.
    pub spec: SessionSpec,
    /// Time of creation.
    pub at: Timestamp,
    /// Its first journal rows.
    pub rows: Vec<Row>,
    /// The items of these rows.
    pub items: Vec<ItemRow>,
    /// Blobs that the rows refer to.
    pub blobs: Vec<Blob>,
    /// Audit rows of the decisions in these rows.
    pub audit: Vec<AuditNote>,
    /// A reply to store.
    pub idempotency: Option<Idempotency>,
    /// The history with which the session begins, if any.
    pub history: InitialHistory,
}

/// A change of the trust in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustChange {
    /// The folder as an absolute path without symbolic links.
    pub cwd: String,
    /// Digest of the folder's executable files; `None` revokes the trust.
    pub digest: Option<String>,
    /// The audit row of this change.
    pub note: AuditNote,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    /// Position in the journal, from 1.
    pub seq: Seq,
    /// The event's `type`.
    pub kind: String,
    /// The event as JSON on the wire.
    pub body: String,
}

/// A page of the journal or of items with a limit in rows and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Entries of the page, oldest first; at least one if any entry exists.
    pub rows: Vec<T>,
    /// Whether no later entry existed at the time of the read.
    pub is_last: bool,
}

/// How long the reply of a call without a session is kept, in milliseconds: one day. Replies to deletions are
/// kept longer.
pub(super) const WITHOUT_SESSION_MS: i64 = 24 * 3_600 * 1_000;

/// Fields that every event body has.
#[derive(serde::Deserialize)]
pub(super) struct EventHead {
    pub seq: u64,
    pub session_id: String,
    #[serde(rename = "type")]
    pub kind: String,
}

impl EventHead {
    /// Whether a body has the fields of every event. No version of the daemon wrote a body without them.
    pub(super) fn has_event_fields(body: &str) -> bool {
        serde_json::from_str::<Self>(body).is_ok()
    }
}
