//! Private folders of git: its `HEAD` and index are the daemon's, objects and references are the repository's. So git
//! neither reads nor writes the files of a worktree's own folder, nor the repository's logs of references.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::git_folder::{GitFolder, IndexLock, MAX_WORKTREES, require_each_file};
use super::repository::{READ_TIMEOUT, Repository, RepositoryLock, reference};
use super::state::{PRIVATE, StateFolder};
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitCall, GitError};

/// A folder of git in the daemon's own folder, which is removed at the end.
#[derive(Debug)]
pub(super) struct PrivateGit(PathBuf);

impl PrivateGit {
    /// Makes a folder for changes of references.
    fn new(repository: &Repository, state: &StateFolder, head: &str) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = state.path().join(format!("{}-{number}.{PRIVATE}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let private = Self(path);
        fs::write(private.0.join("HEAD"), format!("{head}\n"))?;
        for name in ["config", "objects", "refs", "packed-refs"] {
            symlink(repository.common.join(name), private.0.join(name))?;
        }
        Ok(private)
    }

    fn index(&self) -> PathBuf {
        self.0.join("index")
    }
}

impl Drop for PrivateGit {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A worktree whose folder exists and that git knows.
#[derive(Debug)]
pub(super) struct Checkout<'a> {
    repository: &'a Repository,
    path: &'a Path,
    pub(super) folder: Arc<GitFolder>,
    private: Arc<PrivateGit>,
}

impl<'a> Checkout<'a> {
    /// Copies the index of a worktree, without following links. `None` if the worktree's folder is gone.
    ///
    /// # Errors
    /// Git does not know the worktree, so that its changes are not known, or git or the disk failed.
    pub(super) async fn open(
        repository: &'a Repository,
        own: &'a OwnWorktree,
    ) -> Result<Option<Self>, WorktreeProblem> {
        if !own.path.is_dir() {
            return Ok(None);
        }
        let Some(folder) = GitFolder::find(&repository.common, &own.path) else {
            let why = "git does not know the worktree any more, so its changes are not known; \
                       look at its folder, and remove it with force";
            return Err(WorktreeProblem::new("worktree", why));
        };
        let head = folder.head()?;
        if let Some(branch) = folder.head_branch() {
            repository.require_plain_branch(&branch)?;
        }
        let private = PrivateGit::new(repository, &StateFolder::open(&own.path)?, &head)?;
        let checkout =
            Self { repository, path: &own.path, folder: Arc::new(folder), private: Arc::new(private) };
        checkout.fill_index().await?;
        Ok(Some(checkout))
    }

    async fn fill_index(&self) -> Result<(), WorktreeProblem> {
        let (folder, private) = (Arc::clone(&self.folder), Arc::clone(&self.private));
        let copy = move || {
            let is_copied = folder.copy_index(&private.index())?;
            if is_copied {
                folder.copy_shared_index(&private.0)?;
            }
            Ok(is_copied)
        };
        let copied = tokio::task::spawn_blocking(copy).await.map_err(io::Error::other).flatten()?;
        if !copied {
            self.call().args(["read-tree", "HEAD"]).output().await?;
        }
        Ok(())
    }

    /// A call in the worktree that reads it, and writes the private index at most.
    pub(super) fn call(&self) -> GitCall {
        self.repository.call_in(&self.private.0, self.path)
    }

    /// Replaces the worktree's own index by the private one.
    pub(super) async fn write_index(&self, lock: IndexLock) -> io::Result<()> {
        let index = self.private.index();
        let write = move || lock.replace_index(&index);
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other).flatten()
    }
}

impl Repository {
    /// Makes a branch, or moves it from one commit to another. `old` is empty for a new one.
    ///
    /// # Errors
    /// The branch is not at `old`, its place was replaced by a link, or git failed.
    pub(super) async fn move_branch(
        &self,
        state: &StateFolder,
        branch: &str,
        new: &str,
        old: &str,
        lock: &RepositoryLock,
    ) -> Result<(), WorktreeProblem> {
        self.change_branch(state, &["update-ref", &reference(branch), new, old], branch, lock).await
    }

