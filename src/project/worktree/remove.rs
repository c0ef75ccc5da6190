//! Removes worktrees.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::git_folder::GitFolder;
use super::private_git::Checkout;
use super::repository::{Repository, RepositoryLock, reference};
use super::state::{StateFolder, half_deleted};
use super::status::Changes;
use super::{OwnWorktree, WorktreeProblem};
use base::crash;

/// What a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The worktree is gone. Its branch is gone as well if it had no commit of its own.
    Removed,
    /// It has so many files with changes that are not committed, and was kept.
    Kept(u64),
}

/// Whether changes that are not committed keep a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// They keep it.
    Careful,
    /// They are lost.
    LoseChanges,
}

/// Removes a worktree. A repository that is gone does not prevent it. A worktree that git does not know any more is removed
/// with force only, and its branch stays. A call can be repeated.
///
/// # Errors
/// The changes of the worktree are not known, or git or the disk failed.
pub async fn remove(own: &OwnWorktree, force: Force) -> Result<Removal, WorktreeProblem> {
    let repository = match Repository::find_owner(own).await {
        Ok(repository) => repository,
        Err(problem) if force == Force::LoseChanges || !own.path.exists() => {
            tracing::warn!(path = %own.path.display(), %problem, "removing a worktree without its repository");
            return remove_unknown(own).await;
        }
        Err(problem) => return Err(problem),
    };
    let lock = repository.lock(&StateFolder::open(&own.path)?).await?;
    if force == Force::Careful
        && let Some(checkout) = Checkout::open(&repository, own).await?
    {
        let uncommitted = Changes::find(&checkout).await?.count();
        let folder = &checkout.folder;
        let at_no_branch = u64::from(folder.head_branch().is_none() || folder.is_in_operation());
        if uncommitted + at_no_branch > 0 {
            return Ok(Removal::Kept(uncommitted));
        }
    }
    if own.path.is_dir() && GitFolder::find(&repository.common, &own.path).is_none() {
        return remove_unknown(own).await;
    }
    remove_worktree(&repository, own, &lock).await?;
    Ok(Removal::Removed)
}

/// Removes a worktree of which git knows nothing, and leaves its branch.
async fn remove_unknown(own: &OwnWorktree) -> Result<Removal, WorktreeProblem> {
    let state = StateFolder::open(&own.path)?;
    remove_checkout(&state, &own.path).await?;
    state.remove_progress(&own.path);
    Ok(Removal::Removed)
}

/// Removes what a crash left of `create` for this path, and nothing of a complete worktree.
///
/// # Errors
/// Git or the disk failed.
pub async fn discard(base_folder: &Path, path: &Path) -> Result<(), WorktreeProblem> {
    let (repository, _) = Repository::find(base_folder).await?;
    let lock = repository.lock(&StateFolder::open(path)?).await?;
    discard_unfinished(&repository, path, &lock).await
}

/// Removes the worktree's folder, then what git knows about it, then its branch if that has no commit of its own.
pub(super) async fn remove_worktree(
    repository: &Repository,
    own: &OwnWorktree,
    lock: &RepositoryLock,
) -> Result<(), WorktreeProblem> {
    crash::point("JC3.remove");
    let state = StateFolder::open(&own.path)?;
    remove_checkout(&state, &own.path).await?;
    crash::point("JC3.removed");
    if let Some(folder) = GitFolder::find(&repository.common, &own.path) {
        remove_folder(folder.path().to_owned()).await?;
    }
    crash::point("JC3.forgotten");
    if own.is_new_branch {
        repository.remove_branch(&state, &own.branch, &own.base, lock).await?;
    }
    state.remove_progress(&own.path);
    Ok(())
}

/// Removes an unfinished worktree with its branch.
pub(super) async fn discard_unfinished(
    repository: &Repository,
    path: &Path,
    lock: &RepositoryLock,
) -> Result<(), WorktreeProblem> {
    let state = StateFolder::open(path)?;
    let folder = GitFolder::find_unfinished(&repository.common, path);
    let progress = state.progress(path);
    if progress.as_ref().is_some_and(|progress| progress.is_complete) && path.join(".git").exists() {
        return Ok(());
    }
    remove_checkout(&state, path).await?;
    if let Some(folder) = folder {
        remove_folder(folder.path().to_owned()).await?;
    }
    if let Some(progress) = progress.filter(|progress| progress.is_new_branch) {
        repository.require_plain_branch(&progress.branch)?;
        // The lock of a git that was killed. Its name is that of this branch, so it belongs to this worktree.
        let left = repository.common.join(reference(&progress.branch) + ".lock");
        let _ = fs::remove_file(left);
        repository.remove_branch(&state, &progress.branch, &progress.base, lock).await?;
    }
    state.remove_progress(path);
    Ok(())
}

/// Removes the files of a worktree. It disappears in one step: after a crash, a part of it would look like a worktree whose
/// user deleted files.
async fn remove_checkout(state: &StateFolder, path: &Path) -> Result<(), WorktreeProblem> {
    let (path, removed) = (path.to_owned(), state.removed(path));
    blocking(move || {
        delete_tree(&removed)?;
        let mut moved = fs::rename(&path, &removed);
        if moved.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            // A command made it read-only.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
            moved = fs::rename(&path, &removed);
        }
        match moved {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            // The two folders are on two disks.
            Err(error) if error.kind() == ErrorKind::CrossesDevices => delete_tree(&path),
            Err(error) => Err(error),
            Ok(()) => {
                crash::point("JC3.moved");
                delete_tree(&removed)
            }
        }
    })
    .await
}

/// Deletes the rest of worktrees whose removal a crash interrupted. They may be large.
///
/// # Errors
/// The disk failed.
pub fn delete_removed(worktrees_dir: &Path) -> Result<(), WorktreeProblem> {
    for folder in half_deleted(worktrees_dir) {
        delete_tree(&folder)?;
    }
    Ok(())
}

async fn remove_folder(folder: PathBuf) -> Result<(), WorktreeProblem> {
    blocking(move || delete_tree(&folder)).await
}

/// Deletes a folder with its content; links are not followed. A missing one is fine.
fn delete_tree(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_all(folder);
            fs::remove_dir_all(folder)
        }
        done => done,
    }
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), WorktreeProblem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other).flatten().map_err(WorktreeProblem::from)
}

/// Makes folders writable again that a command made read-only, as package caches do.
fn open_all(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        // No process can replace the folder by a link: the session has ended.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        open.extend(folders.map(|entry| entry.path()));
    }
}
