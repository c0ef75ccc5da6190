//! Git facts per workspace: gathered ahead of the first turn, shared by the sessions of a folder, and dropped when a
//! turn may have changed the repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use super::git;
use super::trust_inventory::scan;
use crate::folders::ProjectFolders;
use base::sync::lock;

/// Maximum number of workspaces whose facts are kept.
const MAX_WORKSPACES: usize = 64;
/// Facts of this age are gathered again when a session begins, because the user may have worked in the
/// folder.
const PREFETCH_AGE: Duration = Duration::from_secs(2);
/// Facts of this age are too old for a prompt.
const MAX_FACT_AGE: Duration = Duration::from_secs(600);

/// The facts of one workspace, or the work to gather them.
#[derive(Clone)]
struct FactsEntry {
    /// Digest of the workspace at the time when the facts were gathered. The trust is bound to it.
    digest: String,
    started_at: Instant,
    text: Arc<OnceCell<Option<String>>>,
}

/// The git facts of recently used workspaces. Cheap to clone.
#[derive(Clone, Default)]
pub struct GitFacts {
    entries: Arc<Mutex<HashMap<PathBuf, FactsEntry>>>,
}

impl GitFacts {
    /// Gathers the facts of a folder that is trusted with the digest `trusted`. Cancel-safe.
    pub async fn prefetch(&self, project: ProjectFolders, trusted: &str) {
        let cwd = &project.cwd().to_owned();
        let Ok(inventory) = tokio::task::spawn_blocking(move || scan(&project)).await else { return };
        if inventory.digest == trusted && inventory.has_git {
            self.entry(cwd, trusted, PREFETCH_AGE).text.get_or_init(|| git::facts(cwd)).await;
        }
    }

    /// The facts of a folder whose content was just found to be trusted with this digest. Cancel-safe.
    pub(super) async fn get(&self, cwd: &Path, digest: &str) -> Option<String> {
        self.entry(cwd, digest, MAX_FACT_AGE).text.get_or_init(|| git::facts(cwd)).await.clone()
    }

    /// Drops the facts of a folder, and of the folders above and below it, because they may show the same
    /// repository.
    pub fn invalidate(&self, cwd: &Path) {
        lock(&self.entries).retain(|path, _| !path.starts_with(cwd) && !cwd.starts_with(path));
    }

    fn entry(&self, cwd: &Path, digest: &str, max_age: Duration) -> FactsEntry {
        let mut entries = lock(&self.entries);
        if let Some(known) = entries.get(cwd)
            && known.digest == digest
            && known.started_at.elapsed() < max_age
        {
            return known.clone();
        }
        if entries.len() >= MAX_WORKSPACES {
            let oldest =
                entries.iter().min_by_key(|(_, entry)| entry.started_at).map(|(path, _)| path.clone());
            oldest.map(|path| entries.remove(&path));
        }
        let entry =
            FactsEntry { digest: digest.to_owned(), started_at: Instant::now(), text: Arc::default() };
        entries.insert(cwd.to_owned(), entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn git_facts_are_kept_until_they_are_invalidated() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().canonicalize().expect("resolved");
        let git = |args: &[&str]| {
            let output = std::process::Command::new("git").arg("-C").arg(&path).args(args).output();
            output.is_ok_and(|output| output.status.success())
        };
        if !git(&["init", "-q", "-b", "trunk"]) {
            base::skip_test!("there is no git");
            return;
        }
        let project = ProjectFolders::find(&path, Path::new("/nonexistent"));
        let (facts, digest) = (GitFacts::default(), scan(&project).digest);
        facts.prefetch(project.clone(), "another digest").await;
        assert!(lock(&facts.entries).is_empty(), "nothing is run in an untrusted folder");
        facts.prefetch(project, &digest).await;
        assert!(lock(&facts.entries)[&path].text.initialized());
        std::fs::write(path.join("new.txt"), "").expect("written");
        let before = facts.get(&path, &digest).await.expect("facts");
        assert!(before.contains("trunk") && !before.contains("new.txt"), "{before}");
        facts.invalidate(&path.join("below"));
        assert!(facts.get(&path, &digest).await.expect("facts").contains("new.txt"));
        for n in 0..MAX_WORKSPACES + 5 {
            facts.entry(Path::new(&format!("/w{n}")), "d", MAX_FACT_AGE);
        }
        assert_eq!(lock(&facts.entries).len(), MAX_WORKSPACES);
    }
}
