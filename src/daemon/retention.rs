//! Measures the journal and deletes old ended sessions. Otherwise the journal could fill the disk.

use std::time::Duration;

use session::Registry;
use types::origin::Origin;

/// Minimum and maximum time between two measurements.
const CHECK_INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Maximum number of sessions that one pass deletes. If more remain, the next pass follows immediately.
const BATCH_SESSIONS: u32 = 100;

/// Measures the journal. If `[limits] delete_ended_after` is set, also deletes sessions that ended
/// earlier than that age. Runs at the start and at intervals, until the future is dropped.
pub(super) async fn run(registry: Registry) {
    loop {
        let retention = registry.shared().components().settings.delete_ended_after;
        let mut pause = CHECK_INTERVALS.1;
        if let Err(error) = registry.shared().measure_journal().await {
            tracing::warn!(%error, "could not read the size of the journal");
        }
        if let Some(retention) = retention {
            pause = retention.clamp(CHECK_INTERVALS.0, CHECK_INTERVALS.1);
            match remove(&registry, retention).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(count, "removed ended sessions (delete_ended_after)");
                    pause = CHECK_INTERVALS.0;
                }
                Err(why) => tracing::warn!(why, "could not remove ended sessions"),
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn remove(registry: &Registry, retention: Duration) -> Result<usize, String> {
    let shared = registry.shared();
    let before = shared.clock.now().before(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX));
    let old = shared.store.ended_before(before, BATCH_SESSIONS).await.map_err(|error| error.to_string())?;
    let mut removed = 0;
    for id in &old {
        let origin =
            Origin { client: "agentd".into(), uid: nix::unistd::geteuid().as_raw(), ..Origin::default() };
        match registry.delete(*id, None, origin).await {
            Ok(()) => removed += 1,
            // A damaged session must not prevent the deletion of other sessions.
            Err(error) => tracing::warn!(session = %id, %error, "could not remove an ended session"),
        }
    }
    Ok(removed)
}
