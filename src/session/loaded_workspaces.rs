//! The workspaces of loaded sessions. The daemon watches the files of exactly these workspaces.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use base::sync::lock;
use types::ids::SessionId;

/// The loaded sessions of each workspace.
#[derive(Debug, Default)]
pub struct LoadedWorkspaces {
    sessions: Mutex<HashMap<PathBuf, HashSet<SessionId>>>,
    changed: Notify,
}

impl LoadedWorkspaces {
    /// Counts a session for its workspace until the guard is dropped.
    pub(super) fn register_session(self: &Arc<Self>, cwd: &Path, session_id: SessionId) -> WorkspaceGuard {
        lock(&self.sessions).entry(cwd.to_owned()).or_default().insert(session_id);
        self.changed.notify_one();
        WorkspaceGuard { all: Arc::clone(self), cwd: cwd.to_owned(), session_id }
    }

    /// The workspaces with loaded sessions.
    #[must_use]
    pub fn list(&self) -> HashSet<PathBuf> {
        lock(&self.sessions).keys().cloned().collect()
    }

    /// Waits until the list may have changed. Cancel-safe.
    pub async fn wait_changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn sessions(&self, cwd: &Path) -> Vec<SessionId> {
        lock(&self.sessions).get(cwd).into_iter().flatten().copied().collect()
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
        let mut sessions = lock(&self.all.sessions);
        if let Some(of_workspace) = sessions.get_mut(&self.cwd) {
            of_workspace.remove(&self.session_id);
            if of_workspace.is_empty() {
                sessions.remove(&self.cwd);
            }
        }
        drop(sessions);
        self.all.changed.notify_one();
    }
}
