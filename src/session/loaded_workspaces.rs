//! The workspaces of loaded sessions. The daemon watches the files of exactly these workspaces.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use base::sync::lock;
use project::folders::ProjectFolders;
use project::hooks::Hook;
use types::ids::SessionId;

/// The loaded sessions of each workspace.
#[derive(Debug, Default)]
pub struct LoadedWorkspaces {
    workspaces: Mutex<HashMap<PathBuf, LoadedWorkspace>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct LoadedWorkspace {
    sessions: HashSet<SessionId>,
    /// The outermost root of the project that one of the sessions has had.
    root: Option<PathBuf>,
    /// The hooks of the project's files when it was last seen as trusted.
    hooks: Vec<Hook>,
}

impl LoadedWorkspace {
    /// The folders with the outermost root so far, which is kept.
    fn widen(&mut self, found: ProjectFolders) -> ProjectFolders {
        let folders = match &self.root {
            Some(root) => found.widened_to(root),
            None => found,
        };
        self.root = Some(folders.root().to_owned());
        folders
    }
}

impl LoadedWorkspaces {
    /// Counts a session for its workspace until the guard is dropped. `root` is the root of its project at its creation.
    pub(super) fn register_session(
        self: &Arc<Self>,
        cwd: &Path,
        root: Option<&Path>,
        session_id: SessionId,
    ) -> WorkspaceGuard {
        {
            let mut workspaces = lock(&self.workspaces);
            let workspace = workspaces.entry(cwd.to_owned()).or_default();
            workspace.sessions.insert(session_id);
            let is_farther = |known: &PathBuf| root.is_some_and(|root| known.starts_with(root));
            if workspace.root.as_ref().is_none_or(is_farther) {
                workspace.root = root.map(Path::to_owned);
            }
        }
        self.changed.notify_one();
        WorkspaceGuard { all: Arc::clone(self), cwd: cwd.to_owned(), session_id }
    }

    /// The folders of the project that holds a folder. While a session of the folder is loaded, its root can only move
    /// outwards: a command that makes a repository must not remove the rules of the folders above it. Blocks on the disk.
    #[must_use]
    pub fn project_folders(&self, cwd: &Path, home: &Path) -> ProjectFolders {
        let found = ProjectFolders::find(cwd, home);
        match lock(&self.workspaces).get_mut(cwd) {
            Some(workspace) => workspace.widen(found),
            None => found,
        }
    }

    /// Keeps the hooks of a trusted project while a session of the folder is loaded.
    pub(super) fn set_hooks(&self, cwd: &Path, hooks: &[Hook]) {
        if let Some(workspace) = lock(&self.workspaces).get_mut(cwd) {
            workspace.hooks = hooks.to_vec();
        }
    }

    /// The hooks of the project when it was last seen as trusted.
    pub(super) fn hooks(&self, cwd: &Path) -> Vec<Hook> {
        lock(&self.workspaces).get(cwd).map(|workspace| workspace.hooks.clone()).unwrap_or_default()
    }

    pub(super) fn has_hooks(&self, cwd: &Path) -> bool {
        lock(&self.workspaces).get(cwd).is_some_and(|workspace| !workspace.hooks.is_empty())
    }

    /// The workspaces with loaded sessions.
    #[must_use]
    pub fn list(&self) -> HashSet<PathBuf> {
        lock(&self.workspaces).keys().cloned().collect()
    }

    /// Waits until the list may have changed. Cancel-safe.
    pub async fn wait_changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn sessions(&self, cwd: &Path) -> Vec<SessionId> {
        lock(&self.workspaces).get(cwd).into_iter().flat_map(|it| &it.sessions).copied().collect()
    }
}

/// Counts one session for its workspace until it is dropped.
#[derive(Debug)]
pub(super) struct WorkspaceGuard {
    all: Arc<LoadedWorkspaces>,
    cwd: PathBuf,
    session_id: SessionId,
}

impl Drop for WorkspaceGuard {
    fn drop(&mut self) {
        let mut workspaces = lock(&self.all.workspaces);
        if let Some(workspace) = workspaces.get_mut(&self.cwd) {
            workspace.sessions.remove(&self.session_id);
            if workspace.sessions.is_empty() {
                workspaces.remove(&self.cwd);
            }
        }
        drop(workspaces);
        self.all.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    #[test]
    fn root_of_loaded_session_moves_outwards_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let top = dir.path().canonicalize().expect("resolved");
        let cwd = top.join("sub/deep");
        std::fs::create_dir_all(&cwd).expect("made");
        let make_repository = |folder: &Path| {
            std::fs::create_dir_all(folder.join(".git/objects")).expect("made");
            std::fs::create_dir_all(folder.join(".git/refs")).expect("made");
            std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
        };
        let all = Arc::new(LoadedWorkspaces::default());
        let root = || all.project_folders(&cwd, Path::new("/nonexistent")).root().to_owned();
        let id = Mint::new(1, Seed(7)).session();
        let guard = all.register_session(&cwd, None, id);
        assert_eq!(root(), cwd);
        make_repository(&top.join("sub"));
        assert_eq!(root(), top.join("sub"));
        make_repository(&cwd);
        assert_eq!(root(), top.join("sub"), "a repository within changes nothing");
        drop(guard);
        assert_eq!(root(), cwd, "without a session, the disk decides");
        let _guard = all.register_session(&cwd, Some(&top), id);
        assert_eq!(root(), top, "the root at the creation counts");
        let _other = all.register_session(&cwd, Some(&cwd), id);
        assert_eq!(root(), top);
    }
}
