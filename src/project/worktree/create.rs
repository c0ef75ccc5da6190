//! Makes a worktree.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::base_commit::{self, BranchState};
use super::git_folder::{GitFolder, LOCK_REASON, is_name};
use super::include::copy_ignored_files;
use super::remove::discard_unfinished;
use super::repository::{Repository, RepositoryLock};
use super::state::{Progress, StateFolder};
use super::{NewWorktree, OwnWorktree, WorktreeProblem};
use base::crash;
use tokio_util::sync::CancellationToken;
use types::worktree::WorktreeChoice;

/// Makes the worktree `worktrees_dir/NAME`, by default on the branch `agentd/NAME`. A complete worktree of this name and
/// repository is returned as it is; an unfinished one is removed first. So a call can be repeated after a crash. The token
/// ends the waiting and git.
///
/// # Errors
/// The reasons of [`check`](super::check), a worktree of another repository at this place, a cancel, or a failure of git
/// or the disk. Then there is no new worktree.
pub async fn create(
    cwd: &Path,
    choice: &WorktreeChoice,
    name: &str,
    worktrees_dir: &Path,
    cancel: &CancellationToken,
) -> Result<NewWorktree, WorktreeProblem> {
    if !is_name(name) {
        return Err(WorktreeProblem::new("worktree", format!("{name:?} is not a name of a worktree")));
    }
    let (repository, prefix) = Repository::find(cwd).await?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(worktrees_dir)?;
    // Git writes the path without links into its files.
    let path = worktrees_dir.canonicalize()?.join(name);
    let state = StateFolder::open(&path)?;
    let cancellable = repository.with_cancel(cancel);
    let lock = cancellable.lock(&state).await?;
    let own = match complete_worktree(&repository, &state, &path) {
        Some((own, uncommitted)) => (own, uncommitted),
        None => {
            discard_unfinished(&repository, &path, &lock).await?;
            let made = add(&cancellable, &state, &prefix, choice, &path, &lock).await;
            if made.is_err() {
                discard_unfinished(&repository, &path, &lock).await?;
            }
            made?
        }
    };
    let (own, uncommitted_in_base) = own;
    // Git ends the prefix with a slash.
    let cwd = path.join(prefix).components().collect();
    Ok(NewWorktree { cwd, own, uncommitted_in_base })
}

/// The worktree at a path, if it was made completely.
fn complete_worktree(
    repository: &Repository,
    state: &StateFolder,
    path: &Path,
) -> Option<(OwnWorktree, u64)> {
    let progress = state.progress(path).filter(|progress| progress.is_complete)?;
    GitFolder::find(&repository.common, path)?;
    if !path.join(".git").exists() {
        return None;
    }
    let own = own_worktree(repository, path, progress.branch, progress.is_new_branch, progress.base);
    Some((own, progress.uncommitted_in_base))
}

fn own_worktree(
    repository: &Repository,
    path: &Path,
    branch: String,
    is_new_branch: bool,
    base: String,
) -> OwnWorktree {
    let (path, repository) = (path.to_owned(), repository.place().to_owned());
    OwnWorktree { path, repository, branch, is_new_branch, base }
}

async fn add(
    repository: &Repository,
    state: &StateFolder,
    prefix: &Path,
    choice: &WorktreeChoice,
    path: &Path,
    lock: &RepositoryLock,
) -> Result<(OwnWorktree, u64), WorktreeProblem> {
    let branch = branch_name(choice, path);
    let named = WorktreeChoice { branch: Some(branch.clone()), ..choice.clone() };
    let (base, branch_state) = base_commit::resolve(repository, prefix, &named).await?;
    let uncommitted_in_base = base_commit::uncommitted(repository).await?;
    crash::point("JC3.add");
    let is_new_branch = branch_state == BranchState::New;
    let mut progress = Progress { base, branch, is_new_branch, is_complete: false, uncommitted_in_base };
    if is_new_branch {
        // The branch comes after the note that it is a new one.
        state.write_progress(path, &progress)?;
        let made = repository.move_branch(state, &progress.branch, &progress.base, "", lock).await;
        if made.is_err() {
            // The branch of this name is another one.
            state.remove_progress(path);
        }
        made?;
        crash::point("JC3.branch");
    }
    let call = repository.write(lock).args(["worktree", "add", "--lock", "--reason", LOCK_REASON]);
    let call = call.args(["--no-guess-remote", "--"]).args([path]).args([&progress.branch]);
    call.output().await?;
    crash::point("JC3.added");
    copy_ignored_files(repository, path, &choice.include).await?;
    progress.is_complete = true;
    state.write_progress(path, &progress)?;
    crash::point("JC3.complete");
    let own = own_worktree(repository, path, progress.branch, is_new_branch, progress.base);
    Ok((own, uncommitted_in_base))
}

fn branch_name(choice: &WorktreeChoice, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    choice.branch.clone().unwrap_or_else(|| format!("agentd/{name}"))
}
