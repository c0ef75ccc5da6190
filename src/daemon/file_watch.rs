//! Watches commands, skills, agents and instructions of the workspaces with loaded sessions, and notifies these
//! sessions of changes. Without loaded sessions nothing is watched.

use std::collections::HashSet;

use session::{ExtensionWatcher, Registry, WatchedPaths};

/// Watches until the future is dropped.
pub(super) async fn run(registry: Registry) {
    let workspaces = registry.loaded_workspaces();
    let mut watcher: Option<ExtensionWatcher> = None;
    let mut has_failed = false;
    loop {
        let places: HashSet<WatchedPaths> = {
            let settings = &registry.shared().components().settings;
            let (user_dir, home) = (&settings.user_dir, &settings.home);
            let of = |cwd| WatchedPaths { cwd, user_dir: user_dir.clone(), home: home.clone() };
            workspaces.list().into_iter().map(of).collect()
        };
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
                for (places, kinds) in changed {
                    let kinds: Vec<String> = kinds.into_iter().map(str::to_owned).collect();
                    tracing::info!(cwd = %places.cwd.display(), ?kinds, "files of a workspace changed");
                    registry.files_changed(&places.cwd, &kinds).await;
                }
            }
        }
    }
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
