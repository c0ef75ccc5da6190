//! A judged object, kept open. It is opened, replaced or removed only if it is still the object that was
//! judged.
//!
//! Replacing is atomic: after a crash, the file has the old or the new content. If the path is a link, the link
//! stays and its target is replaced. A file is written in place instead if replacing it would lose something (see
//! `in_place`): its other names in the workspace, its owner or attributes, a mount, or a folder without write
//! permission. If a file has names elsewhere, or in a folder of a package manager, only the named one gets the new
//! content, so that a store that is shared by links does not change.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, UnlinkatFlags};
use serde_json::json;

use crate::disk;
use crate::disk::{FileIdentity, FileStamp};
use crate::error::ToolError;
use crate::fs::content_hash::ContentHash;
use crate::fs::in_place;
use crate::fs::temp_file::{TempGuard, create_temp, temp_name};
use base::crash;
use types::ids::CallId;
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
        disk::require_regular(path, &found.meta)?;
        let Some((file, meta)) = self.open_now()? else { return Err(disk::changed_path_error(path)) };
        if FileIdentity::from_metadata(&meta) != FileIdentity::from_metadata(&found.meta) {
            return Err(disk::changed_path_error(path));
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

    /// Writes `bytes` atomically. `before` is the content that is replaced; `None` means that the file must not
    /// exist. If the current content differs, nothing is written. Creates missing folders. Keeps the permission
    /// bits, and the owner if possible.
    pub(crate) fn replace(
        &self,
        call_id: CallId,
        before: Option<&FileSnapshot>,
        bytes: &[u8],
    ) -> Result<FileStamp, ToolError> {
        self.write_file(call_id, before, before, bytes)
    }

    /// Like [`Self::replace`] for a missing file, with the permission bits of another file that is moved here.
    pub(crate) fn create_like(
        &self,
        call_id: CallId,
        like: &FileSnapshot,
        bytes: &[u8],
    ) -> Result<FileStamp, ToolError> {
        self.write_file(call_id, None, Some(like), bytes)
    }

    fn write_file(
        &self,
        call_id: CallId,
        before: Option<&FileSnapshot>,
        like: Option<&FileSnapshot>,
        bytes: &[u8],
    ) -> Result<FileStamp, ToolError> {
        let path = &self.path;
        let io = |e: io::Error| ToolError::io(path, &e);
        let errno = |e: Errno| disk::refused(path, e);
        let Some(name) = &self.name else { return Err(io(io::ErrorKind::IsADirectory.into())) };
        self.require_writable()?;
        self.require_place()?;
        let folder = self.make_folders()?;
        if let Some(before) = before
            && (self.names == OtherNames::Shared || !is_writable(&folder))
        {
            return self.write_in_place(call_id, before, bytes);
        }
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let (temp_name, mut temp) = create_temp(folder.as_fd(), path, call_id, mode)?;
        let guard = TempGuard { folder: folder.as_fd(), name: &temp_name };
        crash::point("C16.made");
        if let Some(like) = like {
            // Best effort: only root may change the owner. The mode is set afterwards, because changing the
            // owner clears the set-id bits.
            let _ = fchown(&temp, Some(like.owner.0), Some(like.owner.1));
            if let Some(before) = before
                && !self.can_stand_in(&temp, before)?
            {
                drop(guard);
                return self.write_in_place(call_id, before, bytes);
            }
            temp.set_permissions(fs::Permissions::from_mode(like.mode)).map_err(io)?;
        }
        temp.write_all(bytes).map_err(io)?;
        crash::point("C16.written");
        let seen = match before {
            Some(before) if before.bytes.len() >= MIN_THREAD_BYTES => {
                Some(self.compare_while_syncing(&temp, before)?)
            }
            _ => {
                temp.sync_all().map_err(io)?;
                None
            }
        };
        let stamp = FileStamp::from_metadata(&temp.metadata().map_err(io)?);

        crash::point("C16.synced");
        self.require_place()?;
        match before {
            None => {
                // A hard link never replaces a file that appears at this moment.
                match nix::unistd::linkat(
                    &folder,
                    temp_name.as_str(),
                    &folder,
                    name.as_os_str(),
                    AtFlags::empty(),
                ) {
                    Ok(()) => {}
                    Err(Errno::EEXIST) => return Err(self.appeared_error(&folder)),
                    // File systems without hard links.
                    Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EMLINK) => {
                        if open_regular(folder.as_fd(), Path::new(name), path)?.is_some() {
                            return Err(disk::changed_content_error(path));
                        }
                        nix::fcntl::renameat(&folder, temp_name.as_str(), &folder, name.as_os_str())
                            .map_err(errno)?;
                    }
                    Err(e) => return Err(errno(e)),
                }
            }
            Some(before) => {
                match seen {
                    Some(seen) => self.require_untouched(seen)?,
                    None => _ = self.require_unchanged(before)?,
                }
                match nix::fcntl::renameat(&folder, temp_name.as_str(), &folder, name.as_os_str()) {
                    Ok(()) => {}
                    // Something is mounted at the file, or it belongs to another user in a shared folder.
                    Err(Errno::EBUSY | Errno::EPERM | Errno::EACCES) => {
                        drop(guard);
                        return self.write_in_place(call_id, before, bytes);
                    }
                    Err(e) => return Err(errno(e)),
                }
            }
        }
        crash::point("C16.replaced");
        drop(guard);
        // The rename must survive a power failure, too. Some file systems cannot sync folders.
        sync_folder(&folder);
        Ok(stamp)
    }

    /// Whether a new file can replace this one without losing its owner, its attributes or its access list, which are
    /// copied.
    fn can_stand_in(&self, temp: &File, before: &FileSnapshot) -> Result<bool, ToolError> {
        let meta = temp.metadata().map_err(|e| ToolError::io(&self.path, &e))?;
        let Some((current, _)) = self.open_now()? else {
            return Err(disk::changed_content_error(&self.path));
        };
        Ok((meta.uid(), meta.gid()) == before.owner && in_place::copy_attributes(&current, temp))
    }

    /// Writes the judged file in place, if it still contains `before`. The mode and all else stay.
    fn write_in_place(
        &self,
        call_id: CallId,
        before: &FileSnapshot,
        bytes: &[u8],
    ) -> Result<FileStamp, ToolError> {
        let path = &self.path;
        let io = |e: io::Error| ToolError::io(path, &e);
        let Some(name) = &self.name else { return Err(io(io::ErrorKind::IsADirectory.into())) };
        self.require_place()?;
        self.require_unchanged(before)?;
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let opened = disk::open_below(self.folder.as_fd(), Path::new(name), flags, Mode::empty());
        let mut file = File::from(opened.map_err(|e| disk::refused(path, e))?);
        let meta = file.metadata().map_err(io)?;
        if FileIdentity::from_metadata(&meta) != FileIdentity::from_metadata(&self.require_found()?.meta) {
            return Err(disk::changed_path_error(path));
        }
        let contents = (before.bytes.as_slice(), bytes);
        in_place::overwrite(&mut file, path, contents, self.undo_folder.as_deref(), call_id).map_err(io)?;
        // A write clears the set-id bits; only the owner can set them again.
        let _ = file.set_permissions(fs::Permissions::from_mode(before.mode));
        Ok(FileStamp::from_metadata(&file.metadata().map_err(io)?))
    }

    /// Removes the file if it still contains `before`.
    pub(crate) fn remove(&self, before: &FileSnapshot) -> Result<(), ToolError> {
        let Some(name) = &self.name else {
            return Err(ToolError::io(&self.path, &io::ErrorKind::IsADirectory.into()));
        };
        self.require_place()?;
        self.require_unchanged(before)?;
        nix::unistd::unlinkat(self.folder.as_ref(), name.as_os_str(), UnlinkatFlags::NoRemoveDir)
            .map_err(|e| disk::refused(&self.path, e))?;
        crash::point("C16.removed");
        // The removal must survive a power failure, too.
        sync_folder(&self.folder);
        Ok(())
    }

    /// A file without write permission is not replaced, although a rename would succeed.
    fn require_writable(&self) -> Result<(), ToolError> {
        let Some(name) = self.name.as_ref().filter(|_| self.exists()) else { return Ok(()) };
        let flags = AtFlags::AT_EACCESS | AtFlags::AT_SYMLINK_NOFOLLOW;
        match nix::unistd::faccessat(self.folder.as_ref(), name.as_os_str(), AccessFlags::W_OK, flags) {
            // Kernels before 5.8 cannot check this for links, and the object is not a link.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) | Ok(()) => Ok(()),
            // The file was removed after it was judged.
            Err(Errno::ENOENT) => Err(disk::changed_content_error(&self.path)),
            Err(errno) => Err(disk::refused(&self.path, errno)),
        }
    }

    /// The folder must still be at its path. Otherwise, the file would be created in another place.
    fn require_place(&self) -> Result<(), ToolError> {
        let above = 1 + self.missing.len();
        let parent =
            self.path.ancestors().nth(above).and_then(|path| path.strip_prefix(&self.anchor.path).ok());
        let Some(parent) = parent else { return Err(disk::changed_path_error(&self.path)) };
        let now = disk::open_folder_handle(self.anchor.folder.as_fd(), parent).ok();
        let now = now.and_then(|now| now.metadata().ok()).map(|meta| FileIdentity::from_metadata(&meta));
        let held = self.folder.metadata().ok().map(|meta| FileIdentity::from_metadata(&meta));
        if now.is_none() || now != held || !self.anchor.is_in_place() {
            return Err(disk::changed_path_error(&self.path));
        }
        Ok(())
    }

    /// Compares the current content while the new content is synced to the disk. Both are slow for a large
    /// file.
    fn compare_while_syncing(&self, temp: &File, before: &FileSnapshot) -> Result<ObjectVersion, ToolError> {
        std::thread::scope(|scope| {
            let syncing = std::thread::Builder::new().spawn_scoped(scope, || temp.sync_all());
            let seen = self.require_unchanged(before);
            // Without a thread, the two steps run one after the other.
            let synced =
                syncing.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| temp.sync_all());
            synced.map_err(|e| ToolError::io(&self.path, &e))?;
            seen
        })
    }

    /// Fails if the file was written to since it was compared.
    fn require_untouched(&self, seen: ObjectVersion) -> Result<(), ToolError> {
        match self.open_now()? {
            Some((_, meta)) if ObjectVersion::from_metadata(&meta) == seen => Ok(()),
            _ => Err(disk::changed_content_error(&self.path)),
        }
    }

    /// The object must be the judged one, with the content that was read. Returns its version from before the
    /// comparison.
    fn require_unchanged(&self, before: &FileSnapshot) -> Result<ObjectVersion, ToolError> {
        let found = self.require_found()?;
        let Some((mut file, meta)) = self.open_now()? else {
            return Err(disk::changed_content_error(&self.path));
        };
        let is_same_object = FileIdentity::from_metadata(&meta) == FileIdentity::from_metadata(&found.meta);
        let is_same_content = meta.len() == before.bytes.len() as u64
            && holds(&mut file, &before.bytes).map_err(|e| ToolError::io(&self.path, &e))?;
        if !is_same_content {
            return Err(disk::changed_content_error(&self.path));
        }
        // An editor that saves the same content may create a new object. The judged object is gone then.
        if is_same_object {
            Ok(ObjectVersion::from_metadata(&meta))
        } else {
            Err(disk::changed_path_error(&self.path))
        }
    }

    /// A file or a link appeared where none existed.
    fn appeared_error(&self, folder: &File) -> ToolError {
        let Some(name) = &self.name else { return disk::changed_path_error(&self.path) };
        match nix::fcntl::readlinkat(folder, name.as_os_str()) {
            Ok(_) => disk::changed_path_error(&self.path),
            Err(_) => disk::changed_content_error(&self.path),
        }
    }

    /// Creates the missing folders below the pinned one.
    fn make_folders(&self) -> Result<File, ToolError> {
        let refused = |e: Errno| disk::refused(&self.path, e);
        let mut folder = reopen(&self.folder, Path::new("")).map_err(refused)?;
        for name in &self.missing {
            match nix::sys::stat::mkdirat(&folder, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(refused(e)),
            }
            folder = reopen(&folder, Path::new(name)).map_err(|errno| match errno {
                // A link in place of a folder is reported like a file.
                Errno::ENOTDIR => disk::changed_path_error(&self.path),
                errno => refused(errno),
            })?;
        }
        Ok(folder)
    }

    /// Removes the temporary file that a killed call may have left in the same folder.
    pub(crate) fn remove_temp(&self, call_id: CallId) {
        if !self.missing.is_empty() {
            return;
        }
        let name = temp_name(call_id);
        if nix::unistd::unlinkat(self.folder.as_ref(), name.as_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
            tracing::info!(folder = %self.path.display(), name, "removed a temporary file of a killed tool call");
        }
    }
}

