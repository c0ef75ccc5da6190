//! Opening and replacing files so that the object that was judged is the one that is touched.
//!
//! Paths given to this module are resolved (`jail`). They are opened with every link refused, so
//! a link that was swapped in since makes the call fail instead of leading elsewhere (S24).
//! Replacing is atomic: a reader, or a restart after a crash, finds the old or the new content.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::Mode;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::refusal::Refusal;
use crate::crash;
use crate::types::ids::CallId;

/// Files above this size are not held in memory: they can be read in parts, not edited.
pub(super) const LARGEST_EDIT: u64 = 32 << 20;

/// Beginning of the names of temporary files; the call follows.
const TEMP_PREFIX: &str = ".agentd-tmp-";

/// What tells one version of a file from another, cheaply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) mtime_ns: i64,
    pub(super) size: u64,
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self {
            mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
            size: meta.len(),
        }
    }
}

/// The whole content of a file, as it was at one moment.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
    /// Permission bits.
    mode: u32,
    owner: (u32, u32),
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut out, byte| {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Opens without following any link. Falls back to guarding the last part only on kernels (or
/// under filters) without `openat2`.
fn open_linkless(folder: BorrowedFd<'_>, path: &Path, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let how = OpenHow::new()
        .flags(flags)
        .mode(if flags.contains(OFlag::O_CREAT) { mode } else { Mode::empty() })
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    match nix::fcntl::openat2(folder, path, how) {
        Err(Errno::ENOSYS | Errno::EPERM) => nix::fcntl::openat(folder, path, flags, mode),
        other => other,
    }
}

fn refused(path: &Path, errno: Errno) -> Refusal {
    match errno {
        Errno::ELOOP => changed_underway(path),
        Errno::ENXIO => not_regular(path, "a socket or a pipe"),
        errno => Refusal::io(path, &errno.into()),
    }
}

/// The path no longer leads where it led when the call was judged.
pub(super) fn changed_underway(path: &Path) -> Refusal {
    Refusal::new(
        "target_changed",
        format!("{} became something else after the call was judged; look again and retry", path.display()),
    )
    .with(json!({ "path": path }))
}

fn not_regular(path: &Path, what: &str) -> Refusal {
    Refusal::new("not_a_regular_file", format!("{} is {what}, not a regular file", path.display()))
        .with(json!({ "path": path }))
}

fn require_regular(path: &Path, meta: &Metadata) -> Result<(), Refusal> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = meta.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(Refusal::new("is_a_directory", format!("{} is a folder; use LS to list it", path.display()))
            .with(json!({ "path": path })))
    } else if kind.is_symlink() {
        Err(changed_underway(path))
    } else if kind.is_fifo() {
        Err(not_regular(path, "a named pipe"))
    } else if kind.is_socket() {
        Err(not_regular(path, "a socket"))
    } else {
        Err(not_regular(path, "a device"))
    }
}

/// Opens a regular file for reading. Never waits for a pipe's writer and never opens a device.
pub(super) fn open(path: &Path) -> Result<(File, Metadata), Refusal> {
    let io = |e: io::Error| Refusal::io(path, &e);
    // Merely opening some devices has effects, so look first; the check after opening counts.
    require_regular(path, &fs::symlink_metadata(path).map_err(io)?)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let fd = open_linkless(AT_FDCWD, path, flags, Mode::empty()).map_err(|e| refused(path, e))?;
    let file = File::from(fd);
    let meta = file.metadata().map_err(io)?;
    require_regular(path, &meta)?;
    Ok((file, meta))
}

/// Reads a whole file of at most [`LARGEST_EDIT`] bytes. `None` if nothing is there.
pub(super) fn load(path: &Path) -> Result<Option<Content>, Refusal> {
    let (file, meta) = match open(path) {
        Ok(opened) => opened,
        Err(refusal) if refusal.code == "file_not_found" => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST_EDIT + 1).read_to_end(&mut bytes).map_err(|e| Refusal::io(path, &e))?;
    if bytes.len() as u64 > LARGEST_EDIT {
        return Err(Refusal::new(
            "file_too_large",
            format!("{} is larger than {} MiB; change it with Bash", path.display(), LARGEST_EDIT >> 20),
        )
        .with(json!({ "path": path, "size": meta.len(), "largest": LARGEST_EDIT })));
    }
    let sha256 = sha256(&bytes);
    Ok(Some(Content { bytes, sha256, mode: meta.mode() & 0o7777, owner: (meta.uid(), meta.gid()) }))
}

/// Puts `bytes` at `path`, atomically. `before` is the content that is replaced; `None` means
/// that nothing is there. If something else is found, nothing is written. Missing folders are
/// made. Permission bits (and the owner, where we may) are kept.
pub(super) fn replace(
    path: &Path,
    call_id: CallId,
    before: Option<&Content>,
    bytes: &[u8],
) -> Result<Stamp, Refusal> {
    put(path, call_id, before, before, bytes)
}

