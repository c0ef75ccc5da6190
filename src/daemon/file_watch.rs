//! Watches commands, skills, agents and instructions of the workspaces with loaded sessions, and notifies these
//! sessions of changes. Without loaded sessions nothing is watched.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use session::{ExtensionWatcher, LoadedWorkspaces, Registry, Reloaded, WatchedPaths};

/// Watches until the future is dropped.
pub(super) async fn run(registry: Registry) {
    let workspaces = registry.loaded_workspaces();
    let mut watcher: Option<ExtensionWatcher> = None;
    let mut has_failed = false;
    loop {
        let places = find_places(&registry, &workspaces).await;
        if places.is_empty() {
            watcher = None;
        } else if watcher.is_none() && !has_failed {
            watcher = match ExtensionWatcher::new() {
                Ok(watcher) => Some(watcher),
                Err(error) => {
                    has_failed = true;
                    tracing::warn!(%error, "could not watch files; their changes count from the next turn");
                    None
                }
            };
        }
        watcher = set_places(watcher, places).await;
        let Some(current) = &mut watcher else {
            workspaces.wait_changed().await;
            continue;
        };
        tokio::select! {
            () = workspaces.wait_changed() => {}
            changed = current.next_changes() => {
                for (places, changed) in changed {
                    let kinds: Vec<String> = changed.kinds.into_iter().map(str::to_owned).collect();
                    let files: Vec<String> = changed.files.iter().map(|it| it.display().to_string()).collect();
                    tracing::info!(cwd = %places.project.cwd().display(), ?kinds, "files of a workspace changed");
                    registry.files_changed(places.project.cwd(), &Reloaded { changed: kinds, files, ..Reloaded::default() }).await;
                }
            }
        }
    }
}

/// The places of the workspaces with loaded sessions. Reads the disk on a blocking thread.
async fn find_places(registry: &Registry, workspaces: &Arc<LoadedWorkspaces>) -> HashSet<WatchedPaths> {
    let components = registry.shared().components();
    let workspaces = Arc::clone(workspaces);
    let found = tokio::task::spawn_blocking(move || {
        let settings = &components.settings;
        let watched = |cwd: PathBuf| {
            let project = workspaces.project_folders(&cwd, &settings.home);
            WatchedPaths { project, user_dir: settings.user_dir.clone() }
        };
        workspaces.list().into_iter().map(watched).collect()
    });
    found.await.unwrap_or_default()
}

/// Changes the watched folders on a blocking thread, because this reads the disk.
async fn set_places(
    watcher: Option<ExtensionWatcher>,
    places: HashSet<WatchedPaths>,
) -> Option<ExtensionWatcher> {
    let mut watcher = watcher?;
    let set = tokio::task::spawn_blocking(move || {
        watcher.set_places(&places);
        watcher
    });
    set.await.ok()
}
