//! Opens files without following links: openat2(2), and a substitute for kernels that do not have it. Everything here is of
//! Linux; another system needs its own way to hold a path that cannot be replaced by a link meanwhile.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;

/// Opens a handle of a file or folder without access to its content.
pub const HANDLE: OFlag = OFlag::O_PATH;

/// Whether the path is absolute, exists and contains no link. One system call instead of one per folder.
#[must_use]
pub fn is_plain(path: &Path) -> bool {
    let how = OpenHow::new()
        .flags(HANDLE | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.is_absolute()
        && openat2(AT_FDCWD, path, how).is_ok()
}

/// The path with all links resolved.
///
/// # Errors
/// It does not exist, or a part of it cannot be read.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    if is_plain(path) { Ok(path.components().collect()) } else { path.canonicalize() }
}

/// Opens a regular file by a path without links. Never blocks on a pipe.
///
/// # Errors
/// A part of the path is a link, it is no regular file, or it cannot be opened.
pub fn open_resolved(path: &Path) -> io::Result<File> {
    // A path that has become a link since it was resolved is an attack.
    let file = open_without_links(None, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK, Mode::empty())?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

/// Opens a folder by a path without links. What is opened by this handle then lies in this folder, whatever the path leads
/// to later.
///
/// # Errors
/// A part of the path is a link, it is no folder, or it cannot be opened.
pub fn open_folder(path: &Path) -> io::Result<File> {
    open_without_links(None, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())
}

/// Opens a path without links: from an open folder, or from the working directory.
///
/// # Errors
/// A part of the path is a link, or it cannot be opened.
pub fn open_without_links(
    folder: Option<BorrowedFd<'_>>,
    path: &Path,
    flags: OFlag,
    mode: Mode,
) -> io::Result<File> {
    let how =
        OpenHow::new().flags(flags | OFlag::O_CLOEXEC).mode(mode).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(folder.unwrap_or(AT_FDCWD), path, how).map(File::from)?)
}

/// Opens `path` below `folder` without following links and without leaving the folder. An empty path and `.`
/// mean the folder itself.
///
/// # Errors
/// `ELOOP` for a link, `EXDEV` for a path that leaves the folder, and those of open(2).
pub fn open_below(folder: BorrowedFd<'_>, path: &Path, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
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
        let step = HANDLE | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
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

/// Whether the object lies in a proc file system, wherever that is mounted.
#[must_use]
pub fn is_of_processes(object: &File) -> bool {
    nix::sys::statfs::fstatfs(object)
        .is_ok_and(|found| found.filesystem_type() == nix::sys::statfs::PROC_SUPER_MAGIC)
}

/// Lists the names in an open folder, independent of the current target of its path.
///
/// # Errors
/// It is no folder, or it cannot be read.
pub fn list(folder: &File) -> io::Result<fs::ReadDir> {
    // There is no safe way to read a folder by its handle, but this link in `/proc` refers to exactly that handle.
    fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

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
