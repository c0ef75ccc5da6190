//! Watches folders, and reports their changes once it is quiet for a moment.
//!
//! This is only a notification: users of it read the files anyway. A change that cannot be watched, for example because the
//! system's limit of watches is reached, counts from their next look.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// A change is reported once no further one came for this long.
const QUIET_TIME: Duration = Duration::from_millis(300);
/// A change is reported after this time, whatever follows.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Changes that may wait. Of more, only the fact is kept.
const CHANGE_CAPACITY: usize = 1_024;

/// Something happened in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderChange {
    Path(PathBuf),
    /// Changes were lost.
    Anything,
}

/// Watches folders, not what is below them, with one handle of the system.
pub struct FolderWatcher {
    system: RecommendedWatcher,
    changes: mpsc::Receiver<FolderChange>,
    /// The watched folders with the number of their users.
    folders: HashMap<PathBuf, usize>,
}

impl FolderWatcher {
    /// A watcher without folders.
    ///
    /// # Errors
    /// The system gives no handle; the reason, for users.
    pub fn new() -> Result<Self, String> {
        let (report, changes) = mpsc::channel(CHANGE_CAPACITY);
        let system = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // A full queue holds enough to start a check of everything.
            let send = |change| drop(report.try_send(change));
            match event {
                Ok(event) if event.need_rescan() => send(FolderChange::Anything),
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
                Ok(event) => event.paths.into_iter().map(FolderChange::Path).for_each(send),
                Err(_) => send(FolderChange::Anything),
            }
        });
        let system = system.map_err(|error| error.to_string())?;
        Ok(Self { system, changes, folders: HashMap::new() })
    }

    /// Watches a folder for one more user. Blocking.
    ///
    /// # Errors
    /// The system cannot watch it; the reason, for users. It counts as watched nevertheless.
    pub fn acquire(&mut self, folder: &Path) -> Result<(), String> {
        let users = self.folders.entry(folder.to_owned()).or_insert(0);
        *users += 1;
        if *users > 1 {
            return Ok(());
        }
        self.system.watch(folder, RecursiveMode::NonRecursive).map_err(|error| error.to_string())
    }

    /// Watches a folder for one user less. Blocking.
    pub fn release(&mut self, folder: &Path) {
        let Some(users) = self.folders.get_mut(folder) else { return };
        *users -= 1;
        if *users == 0 {
            self.folders.remove(folder);
            // A folder that vanished is not watched any more.
            let _ = self.system.unwatch(folder);
        }
    }

    /// Whether no folder is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Waits for changes until none comes for a moment. Cancel-safe until the first change.
    pub async fn next_changes(&mut self) -> Vec<FolderChange> {
        let Some(first) = self.changes.recv().await else { return std::future::pending().await };
        let (mut changes, end) = (vec![first], Instant::now() + MAX_DELAY);
        while let Ok(Some(change)) =
            timeout_at(end.min(Instant::now() + QUIET_TIME), self.changes.recv()).await
        {
            if changes.len() < CHANGE_CAPACITY {
                changes.push(change);
            }
        }
        changes
    }
}