/// Whether files can be created in a folder.
fn is_writable(folder: &File) -> bool {
    let flags = AtFlags::AT_EACCESS;
    !matches!(
        nix::unistd::faccessat(folder, ".", AccessFlags::W_OK | AccessFlags::X_OK, flags),
        Err(Errno::EACCES | Errno::EPERM | Errno::EROFS)
    )
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

/// Whether a file contains exactly these bytes.
fn holds(file: &mut File, bytes: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK_BYTES.min(bytes.len() + 1)];
    for expected in bytes.chunks(buffer.len()) {
        let n = read_full(file, &mut buffer[..expected.len()])?;
        if buffer[..n] != *expected {
            return Ok(false);
        }
    }
    Ok(read_full(file, &mut buffer[..1])? == 0)
}

/// Opens a handle that can be synced.
fn reopen(folder: &File, name: &Path) -> Result<File, Errno> {
    disk::open_below(folder.as_fd(), name, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())
        .map(File::from)
}

fn sync_folder(folder: &File) {
    let _ = reopen(folder, Path::new("")).map(|folder| folder.sync_all());
}

/// Opens a regular file for reading without following links. `None` if it does not exist.
pub(crate) fn open_regular(
    folder: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
) -> Result<Option<(File, Metadata)>, ToolError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = match disk::open_below(folder, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::ENOENT) => return Ok(None),
        Err(errno) => return Err(disk::refused(path, errno)),
    };
    let meta = file.metadata().map_err(|e| ToolError::io(path, &e))?;
    disk::require_regular(path, &meta)?;
    Ok(Some((file, meta)))
}
