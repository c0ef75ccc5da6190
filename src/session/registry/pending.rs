//! Follows the pending permission requests of all sessions: first the current ones, then each new
//! request and its end. A follower that lags reads all pending requests again. So it never misses a
//! pending request, and it reports the end of every request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use crate::error::SessionError;
use crate::registry::Registry;
use crate::shared::{PendingChange, Shared};
use types::ids::{PermissionId, RequestId};

/// Requests per read.
const PAGE_ROWS: u32 = 500;

/// Follows the pending requests of all sessions.
pub struct PendingFollower {
    shared: Arc<Shared>,
    pending_rx: broadcast::Receiver<PendingChange>,
    /// Requests that were reported, but whose end was not reported yet.
    open: BTreeSet<PermissionId>,
    /// Whether all pending requests must be read again.
    must_resync: bool,
}

impl Registry {
    /// Starts to follow the pending requests of all sessions.
    #[must_use]
    pub fn follow_pending(&self) -> PendingFollower {
        let shared = Arc::clone(&self.inner.shared);
        // Subscribe before the read, so that no change is missed in between.
        let pending_rx = shared.subscribe_pending();
        PendingFollower { shared, pending_rx, open: BTreeSet::new(), must_resync: true }
    }
}

impl PendingFollower {
    /// The next events as JSON, as in the journals; `None` when the registry is closed. Cancelling this
    /// during a call may lose events.
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

    /// Returns the difference between the reported requests and the current pending requests.
    async fn resync(&mut self) -> Result<Vec<Arc<str>>, SessionError> {
        let store = &self.shared.store;
        let mut waiting: BTreeMap<PermissionId, Arc<str>> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = store.pending_requests(None, after.as_deref(), PAGE_ROWS).await?;
            let is_last = page.len() < PAGE_ROWS as usize;
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
            // A request of a deleted session has no end event.
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
