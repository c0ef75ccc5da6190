//! Git worktrees that the daemon makes for jobs and sessions.
//!
//! A worktree is made at `DATA/worktrees/NAME` on its own branch. A note in `DATA/worktree-git`, where no tool can write,
//! tells whether it is complete. So each step can be repeated after a crash. Changes of one repository happen one after the
//! other. The lock is held by git itself as well, so that a new daemon waits for a git that the last one started.
//!
//! Tools may write git's folder of a worktree, and the index, logs and references of its repository. So the daemon's git
//! works with a private index (`private_git`), and each file of a tool is opened without following a link (`git_folder`).
//!
//! All functions here change disk content in several steps: run them in a task that nothing cancels. After a dropped
//! future, call the same function again.

mod base_commit;
mod create;
mod diff;
mod finish;
mod git_folder;
mod include;
mod merge;
mod private_git;
mod remove;
mod repository;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use base_commit::{Base, check};
pub use create::create;
pub use diff::{WorktreeDiff, diff};
pub use finish::{Finished, finish};
pub use merge::{MergeHow, MergeProblem, Merged, merge};
pub use remove::{Force, Removal, delete_removed, discard, remove};
pub use state::clean;
pub use status::{WorktreeStatus, status};

use crate::git::GitError;

/// A worktree that the daemon made. The daemon stores these values, because tools can write most of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWorktree {
    /// Its folder, absolute: `DATA/worktrees/NAME`.
    pub path: PathBuf,
    /// The top of the work tree that it was made from; for a bare repository its folder.
    pub repository: PathBuf,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// Whether the branch was made with it. Only such a branch is removed, and only without commits of its own.
    pub is_new_branch: bool,
    /// Full id of the commit that it started from.
    pub base: String,
}

/// A worktree that can be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorktree {
    /// What the daemon stores about it.
    pub own: OwnWorktree,
    /// The folder inside it that corresponds to the base folder.
    pub cwd: PathBuf,
    /// Number of uncommitted changes of the base folder's work tree, which it did not take over.
    pub uncommitted_in_base: u64,
}

/// Why a worktree cannot be made or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct WorktreeProblem {
    /// Path of the field that causes it, for example `worktree.base`; `worktree` for all else.
    pub field: &'static str,
    /// Text for users.
    pub why: String,
}

impl WorktreeProblem {
    pub(crate) fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

impl From<GitError> for WorktreeProblem {
    fn from(error: GitError) -> Self {
        Self::new("worktree", error.0)
    }
}

impl From<std::io::Error> for WorktreeProblem {
    fn from(error: std::io::Error) -> Self {
        Self::new("worktree", format!("could not write the worktree: {error}"))
    }
}
