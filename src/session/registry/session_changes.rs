//! Follows the changes of all sessions, for lists that stay up to date. Changes of one session that
//! arrive together are reported once, with the session's current values. A follower that lags reports
//! every session that changed meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use crate::error::SessionError;
use crate::registry::Registry;
use crate::shared::SessionChange;
use types::daemon_event::{SessionChangeKind, SessionNotification};
use types::ids::SessionId;
use types::session::SessionState;
use types::time::Timestamp;

/// Sessions per read.
const BATCH_SESSIONS: usize = 100;
/// Tolerance in milliseconds, because the time of a write may be slightly earlier than the time of its report.
const CLOCK_MARGIN_MS: i64 = 10_000;

/// Follows the changes of all sessions.
pub struct SessionFollower {
    registry: Registry,
    changes_rx: broadcast::Receiver<SessionChange>,
    /// Changes that were not reported yet; at most one for each session.
    changed: BTreeMap<SessionId, SessionChange>,
    /// Time of the last read. If changes were lost, all sessions that changed after this time are reported.
    read_at: Timestamp,
    has_lagged: bool,
}

impl Registry {
    /// Starts to follow the changes of all sessions.
    #[must_use]
    pub fn follow_sessions(&self) -> SessionFollower {
        SessionFollower {
            registry: self.clone(),
            changes_rx: self.inner.shared.subscribe_sessions(),
            changed: BTreeMap::new(),
            read_at: self.inner.shared.clock.now(),
            has_lagged: false,
        }
    }
}

impl SessionFollower {
    /// Waits until a change can be reported. Returns `false` when the registry is closed. Cancel-safe.
    pub async fn wait_ready(&mut self) -> bool {
        while self.changed.is_empty() && !self.has_lagged {
            let received = self.changes_rx.recv().await;
            if !self.record_change(received) {
                return false;
            }
        }
        true
    }

    /// Collects further changes and never returns. Cancel-safe: drop the future to stop.
    pub async fn collect(&mut self) {
        loop {
            let received = self.changes_rx.recv().await;
            if !self.record_change(received) {
                // `wait_ready` reports the end of the registry, after the collected changes were returned.
                return std::future::pending().await;
            }
        }
    }

    fn record_change(&mut self, received: Result<SessionChange, RecvError>) -> bool {
        match received {
            Ok(change) => {
                let known = self.changed.remove(&change.session_id);
                let change = known.map_or(change.clone(), |known| known.merge_with(change));
                self.changed.insert(change.session_id, change);
                true
            }
            Err(RecvError::Lagged(_)) => {
                self.has_lagged = true;
                true
            }
            Err(RecvError::Closed) => false,
        }
    }

    /// The next changed sessions; call it after [`Self::wait_ready`].
    pub async fn next(&mut self) -> Result<Vec<SessionNotification>, SessionError> {
        let shared = Arc::clone(&self.registry.inner.shared);
        let now = shared.clock.now();
        if std::mem::take(&mut self.has_lagged) {
            let since = Timestamp(self.read_at.0.saturating_sub(CLOCK_MARGIN_MS));
            for session_id in shared.store.changed_since(since).await? {
                let change = SessionChange { session_id, kind: SessionChangeKind::Updated, deleted: None };
                self.changed.entry(session_id).or_insert(change);
            }
        }
        if self.changed.len() <= BATCH_SESSIONS {
            self.read_at = now;
        }
        let mut news = Vec::new();
        while news.len() < BATCH_SESSIONS
            && let Some((session_id, change)) = self.changed.pop_first()
        {
            if let Some(view) = change.deleted {
                news.push(SessionNotification {
                    kind: SessionChangeKind::Ended,
                    session: (*view).clone(),
                    deleted: true,
                });
                continue;
            }
            match self.registry.view(session_id).await {
                Ok(view) => {
                    let is_over = view.summary.state == SessionState::Ended;
                    let kind = if is_over { SessionChangeKind::Ended } else { change.kind };
                    news.push(SessionNotification { kind, session: view, deleted: false });
                }
                // The session was deleted meanwhile. Its deletion is reported next.
                Err(SessionError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(news)
    }
}

impl SessionChange {
    /// Merges two changes into one: a new session stays new, and a deleted one stays deleted.
    fn merge_with(self, later: SessionChange) -> SessionChange {
        let kind = if self.kind == SessionChangeKind::Created && later.deleted.is_none() {
            self.kind
        } else {
            later.kind
        };
        SessionChange { session_id: later.session_id, kind, deleted: later.deleted.or(self.deleted) }
    }
}
