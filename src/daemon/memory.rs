//! Returns memory to the kernel: memory of the start, of unloaded sessions, and of bursts of writes.

use std::time::Duration;

use base::proc;
use session::Registry;
use store::Store;

/// Time after which the start has certainly finished its work.
const START_DURATION: Duration = Duration::from_secs(1);
/// Minimum time between two releases.
const RELEASE_INTERVAL: Duration = Duration::from_secs(10);
/// Number of writes that fill a part of the writer's cache that is worth a release.
const BURST_WRITES: u64 = 1_000;

/// Releases the pages that only the start needs, free memory after sessions were unloaded, and the page cache of the store
/// when a burst of writes is over. Runs until the future is dropped.
pub(super) async fn run(registry: Registry, store: Store) {
    tokio::time::sleep(START_DURATION).await;
    // Both calls may take long, so they must not block a worker.
    let bytes = tokio::task::spawn_blocking(proc::release_startup_pages).await.unwrap_or(0);
    tracing::debug!(bytes, "released the memory of the start-up");
    let (mut unloaded, mut burst) = (0, WriteBurst::default());
    loop {
        tokio::time::sleep(RELEASE_INTERVAL).await;
        let is_over = burst.is_over(store.writes().0);
        if is_over && let Err(error) = store.release_cache().await {
            tracing::debug!(%error, "could not release the page cache of the store");
        }
        let has_unloaded = registry.unloaded() > unloaded;
        unloaded = registry.unloaded();
        if is_over || has_unloaded {
            let _ = tokio::task::spawn_blocking(proc::release_free_memory).await;
        }
    }
}

/// Finds the end of bursts of writes.
#[derive(Debug, Default)]
struct WriteBurst {
    /// Number of writes at the last look.
    seen: u64,
    /// Number of writes at the end of the last burst.
    ended: u64,
}

impl WriteBurst {
    /// Whether many writes came since the last burst, and none since the last look. `writes` is the number of all writes.
    fn is_over(&mut self, writes: u64) -> bool {
        let is_quiet = writes == self.seen;
        self.seen = writes;
        let is_over = is_quiet && writes - self.ended >= BURST_WRITES;
        if is_over {
            self.ended = writes;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_over_once_when_no_more_writes_come() {
        let mut burst = WriteBurst::default();
        let looks = [0, 900, 900, 1_500, 2_500, 2_500, 2_500, 3_000, 3_000, 3_500, 3_500];
        let ends: Vec<usize> = (0..looks.len()).filter(|at| burst.is_over(looks[*at])).collect();
        assert_eq!(ends, [5, 10]);
    }
}
