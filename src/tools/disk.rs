//! The errors of files that tools open, and what identifies a file. `pinned` builds on this.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::error::ToolError;
use base::open;
use types::hex;

/// Metadata that cheaply distinguishes one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) mtime_ns: i64,
    pub(crate) size: u64,
}

impl FileStamp {
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        Self {
            mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
            size: meta.len(),
        }
    }
}

/// Identity of a file system object, unique while a handle to it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileIdentity {
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

/// Whether a lookup failed because the path does not exist, and not because access is denied.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The root folder of the file system.
pub(crate) fn open_root() -> Result<File, Errno> {
    nix::fcntl::open("/", open::HANDLE | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).map(File::from)
}

/// Opens a handle of a folder below another one, without read access.
pub(crate) fn open_folder_handle(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    open::open_below(folder, path, open::HANDLE | OFlag::O_DIRECTORY, Mode::empty()).map(File::from)
}

pub(crate) fn refused(path: &Path, errno: Errno) -> ToolError {
    match errno {
        Errno::ELOOP | Errno::EXDEV => changed_path_error(path),
        Errno::ENXIO => not_regular_error(path, "a socket or a pipe"),
        errno => ToolError::io(path, &errno.into()),
    }
}

/// The error if the path no longer leads to the object that was judged.
pub(crate) fn changed_path_error(path: &Path) -> ToolError {
    ToolError::new(
        "target_changed",
        format!("{} became something else after the call was judged; look again and retry", path.display()),
    )
    .with(json!({ "path": path.to_string_lossy() }))
}

/// The error if the content differs from the content that the model knows.
pub(crate) fn changed_content_error(path: &Path) -> ToolError {
    ToolError::new(
        "file_changed",
        format!("{} changed since it was read; read it again before changing it", path.display()),
    )
    .with(json!({ "path": path.to_string_lossy() }))
}

fn not_regular_error(path: &Path, what: &str) -> ToolError {
    ToolError::new("not_a_regular_file", format!("{} is {what}, not a regular file", path.display()))
        .with(json!({ "path": path.to_string_lossy() }))
}

/// Refuses pipes, sockets and devices: opening one may block, have a side effect, or never end.
pub(crate) fn refuse_special(path: &Path, kind: fs::FileType) -> Result<(), ToolError> {
    if kind.is_file() || kind.is_dir() {
        Ok(())
    } else if kind.is_symlink() {
        Err(changed_path_error(path))
    } else if kind.is_fifo() {
        Err(not_regular_error(path, "a named pipe"))
    } else if kind.is_socket() {
        Err(not_regular_error(path, "a socket"))
    } else {
        Err(not_regular_error(path, "a device"))
    }
}

pub(crate) fn require_regular(path: &Path, meta: &Metadata) -> Result<(), ToolError> {
    refuse_special(path, meta.file_type())?;
    if meta.is_dir() {
        return Err(ToolError::new(
            "is_a_directory",
            format!("{} is a folder; use LS to list it", path.display()),
        )
        .with(json!({ "path": path.to_string_lossy() })));
    }
    Ok(())
}

/// Lists the names in an open folder, independent of the current target of its path.
pub(crate) fn list(folder: &File, path: &Path) -> Result<fs::ReadDir, ToolError> {
    open::list(folder).map_err(|e| ToolError::io(path, &e))
}
