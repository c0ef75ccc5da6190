//! Following what waits for a permission in all sessions at once (R7, P6): first what waits now, then
//! every request and its end. Who falls behind is told what waits by then: no request that is still
//! open is ever missed, and none that was told stays open for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use crate::session::error::SessionError;
use crate::session::registry::Registry;
use crate::session::shared::{PendingChange, Shared};
use crate::types::ids::{PermissionId, RequestId};

/// Requests read at once.
const PAGE: u32 = 500;

/// A follower of all sessions' requests.
pub struct PendingFollower {
    shared: Arc<Shared>,
    pending_rx: broadcast::Receiver<PendingChange>,
    /// Requests that were told and not yet their end.
    open: BTreeSet<PermissionId>,
    /// What waits has to be looked at.
    must_resync: bool,
}

impl Registry {
    /// Begins to follow what waits in all sessions.
    #[must_use]
    pub fn follow_pending(&self) -> PendingFollower {
        let shared = Arc::clone(&self.inner.shared);
        // Listening before looking: nothing falls between.
        let bell = shared.subscribe_pending();
        PendingFollower { shared, pending_rx: bell, open: BTreeSet::new(), must_resync: true }
    }
}

impl PendingFollower {
    /// The next events, as they stand in the journals; `None` when the house is closed. Cancel-safe
    /// between two calls only.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<str>>>, SessionError> {
        loop {
            if std::mem::take(&mut self.must_resync) {
                let news = self.resync().await?;
                if !news.is_empty() {
                    return Ok(Some(news));
                }
            }
            match self.pending_rx.recv().await {
                Ok(pending_change) => {
                    let RequestId::Permission(id) = pending_change.request_id else { continue };
                    let is_news =
                        if pending_change.is_pending { self.open.insert(id) } else { self.open.remove(&id) };
                    if is_news {
                        return Ok(Some(vec![pending_change.body]));
                    }
                }
                Err(RecvError::Lagged(_)) => self.must_resync = true,
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    /// What differs between what was told and what waits now.
    async fn resync(&mut self) -> Result<Vec<Arc<str>>, SessionError> {
        let store = &self.shared.store;
        let mut waiting: BTreeMap<PermissionId, Arc<str>> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = store.pending_requests(None, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            after = page.last().map(|row| row.request_id.clone());
            for row in page {
                if let Ok(id) = row.request_id.parse() {
                    waiting.insert(id, Arc::from(row.body));
                }
            }
            if is_last {
                break;
            }
        }
        let mut news = Vec::new();
        let over: Vec<PermissionId> =
            self.open.iter().filter(|id| !waiting.contains_key(id)).copied().collect();
        for id in over {
            self.open.remove(&id);
            // One whose session was deleted has no end to tell.
            if let Some(end) = store.request(RequestId::Permission(id)).await?.and_then(|it| it.settled) {
                news.push(Arc::from(end));
            }
        }
        for (id, body) in waiting {
            if self.open.insert(id) {
                news.push(body);
            }
        }
        Ok(news)
    }
}
