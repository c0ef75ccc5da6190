//! What a worktree is made from.

use std::path::{Component, Path, PathBuf};

use super::WorktreeProblem;
use super::repository::{Repository, reference};
use crate::git::{path_of, text_of};
use types::worktree::WorktreeChoice;

/// What a worktree would be made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The top of the base folder's work tree; for a bare repository its folder.
    pub repository: PathBuf,
    /// The base folder, relative to it.
    pub prefix: PathBuf,
    /// Full id of the commit.
    pub commit: String,
    /// Number of uncommitted changes of the base folder's work tree.
    pub uncommitted: u64,
}

/// Checks that a worktree can be made. Changes nothing.
///
/// # Errors
/// The folder is in no git repository, the base or the branch cannot be used, or a path of `include` leads outside.
pub async fn check(cwd: &Path, choice: &WorktreeChoice) -> Result<Base, WorktreeProblem> {
    let (repository, prefix) = Repository::find(cwd).await?;
    let (commit, _) = resolve(&repository, &prefix, choice).await?;
    let uncommitted = uncommitted(&repository).await?;
    Ok(Base { repository: repository.place().to_owned(), prefix, commit, uncommitted })
}

/// Whether the branch exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BranchState {
    New,
    Existing,
}

/// The base commit, and the state of the chosen branch.
pub(super) async fn resolve(
    repository: &Repository,
    prefix: &Path,
    choice: &WorktreeChoice,
) -> Result<(String, BranchState), WorktreeProblem> {
    for path in &choice.include {
        check_include(path)?;
    }
    repository.require_plain_worktrees()?;
    if repository.common.join("reftable").exists() {
        let why = "the repository keeps its references as reftable, which worktrees of agentd do not support";
        return Err(WorktreeProblem::new("worktree", why));
    }
    let existing = match &choice.branch {
        Some(branch) => existing_branch(repository, branch).await?,
        None => None,
    };
    let base = base(repository, choice, existing.as_deref()).await?;
    if existing.as_ref().is_some_and(|tip| *tip != base) {
        let why = "the branch exists already and is not at the base; leave out one of the two";
        return Err(WorktreeProblem::new("worktree.branch", why));
    }
    if !prefix.as_os_str().is_empty() {
        let folder = format!("{base}:{}", prefix.display());
        let kind = repository.read().args(["cat-file", "-t", &folder]).run().await?;
        if kind.stdout != b"tree\n" {
            let why = format!("the base commit has no folder {}", prefix.display());
            return Err(WorktreeProblem::new("worktree.base", why));
        }
    }
    Ok((base, if existing.is_some() { BranchState::Existing } else { BranchState::New }))
}

async fn base(
    repository: &Repository,
    choice: &WorktreeChoice,
    existing: Option<&str>,
) -> Result<String, WorktreeProblem> {
    match (&choice.base, existing) {
        (None, Some(tip)) => return Ok(tip.to_owned()),
        (None, None) if repository.top.is_none() => {
            return Err(WorktreeProblem::new("worktree.base", "the repository is bare; name a base"));
        }
        _ => {}
    }
    let name = choice.base.as_deref().unwrap_or("HEAD");
    if let Some(commit) = repository.commit(name).await? {
        return Ok(commit);
    }
    match &choice.base {
        Some(name) => Err(WorktreeProblem::new("worktree.base", format!("there is no commit {name:?}"))),
        None => Err(WorktreeProblem::new("worktree", "the repository has no commit yet")),
    }
}

/// The commit of the chosen branch if it exists.
async fn existing_branch(repository: &Repository, branch: &str) -> Result<Option<String>, WorktreeProblem> {
    let problem = |why: String| WorktreeProblem::new("worktree.branch", why);
    let valid = repository.read().args(["check-ref-format", "--branch", branch]).run().await?;
    // The option also accepts `@{-1}`, which it replaces by another name.
    if valid.code != Some(0) || valid.stdout.trim_ascii_end() != branch.as_bytes() {
        return Err(problem(format!("{branch:?} is not a name of a branch")));
    }
    let Some(tip) = repository.branch(branch).await? else {
        return match conflicting_branch(repository, branch).await? {
            Some(other) => {
                Err(problem(format!("the branch {other} exists, so that {branch:?} is not possible")))
            }
            None => Ok(None),
        };
    };
    match checked_out_at(repository, branch).await? {
        Some(folder) => Err(problem(format!("the branch is in use in {}", folder.display()))),
        None => Ok(Some(tip)),
    }
}

/// A branch that is a folder of this name, or of which this name would be a folder.
async fn conflicting_branch(
    repository: &Repository,
    branch: &str,
) -> Result<Option<String>, WorktreeProblem> {
    let below = reference(branch) + "/";
    let call = repository.read().args(["for-each-ref", "--count=1", "--format=%(refname:short)", &below]);
    let found = text_of(&call.output().await?);
    if !found.is_empty() {
        return Ok(Some(found));
    }
    for (end, _) in branch.match_indices('/') {
        if repository.branch(&branch[..end]).await?.is_some() {
            return Ok(Some(branch[..end].to_owned()));
        }
    }
    Ok(None)
}

/// The work tree in which a branch is checked out.
async fn checked_out_at(repository: &Repository, branch: &str) -> Result<Option<PathBuf>, WorktreeProblem> {
    let list = repository.read().args(["worktree", "list", "--porcelain", "-z"]).output().await?;
    let wanted = format!("branch {}", reference(branch));
    let mut folder = None;
    for line in list.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            folder = Some(path_of(path).to_owned());
        } else if line == wanted.as_bytes() {
            return Ok(folder);
        }
    }
    Ok(None)
}

/// Number of files of the base folder's work tree that git lists as changed, or as new and not ignored.
pub(super) async fn uncommitted(repository: &Repository) -> Result<u64, WorktreeProblem> {
    if repository.top.is_none() {
        return Ok(0);
    }
    let args = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"];
    let status = repository.read().args(args).output().await?;
    Ok(status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).count() as u64)
}

/// Refuses a path that does not stay inside the repository.
fn check_include(path: &str) -> Result<(), WorktreeProblem> {
    let is_inside = |part: Component<'_>| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        Component::CurDir => true,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    };
    if path.is_empty() || path.contains('\0') || !Path::new(path).components().all(is_inside) {
        let why = format!("{path:?} is not a path below the top of the repository");
        return Err(WorktreeProblem::new("worktree.include", why));
    }
    Ok(())
}
