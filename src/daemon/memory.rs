//! Returns the memory of unloaded sessions to the kernel.

use std::time::Duration;

use crate::proc;
use crate::session::Registry;

/// Minimum time between two releases.
const RELEASE_INTERVAL: Duration = Duration::from_secs(10);

/// Releases free memory after sessions were unloaded. Runs until it is dropped.
pub(super) async fn run(registry: Registry) {
    let mut released = 0;
    loop {
        tokio::time::sleep(RELEASE_INTERVAL).await;
        let unloaded = registry.unloaded();
        if unloaded > released {
            released = unloaded;
            // The call may take long, so it must not block a worker.
            let _ = tokio::task::spawn_blocking(proc::release_free_memory).await;
        }
    }
}
