//! The planned stop of the daemon: who asked for it, and the announcement to clients.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use types::daemon_event::RestartReason;

/// A stop is requested first, then announced. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct PlannedStop {
    requested: CancellationToken,
    reason: Arc<OnceLock<RestartReason>>,
    announced: watch::Sender<Option<RestartReason>>,
}

impl PlannedStop {
    /// Requests the stop. The reason of the first request counts.
    pub fn request(&self, reason: RestartReason) {
        let _ = self.reason.set(reason);
        self.requested.cancel();
    }

    /// Cancelled once the stop is requested.
    #[must_use]
    pub fn requested(&self) -> &CancellationToken {
        &self.requested
    }

    /// Tells the subscribers of the daemon that it stops. The lock file must say so first, because a client that notices
    /// the stop reads it.
    pub fn announce(&self) {
        self.announced.send_replace(self.reason.get().copied());
    }

    /// Waits until each subscriber has the announcement in its send queue, at most `timeout`: a client that does not
    /// read may never have space for it.
    pub async fn wait_announced(&self, timeout: Duration) {
        if tokio::time::timeout(timeout, self.announced.closed()).await.is_err() {
            tracing::debug!(clients = self.announced.receiver_count(), "clients were not told of the stop");
        }
    }

    pub(crate) fn subscribe(&self) -> Announcement {
        Announcement(Some(self.announced.subscribe()))
    }
}

/// The announcement for one subscriber. The daemon waits until the subscriber has passed it on or has ended.
#[derive(Debug)]
pub(crate) struct Announcement(Option<watch::Receiver<Option<RestartReason>>>);

impl Announcement {
    /// Waits for the announcement; for ever once [`Announcement::finish`] was called. Cancel-safe.
    pub(crate) async fn next(&mut self) -> RestartReason {
        if let Some(receiver) = &mut self.0
            && let Ok(reason) = receiver.wait_for(Option::is_some).await
            && let Some(reason) = *reason
        {
            return reason;
        }
        std::future::pending().await
    }

    /// The announcement is in the send queue.
    pub(crate) fn finish(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn first_reason_is_announced_and_waits_for_subscribers_that_passed_it_on() {
        let stop = PlannedStop::default();
        let (mut told, mut silent) = (stop.subscribe(), stop.subscribe());
        stop.request(RestartReason::Restart);
        stop.request(RestartReason::Stop);
        assert!(stop.requested().is_cancelled());
        stop.announce();
        assert_eq!(told.next().await, RestartReason::Restart);
        // One that subscribes meanwhile is told too.
        assert_eq!(stop.subscribe().next().await, RestartReason::Restart);
        told.finish();
        let start = Instant::now();
        stop.wait_announced(Duration::from_millis(50)).await;
        assert!(start.elapsed() >= Duration::from_millis(50), "one subscriber was not told");
        assert_eq!(silent.next().await, RestartReason::Restart);
        silent.finish();
        stop.wait_announced(Duration::from_secs(20)).await;
        assert!(start.elapsed() < Duration::from_secs(10), "all subscribers were told");
    }
}
