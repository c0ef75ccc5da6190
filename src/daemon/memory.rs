//! Returns memory to the kernel: memory of the start, and memory of unloaded sessions.

use std::time::Duration;

use base::proc;
use session::Registry;

/// Time after which the start has certainly finished its work.
const START_DURATION: Duration = Duration::from_secs(1);
/// Minimum time between two releases.
const RELEASE_INTERVAL: Duration = Duration::from_secs(10);

/// Releases the pages that only the start needs, and free memory after sessions were unloaded. Runs
/// until the future is dropped.
pub(super) async fn run(registry: Registry) {
    tokio::time::sleep(START_DURATION).await;
    // Both calls may take long, so they must not block a worker.
    let bytes = tokio::task::spawn_blocking(proc::release_startup_pages).await.unwrap_or(0);
    tracing::debug!(bytes, "released the memory of the start-up");
    let mut released = 0;
    loop {
        tokio::time::sleep(RELEASE_INTERVAL).await;
        let unloaded = registry.unloaded();
        if unloaded > released {
            released = unloaded;
            let _ = tokio::task::spawn_blocking(proc::release_free_memory).await;
        }
    }
}
