//! The commands to the writer thread.

use tokio::sync::oneshot;

use crate::store::error::StoreError;
use crate::store::rows::TrustChange;
use crate::store::rows::{Append, Durability, Idempotency, NewSession, SessionKey};
use crate::types::audit::AuditNote;
use crate::types::ids::CallId;
use crate::types::time::Timestamp;

pub(in crate::store) type ReplyTo<T> = oneshot::Sender<Result<T, StoreError>>;

/// Removes a session and stores the reply of the call that requested it.
pub(in crate::store) struct Deletion {
    pub key: SessionKey,
    pub idempotency: Option<Idempotency>,
    pub at: Timestamp,
}

/// A reply to store without journal rows, with the key of its session if there is one.
pub(in crate::store) struct KeptReply {
    pub key: Option<SessionKey>,
    pub idempotency: Idempotency,
    pub at: Timestamp,
}

/// A command to the writer thread.
pub(in crate::store) enum WriterCommand {
    Append(Box<Append>, ReplyTo<()>),
    Create(Box<NewSession>, ReplyTo<SessionKey>),
    Delete(Box<Deletion>, ReplyTo<()>),
    KeepReply(Box<KeptReply>, ReplyTo<()>),
    /// Commits a write that changes nothing, to test whether the disk accepts writes.
    Try(ReplyTo<()>),
    Forget(Vec<CallId>, ReplyTo<()>),
    Trust(Box<TrustChange>, ReplyTo<()>),
    Paid(Vec<String>, ReplyTo<()>),
    /// Writes audit rows that belong to no journal.
    Record(Vec<AuditNote>, Durability, ReplyTo<()>),
    Close,
}
