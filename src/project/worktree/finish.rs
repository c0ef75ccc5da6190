//! The end of a job's or session's work in a worktree.

use tokio_util::sync::CancellationToken;

use super::private_git::Checkout;
use super::remove::remove_worktree;
use super::repository::Repository;
use super::state::StateFolder;
use super::status::{Changes, commit_changes};
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitError, text_of};
use types::worktree::{GitResult, KeepWorktree, WorktreeChoice};

/// How a worktree was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The branch and its changes. `uncommitted_in_base` is 0: [`NewWorktree`](super::NewWorktree) has it.
    pub git: GitResult,
    /// Whether the worktree was removed.
    pub is_removed: bool,
    /// Number of files whose changes are still not committed.
    pub uncommitted: u64,
}

/// Commits the changes to the branch with this message, unless `choice.commit` is false, and removes the worktree as
/// `choice.keep` says. Changes that are not committed keep it in any case. The branch stays if it has a commit of its own
/// or is not a new one. No process of a tool may run in the worktree. A call can be repeated, also after the removal.
///
/// # Errors
/// The repository is missing, git does not know the worktree, git or the disk failed, or the token stopped git. The worktree is kept then.
pub async fn finish(
    own: &OwnWorktree,
    choice: &WorktreeChoice,
    message: &str,
    cancel: &CancellationToken,
) -> Result<Finished, WorktreeProblem> {
    let found = cancel.run_until_cancelled(Repository::find_owner(own)).await;
    let found = found.unwrap_or_else(|| Err(WorktreeProblem::new("worktree", "the work was cancelled")));
    let repository = found?.with_cancel(cancel);
    let lock = repository.lock(&StateFolder::open(&own.path)?).await?;
    repository.require_plain_branch(&own.branch)?;
    let checkout = Checkout::open(&repository, own).await?;
    let mut uncommitted = 0;
    let mut is_on_branch = true;
    if let Some(checkout) = &checkout {
        checkout.folder.remove_stale_locks();
        if choice.commit {
            commit_changes(&repository, checkout, own, message, &lock).await?;
        }
        uncommitted = Changes::find(checkout).await?.count();
        is_on_branch = checkout.folder.head_branch().is_some() && !checkout.folder.is_in_operation();
    }
    let git = git_result(&repository, own).await?;
    let is_changed = git.commit.is_some() || !is_on_branch;
    let may_go = match choice.keep {
        KeepWorktree::Always => false,
        KeepWorktree::Changed => !is_changed,
        KeepWorktree::Never => is_on_branch,
    };
    let is_removed = checkout.is_none() || (may_go && uncommitted == 0);
    if is_removed {
        remove_worktree(&repository, own, &lock).await?;
    }
    Ok(Finished { git, is_removed, uncommitted })
}

/// The changes of the branch since the base.
pub(super) async fn git_result(repository: &Repository, own: &OwnWorktree) -> Result<GitResult, GitError> {
    let tip = repository.branch(&own.branch).await?.filter(|tip| *tip != own.base);
    let mut git = GitResult { branch: own.branch.clone(), base: own.base.clone(), ..GitResult::default() };
    if let Some(tip) = tip {
        let options = ["diff-tree", "-r", "--numstat", "-z", "--no-ext-diff", "--no-textconv"];
        let call = repository.read().args(options).args([own.base.as_str(), &tip, "--"]).long_list();
        for file in numstat(&call.output().await?) {
            git.files_changed += 1;
            git.insertions += file.insertions;
            git.deletions += file.deletions;
        }
        git.commit = Some(tip);
    }
    Ok(git)
}

/// A changed file of `--numstat -z` without renames.
pub(super) struct ChangedLines {
    pub(super) path: String,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
}

/// Reads the output of `--numstat -z`. Binary files have no lines.
pub(super) fn numstat(output: &[u8]) -> Vec<ChangedLines> {
    let entries = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let read = |entry: &[u8]| {
        let entry = text_of(entry);
        let mut parts = entry.splitn(3, '\t');
        let mut number = || parts.next().map(|part| part.parse().unwrap_or(0));
        let (insertions, deletions) = (number()?, number()?);
        Some(ChangedLines { path: parts.next()?.to_owned(), insertions, deletions })
    };
    entries.filter_map(read).collect()
}
