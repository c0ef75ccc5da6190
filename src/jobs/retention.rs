//! Removes jobs that are over for longer than `[jobs] keep`, with the sessions of their attempts.

use std::time::Duration;

use tokio::sync::watch;

use crate::command::parse;
use crate::services::daemon_origin;
use crate::settings::JobSettings;
use session::{Registry, SessionError};
use store::{JobCommit, JobWrite, Store, StoreError};
use types::ids::SessionId;

/// Time between two removals; a change of the configuration causes one as well.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);
/// Jobs that are removed together.
const BATCH_JOBS: u32 = 100;

/// Removes old jobs now and at intervals, until the future is dropped. With `keep = "off"` it removes nothing.
pub async fn run(store: Store, registry: Registry, mut settings: watch::Receiver<JobSettings>) {
    loop {
        let keep = settings.borrow_and_update().keep.0;
        if let Some(keep) = keep {
            loop {
                match remove(&store, &registry, keep.millis()).await {
                    Ok(0) => break,
                    Ok(count) => tracing::info!(count, "removed jobs that ended long ago ([jobs] keep)"),
                    Err(error) => {
                        tracing::warn!(%error, "could not remove old jobs");
                        break;
                    }
                }
            }
        }
        if let Ok(Err(_)) = tokio::time::timeout(CHECK_INTERVAL, settings.changed()).await {
            return;
        }
    }
}

async fn remove(store: &Store, registry: &Registry, keep_ms: u64) -> Result<usize, StoreError> {
    let now = registry.shared().clock.now();
    // The day's money counts what was spent since midnight, so the jobs of this day stay.
    let before = now.before(keep_ms).min(now.start_of_day());
    let old = store.jobs_ended_before(before, &now.date(), BATCH_JOBS).await?;
    let mut removed = 0;
    for stored in &old {
        let record = match parse(stored) {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(position = stored.position, %error, "an old job cannot be read and is not removed");
                continue;
            }
        };
        let mut sessions: Vec<SessionId> = record.attempts.iter().map(|attempt| attempt.session_id).collect();
        sessions.dedup();
        for session_id in sessions {
            match registry.delete(session_id, None, daemon_origin()).await {
                Ok(()) | Err(SessionError::NotFound) => {}
                // A damaged session must not keep its job for ever.
                Err(error) => {
                    tracing::warn!(session = %session_id, %error, "could not remove a session of a job")
                }
            }
        }
        let writes = vec![JobWrite::Delete(record.job.job_id)];
        store.commit_job(JobCommit { writes, at: now, ..JobCommit::default() }).await?;
        removed += 1;
    }
    Ok(removed)
}
