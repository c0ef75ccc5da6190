//! The repository of a folder, and calls of git in it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::git_folder::require_each_file;
use super::state::StateFolder;
use super::{OwnWorktree, WorktreeProblem};
use crate::git::{GitCall, GitError, RepositoryConfig, path_of, read_config, text_of};

/// Time limit of the call that finds a repository.
const FIND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a call that reads, also of one that looks at all files of a work tree.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of a call that writes a work tree.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time to wait for other changes of the same repository.
const LOCK_TIMEOUT: Duration = Duration::from_secs(900);
/// Pause between two attempts to lock a repository.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Files of a repository that git opens in almost every call.
const FILES: [&str; 8] = [
    "HEAD",
    "config",
    "commondir",
    "index",
    "packed-refs",
    "shallow",
    "info/exclude",
    "objects/info/alternates",
];

/// A repository, seen from one of its work trees.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The folder with its objects, references and configuration.
    pub(super) common: PathBuf,
    /// The folder with `HEAD` and the index of this work tree.
    pub(super) git_dir: PathBuf,
    /// The top of this work tree; `None` if the repository is bare.
    pub(super) top: Option<PathBuf>,
    config: RepositoryConfig,
    /// Ends the calls and the waiting.
    cancel: CancellationToken,
}

/// A lock of a repository within this daemon and the git that an earlier one started. It ends when its last copy is
/// closed.
#[derive(Debug)]
pub(super) struct RepositoryLock(File);

impl Repository {
    /// Finds the repository of a folder as git does, and the folder's path below the top of its work tree.
    pub(super) async fn find(cwd: &Path) -> Result<(Self, PathBuf), WorktreeProblem> {
        if let Some(git) = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists()) {
            require_each_file(&git, &FILES)?;
        }
        let discover = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir"];
        let place = GitCall::in_folder(cwd, FIND_TIMEOUT)
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
        require_each_file(git_dir, &FILES)?;
        require_each_file(common, &FILES)?;
        let config = read_config(git_dir, common).await?;
        let cancel = CancellationToken::new();
        let (common, git_dir, top) = (common.to_owned(), git_dir.to_owned(), Some(top.to_owned()));
        Ok((Self { common, git_dir, top, config, cancel }, prefix.to_owned()))
    }

    /// The bare repository in a folder. One inside another repository is content and does not count.
    async fn bare(folder: &Path) -> Result<Option<Self>, WorktreeProblem> {
        let is_bare = ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
        if !is_bare || folder.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok()) {
            return Ok(None);
        }
        require_each_file(folder, &FILES)?;
        let folder = folder.to_owned();
        let config = read_config(&folder, &folder).await?;
        let cancel = CancellationToken::new();
        let repository = Self { common: folder.clone(), git_dir: folder, top: None, config, cancel };
        let answer = repository.read().args(["rev-parse", "--is-bare-repository"]).run().await?;
        Ok((answer.code == Some(0) && answer.stdout == b"true\n").then_some(repository))
    }

    /// The repository of a worktree, from the place that the daemon stored.
    pub(super) async fn find_owner(own: &OwnWorktree) -> Result<Self, WorktreeProblem> {
        Ok(Self::find(&own.repository).await?.0)
    }

    /// The same repository with calls that a token ends.
    pub(super) fn with_cancel(&self, cancel: &CancellationToken) -> Self {
        Self { cancel: cancel.clone(), ..self.clone() }
    }

    /// The folder that a worktree of this repository was made from.
    pub(super) fn place(&self) -> &Path {
        self.top.as_deref().unwrap_or(&self.common)
    }

    /// Waits until no other change of the repository is in progress. The lock is a file of the daemon, so no tool can hold
    /// it. Daemons with other folders have other locks: git then reports a conflict of two changes.
    ///
    /// # Errors
    /// The waiting was cancelled or took too long, or the disk failed.
    pub(super) async fn lock(&self, state: &StateFolder) -> Result<RepositoryLock, WorktreeProblem> {
        let file = state.lock_file(&self.common)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(RepositoryLock(file)),
                Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
                Err(std::fs::TryLockError::WouldBlock) if start.elapsed() > LOCK_TIMEOUT => {
                    return Err(WorktreeProblem::new("worktree", "the repository is busy; try again later"));
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    let pause = self.cancel.run_until_cancelled(tokio::time::sleep(LOCK_PAUSE));
                    if pause.await.is_none() {
                        return Err(WorktreeProblem::new("worktree", "the work was cancelled"));
                    }
                }
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
        let call = self.configure(GitCall::in_folder(place, time_limit).env("GIT_DIR", &self.git_dir));
        match &self.top {
            Some(top) => call.env("GIT_COMMON_DIR", &self.common).env("GIT_WORK_TREE", top),
            // With a common folder, git would not notice that the repository is bare.
            None => call,
        }
    }

    /// A call in one of the worktrees with a private folder of git. The files of the worktree that name the repository, its
    /// index and its `HEAD` are not used, because tools may have written them.
    pub(super) fn call_in(&self, private: &Path, own_path: &Path) -> GitCall {
        let call = GitCall::in_folder(own_path, READ_TIMEOUT)
            .env("GIT_DIR", private)
            .env("GIT_COMMON_DIR", &self.common)
            .env("GIT_WORK_TREE", own_path);
        self.configure(call)
    }

    /// Switches off what the repository could run, and lets the token end the call.
    pub(super) fn configure(&self, call: GitCall) -> GitCall {
        call.config(&self.config).cancel(&self.cancel)
    }

    /// The full id of a commit; `None` if the name is none.
    pub(super) async fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        let call = self.read().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
        let answer = call.run().await?;
        Ok((answer.code == Some(0)).then(|| text_of(&answer.stdout)))
    }
}

impl RepositoryLock {
    /// Lets git hold the lock, too.
    pub(super) fn hold(&self, call: GitCall) -> GitCall {
        match self.0.try_clone() {
            Ok(lock) => call.lock(lock),
            Err(_) => call,
        }
    }
}

/// The full name of a branch.
pub(super) fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