    /// Removes a branch if it is still at this commit.
    ///
    /// # Errors
    /// Its place was replaced by a link, or git failed.
    pub(super) async fn remove_branch(
        &self,
        state: &StateFolder,
        branch: &str,
        commit: &str,
        lock: &RepositoryLock,
    ) -> Result<(), WorktreeProblem> {
        self.require_plain_branch(branch)?;
        if self.branch(branch).await?.as_deref() == Some(commit) {
            let args = ["update-ref", "-d", &reference(branch), commit];
            self.change_branch(state, &args, branch, lock).await?;
            self.remove_log(branch);
        }
        Ok(())
    }

    async fn change_branch(
        &self,
        state: &StateFolder,
        args: &[&str],
        branch: &str,
        lock: &RepositoryLock,
    ) -> Result<(), WorktreeProblem> {
        self.require_plain_branch(branch)?;
        let private = PrivateGit::new(self, state, "ref: refs/heads/agentd")?;
        // Without the common folder, git finds no logs.
        let call = GitCall::in_folder(&private.0, READ_TIMEOUT)
            .env("GIT_DIR", &private.0)
            .env("GIT_WORK_TREE", &private.0);
        lock.hold(self.configure(call)).args(args).output().await?;
        Ok(())
    }

    /// The commit of a branch; `None` if there is no such branch.
    pub(super) async fn branch(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit(&reference(branch)).await
    }

    /// Refuses to write a branch through a link, or to wait for a pipe in its place.
    ///
    /// # Errors
    /// What to remove, for users.
    pub(super) fn require_plain_branch(&self, branch: &str) -> Result<(), WorktreeProblem> {
        let packed = self.common.join("packed-refs");
        if fs::symlink_metadata(&packed).is_ok_and(|meta| !meta.is_file()) {
            return replaced(&packed);
        }
        match link_on_the_way(&self.common, &format!("refs/heads/{branch}")) {
            Some(path) => replaced(&path),
            None => Ok(()),
        }
    }

    /// Refuses to append to the logs of references of this work tree through a link.
    ///
    /// # Errors
    /// What to remove, for users.
    pub(super) fn require_plain_work_tree(&self, branch: &str) -> Result<(), WorktreeProblem> {
        self.require_plain_branch(branch)?;
        let own = ["index", "HEAD", "ORIG_HEAD", "logs/HEAD"];
        let own = own.iter().find_map(|name| link_on_the_way(&self.git_dir, name));
        match own.or_else(|| link_on_the_way(&self.common, &format!("logs/refs/heads/{branch}"))) {
            Some(path) => replaced(&path),
            None => Ok(()),
        }
    }

    /// Refuses a repository in which a file that git reads for every worktree is none: a pipe would hold git for ever.
    ///
    /// # Errors
    /// What to remove, for users.
    pub(super) fn require_plain_worktrees(&self) -> Result<(), WorktreeProblem> {
        if let Some(path) = link_on_the_way(&self.common, "worktrees/any") {
            return replaced(&path);
        }
        let all = fs::read_dir(self.common.join("worktrees")).into_iter().flatten();
        let all = all.take(MAX_WORKTREES).flatten().map(|entry| entry.path());
        for folder in all.chain([self.git_dir.clone()]) {
            require_each_file(&folder, &["HEAD", "gitdir", "commondir", "locked"])?;
            if let Some(branch) = GitFolder::open(folder).and_then(|folder| folder.head_branch()) {
                self.require_plain_branch(&branch)?;
            }
        }
        Ok(())
    }

    /// Removes the log of a removed branch. A new branch of this name would continue it.
    fn remove_log(&self, branch: &str) {
        let log = format!("logs/refs/heads/{branch}");
        if link_on_the_way(&self.common, &log).is_none() {
            let _ = fs::remove_file(self.common.join(log));
        }
    }
}

fn replaced(path: &Path) -> Result<(), WorktreeProblem> {
    let why = format!("{} was replaced by something else, so git is not called; remove it", path.display());
    Err(WorktreeProblem::new("worktree", why))
}

/// The first part of a path below a folder that is neither a folder nor, at its end, a file. A missing one ends the path.
fn link_on_the_way(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut place = folder.to_owned();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        let Ok(meta) = fs::symlink_metadata(&place) else { return None };
        let is_plain = meta.is_dir() || (meta.is_file() && parts.peek().is_none());
        if !is_plain {
            return Some(place);
        }
    }
    None
}
