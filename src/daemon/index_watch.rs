//! Watches the files of the indexes in use, if the configuration requires that, and updates an index
//! when its files change.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use base::watch::{FolderChange, FolderWatcher};
use knowledge::ErrorKind;
use knowledge::registry::Indexes;

/// Minimum time between two jobs that changes of one workspace start.
const MIN_PAUSE: Duration = Duration::from_secs(2);
/// Time after which a busy index is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A workspace whose files are watched.
#[derive(Default)]
struct WatchedWorkspace {
    folders: HashSet<PathBuf>,
    /// Time of the next update of the workspace's index.
    due: Option<Instant>,
    updated_at: Option<Instant>,
}

impl WatchedWorkspace {
    fn note_change(&mut self, now: Instant) {
        let earliest = self.updated_at.map_or(now, |last| (last + MIN_PAUSE).max(now));
        self.due.get_or_insert(earliest);
    }
}

/// Watches until the future is dropped.
pub(super) async fn run(indexes: Indexes) {
    let mut list_changes = indexes.watch_list_changes();
    let mut watcher: Option<FolderWatcher> = None;
    let mut watched: HashMap<PathBuf, WatchedWorkspace> = HashMap::new();
    let mut has_failed = false;
    loop {
        let list: HashSet<PathBuf> = indexes.watch_list().into_iter().collect();
        if list.is_empty() {
            (watcher, has_failed) = (None, false);
            watched.clear();
        } else if watcher.is_none() && !has_failed {
            watched.clear();
            watcher = FolderWatcher::new()
                .inspect_err(|error| {
                    has_failed = true;
                    tracing::warn!(error, "could not watch the files of indexes; index them by hand");
                })
                .ok();
        }
        if let Some(current) = watcher.take() {
            watcher = follow_list(current, &indexes, &list, &mut watched).await;
        }
        indexes.set_watched(watched.keys().cloned().collect());
        let due = watched.values().filter_map(|workspace| workspace.due).min();
        let changes = async {
            match &mut watcher {
                Some(watcher) => watcher.next_changes().await,
                None => std::future::pending().await,
            }
        };
        let at_due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = list_changes.changed() => if changed.is_err() { return },
            changes = changes => {
                let now = Instant::now();
                let mut touched = Vec::new();
                for (workspace, state) in &mut watched {
                    if changes.iter().any(|change| affects_workspace(change, workspace)) {
                        state.note_change(now);
                        touched.push(workspace.clone());
                    }
                }
                // Watch new folders before the job reads them, so that no later change is missed.
                for workspace in touched {
                    if let Some(current) = watcher.take() {
                        watcher = watch_folders(current, &indexes, &workspace, &mut watched).await;
                    }
                }
            }
            () = at_due => update_due(&indexes, &mut watched).await,
        }
    }
}

fn affects_workspace(change: &FolderChange, workspace: &Path) -> bool {
    match change {
        FolderChange::Path(path) => path.starts_with(workspace),
        FolderChange::Anything => true,
    }
}

/// Watches exactly the workspaces of the list.
async fn follow_list(
    watcher: FolderWatcher,
    indexes: &Indexes,
    list: &HashSet<PathBuf>,
    watched: &mut HashMap<PathBuf, WatchedWorkspace>,
) -> Option<FolderWatcher> {
    let unlisted: Vec<PathBuf> = watched.keys().filter(|it| !list.contains(*it)).cloned().collect();
    let mut watcher = watcher;
    for workspace in unlisted {
        let folders = watched.remove(&workspace).unwrap_or_default().folders;
        folders.iter().for_each(|folder| watcher.release(folder));
    }
    for workspace in list {
        if !watched.contains_key(workspace) {
            watched.insert(workspace.clone(), WatchedWorkspace::default());
            watcher = watch_folders(watcher, indexes, workspace, watched).await?;
            // Files may have changed while they were not watched.
            if let Some(state) = watched.get_mut(workspace) {
                state.note_change(Instant::now());
            }
        }
    }
    Some(watcher)
}

/// Watches the current folders of a workspace. `None` if a panic lost the watcher. The next round then
/// creates a new watcher.
async fn watch_folders(
    mut watcher: FolderWatcher,
    indexes: &Indexes,
    workspace: &Path,
    watched: &mut HashMap<PathBuf, WatchedWorkspace>,
) -> Option<FolderWatcher> {
    let before = watched.get(workspace).map(|state| state.folders.clone()).unwrap_or_default();
    let (indexes, folder) = (indexes.clone(), workspace.to_owned());
    let work = tokio::task::spawn_blocking(move || {
        let found = match indexes.folders_to_watch(&folder) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "could not list the folders of an index; its files are not watched");
                return (watcher, before);
            }
        };
        if found.is_cut {
            let (folder, count) = (folder.display(), found.folders.len());
            tracing::warn!(%folder, count, "a workspace has too many folders; only these are watched");
        }
        before.difference(&found.folders).for_each(|folder| watcher.release(folder));
        let mut error = None;
        for folder in found.folders.difference(&before) {
            error = watcher.acquire(folder).err().or(error);
        }
        if let Some(error) = error {
            tracing::warn!(error, folder = %folder.display(), "could not watch all folders of an index");
        }
        (watcher, found.folders)
    });
    let (watcher, folders) = work.await.ok()?;
    if let Some(state) = watched.get_mut(workspace) {
        state.folders = folders;
    }
    Some(watcher)
}

/// Updates the indexes that are due.
async fn update_due(indexes: &Indexes, watched: &mut HashMap<PathBuf, WatchedWorkspace>) {
    for (workspace, state) in watched {
        let now = Instant::now();
        if state.due.is_none_or(|due| due > now) {
            continue;
        }
        state.due = None;
        match indexes.update(workspace).await {
            Ok(job) => {
                state.updated_at = Some(now);
                if let Some(job) = job {
                    tracing::info!(job, workspace = %workspace.display(), "files changed; the index is updated");
                }
            }
            Err(error) if error.kind == ErrorKind::Busy => state.due = Some(now + RETRY_AFTER),
            Err(error) => {
                tracing::warn!(%error, workspace = %workspace.display(), "an index could not be updated");
            }
        }
    }
}