/// As [`replace`] where nothing is there, with the permission bits of another file: it moves here.
pub(super) fn create_like(
    path: &Path,
    call_id: CallId,
    like: &Content,
    bytes: &[u8],
) -> Result<Stamp, Refusal> {
    put(path, call_id, None, Some(like), bytes)
}

/// Removes a file, if it still holds `before`.
pub(super) fn remove(path: &Path, before: &Content) -> Result<(), Refusal> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refusal::new("is_a_directory", format!("{} is a folder", path.display())));
    };
    let folder = open_linkless(AT_FDCWD, parent, flags, Mode::empty()).map_err(|e| refused(path, e))?;
    match load(path)? {
        Some(found) if found.sha256 == before.sha256 => {}
        _ => return Err(changed_content(path)),
    }
    nix::unistd::unlinkat(&folder, name, nix::unistd::UnlinkatFlags::NoRemoveDir)
        .map_err(|e| refused(path, e))?;
    crash::point("C16.removed");
    // The removal must survive a power cut as well. Some file systems cannot sync folders.
    let _ = File::from(folder).sync_all();
    Ok(())
}

fn put(
    path: &Path,
    call_id: CallId,
    before: Option<&Content>,
    like: Option<&Content>,
    bytes: &[u8],
) -> Result<Stamp, Refusal> {
    let io = |e: io::Error| Refusal::io(path, &e);
    let errno = |e: Errno| refused(path, e);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refusal::new("is_a_directory", format!("{} is a folder", path.display())));
    };
    let folder = make_folder(parent)?;
    let (temp_name, temp) = create_temp(folder.as_fd(), path, call_id)?;
    let guard = TempGuard { folder: folder.as_fd(), name: &temp_name };
    let mut temp = temp;
    crash::point("C16.made");
    if let Some(before) = like {
        use std::os::unix::fs::fchown;
        // Best effort: only root may give files away. The mode is set after it, because giving
        // away clears the set-id bits.
        let _ = fchown(&temp, Some(before.owner.0), Some(before.owner.1));
        temp.set_permissions(fs::Permissions::from_mode(before.mode)).map_err(io)?;
    }
    temp.write_all(bytes).map_err(io)?;
    crash::point("C16.written");
    temp.sync_all().map_err(io)?;
    let stamp = Stamp::of(&temp.metadata().map_err(io)?);

    crash::point("C16.synced");
    // Last look: what is there now must be what was judged.
    let found = load(path)?;
    match (before, &found) {
        (None, None) => {
            // A hard link never replaces: a file that appears in this very moment wins.
            match nix::unistd::linkat(&folder, temp_name.as_str(), &folder, name, AtFlags::empty()) {
                Ok(()) => {}
                Err(Errno::EEXIST) => return Err(changed_content(path)),
                // File systems without hard links.
                Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EMLINK) => {
                    nix::fcntl::renameat(&folder, temp_name.as_str(), &folder, name).map_err(errno)?;
                }
                Err(e) => return Err(errno(e)),
            }
        }
        (Some(before), Some(found)) if before.sha256 == found.sha256 => {
            nix::fcntl::renameat(&folder, temp_name.as_str(), &folder, name).map_err(errno)?;
        }
        _ => return Err(changed_content(path)),
    }
    crash::point("C16.replaced");
    drop(guard);
    // The rename itself must survive a power cut as well. Some file systems cannot sync folders.
    let _ = File::from(folder).sync_all();
    Ok(stamp)
}

/// The content is not the one the model knows.
pub(super) fn changed_content(path: &Path) -> Refusal {
    Refusal::new(
        "file_changed",
        format!("{} changed since it was read; read it again before changing it", path.display()),
    )
    .with(json!({ "path": path }))
}

/// Removes the temporary file, whatever happened. After a rename there is nothing to remove.
struct TempGuard<'a> {
    folder: BorrowedFd<'a>,
    name: &'a str,
}

impl Drop for TempGuard<'_> {
    fn drop(&mut self) {
        let _ = nix::unistd::unlinkat(self.folder, self.name, nix::unistd::UnlinkatFlags::NoRemoveDir);
    }
}

/// The name of a call's temporary file: it says whose it is, so that after a crash exactly this one
/// can be removed.
fn temp_name(call_id: CallId) -> String {
    format!("{TEMP_PREFIX}{call_id}")
}

fn create_temp(folder: BorrowedFd<'_>, path: &Path, call_id: CallId) -> Result<(String, File), Refusal> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    let name = temp_name(call_id);
    match open_linkless(folder, Path::new(&name), flags, Mode::from_bits_truncate(0o666)) {
        Ok(fd) => Ok((name, File::from(fd))),
        Err(e) => Err(refused(path, e)),
    }
}

