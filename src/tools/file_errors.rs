//! The errors of tools that open files: a path that has changed, a content that has changed, a file that is not regular.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use nix::errno::Errno;
use serde_json::json;

use crate::error::ToolError;

/// Whether a lookup failed because the path does not exist, and not because access is denied.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The error of an open that failed with this number. The opens of tools follow no links, so a link on the path means
/// that the path has changed.
pub(crate) fn open_error(path: &Path, errno: Errno) -> ToolError {
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

/// The error if the path leads to something that cannot be read or written as a file.
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

/// Refuses everything that is not a regular file, also folders.
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
