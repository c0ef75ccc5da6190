//! A judged object, kept open. It is opened, replaced or removed only if it is still the object that was
//! judged.
//!
//! Replacing is atomic: after a crash, the file has the old or the new content. If the path is a link, the link
//! stays and its target is replaced. A file is written in place instead if replacing it would lose something (see
//! `in_place`): its other names in the workspace, its owner or attributes, a mount, or a folder without write
//! permission. If a file has names elsewhere, or in a folder of a package manager, only the named one gets the new
//! content, so that a store that is shared by links does not change.

mod write;

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde_json::json;

use crate::error::ToolError;
use crate::file_errors;
use crate::file_identity::FileIdentity;
use crate::fs::content_hash::ContentHash;
use base::open;
use types::tool::ResolvedPath;

/// Larger files, in bytes, are not loaded into memory: they can be read in parts, but not edited.
pub(crate) const MAX_EDIT_BYTES: u64 = 32 << 20;

/// Minimal number of bytes for which a thread is worth its start.
const MIN_THREAD_BYTES: usize = 1 << 20;

/// Bytes per read.
const CHUNK_BYTES: usize = 256 << 10;

/// A judged path with open handles of its target. Cheap to clone; the handles are closed with the last clone.
#[derive(Clone, Debug)]
pub struct PinnedPath {
    pub(crate) resolved: ResolvedPath,
    /// The folder that all lookups start from.
    pub(crate) anchor: Arc<PinnedFolder>,
    /// The deepest existing ancestor.
    pub(crate) folder: Arc<File>,
    /// The missing folders between that ancestor and the object.
    pub(crate) missing: Vec<OsString>,
    /// Name of the object in its folder; `None` for the anchor itself.
    pub(crate) name: Option<OsString>,
    /// The object that existed when the path was judged.
    pub(crate) found: Option<Arc<PinnedObject>>,
    /// Other names of the object.
    pub(crate) names: OtherNames,
    /// Folder for undo records of files that are written in place.
    pub(crate) undo_folder: Option<Arc<Path>>,
}

/// Other names of a file (hard links).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherNames {
    /// There are none, or some are unknown or lie outside the workspace or in folders of package managers.
    Separate,
    /// All lie in the workspace, and a change is meant for all of them.
    Shared,
}

/// An open folder. The handle refers to the same folder even if paths change.
#[derive(Debug)]
pub(crate) struct PinnedFolder {
    pub(crate) path: PathBuf,
    pub(crate) folder: File,
    pub(crate) identity: FileIdentity,
}

/// An object that exists.
#[derive(Debug)]
pub(crate) struct PinnedObject {
    /// Opened neither for reading nor for writing. It prevents reuse of the object's inode number.
    pub(crate) handle: File,
    pub(crate) meta: Metadata,
}

impl PinnedObject {
    pub(crate) fn new(handle: File) -> io::Result<Self> {
        let meta = handle.metadata()?;
        Ok(Self { handle, meta })
    }
}

/// The whole content of a file at one moment.
#[derive(Clone, Debug)]
pub(crate) struct FileSnapshot {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) sha256: ContentHash,
    /// Permission bits.
    mode: u32,
    owner: (u32, u32),
}

