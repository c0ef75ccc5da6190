//! The worktrees of the daemon and the folders that they were made from. Rules and trust of a base folder also decide
//! about its worktree.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base::sync::lock;

/// The base of a folder in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorktreeBase {
    /// The folder of the base that corresponds to the folder.
    pub folder: PathBuf,
    /// The top of the base's repository.
    pub repository: PathBuf,
    worktree: PathBuf,
}

impl WorktreeBase {
    /// The path of the worktree that corresponds to a path of the base; a path elsewhere stays as it is.
    pub fn counterpart(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.repository).map_or_else(|_| path.to_owned(), |rest| self.worktree.join(rest))
    }
}

/// The existing worktrees, each with the top of its repository.
#[derive(Debug, Default)]
pub(crate) struct WorktreeBases(Mutex<HashMap<PathBuf, PathBuf>>);

impl WorktreeBases {
    pub fn add(&self, worktree: PathBuf, repository: PathBuf) {
        lock(&self.0).insert(worktree, repository);
    }

    pub fn remove(&self, worktree: &Path) {
        lock(&self.0).remove(worktree);
    }

    /// The base of a folder; `None` if it lies in no worktree.
    pub fn find(&self, folder: &Path) -> Option<WorktreeBase> {
        let all = lock(&self.0);
        if all.is_empty() {
            return None;
        }
        let (worktree, repository) = folder.ancestors().find_map(|folder| all.get_key_value(folder))?;
        Some(WorktreeBase {
            // The path is also a key. Joining an empty path would add a slash at its end.
            folder: repository.join(folder.strip_prefix(worktree).ok()?).components().collect(),
            repository: repository.clone(),
            worktree: worktree.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_in_worktree_has_base_and_other_folder_has_none() {
        let bases = WorktreeBases::default();
        assert_eq!(bases.find(Path::new("/data/worktrees/a")), None);
        bases.add("/data/worktrees/a".into(), "/src/r".into());
        let base = bases.find(Path::new("/data/worktrees/a/sub/deep")).expect("known");
        assert_eq!(base.folder, Path::new("/src/r/sub/deep"));
        let top = bases.find(Path::new("/data/worktrees/a")).expect("known");
        assert_eq!(top.folder.as_os_str(), "/src/r", "byte for byte");
        assert_eq!(base.counterpart(Path::new("/src/r/x")), Path::new("/data/worktrees/a/x"));
        assert_eq!(base.counterpart(Path::new("/src/rest")), Path::new("/src/rest"));
        assert_eq!(bases.find(Path::new("/data/worktrees/ab")), None);
        bases.remove(Path::new("/data/worktrees/a"));
        assert_eq!(bases.find(Path::new("/data/worktrees/a/sub")), None);
    }
}
