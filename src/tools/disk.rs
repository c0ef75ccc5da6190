//! Opens files without following links: the system calls, their errors, and substitutes for missing calls.
//! `pinned` builds on this.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::error::ToolError;
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

/// Whether the path exists and contains no link. One system call instead of one per folder.
pub(crate) fn is_plain(path: &Path) -> bool {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.is_absolute()
        && openat2(AT_FDCWD, path, how).is_ok()
}

/// The path with all links resolved.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    if is_plain(path) { Ok(path.components().collect()) } else { path.canonicalize() }
}

/// Opens `path` below `folder` without following links and without leaving the folder. An empty path and `.`
/// mean the folder itself.
pub(crate) fn open_below(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlag,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let how = OpenHow::new()
        .flags(flags)
        .mode(if flags.contains(OFlag::O_CREAT) { mode } else { Mode::empty() })
        .resolve(
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_MAGICLINKS,
        );
    match openat2(folder, path, how) {
        // Kernels before 5.6, and seccomp filters that do not know the call.
        Err(Errno::ENOSYS | Errno::EPERM) => open_by_steps(folder, path, flags, mode),
        // An ancestor was renamed during the lookup.
        Err(Errno::EAGAIN) => openat2(folder, path, how),
        other => other,
    }
}

/// Like [`open_below`], for kernels without `openat2`: opens one component after the other, none of which may
/// be a link.
fn open_by_steps(folder: BorrowedFd<'_>, path: &Path, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::EXDEV),
        }
    }
    let Some((last, above)) = parts.split_last() else {
        return nix::fcntl::openat(folder, ".", flags, mode);
    };
    let mut held: Option<OwnedFd> = None;
    for name in above {
        let at = held.as_ref().map_or(folder, |fd| fd.as_fd());
        let step = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let next = nix::fcntl::openat(at, *name, step, Mode::empty()).map_err(|errno| {
            // A link in place of a folder is reported like a file.
            if errno == Errno::ENOTDIR && is_link(at, name) { Errno::ELOOP } else { errno }
        })?;
        held = Some(next);
    }
    let at = held.as_ref().map_or(folder, |fd| fd.as_fd());
    nix::fcntl::openat(at, *last, flags, mode).map_err(|errno| match errno {
        Errno::ENOTDIR if is_link(at, last) => Errno::ELOOP,
        errno => errno,
    })
}

fn is_link(folder: BorrowedFd<'_>, name: &std::ffi::OsStr) -> bool {
    nix::fcntl::readlinkat(folder, name).is_ok()
}

/// The root folder of the file system.
pub(crate) fn open_root() -> Result<File, Errno> {
    nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map(File::from)
}

/// Opens a handle of a folder below another one, without read access.
pub(crate) fn open_folder_handle(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    open_below(folder, path, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty()).map(File::from)
}

/// Whether the object lies in a proc file system, wherever that is mounted.
pub(crate) fn is_of_processes(object: &File) -> bool {
    nix::sys::statfs::fstatfs(object)
        .is_ok_and(|found| found.filesystem_type() == nix::sys::statfs::PROC_SUPER_MAGIC)
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
    use std::os::fd::AsRawFd as _;
    // There is no safe way to read a folder by its handle, but this link in `/proc` refers to exactly that handle.
    let by_handle = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    by_handle.map_err(|e| ToolError::io(path, &e))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use crate::disk::*;

    /// A function that opens a file: folder, path, flags, mode.
    type OpenFunction = fn(BorrowedFd<'_>, &Path, OFlag, Mode) -> Result<OwnedFd, Errno>;

    #[test]
    fn fallback_open_resolves_paths_like_openat2() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::write(root.join("d/e/f"), "x").unwrap();
        symlink("e", root.join("d/link")).unwrap();
        symlink("f", root.join("d/e/file")).unwrap();
        symlink("/", root.join("root")).unwrap();
        let folder = File::open(root).unwrap();
        let ways: [OpenFunction; 2] = [open_below, open_by_steps];
        for (path, expected) in [
            ("d/e/f", Ok(())),
            ("d//e/./f", Ok(())),
            ("", Ok(())),
            (".", Ok(())),
            ("d/link/f", Err(Errno::ELOOP)),
            ("d/e/file", Err(Errno::ELOOP)),
            ("root/etc", Err(Errno::ELOOP)),
            ("d/none/f", Err(Errno::ENOENT)),
            ("d/e/none", Err(Errno::ENOENT)),
            ("d/e/f/g", Err(Errno::ENOTDIR)),
            ("../x", Err(Errno::EXDEV)),
            ("/etc/passwd", Err(Errno::EXDEV)),
        ] {
            for way in ways {
                let path = if path.is_empty() { Path::new(".") } else { Path::new(path) };
                let opened = way(folder.as_fd(), path, OFlag::O_RDONLY, Mode::empty()).map(|_| ());
                assert_eq!(opened, expected, "{}", path.display());
            }
        }
    }
}
