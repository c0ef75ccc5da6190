//! The changes of a worktree as text.

use super::finish::numstat;
use super::private_git::Checkout;
use super::repository::Repository;
use super::status::Changes;
use super::{OwnWorktree, WorktreeProblem};

/// Maximum number of files that a diff names.
const MAX_FILES: usize = 10_000;

/// The changes of a worktree since its base, committed or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeDiff {
    /// A unified diff; at most as long as the caller wanted, and cut at a line.
    pub text: String,
    /// Whether `text` or `files` was cut.
    pub is_cut: bool,
    /// Path, lines added and lines removed of each changed file, at most 10,000.
    pub files: Vec<(String, u64, u64)>,
}

/// Compares a worktree with its base. Changes that are not committed count, unless the worktree is gone. New repositories
/// inside it and submodules are left out. The worktree and its index do not change.
///
/// # Errors
/// The repository is missing, git does not know a worktree that exists, or git failed.
pub async fn diff(own: &OwnWorktree, max_bytes: usize) -> Result<WorktreeDiff, WorktreeProblem> {
    let repository = Repository::find_owner(own).await?;
    repository.require_plain_branch(&own.branch)?;
    let tree = match Checkout::open(&repository, own).await? {
        Some(checkout) => Changes::find(&checkout).await?.write_tree(&checkout).await?,
        None => repository.branch(&own.branch).await?.unwrap_or_else(|| own.base.clone()),
    };
    let options = ["diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let call = || repository.read().args(options);
    let trees = [own.base.as_str(), &tree, "--"];
    let stat = call().args(["--numstat", "-z"]).args(trees).long_list().output().await?;
    let files = numstat(&stat).into_iter().map(|file| (file.path, file.insertions, file.deletions));
    let mut files: Vec<_> = files.take(MAX_FILES + 1).collect();
    let (text, is_text_cut) = call().args(["-p"]).args(trees).output_up_to(max_bytes as u64).await?;
    // The text grows where bytes are no UTF-8.
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let is_cut = is_text_cut || text.len() > max_bytes || files.len() > MAX_FILES;
    files.truncate(MAX_FILES);
    if is_text_cut || text.len() > max_bytes {
        let end = text.floor_char_boundary(max_bytes);
        text.truncate(text[..end].rfind('\n').map_or(0, |line| line + 1));
    }
    Ok(WorktreeDiff { text, is_cut, files })
}
