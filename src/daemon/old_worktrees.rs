//! Removes the worktrees of jobs that were over long ago (`[jobs] keep_worktrees`).

use std::time::Duration;

use jobs::JobSettings;
use session::Registry;
use tokio::sync::watch;

/// Minimum and maximum time between two passes.
const PASS_INTERVALS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(600));

/// Runs at the start and at intervals, until the future is dropped.
pub(super) async fn run(registry: Registry, settings: watch::Receiver<JobSettings>) {
    loop {
        let keep_ms = settings.borrow().keep_worktrees.millis();
        let before = registry.shared().clock.now().before(keep_ms);
        if let Err(error) = registry.remove_old_worktrees(before).await {
            tracing::warn!(%error, "could not list the worktrees");
        }
        tokio::time::sleep(Duration::from_millis(keep_ms).clamp(PASS_INTERVALS.0, PASS_INTERVALS.1)).await;
    }
}
