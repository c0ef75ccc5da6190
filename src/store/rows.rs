//! What the session hands to the store, as plain rows.

use std::sync::Arc;

use crate::types::audit::AuditNote;
use crate::types::blob::Blob;
use crate::types::ids::{CallId, RequestId, Seq, SessionId, TurnId};
use crate::types::ledger::UsageRecord;
use crate::types::session::{ItemKind, ItemStatus, Requires, SessionSpec, SessionState};
use crate::types::time::Timestamp;
use crate::types::tool::ProcessRecord;
use crate::types::usage::Usage;

/// Short key of a session inside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(Default))]
pub struct SessionKey(pub(super) i64);

/// How sure a commit must be (S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sync {
    /// Survives a kill of the daemon; a power cut may take it.
    Normal,
    /// Survives a power cut.
    Full,
}

/// One journal row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// The event's `type`.
    pub kind: &'static str,
    /// For foldable rows: seq of the event that opened what they belong to.
    pub fold: Option<Seq>,
    /// The event as it stands on the wire: what was cut out of it is a blob of the same transaction.
    pub body: Arc<str>,
}

/// A change of the item summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRow {
    /// Seq of the event that opened it.
    pub first_seq: Seq,
    /// Seq of its newest permanent event.
    pub last_seq: Seq,
    /// What it is.
    pub kind: ItemKind,
    /// Whether it is whole.
    pub status: ItemStatus,
}

/// A change of the summary of what waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRow {
    /// A request was raised by the event `seq`.
    Raised {
        /// The request.
        request_id: RequestId,
        /// The event.
        seq: Seq,
    },
    /// A request was settled by the event `seq`.
    Settled {
        /// The request.
        request_id: RequestId,
        /// The event.
        seq: Seq,
    },
}

/// A change of the list of processes (S9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessRow {
    /// A call has started a process.
    Born {
        /// Who it is.
        record: ProcessRecord,
        /// When that was written.
        at: Timestamp,
    },
    /// Nothing is left of a call.
    Gone(CallId),
}

/// The columns behind `session.list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Short name.
    pub title: String,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Approval mode.
    pub mode: crate::types::permission::Mode,
    /// How much its models may think.
    pub thinking: Option<crate::types::thinking::Thinking>,
    /// How freely they choose their words.
    pub sampling: crate::types::sampling::Sampling,
    /// State.
    pub state: SessionState,
    /// What it waits for.
    pub requires: Option<Requires>,
    /// The current turn.
    pub turn_id: Option<TurnId>,
    /// Time of the newest fact.
    pub updated_at: Timestamp,
    /// Tokens so far.
    pub usage: Usage,
    /// Cost so far.
    pub cost_usd_micros: Option<u64>,
    /// What is known of that, if not all is.
    pub cost_at_least_usd_micros: u64,
    /// Last line that was said.
    pub last_line: String,
}

/// A remembered reply (S2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The method.
    pub method: &'static str,
    /// The caller's key.
    pub key: String,
    /// Digest of the parameters.
    pub digest: String,
    /// The reply as JSON.
    pub reply: String,
}

/// One transaction of one session: all of it or nothing.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session.
    pub key: SessionKey,
    /// Journal rows, in order of seq.
    pub rows: Vec<Row>,
    /// Folds: rows with this fold key are removed.
    pub folds: Vec<Seq>,
    /// Item changes.
    pub items: Vec<ItemRow>,
    /// Permission changes.
    pub requests: Vec<RequestRow>,
    /// New summary, if it changed.
    pub summary: Option<Summary>,
    /// Model calls that these rows tell of.
    pub bookings: Vec<UsageRecord>,
    /// A reply to remember.
    pub idempotency: Option<Idempotency>,
    /// Changes of the list of processes.
    pub processes: Vec<ProcessRow>,
    /// Contents that the rows refer to. One that is there already stays as it is.
    pub blobs: Vec<Blob>,
    /// A grant that is to be written to a policy file after this.
    pub pending_grant: Option<PendingGrant>,
    /// Decisions that these rows tell of.
    pub audit: Vec<AuditNote>,
    /// How sure.
    pub sync: Sync,
}

/// A grant that is given and does not stand in its policy file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingGrant {
    /// The request with whose answer it was given.
    pub request_id: String,
    /// The workspace's real path.
    pub workspace: String,
    /// What is to stand in the file, as JSON.
    pub entry: String,
}

/// A session to be made.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub session_id: SessionId,
    /// What it is.
    pub spec: SessionSpec,
    /// When.
    pub at: Timestamp,
    /// Its first journal rows.
    pub rows: Vec<Row>,
    /// Contents that they refer to.
    pub blobs: Vec<Blob>,
    /// Decisions that these rows tell of.
    pub audit: Vec<AuditNote>,
    /// A reply to remember.
    pub idempotency: Option<Idempotency>,
}
