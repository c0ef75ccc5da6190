//! How much the journal holds, and how long sessions stay that have ended (S15): what only grows fills the
//! disk.

use std::time::Duration;

use crate::session::Registry;
use crate::types::origin::Origin;

/// How often is looked, at most and at least.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Sessions that are removed at one look; the next comes at once.
const MANY: u32 = 100;

/// Looks how much the journal holds, and removes sessions that ended longer ago than `[limits] keep_ended` says,
/// if it says something: at the start, and from then on. Runs until it is dropped.
pub(super) async fn run(registry: Registry) {
    loop {
        let kept = registry.shared().components().settings.keep_ended;
        let mut pause = LOOK.1;
        if let Err(error) = registry.shared().measure_journal().await {
            tracing::warn!(%error, "how much the journal holds cannot be read");
        }
        if let Some(kept) = kept {
            pause = kept.clamp(LOOK.0, LOOK.1);
            match remove(&registry, kept).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(count, "sessions that had ended were removed, as keep_ended says");
                    pause = LOOK.0;
                }
                Err(why) => tracing::warn!(why, "sessions that have ended stay for now"),
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn remove(registry: &Registry, kept: Duration) -> Result<usize, String> {
    let shared = registry.shared();
    let before = shared.clock.now().before(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX));
    let old = shared.store.ended_before(before, MANY).await.map_err(|error| error.to_string())?;
    let mut removed = 0;
    for id in &old {
        let origin =
            Origin { client: "agentd".into(), uid: nix::unistd::geteuid().as_raw(), ..Origin::default() };
        match registry.delete(*id, None, origin).await {
            Ok(()) => removed += 1,
            // One that is damaged does not keep the others.
            Err(error) => tracing::warn!(session = %id, %error, "a session that has ended stays for now"),
        }
    }
    Ok(removed)
}
