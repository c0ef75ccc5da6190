//! The changes of a worktree as text.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::finish::numstat;
use super::git_folder::GitFolder;
use super::repository::Repository;
use super::status::Changes;
use super::{OwnWorktree, WorktreeProblem};

/// The changes of a worktree since its base, committed or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeDiff {
    /// A unified diff; at most as long as the caller wanted, and cut at a line.
    pub text: String,
    /// Whether `text` was cut.
    pub is_cut: bool,
    /// Path, lines added and lines removed of each changed file.
    pub files: Vec<(String, u64, u64)>,
}

/// Compares a worktree with its base. Changes that are not committed count, unless the worktree is gone. New repositories
/// inside it and submodules are left out. The worktree and its index do not change.
///
/// # Errors
/// The repository, or both the worktree and its branch are missing, or git failed.
pub async fn diff(own: &OwnWorktree, max_bytes: usize) -> Result<WorktreeDiff, WorktreeProblem> {
    let repository = Repository::find_owner(own).await?;
    let folder = GitFolder::find(&repository.common, &own.path).filter(|_| own.path.is_dir());
    let tree = match &folder {
        Some(folder) => snapshot(&repository, folder, own).await?,
        None => repository.branch(&own.branch).await?.unwrap_or_else(|| own.base.clone()),
    };
    let options = ["diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let call = || repository.read().args(options);
    let trees = [own.base.as_str(), &tree, "--"];
    let stat = call().args(["--numstat", "-z"]).args(trees).output().await?;
    let files = numstat(&stat).into_iter().map(|file| (file.path, file.insertions, file.deletions)).collect();
    let text = call().args(["-p"]).args(trees).output().await?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let is_cut = text.len() > max_bytes;
    if is_cut {
        let end = text.floor_char_boundary(max_bytes);
        text.truncate(text[..end].rfind('\n').map_or(0, |line| line + 1));
    }
    Ok(WorktreeDiff { text, is_cut, files })
}

/// The tree of the worktree as it is, made with a copy of its index.
async fn snapshot(
    repository: &Repository,
    folder: &GitFolder,
    own: &OwnWorktree,
) -> Result<String, WorktreeProblem> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("agentd-index-{}-{number}", std::process::id());
    let copy = TemporaryIndex(folder.path().join(name));
    fs::copy(folder.path().join("index"), &copy.0)?;
    let changes = Changes::find(repository, folder, own).await?;
    Ok(changes.write_tree(repository, folder, own, Some(&copy.0)).await?)
}

/// A copy of an index, which is removed at the end.
struct TemporaryIndex(PathBuf);

impl Drop for TemporaryIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
