//! Idempotency keys: a repeated call with the same key and parameters gets the stored reply.

use crate::error::SessionError;
use store::{Idempotency, StoreReader};
use types::ids::SessionId;

/// Method names under which replies are stored.
pub(super) mod method {
    pub const CREATE: &str = "session.create";
    pub const DELETE: &str = "session.delete";
    pub const SUBMIT: &str = "session.submit";
    pub const APPROVE: &str = "session.approve";
    pub const ANSWER: &str = "session.answer";
    pub const FEEDBACK: &str = "session.feedback";
    pub const UPDATE: &str = "session.update";
    pub const ABORT: &str = "session.abort";
    pub const KILL: &str = "session.kill";
    pub const COMPACT: &str = "session.compact";
    pub const ARCHIVE: &str = "session.archive";
    pub const IMPORT: &str = "session.import";
    pub const FORK: &str = "session.fork";
    pub const REWIND: &str = "session.rewind";

    /// The method of a change of the queue.
    pub fn of_queue_edit(edit: &engine::QueueEdit) -> &'static str {
        use engine::QueueEdit;
        match edit {
            QueueEdit::Clear => "session.queue.clear",
            QueueEdit::Remove { .. } => "session.queue.remove",
            QueueEdit::Update { .. } => "session.queue.update",
            QueueEdit::Move { .. } => "session.queue.move",
        }
    }
}

/// A caller's idempotency key with the digest of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key that the caller chose.
    pub key: String,
    /// Digest of the parameters.
    pub digest: String,
}

impl IdempotencyKey {
    /// The row that stores the reply to a call about the session `id`.
    pub(super) fn row<T: serde::Serialize>(
        self,
        method: &'static str,
        id: SessionId,
        reply: &T,
    ) -> Option<Idempotency> {
        let reply = serde_json::to_string(reply).ok()?;
        Some(Idempotency { method, key: scoped_key(id, &self.key), digest: self.digest, reply })
    }
}

/// The stored reply of an earlier call with this key.
pub(crate) async fn remembered<T: serde::de::DeserializeOwned>(
    store: &StoreReader,
    method: &'static str,
    id: SessionId,
    keyed: &IdempotencyKey,
) -> Result<Option<T>, SessionError> {
    let Some(known) = store.stored_reply(method, &scoped_key(id, &keyed.key)).await? else { return Ok(None) };
    if known.digest != keyed.digest {
        return Err(SessionError::Conflict("idempotency_key"));
    }
    Ok(serde_json::from_str(&known.reply).ok())
}

/// Prefixes the key with the session id, because two sessions may use the same key.
pub(crate) fn scoped_key(id: SessionId, key: &str) -> String {
    format!("{id}:{key}")
}
