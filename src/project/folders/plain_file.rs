//! Opens files of a workspace that is not trusted: no link is followed, and nothing blocks.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;

/// Opens a regular file without blocking and without following a final link.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    open_plain_at(AT_FDCWD, path)
}

/// The same for a path below an open folder. Only the last part of the path may not be a link.
pub(crate) fn open_plain_at(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    require_plain_file(openat(folder, path, flags, Mode::empty()).map_err(io::Error::from)?)
}

fn require_plain_file(fd: OwnedFd) -> io::Result<File> {
    let file = File::from(fd);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// Reads the whole content; `None` if it is longer than `most` bytes.
///
/// # Errors
/// The file could not be read.
pub fn read_up_to(file: File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
