//! Git's folder of a worktree (`.git/worktrees/NAME`, gitrepository-layout(5)). Tools may write in it, so the daemon opens
//! each file in it without following a link and without waiting for a pipe, and its git never works in it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::WorktreeProblem;
use crate::folders::{open_plain_at, read_up_to};
use crate::git::path_of;
use base::open::open_folder;

/// Why the worktree is locked, for users of `git worktree list -v`. A lock keeps `git worktree prune` away.
pub(super) const LOCK_REASON: &str = "agentd made this worktree; see agentctl worktrees";
/// Maximum bytes of the files that are read here, but the index.
const MAX_FILE_BYTES: u64 = 16 << 10;
/// Maximum bytes of an index: that of several million files.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// Maximum number of worktrees of a repository.
pub(super) const MAX_WORKTREES: usize = 100_000;
/// The name by which git locks the index (git's `lockfile.h`).
const INDEX_LOCK: &str = "index.lock";

/// Git's folder of a worktree.
#[derive(Debug)]
pub(super) struct GitFolder {
    path: PathBuf,
    /// The folder itself, so that a link that replaces it leads nowhere.
    folder: File,
}

impl GitFolder {
    /// Finds the folder that names a worktree as its own.
    pub(super) fn find(common: &Path, worktree: &Path) -> Option<Self> {
        let all = common.join("worktrees");
        let dot_git = worktree.join(".git");
        let open = |path: PathBuf| {
            let folder = Self::open(path)?;
            let named = folder.read("gitdir")?;
            (path_of(named.trim_ascii_end()).as_os_str() == dot_git.as_os_str()).then_some(folder)
        };
        open(all.join(worktree.file_name()?)).or_else(|| {
            let entries = fs::read_dir(all).ok()?.take(MAX_WORKTREES).flatten();
            entries.map(|entry| entry.path()).find_map(open)
        })
    }

    /// As [`find`](Self::find), also if git was killed before it wrote the path of the worktree. The folder has the
    /// worktree's name then.
    pub(super) fn find_unfinished(common: &Path, worktree: &Path) -> Option<Self> {
        Self::find(common, worktree).or_else(|| {
            let folder = Self::open(common.join("worktrees").join(worktree.file_name()?))?;
            let has_path = folder.path.join("gitdir").symlink_metadata().is_ok();
            let is_locked =
                folder.read("locked").is_some_and(|it| it.trim_ascii_end() == LOCK_REASON.as_bytes());
            (!has_path && is_locked).then_some(folder)
        })
    }

