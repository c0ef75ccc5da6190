//! Orphan processes: processes that a dead daemon left, and processes that commands of this daemon leave.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sha2::{Digest as _, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use base::proc;
use session::Registry;
use types::hex;
use types::ids::CallId;
use types::time::Timestamp;

/// Maximum time between two reaping passes. The kernel coalesces signals, so the daemon may miss one.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Delay until the next pass if a starting process prevented this one.
const SWEEP_DELAY: Duration = Duration::from_millis(50);

/// An id of this daemon that is unique for its state folder and the same at every start. The id is not secret.
pub(super) fn instance(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.canonicalize()?;
    let meta = path.metadata()?;
    // The digest covers path and file, so that neither a copy nor a new folder at the same path has the same
    // id.
    let mut digest = Sha256::new();
    digest.update(meta.dev().to_be_bytes());
    digest.update(meta.ino().to_be_bytes());
    digest.update(path.as_os_str().as_bytes());
    Ok(hex::encode(&digest.finalize()[..16]))
}

/// Raises the limit of open files to the maximum. Returns the original soft and hard limits for commands,
/// because some programs iterate over all allowed descriptors.
pub(super) fn raise_open_files() -> Option<(u64, u64)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        tracing::warn!(%error, "could not raise the limit of open files; it stays at {soft}");
    }
    Some((soft, hard))
}

/// Adopts orphans of commands from now on and reaps them, until the task is aborted.
///
/// # Errors
/// The signal handler could not be installed.
pub(super) fn adopt_orphans() -> io::Result<JoinHandle<()>> {
    if let Err(error) = proc::adopt_orphans() {
        tracing::warn!(%error, "another process adopts the orphans of commands");
    }
    let mut ended = signal(SignalKind::child())?;
    Ok(tokio::spawn(async move {
        let mut wait = SWEEP_INTERVAL;
        loop {
            let _ = tokio::time::timeout(wait, ended.recv()).await;
            // Usually there is no orphan. Then this pass takes only two system calls and no blocking thread.
            let reaped = match proc::is_alone() {
                true => Ok(proc::reap()),
                false => tokio::task::spawn_blocking(proc::reap).await,
            };
            wait = if matches!(reaped, Ok(None)) { SWEEP_DELAY } else { SWEEP_INTERVAL };
        }
    }))
}

/// Folder of the undo records in the data folder.
pub(super) const UNDO_FOLDER: &str = "undo";

/// Restores the files whose change a dead daemon left half written. Call this before sessions are recovered.
pub(super) async fn restore_files(data_dir: &Path) {
    let folder = data_dir.join(UNDO_FOLDER);
    if folder.exists() {
        let restored = tokio::task::spawn_blocking(move || tools::restore_interrupted_writes(&folder)).await;
        if let Err(error) = restored {
            tracing::error!(%error, "restoring files failed");
        }
    }
}

/// Removes command output of a dead daemon that no session refers to. Call this before any command is started.
pub(super) async fn sweep_spools(registry: &Registry) {
    match registry.shared().store.sweep_blobs().await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "removed spools of an earlier daemon"),
        Err(error) => tracing::warn!(%error, "could not remove spools of an earlier daemon"),
    }
}

/// Time without activity after which a session's temporary files are removed.
const TEMP_FILE_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Time between two checks for such files.
const TEMP_SWEEP_INTERVAL: Duration = Duration::from_secs(6 * 3_600);

/// Removes temporary files of sessions that ended, were deleted or were not used for a week. Runs at
/// the start and at intervals, until the future is dropped.
pub(super) async fn sweep_temp(registry: Registry) {
    loop {
        match sweep_temp_once(&registry).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed temporary files of ended sessions"),
            Err(why) => tracing::warn!(why, "could not remove temporary files of sessions"),
        }
        tokio::time::sleep(TEMP_SWEEP_INTERVAL).await;
    }
}

async fn sweep_temp_once(registry: &Registry) -> Result<usize, String> {
    let shared = registry.shared();
    let tools = shared.components().tools.clone();
    let found = tools.temp_folders().await.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Ok(0);
    }
    let week = i64::try_from(TEMP_FILE_TTL.as_millis()).unwrap_or(i64::MAX);
    let since = Timestamp(shared.clock.now().0.saturating_sub(week));
    let in_use = shared.store.in_use_since(since).await.map_err(|error| error.to_string())?;
    Ok(tools.sweep_temp(found, in_use).await)
}

/// Kills the processes that an earlier daemon with the same state left. Call this before any process is
/// started. The records stay until [`Leftovers::forget_processes`], because they name the sessions to notify.
pub(super) async fn sweep(registry: &Registry) -> Leftovers {
    let shared = registry.shared();
    let records = shared.store.processes().await.unwrap_or_else(|error| {
        tracing::error!(%error, "could not read the recorded processes; finding them by their environment mark");
        Vec::new()
    });
    let calls: Vec<_> = records.iter().map(|record| record.call_id).collect();
    let swept = shared.components().tools.sweep(records).await;
    if swept.found > 0 {
        tracing::info!(count = swept.found, "ended processes that an earlier daemon left");
    }
    if !swept.survivors.is_empty() {
        tracing::error!(pids = ?swept.survivors, "could not end the processes of an earlier daemon");
        // The next daemon searches for these processes again.
        return Leftovers { survivors: swept.survivors, ended: Vec::new() };
    }
    // No process uses the placeholders any more, so remove them.
    shared.components().tools.remove_leftover_placeholders().await;
    Leftovers { survivors: Vec::new(), ended: calls }
}

/// Processes of a dead daemon after the sweep.
pub(super) struct Leftovers {
    /// Ids of processes that could not be killed.
    pub(super) survivors: Vec<i32>,
    /// Calls without remaining processes.
    ended: Vec<CallId>,
}

impl Leftovers {
    /// Removes the records of ended processes. Call this after their sessions were resumed.
    pub(super) async fn forget_processes(self, registry: &Registry) {
        if !self.ended.is_empty()
            && let Err(error) = registry.forget_processes(self.ended).await
        {
            tracing::warn!(%error, "could not remove the records of ended processes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_id_is_bound_to_data_folder() {
        let root = tempfile::tempdir().expect("a folder");
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        for dir in [&a, &b] {
            std::fs::create_dir(dir).expect("made");
        }
        let first = instance(&a).expect("an instance");
        assert_eq!(first.len(), 32);
        assert_eq!(instance(&root.path().join("b/../a")).expect("the same"), first);
        assert_ne!(instance(&b).expect("another"), first);
        std::fs::remove_dir(&b).expect("removed");
        std::fs::rename(&a, &b).expect("moved");
        assert_ne!(instance(&b).expect("another"), first, "what is elsewhere may be a copy");
    }
}
