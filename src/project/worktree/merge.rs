//! Merges the branch of a worktree into the branch of its base folder, never with conflicts.

use super::private_git::Checkout;
use super::repository::{Repository, RepositoryLock};
use super::state::StateFolder;
use super::status::{Changes, commit_changes};
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitError, text_of};

/// How a branch is merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeHow {
    /// Only if the target has no commits that the branch lacks.
    #[default]
    FastForward,
    Commit,
}

/// What a merge did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The branch that was changed, in the repository's folder.
    pub into: String,
    /// Its newest commit now.
    pub commit: String,
    /// Whether it has changed; otherwise it already had all commits.
    pub is_changed: bool,
    /// Number of files of the worktree whose changes are not committed, and so were not merged.
    pub uncommitted: u64,
}

/// Why a branch is not merged. Nothing has changed then, except that the worktree's changes may be committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeProblem {
    /// These files have conflicts.
    #[error("the merge has conflicts in {}", .0.join(", "))]
    Conflicts(Vec<String>),
    /// The target has commits that the branch lacks, so a fast-forward is not possible.
    #[error("a fast-forward is not possible, because the target has other commits; ask for a merge commit")]
    Diverged,
    /// The target folder has changes that would be overwritten; with git's text.
    #[error("the repository's folder has changes in the way ({0})")]
    TargetChanged(String),
    /// The repository's folder has no branch checked out.
    #[error("the repository's folder has no branch checked out")]
    NoTarget,
    /// Anything else.
    #[error("{0}")]
    Worktree(WorktreeProblem),
}

impl<P: Into<WorktreeProblem>> From<P> for MergeProblem {
    fn from(problem: P) -> Self {
        Self::Worktree(problem.into())
    }
}

/// Merges the worktree's branch into the branch that is checked out in the repository's folder. With a message, changes
/// of the worktree that are not committed are committed first. The worktree and its branch stay.
///
/// # Errors
/// See [`MergeProblem`].
pub async fn merge(
    own: &OwnWorktree,
    how: MergeHow,
    commit_message: Option<&str>,
) -> Result<Merged, MergeProblem> {
    let repository = Repository::find_owner(own).await?;
    let state = StateFolder::open(&own.path)?;
    let lock = repository.lock(&state).await?;
    repository.require_plain_branch(&own.branch)?;
    let mut uncommitted = 0;
    if let Some(checkout) = Checkout::open(&repository, own).await? {
        if let Some(message) = commit_message {
            commit_changes(&repository, &checkout, own, message, &lock).await?;
        }
        uncommitted = Changes::find(&checkout).await?.count();
    }
    let head = repository.read().args(["symbolic-ref", "--quiet", "HEAD"]).run().await?;
    let target = text_of(&head.stdout);
    let Some(into) = target.strip_prefix("refs/heads/").map(str::to_owned) else {
        return Err(MergeProblem::NoTarget);
    };
    repository.require_plain_work_tree(&into)?;
    let old = repository.branch(&into).await?.ok_or(MergeProblem::NoTarget)?;
    let Some(tip) = repository.branch(&own.branch).await? else {
        let why = format!("there is no branch {}", own.branch);
        return Err(WorktreeProblem::new("worktree", why).into());
    };
    let is_contained = is_ancestor(&repository, &tip, &old).await?;
    if is_contained {
        return Ok(Merged { into, commit: old, is_changed: false, uncommitted });
    }
    let commit = match how {
        MergeHow::FastForward if is_ancestor(&repository, &old, &tip).await? => tip,
        MergeHow::FastForward => return Err(MergeProblem::Diverged),
        MergeHow::Commit => merge_commit(&repository, own, &into, &old, &tip).await?,
    };
    move_target(&repository, &state, &into, &old, &commit, &lock).await?;
    Ok(Merged { into, commit, is_changed: true, uncommitted })
}

/// Makes a merge commit that no branch has yet.
async fn merge_commit(
    repository: &Repository,
    own: &OwnWorktree,
    into: &str,
    old: &str,
    tip: &str,
) -> Result<String, MergeProblem> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", old, tip];
    let merged = repository.read().args(args).run().await?;
    let mut parts = merged.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let tree = parts.next().map(text_of).unwrap_or_default();
    match merged.code {
        Some(0) => {}
        Some(1) => return Err(MergeProblem::Conflicts(parts.map(text_of).collect())),
        _ => return Err(merged.failure().into()),
    }
    let message = format!("Merge branch '{}' into {into}", own.branch);
    let args = ["commit-tree", "--no-gpg-sign", "-p", old, "-p", tip, "-m", &message, &tree];
    Ok(text_of(&repository.read().args(args).output().await?))
}

/// Moves the target's branch and folder forward to a commit that follows it.
async fn move_target(
    repository: &Repository,
    state: &StateFolder,
    into: &str,
    old: &str,
    commit: &str,
    lock: &RepositoryLock,
) -> Result<(), MergeProblem> {
    if repository.top.is_none() {
        return Ok(repository.move_branch(state, into, commit, old, lock).await?);
    }
    // Git checks all files before it changes the first one.
    let call = repository.write(lock).args(["merge", "--ff-only", "--no-stat", "--quiet", commit]);
    let moved = call.run().await?;
    if moved.code == Some(0) {
        return Ok(());
    }
    if moved.stderr.contains("would be overwritten by merge") || moved.stderr.contains("not uptodate") {
        return Err(MergeProblem::TargetChanged(moved.stderr));
    }
    Err(moved.failure().into())
}

async fn is_ancestor(repository: &Repository, old: &str, new: &str) -> Result<bool, GitError> {
    let answer = repository.read().args(["merge-base", "--is-ancestor", old, new]).run().await?;
    match answer.code {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(answer.failure()),
    }
}
