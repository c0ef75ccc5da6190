//! The changes of a worktree.

use super::private_git::Checkout;
use super::repository::{Repository, RepositoryLock, WRITE_TIMEOUT};
use super::state::StateFolder;
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitError, text_of};

/// How much of a worktree is not in its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorktreeStatus {
    /// Number of files with changes that are not committed. Ignored files do not count.
    pub uncommitted: u64,
    /// Number of commits of the branch that the base does not have.
    pub commits: u64,
}

/// Counts the changes of a worktree. A missing worktree or branch has none.
///
/// # Errors
/// The repository is missing, git does not know a worktree that exists, or git failed.
pub async fn status(own: &OwnWorktree) -> Result<WorktreeStatus, WorktreeProblem> {
    let repository = Repository::find_owner(own).await?;
    repository.require_plain_branch(&own.branch)?;
    let uncommitted = match Checkout::open(&repository, own).await? {
        Some(checkout) => Changes::find(&checkout).await?.count(),
        None => 0,
    };
    let commits = match repository.branch(&own.branch).await? {
        Some(tip) => count_commits(&repository, &own.base, &tip).await?,
        None => 0,
    };
    Ok(WorktreeStatus { uncommitted, commits })
}

async fn count_commits(repository: &Repository, base: &str, tip: &str) -> Result<u64, GitError> {
    let call = repository.read().args(["rev-list", "--count", &format!("{base}..{tip}"), "--"]);
    Ok(text_of(&call.output().await?).parse().unwrap_or(0))
}

/// Changes that are not committed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Paths relative to the top of the worktree, each ended by a NUL: of files that exist.
    present: Vec<u8>,
    /// The same, of files that are gone.
    absent: Vec<u8>,
    count: u64,
    /// Repositories inside the worktree that are new. They cannot be committed without running git in them.
    nested: u64,
    has_conflicts: bool,
}

impl Changes {
    /// Finds the changes. Submodules are left out, because their own configuration could run programs.
    pub(super) async fn find(checkout: &Checkout<'_>) -> Result<Self, GitError> {
        let args = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"];
        let call = checkout.call().args(args).args(["--untracked-files=all"]).long_list();
        let listing = call.output().await?;
        let mut changes = Self::default();
        for entry in listing.split(|byte| *byte == 0) {
            let [x, y, b' ', path @ ..] = entry else { continue };
            changes.has_conflicts |= matches!((x, y), (b'U', _) | (_, b'U') | (b'A', b'A') | (b'D', b'D'));
            if path.ends_with(b"/") {
                changes.nested += 1;
                continue;
            }
            changes.count += 1;
            let is_absent = *x == b'D' || *y == b'D';
            let paths = if is_absent { &mut changes.absent } else { &mut changes.present };
            paths.extend_from_slice(path);
            paths.push(0);
        }
        Ok(changes)
    }

    pub(super) fn count(&self) -> u64 {
        self.count + self.nested
    }

    /// Whether a commit can contain them.
    pub(super) fn can_be_committed(&self) -> bool {
        self.count > 0 && !self.has_conflicts
    }

    /// Writes the changes to the private index, and returns the id of its tree.
    pub(super) async fn write_tree(self, checkout: &Checkout<'_>) -> Result<String, GitError> {
        // Files that are gone come first, because a link or a file may have replaced their folder.
        let update = |args: [&str; 2], paths| {
            let call = checkout.call().time_limit(WRITE_TIMEOUT);
            call.args(["update-index"]).args(args).args(["-z", "--stdin"]).input(paths).output()
        };
        update(["--force-remove", "--remove"], self.absent).await?;
        update(["--add", "--replace"], self.present).await?;
        Ok(text_of(&checkout.call().args(["write-tree"]).output().await?))
    }
}

/// Commits the changes of a worktree to its branch. Returns `None`, and leaves them, if the branch is not checked out, an
/// operation of git is in progress, or there is a conflict.
pub(super) async fn commit_changes(
    repository: &Repository,
    checkout: &Checkout<'_>,
    own: &OwnWorktree,
    message: &str,
    lock: &RepositoryLock,
) -> Result<Option<String>, WorktreeProblem> {
    let folder = &checkout.folder;
    if folder.is_in_operation() || folder.head_branch().as_deref() != Some(&own.branch) {
        return Ok(None);
    }
    let changes = Changes::find(checkout).await?;
    let Some(parent) = repository.branch(&own.branch).await? else { return Ok(None) };
    if !changes.can_be_committed() {
        return Ok(None);
    }
    let index_lock = folder.lock_index()?;
    let tree = changes.write_tree(checkout).await?;
    let call = repository.read().args(["commit-tree", "--no-gpg-sign", "-p", &parent, "-m", message, &tree]);
    let commit = text_of(&call.output().await?);
    // Changes that are in the index, but not committed, are committed by the next call.
    checkout.write_index(index_lock).await?;
    base::crash::point("JC3.commit");
    repository.move_branch(&StateFolder::open(&own.path)?, &own.branch, &commit, &parent, lock).await?;
    Ok(Some(commit))
}
