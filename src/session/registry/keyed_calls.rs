//! Calls that write to no journal: replies stored for idempotency keys, and audit rows.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Mutex;

use crate::error::SessionError;
use crate::idempotency::{IdempotencyKey, scoped_key};
use crate::registry::Registry;
use store::{Durability, Idempotency};
use types::audit::AuditNote;
use types::ids::SessionId;

/// Removes the lock of a key when its last call ends.
struct KeyedCall<'a> {
    calls: &'a DashMap<(&'static str, String), Arc<Mutex<()>>>,
    id: (&'static str, String),
}

impl Drop for KeyedCall<'_> {
    fn drop(&mut self) {
        // The map holds one reference, and a call that is over or waits holds another.
        self.calls.remove_if(&self.id, |_, lock| Arc::strong_count(lock) <= 2);
    }
}

impl Registry {
    /// Runs `work`, unless a call of `method` with this key was answered before: then returns the stored
    /// reply. Keys of calls without a session expire after 24 hours. The reply is stored after the work, so
    /// after a crash in between, a repeated call runs the work again. Errors are not stored.
    ///
    /// # Errors
    /// The key was used with other parameters, the store failed, or the work failed.
    pub async fn once<T, E>(
        &self,
        method: &'static str,
        session: Option<SessionId>,
        keyed: Option<IdempotencyKey>,
        to_error: impl Fn(SessionError) -> E,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        let Some(IdempotencyKey { key, digest }) = keyed else { return work.await };
        // Only calls with the same key wait for each other: a query may take minutes.
        let lock = Arc::clone(&self.inner.keyed_calls.entry((method, key.clone())).or_default());
        let _entry = KeyedCall { calls: &self.inner.keyed_calls, id: (method, key.clone()) };
        let _alone = lock.lock().await;
        let (store, clock) = (&self.inner.shared.store, &self.inner.shared.clock);
        let failed = |error| to_error(SessionError::Store(error));
        let key = session.map_or_else(|| key.clone(), |id| scoped_key(id, &key));
        let known = store.recent_reply(method, &key, clock.now()).await.map_err(failed)?;
        if let Some(known) = known {
            if known.digest != digest {
                return Err(to_error(SessionError::Conflict("idempotency_key")));
            }
            if let Ok(reply) = serde_json::from_str(&known.reply) {
                return Ok(reply);
            }
        }
        let row = match session {
            Some(id) => store.find(id).await.map_err(failed)?,
            None => None,
        };
        let reply = work.await?;
        let record =
            Idempotency { method, key, digest, reply: serde_json::to_string(&reply).unwrap_or_default() };
        if let Err(error) = self.inner.shared.database.keep_reply(row, record, clock.now()).await {
            // The work cannot be undone, so the caller still receives its result.
            tracing::warn!(method, %error, "could not store a reply for its idempotency key");
        }
        Ok(reply)
    }

    /// Writes an audit row for a decision outside of any session.
    ///
    /// # Errors
    /// The row was not written.
    pub async fn note(&self, note: AuditNote) -> Result<(), SessionError> {
        Ok(self.inner.shared.database.record(vec![note], Durability::Normal).await?)
    }
}
