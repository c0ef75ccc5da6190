//! The daemon's own folder for worktrees (`DATA/worktree-git`). No tool can write there.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::WorktreeProblem;

/// The folder's name, next to the one of the worktrees.
const NAME: &str = "worktree-git";
/// The end of the name of a private folder of git.
pub(super) const PRIVATE: &str = "private";

/// The end of the name of a folder that was a worktree and is being deleted.
const REMOVED: &str = "removed";

/// The daemon's own folder for worktrees.
#[derive(Clone, Debug)]
pub(super) struct StateFolder(PathBuf);

/// How far a worktree is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) base: String,
    pub(super) branch: String,
    pub(super) is_new_branch: bool,
    pub(super) is_complete: bool,
    pub(super) uncommitted_in_base: u64,
}

impl StateFolder {
    /// The folder that belongs to the place of a worktree. It is made if it is missing.
    ///
    /// # Errors
    /// It could not be made.
    pub(super) fn open(worktree: &Path) -> io::Result<Self> {
        let all = worktree.parent().unwrap_or(worktree);
        let folder = all.with_file_name(NAME);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The place to which a worktree is moved before it is deleted.
    pub(super) fn removed(&self, worktree: &Path) -> PathBuf {
        let name = worktree.file_name().unwrap_or_default().to_string_lossy();
        self.0.join(format!("{name}.{REMOVED}"))
    }

    fn note(&self, worktree: &Path) -> PathBuf {
        self.0.join(worktree.file_name().unwrap_or_default()).with_extension("json")
    }

    /// What the daemon wrote about a worktree; `None` if it did not get that far.
    pub(super) fn progress(&self, worktree: &Path) -> Option<Progress> {
        serde_json::from_slice(&fs::read(self.note(worktree)).ok()?).ok()
    }

    /// Replaces what is written about a worktree. It is synced: after a power cut the branch must not be taken for the
    /// user's.
    pub(super) fn write_progress(&self, worktree: &Path, progress: &Progress) -> io::Result<()> {
        let path = self.note(worktree);
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(progress)?)?;
        File::open(&new)?.sync_all()?;
        fs::rename(new, path)
    }

    /// Forgets a worktree.
    pub(super) fn remove_progress(&self, worktree: &Path) {
        let _ = fs::remove_file(self.note(worktree));
    }

    /// The file whose lock is that of a repository. Two repositories with one file only wait for each other.
    pub(super) fn lock_file(&self, common: &Path) -> io::Result<File> {
        let mut hasher = DefaultHasher::new();
        common.hash(&mut hasher);
        let path = self.0.join(format!("{:016x}.lock", hasher.finish()));
        File::options().write(true).create(true).truncate(false).open(path)
    }
}

/// Removes what a crash left of private folders. Call it before anything else of this module.
///
/// # Errors
/// The disk failed.
pub fn clean(worktrees_dir: &Path) -> Result<(), WorktreeProblem> {
    for folder in left_over(worktrees_dir, PRIVATE) {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// What a crash left of worktrees that are being deleted.
pub(super) fn half_deleted(worktrees_dir: &Path) -> impl Iterator<Item = PathBuf> {
    left_over(worktrees_dir, REMOVED)
}

fn left_over(worktrees_dir: &Path, ending: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(worktrees_dir.with_file_name(NAME)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| path.extension().is_some_and(|it| it == ending))
}
