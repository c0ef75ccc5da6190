//! The commands to the writer thread.

use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::job_rows::JobCommit;
use crate::rows::TrustChange;
use crate::rows::{Append, Durability, Idempotency, NewSession, SessionKey};
use types::audit::AuditNote;
use types::ids::CallId;
use types::time::Timestamp;

pub(crate) type ReplyTo<T> = oneshot::Sender<Result<T, StoreError>>;

/// Removes a session and stores the reply of the call that requested it.
pub(crate) struct Deletion {
    pub key: SessionKey,
    pub idempotency: Option<Idempotency>,
    pub at: Timestamp,
}

/// A reply to store without journal rows, with the key of its session if there is one.
pub(crate) struct KeptReply {
    pub key: Option<SessionKey>,
    pub idempotency: Idempotency,
    pub at: Timestamp,
}

/// A command to the writer thread.
pub(crate) enum WriterCommand {
    Append(Box<Append>, ReplyTo<()>),
    Create(Box<NewSession>, ReplyTo<SessionKey>),
    Delete(Box<Deletion>, ReplyTo<()>),
    KeepReply(Box<KeptReply>, ReplyTo<()>),
    /// Commits a write that changes nothing, to test whether the disk accepts writes.
    Try(ReplyTo<()>),
    Forget(Vec<CallId>, ReplyTo<()>),
    Trust(Box<TrustChange>, ReplyTo<()>),
    Paid(Vec<String>, ReplyTo<()>),
    Job(Box<JobCommit>, ReplyTo<()>),
    /// Writes audit rows that belong to no journal.
    Record(Vec<AuditNote>, Durability, ReplyTo<()>),
    /// Frees the page cache.
    ReleaseCache(ReplyTo<()>),
    Close,
}
