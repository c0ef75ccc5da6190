//! Git's folder of a worktree (`.git/worktrees/NAME`, gitrepository-layout(5)), and the daemon's file in it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::folders::{open_plain, read_up_to};
use crate::git::path_of;

/// Why the worktree is locked, for users of `git worktree list -v`. A lock keeps `git worktree prune` away.
pub(super) const LOCK_REASON: &str = "agentd made this worktree; see agentctl worktrees";
/// The daemon's file. Git ignores it and removes it with the folder.
const FILE: &str = "agentd.json";
/// Maximum bytes of the files that are read here.
const MAX_FILE_BYTES: u64 = 16 << 10;
/// Maximum number of worktrees of a repository.
const MAX_WORKTREES: usize = 100_000;

/// Git's folder of a worktree.
#[derive(Debug)]
pub(super) struct GitFolder(PathBuf);

/// How far a worktree is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) base: String,
    pub(super) branch: String,
    pub(super) is_new_branch: bool,
    pub(super) is_complete: bool,
    pub(super) uncommitted_in_base: u64,
}

impl GitFolder {
    /// Finds the folder of a worktree by its path. A folder without a path is one of which git was killed while it made
    /// it; it has the worktree's name.
    pub(super) fn find(common: &Path, worktree: &Path) -> Option<Self> {
        let all = common.join("worktrees");
        let dot_git = worktree.join(".git");
        let names_it = |folder: &PathBuf| {
            read(&folder.join("gitdir"))
                .is_some_and(|text| path_of(text.trim_ascii_end()).as_os_str() == dot_git.as_os_str())
        };
        let named = all.join(worktree.file_name()?);
        if names_it(&named) || is_unfinished(&named) {
            return Some(Self(named));
        }
        let entries = fs::read_dir(all).ok()?.take(MAX_WORKTREES).flatten();
        entries.map(|entry| entry.path()).find(names_it).map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What the daemon wrote about the worktree; `None` if it did not get that far.
    pub(super) fn progress(&self) -> Option<Progress> {
        serde_json::from_slice(&read(&self.0.join(FILE))?).ok()
    }

    /// Replaces the daemon's file. It is synced: after a power cut the branch must not be taken for the user's.
    pub(super) fn write_progress(&self, progress: &Progress) -> io::Result<()> {
        let (path, new) = (self.0.join(FILE), self.0.join("agentd.json.new"));
        fs::write(&new, serde_json::to_vec(progress)?)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(new, path)
    }

    /// Whether an operation is in progress that an own commit would disturb: a merge, a rebase or a pick.
    pub(super) fn is_in_operation(&self) -> bool {
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"]
            .iter()
            .any(|name| self.0.join(name).symlink_metadata().is_ok())
    }

    /// Removes lock files of a git that was killed. No process may use the worktree.
    pub(super) fn remove_stale_locks(&self) {
        for name in ["index.lock", "HEAD.lock"] {
            let _ = fs::remove_file(self.0.join(name));
        }
    }

    /// The branch that is checked out; `None` for a single commit.
    pub(super) fn head_branch(&self) -> Option<String> {
        let head = read(&self.0.join("HEAD"))?;
        let head = String::from_utf8(head).ok()?;
        Some(head.trim_end().strip_prefix("ref: refs/heads/")?.to_owned())
    }
}

/// Whether git was killed before it wrote the path of the worktree.
fn is_unfinished(folder: &Path) -> bool {
    folder.join("gitdir").symlink_metadata().is_err()
        && read(&folder.join("locked")).is_some_and(|text| text.trim_ascii_end() == LOCK_REASON.as_bytes())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    read_up_to(open_plain(path).ok()?, MAX_FILE_BYTES).ok()?
}

/// Whether a name can be that of a worktree's folder: letters, digits, `_` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && name.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && Path::new(name).as_os_str().as_bytes()[0] != b'-'
}
