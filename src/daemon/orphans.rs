//! Processes without a parent: those that a dead daemon left, and those that commands of this one
//! leave (S9).

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sha2::{Digest as _, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::proc;
use crate::session::Registry;
use crate::types::ids::CallId;
use crate::types::time::Timestamp;

/// A signal that comes while another is being heard is not told of again.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);
/// After a look that was in the way of a start.
const LOOK_SOON: Duration = Duration::from_millis(50);

/// Names this daemon to those who come after it: the same at every start over the same state
/// folder, and another for every other folder. It is no secret.
pub(super) fn instance(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.canonicalize()?;
    let meta = path.metadata()?;
    // Path and file: neither a copy nor a new folder in an old one's place is the same state.
    let mut digest = Sha256::new();
    digest.update(meta.dev().to_be_bytes());
    digest.update(meta.ino().to_be_bytes());
    digest.update(path.as_os_str().as_bytes());
    Ok(digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// Lets this process open as many files as it may; returns what it was started with, soft and hard,
/// for its commands: some programs go through all numbers that are allowed.
pub(super) fn raise_open_files() -> Option<(u64, u64)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        tracing::warn!(%error, "the limit of open files stays at {soft}");
    }
    Some((soft, hard))
}

/// Takes in orphans of commands from now on, and the exit status of those that nobody waits for,
/// until it is aborted.
///
/// # Errors
/// Signals cannot be listened to.
pub(super) fn adopt() -> io::Result<JoinHandle<()>> {
    if let Err(error) = proc::adopt_orphans() {
        tracing::warn!(%error, "orphans of commands go to another process");
    }
    let mut ended = signal(SignalKind::child())?;
    Ok(tokio::spawn(async move {
        let mut wait = LOOK_ANYWAY;
        loop {
            let _ = tokio::time::timeout(wait, ended.recv()).await;
            // Mostly there is nobody: then it takes two system calls, and no other thread for them.
            let reaped = match proc::is_alone() {
                true => Ok(proc::reap()),
                false => tokio::task::spawn_blocking(proc::reap).await,
            };
            wait = if matches!(reaped, Ok(None)) { LOOK_SOON } else { LOOK_ANYWAY };
        }
    }))
}

/// Removes what commands of a dead daemon had said and no session refers to. Nothing may have been
/// started yet.
pub(super) async fn sweep_spools(registry: &Registry) {
    match registry.shared().store.sweep_blobs().await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "spools that an earlier daemon had left were removed"),
        Err(error) => tracing::warn!(%error, "spools of an earlier daemon stay"),
    }
}

/// Temporary files of a session in which nothing happens for this long go.
const TEMP_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often that is looked at.
const LOOK_AT_TEMP: Duration = Duration::from_secs(6 * 3_600);

/// Removes the temporary files of sessions that ended, were deleted, or have not been used for a week: at the
/// start, and now and then. Runs until it is dropped.
pub(super) async fn sweep_temp(registry: Registry) {
    loop {
        match sweep_temp_once(&registry).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "temporary files of sessions that are over were removed"),
            Err(why) => tracing::warn!(why, "temporary files of sessions stay for now"),
        }
        tokio::time::sleep(LOOK_AT_TEMP).await;
    }
}

async fn sweep_temp_once(registry: &Registry) -> Result<usize, String> {
    let shared = registry.shared();
    let tools = shared.components().tools.clone();
    let found = tools.temp_folders().await.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Ok(0);
    }
    let week = i64::try_from(TEMP_FOR.as_millis()).unwrap_or(i64::MAX);
    let since = Timestamp(shared.clock.now().0.saturating_sub(week));
    let kept = shared.store.in_use_since(since).await.map_err(|error| error.to_string())?;
    Ok(tools.sweep_temp(found, kept).await)
}

/// Ends what an earlier daemon over the same state left running. Nothing may have been started yet.
/// The records stay until [`Leftovers::forget`]: they name the sessions that have to be told.
pub(super) async fn sweep(registry: &Registry) -> Leftovers {
    let shared = registry.shared();
    let records = shared.store.processes().await.unwrap_or_else(|error| {
        tracing::error!(%error, "the list of processes cannot be read; their marks must do");
        Vec::new()
    });
    let calls: Vec<_> = records.iter().map(|record| record.call_id).collect();
    let swept = shared.components().tools.sweep(records).await;
    if swept.found > 0 {
        tracing::info!(count = swept.found, "processes that an earlier daemon had left were ended");
    }
    if !swept.survivors.is_empty() {
        tracing::error!(pids = ?swept.survivors, "processes of an earlier daemon could not be ended");
        // They are looked for again at the next start.
        return Leftovers { survivors: swept.survivors, ended: Vec::new() };
    }
    // Nothing is held by them any more.
    shared.components().tools.clear_stand_ins().await;
    Leftovers { survivors: Vec::new(), ended: calls }
}

/// What became of the processes of a dead daemon.
pub(super) struct Leftovers {
    /// Those that could not be ended.
    pub(super) survivors: Vec<i32>,
    /// The calls of which nothing is left.
    ended: Vec<CallId>,
}

impl Leftovers {
    /// Removes the records of what is gone. To be called once their sessions were picked up.
    pub(super) async fn forget(self, registry: &Registry) {
        if !self.ended.is_empty()
            && let Err(error) = registry.shared().store.forget_processes(self.ended).await
        {
            tracing::warn!(%error, "records of ended processes stay");
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
