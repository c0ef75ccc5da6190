//! The repository of a folder, and calls of git in it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::git_folder::GitFolder;
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitCall, GitError, RepositoryConfig, path_of, read_config, text_of};

/// Time limit of a call that reads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of a call that writes a work tree.
const WRITE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time to wait for other changes of the same repository.
const LOCK_TIMEOUT: Duration = Duration::from_secs(900);
/// Pause between two attempts to lock a repository.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A repository, seen from one of its work trees.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The folder with its objects, references and configuration.
    pub(super) common: PathBuf,
    /// The folder with `HEAD` and the index of this work tree.
    git_dir: PathBuf,
    /// The top of this work tree; `None` if the repository is bare.
    pub(super) top: Option<PathBuf>,
    config: RepositoryConfig,
}

/// A lock of a repository among the daemons of this machine. It ends when its last copy is closed.
#[derive(Debug)]
pub(super) struct RepositoryLock(Option<File>);

impl Repository {
    /// Finds the repository of a folder as git does, and the folder's path below the top of its work tree.
    pub(super) async fn find(cwd: &Path) -> Result<(Self, PathBuf), WorktreeProblem> {
        let discover = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir"];
        let place = GitCall::in_folder(cwd, READ_TIMEOUT)
            .args(discover)
            .args(["--show-toplevel", "--show-prefix"])
            .run()
            .await?;
        if place.code != Some(0) {
            return match Self::bare(cwd).await? {
                Some(repository) => Ok((repository, PathBuf::new())),
                None => {
                    let why = format!("{} is in no git repository ({})", cwd.display(), place.stderr);
                    Err(WorktreeProblem::new("worktree", why))
                }
            };
        }
        let lines: Vec<&Path> = place.stdout.split(|byte| *byte == b'\n').map(path_of).collect();
        // A path with a line break has more lines.
        let [common, git_dir, top, prefix, _] = lines[..] else {
            let why = format!("the path of the repository of {} has line breaks", cwd.display());
            return Err(WorktreeProblem::new("worktree", why));
        };
        let config = read_config(git_dir, common).await?;
        let (common, git_dir, top) = (common.to_owned(), git_dir.to_owned(), Some(top.to_owned()));
        Ok((Self { common, git_dir, top, config }, prefix.to_owned()))
    }

    /// The bare repository in a folder. One inside another repository is content and does not count.
    async fn bare(folder: &Path) -> Result<Option<Self>, WorktreeProblem> {
        let is_bare = ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
        if !is_bare || folder.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok()) {
            return Ok(None);
        }
        let folder = folder.to_owned();
        let config = read_config(&folder, &folder).await?;
        let repository = Self { common: folder.clone(), git_dir: folder, top: None, config };
        let answer = repository.read().args(["rev-parse", "--is-bare-repository"]).run().await?;
        Ok((answer.code == Some(0) && answer.stdout == b"true\n").then_some(repository))
    }

    /// The repository of a worktree, from the place that the daemon stored.
    pub(super) async fn find_owner(own: &OwnWorktree) -> Result<Self, WorktreeProblem> {
        Ok(Self::find(&own.repository).await?.0)
    }

    /// The folder that a worktree of this repository was made from.
    pub(super) fn place(&self) -> &Path {
        self.top.as_deref().unwrap_or(&self.common)
    }

    /// Waits until no other change of the repository is in progress. A file system without locks has none: git then
    /// reports a conflict of two changes.
    pub(super) async fn lock(&self) -> Result<RepositoryLock, WorktreeProblem> {
        let Ok(folder) = File::open(&self.common) else {
            return Err(WorktreeProblem::new("worktree", "could not open the repository's folder"));
        };
        let start = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(RepositoryLock(Some(folder))),
                Err(std::fs::TryLockError::Error(_)) => return Ok(RepositoryLock(None)),
                Err(std::fs::TryLockError::WouldBlock) if start.elapsed() > LOCK_TIMEOUT => {
                    return Err(WorktreeProblem::new("worktree", "the repository is busy; try again later"));
                }
                Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            }
        }
    }

    /// A call that reads, in the work tree that the repository was found from.
    pub(super) fn read(&self) -> GitCall {
        self.call(READ_TIMEOUT)
    }

    /// A call that changes the repository or this work tree.
    pub(super) fn write(&self, lock: &RepositoryLock) -> GitCall {
        lock.hold(self.call(WRITE_TIMEOUT))
    }

    fn call(&self, time_limit: Duration) -> GitCall {
        let place = self.place();
        let call = GitCall::in_folder(place, time_limit).env("GIT_DIR", &self.git_dir).config(&self.config);
        match &self.top {
            Some(top) => call.env("GIT_COMMON_DIR", &self.common).env("GIT_WORK_TREE", top),
            // With a common folder, git would not notice that the repository is bare.
            None => call,
        }
    }

    /// A call in one of the worktrees. The files in it that name the repository are not used, because tools may have
    /// written them.
    pub(super) fn call_in(&self, folder: &GitFolder, own_path: &Path) -> GitCall {
        GitCall::in_folder(own_path, WRITE_TIMEOUT)
            .env("GIT_DIR", folder.path())
            .env("GIT_COMMON_DIR", &self.common)
            .env("GIT_WORK_TREE", own_path)
            .config(&self.config)
    }

    /// The full id of a commit; `None` if the name is none.
    pub(super) async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        let call = self.read().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
        let answer = call.run().await?;
        Ok((answer.code == Some(0)).then(|| text_of(&answer.stdout)))
    }

    /// The commit of a branch; `None` if there is no such branch.
    pub(super) async fn branch(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit(&reference(branch)).await
    }

    /// Removes a branch if it is still at this commit.
    pub(super) async fn remove_branch(
        &self,
        branch: &str,
        commit: &str,
        lock: &RepositoryLock,
    ) -> Result<(), GitError> {
        if self.branch(branch).await?.as_deref() == Some(commit) {
            self.write(lock).args(["update-ref", "-d", &reference(branch), commit]).output().await?;
        }
        Ok(())
    }
}

impl RepositoryLock {
    /// Lets git hold the lock, too.
    pub(super) fn hold(&self, call: GitCall) -> GitCall {
        match self.0.as_ref().and_then(|lock| lock.try_clone().ok()) {
            Some(lock) => call.lock(lock),
            None => call,
        }
    }
}

/// The folders of git that belong to a worktree: its own one, and the repository's. A tool needs them to commit.
///
/// # Errors
/// The repository or git's folder of the worktree is missing.
pub async fn git_folders(own: &OwnWorktree) -> Result<(PathBuf, PathBuf), WorktreeProblem> {
    let repository = Repository::find_owner(own).await?;
    match GitFolder::find(&repository.common, &own.path) {
        Some(folder) => Ok((folder.path().to_owned(), repository.common)),
        None => Err(WorktreeProblem::new("worktree", "git does not know the worktree")),
    }
}

/// The full name of a branch.
pub(super) fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