    pub(super) fn open(path: PathBuf) -> Option<Self> {
        let folder = open_folder(&path).ok()?;
        Some(Self { path, folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        read_up_to(open_plain_at(&self.folder, Path::new(name)).ok()?, MAX_FILE_BYTES).ok()?
    }

    /// Whether an operation is in progress that an own commit would disturb: a merge, a rebase or a pick.
    pub(super) fn is_in_operation(&self) -> bool {
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"]
            .iter()
            .any(|name| self.path.join(name).symlink_metadata().is_ok())
    }

    /// Removes lock files of a git that was killed. No process may use the worktree.
    pub(super) fn remove_stale_locks(&self) {
        for name in [INDEX_LOCK, "HEAD.lock"] {
            let _ = unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir);
        }
    }

    /// What is checked out, in the form of git's file `HEAD`: `ref: refs/heads/BRANCH`, or the id of a commit.
    ///
    /// # Errors
    /// The file is missing, is no regular file, or has another form.
    pub(super) fn head(&self) -> Result<String, WorktreeProblem> {
        let head = self.read("HEAD").and_then(|bytes| String::from_utf8(bytes).ok());
        let head = head.map(|text| text.trim_end().to_owned()).unwrap_or_default();
        let is_commit = matches!(head.len(), 40 | 64) && head.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_branch =
            head.strip_prefix("ref: refs/heads/").is_some_and(|name| !name.contains(char::is_control));
        if is_commit || is_branch {
            return Ok(head);
        }
        let why = format!("git's file {} cannot be used", self.path.join("HEAD").display());
        Err(WorktreeProblem::new("worktree", why))
    }

    /// The branch that is checked out; `None` for a single commit.
    pub(super) fn head_branch(&self) -> Option<String> {
        Some(self.head().ok()?.strip_prefix("ref: refs/heads/")?.to_owned())
    }

    /// Copies the index to a file. `false` if there is none that can be used: a link, a pipe, or another content.
    ///
    /// # Errors
    /// The copy could not be written.
    pub(super) fn copy_index(&self, to: &Path) -> io::Result<bool> {
        let Ok(index) = open_plain_at(&self.folder, Path::new("index")) else { return Ok(false) };
        let mut copy = File::create_new(to)?;
        let bytes = io::copy(&mut io::Read::take(index, MAX_INDEX_BYTES + 1), &mut copy)?;
        let mut signature = [0; 4];
        let is_index = bytes <= MAX_INDEX_BYTES
            && io::Read::read_exact(&mut File::open(to)?, &mut signature).is_ok()
            && signature == *b"DIRC";
        if !is_index {
            fs::remove_file(to)?;
        }
        Ok(is_index)
    }

    /// Copies the shared part of an index that git has split (git-update-index(1)).
    ///
    /// # Errors
    /// The folder could not be read, or a copy not be written.
    pub(super) fn copy_shared_index(&self, to: &Path) -> io::Result<()> {
        let shared = |entry: &fs::DirEntry| entry.file_name().as_bytes().starts_with(b"sharedindex.");
        // Git leaves old ones for two weeks.
        for entry in fs::read_dir(&self.path)?.flatten().filter(shared).take(8) {
            let Ok(index) = open_plain_at(&self.folder, Path::new(&entry.file_name())) else { continue };
            let mut copy = File::create_new(to.join(entry.file_name()))?;
            io::copy(&mut io::Read::take(index, MAX_INDEX_BYTES), &mut copy)?;
        }
        Ok(())
    }

    /// Locks the index as git does.
    ///
    /// # Errors
    /// A git has locked it, or the disk failed.
    pub(super) fn lock_index(&self) -> Result<IndexLock, WorktreeProblem> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&self.folder, INDEX_LOCK, flags, Mode::from_bits_truncate(0o644)) {
            Ok(file) => Ok(IndexLock { folder: Some(self.folder.try_clone()?), file: file.into() }),
            Err(nix::errno::Errno::EEXIST) => {
                Err(WorktreeProblem::new("worktree", "git works in the worktree; try again later"))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// The lock of a worktree's index. It is removed at the end, unless it has become the index.
#[derive(Debug)]
pub(super) struct IndexLock {
    folder: Option<File>,
    file: File,
}

impl IndexLock {
    /// Replaces the index by a copy of this file.
    ///
    /// # Errors
    /// The disk failed. The index has not changed then.
    pub(super) fn replace_index(mut self, index: &Path) -> io::Result<()> {
        io::copy(&mut File::open(index)?, &mut self.file)?;
        self.file.flush()?;
        if let Some(folder) = &self.folder {
            // A link in its place is replaced and not followed.
            renameat(folder, INDEX_LOCK, folder, "index")?;
            self.folder = None;
        }
        Ok(())
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = unlinkat(folder, INDEX_LOCK, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Refuses a folder in which one of these names exists and is no file, or leads to none.
pub(super) fn require_each_file(folder: &Path, names: &[&str]) -> Result<(), WorktreeProblem> {
    for name in names {
        let path = folder.join(name);
        if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            let why = format!("{} is not a file, so git is not called; remove it", path.display());
            return Err(WorktreeProblem::new("worktree", why));
        }
    }
    Ok(())
}

/// Whether a name can be that of a worktree's folder: letters, digits, `_` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && name.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && Path::new(name).as_os_str().as_bytes()[0] != b'-'
}
