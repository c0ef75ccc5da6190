//! Archives sessions of attempts that are over. The end of an attempt does this itself; what is done here is what it could
//! not do, for example because the disk was full or a command did not end.

use std::time::Duration;

use crate::runner::end::archive;
use crate::services::{DAEMON_CLIENT, Services};
use session::{Registry, SessionError};
use store::{Store, StoreError};
use types::ids::SessionId;

/// Time between two searches. The first one is at the start of the daemon.
const SEARCH_INTERVAL: Duration = Duration::from_secs(3_600);
/// Sessions that are read together.
const BATCH_SESSIONS: u32 = 100;

/// Searches now and at intervals, until the future is dropped. Sessions that a user restored from the archive stay as they
/// are.
pub async fn run(store: Store, registry: Registry) {
    let services = Services { registry, store };
    loop {
        match archive_all(&services).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "archived sessions of jobs that are over"),
            Err(error) => tracing::warn!(%error, "could not read which sessions of jobs are to be archived"),
        }
        tokio::time::sleep(SEARCH_INTERVAL).await;
    }
}

async fn archive_all(services: &Services) -> Result<usize, StoreError> {
    let mut archived = 0;
    let mut after: Option<SessionId> = None;
    loop {
        let found = services.store.unarchived_attempts(DAEMON_CLIENT, after, BATCH_SESSIONS).await?;
        let Some(last) = found.last() else { return Ok(archived) };
        after = Some(*last);
        for session_id in found {
            match archive(services, session_id).await {
                Ok(()) => archived += 1,
                Err(SessionError::ShuttingDown) => return Ok(archived),
                Err(error) => {
                    tracing::warn!(session = %session_id, %error, "the session of an attempt stays unarchived");
                }
            }
        }
    }
}
