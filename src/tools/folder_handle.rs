//! Handles of folders, opened without links and without read access. `fs/jail` and `fs/pinned` open files below them.

use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::error::ToolError;
use base::open;

/// The root folder of the file system.
pub(crate) fn open_root() -> Result<File, Errno> {
    nix::fcntl::open("/", open::HANDLE | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).map(File::from)
}

/// Opens a handle of a folder below another one, without read access.
pub(crate) fn open_folder_handle(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    open::open_below(folder, path, open::HANDLE | OFlag::O_DIRECTORY, Mode::empty()).map(File::from)
}

/// Lists the names in an open folder, independent of the current target of its path.
pub(crate) fn list_folder(folder: &File, path: &Path) -> Result<fs::ReadDir, ToolError> {
    open::list(folder).map_err(|e| ToolError::io(path, &e))
}
