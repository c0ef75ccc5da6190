//! Continues the index jobs of the last daemon, and closes idle indexes.

use std::time::Duration;

use knowledge::registry::Indexes;

/// Interval of the checks for idle indexes.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Continues the jobs once and then checks for idle indexes until the future is dropped.
pub(super) async fn run(indexes: Indexes) {
    let resumed = indexes.resume().await;
    if resumed > 0 {
        tracing::info!(resumed, "unfinished index jobs continue");
    }
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        indexes.close_idle().await;
    }
}