/// Removes the temporary file that a killed call left beside `path`, if it did. Follows no link.
pub(super) fn remove_temp(path: &Path, call_id: CallId) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let Some(parent) = path.parent() else { return };
    let Ok(folder) = open_linkless(AT_FDCWD, parent, flags, Mode::empty()) else { return };
    let name = temp_name(call_id);
    if nix::unistd::unlinkat(&folder, name.as_str(), nix::unistd::UnlinkatFlags::NoRemoveDir).is_ok() {
        tracing::info!(folder = %parent.display(), name, "a temporary file of a killed call was removed");
    }
}

/// Opens a folder, making it and those above it where they are missing. Follows no link.
fn make_folder(path: &Path) -> Result<OwnedFd, Refusal> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let mut missing: Vec<PathBuf> = Vec::new();
    let mut at = path;
    let mut folder = loop {
        match open_linkless(AT_FDCWD, at, flags, Mode::empty()) {
            Ok(fd) => break fd,
            Err(Errno::ENOENT) => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(refused(at, Errno::ENOENT));
                };
                missing.push(name.into());
                at = parent;
            }
            // A link where a folder was wanted is reported like a file there.
            Err(Errno::ENOTDIR) if at.is_symlink() => return Err(changed_underway(at)),
            Err(e) => return Err(refused(at, e)),
        }
    };
    for name in missing.iter().rev() {
        match nix::sys::stat::mkdirat(&folder, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(refused(path, e)),
        }
        folder = open_linkless(folder.as_fd(), name, flags, Mode::empty()).map_err(|e| refused(path, e))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn room() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    fn call() -> CallId {
        crate::types::ids::Mint::new(1, crate::types::ids::Seed(7)).call()
    }

    #[test]
    fn what_a_killed_call_left_is_removed_and_nothing_else() {
        let (_dir, root) = room();
        let path = root.join("a");
        fs::write(root.join(temp_name(call())), "half").unwrap();
        fs::write(root.join(format!("{TEMP_PREFIX}somebody")), "theirs").unwrap();
        remove_temp(&path, call());
        assert_eq!(names(&root), [format!("{TEMP_PREFIX}somebody")]);
        remove_temp(&root.join("no/such/folder"), call());
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_keeps_its_mode_and_leaves_no_temporary_file() {
        let (_dir, root) = room();
        let path = root.join("a.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        let before = load(&path).unwrap().unwrap();
        let stamp = replace(&path, call(), Some(&before), b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o7777, Stamp::of(&meta)), (0o751, stamp));
        assert_eq!(names(&root), ["a.sh"]);
    }

    #[test]
    fn a_new_file_gets_its_folders_and_one_that_appeared_is_not_touched() {
        let (_dir, root) = room();
        let path = root.join("x/y/z.txt");
        replace(&path, call(), None, b"1").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1");
        assert_eq!(replace(&path, call(), None, b"2").unwrap_err().code, "file_changed");
        assert_eq!(fs::read(&path).unwrap(), b"1");
        assert_eq!(names(&root.join("x/y")), ["z.txt"]);
    }

    #[test]
    fn content_that_changed_in_between_is_not_overwritten() {
        let (_dir, root) = room();
        let path = root.join("a");
        fs::write(&path, "one").unwrap();
        let before = load(&path).unwrap().unwrap();
        fs::write(&path, "two").unwrap();
        assert_eq!(replace(&path, call(), Some(&before), b"mine").unwrap_err().code, "file_changed");
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(&root), ["a"]);
    }

    #[test]
    fn links_that_were_swapped_in_lead_nowhere() {
        let (_dir, root) = room();
        fs::create_dir(root.join("out")).unwrap();
        fs::write(root.join("out/f"), "theirs").unwrap();
        symlink(root.join("out"), root.join("dir")).unwrap();
        symlink(root.join("out/f"), root.join("file")).unwrap();
        for path in ["dir/f", "file"] {
            assert_eq!(open(&root.join(path)).unwrap_err().code, "target_changed", "{path}");
        }
        for path in ["dir/new", "dir/sub/new", "file"] {
            assert_eq!(
                replace(&root.join(path), call(), None, b"x").unwrap_err().code,
                "target_changed",
                "{path}"
            );
        }
        assert_eq!(fs::read(root.join("out/f")).unwrap(), b"theirs");
        assert_eq!(names(&root.join("out")), ["f"]);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (_dir, root) = room();
        nix::unistd::mkfifo(&root.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("sock")).unwrap();
        for (path, code) in [
            (root.join("pipe"), "not_a_regular_file"),
            (root.join("sock"), "not_a_regular_file"),
            (PathBuf::from("/dev/zero"), "not_a_regular_file"),
            (root.clone(), "is_a_directory"),
            (root.join("none"), "file_not_found"),
        ] {
            assert_eq!(open(&path).unwrap_err().code, code, "{}", path.display());
        }
    }
}