/// Metadata that changes with each write, within the precision of the file system's clock: a few milliseconds,
/// or every write on kernels since 6.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectVersion {
    identity: FileIdentity,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ObjectVersion {
    fn from_metadata(meta: &Metadata) -> Self {
        Self {
            identity: FileIdentity::from_metadata(meta),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl FileSnapshot {
    /// A content of the daemon's user with these permission bits.
    pub(crate) fn own(bytes: Vec<u8>, mode: u32) -> Self {
        let owner = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let bytes = Arc::new(bytes);
        Self { sha256: ContentHash::start(&bytes), bytes, mode: mode & 0o7777, owner }
    }

    /// Permission bits.
    pub(crate) fn mode(&self) -> u32 {
        self.mode
    }
}

impl std::ops::Deref for PinnedPath {
    type Target = ResolvedPath;

    fn deref(&self) -> &ResolvedPath {
        &self.resolved
    }
}

impl PinnedPath {
    /// The resolved path that the permission rules judge.
    #[must_use]
    pub fn resolved(&self) -> &ResolvedPath {
        &self.resolved
    }

    /// Whether an object exists at the path.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.found.is_some()
    }

    /// Whether the object is a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.meta.is_dir())
    }

    /// Opens the regular file for reading. Never waits for a pipe's writer and never opens a device.
    ///
    /// # Errors
    /// The file does not exist, is not a regular file, or is not the object that was judged.
    pub fn open(&self) -> Result<(File, Metadata), ToolError> {
        let path = &self.path;
        let found = self.require_found()?;
        file_errors::require_regular(path, &found.meta)?;
        let Some((file, meta)) = self.open_now()? else { return Err(file_errors::changed_path_error(path)) };
        if FileIdentity::from_metadata(&meta) != FileIdentity::from_metadata(&found.meta) {
            return Err(file_errors::changed_path_error(path));
        }
        Ok((file, meta))
    }

    /// The folder itself, to list it or to open paths below it.
    pub(crate) fn folder_handle(&self) -> Result<&File, ToolError> {
        let found = self.require_found()?;
        if !found.meta.is_dir() {
            return Err(ToolError::io(&self.path, &io::ErrorKind::NotADirectory.into()));
        }
        Ok(&found.handle)
    }

    fn require_found(&self) -> Result<&PinnedObject, ToolError> {
        self.found.as_deref().ok_or_else(|| ToolError::io(&self.path, &io::ErrorKind::NotFound.into()))
    }

    /// Opens the regular file that has the name now.
    fn open_now(&self) -> Result<Option<(File, Metadata)>, ToolError> {
        let path = &self.path;
        let Some(name) = self.name.as_ref().filter(|_| self.missing.is_empty()) else { return Ok(None) };
        open_regular(self.folder.as_fd(), Path::new(name), path)
    }

    /// Reads the whole file, at most [`MAX_EDIT_BYTES`] bytes. `None` if it does not exist.
    pub(crate) fn load(&self) -> Result<Option<FileSnapshot>, ToolError> {
        if self.found.is_none() {
            return Ok(None);
        }
        let (file, meta) = self.open()?;
        if meta.len() > MAX_EDIT_BYTES {
            return Err(self.too_large(meta.len()));
        }
        let bytes = Arc::new(self.read(file, &meta)?);
        Ok(Some(FileSnapshot {
            sha256: ContentHash::start(&bytes),
            bytes,
            mode: meta.mode() & 0o7777,
            owner: (meta.uid(), meta.gid()),
        }))
    }

    fn read(&self, file: File, meta: &Metadata) -> Result<Vec<u8>, ToolError> {
        let expected = usize::try_from(meta.len().min(MAX_EDIT_BYTES)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(expected + 1);
        file.take(MAX_EDIT_BYTES + 1).read_to_end(&mut bytes).map_err(|e| ToolError::io(&self.path, &e))?;
        if bytes.len() as u64 > MAX_EDIT_BYTES {
            return Err(self.too_large(meta.len()));
        }
        Ok(bytes)
    }

    fn too_large(&self, size: u64) -> ToolError {
        let shown = self.path.display();
        ToolError::new(
            "file_too_large",
            format!("{shown} is larger than {} MiB; change it with Bash", MAX_EDIT_BYTES >> 20),
        )
        .with(json!({ "path": self.path, "size": size, "largest": MAX_EDIT_BYTES }))
    }
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Opens a handle that can be synced.
fn reopen(folder: &File, name: &Path) -> Result<File, Errno> {
    open::open_below(folder.as_fd(), name, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())
        .map(File::from)
}

/// Opens a regular file for reading without following links. `None` if it does not exist.
pub(crate) fn open_regular(
    folder: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
) -> Result<Option<(File, Metadata)>, ToolError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = match open::open_below(folder, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::ENOENT) => return Ok(None),
        Err(errno) => return Err(file_errors::open_error(path, errno)),
    };
    let meta = file.metadata().map_err(|e| ToolError::io(path, &e))?;
    file_errors::require_regular(path, &meta)?;
    Ok(Some((file, meta)))
}
