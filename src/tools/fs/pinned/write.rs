//! Changes of a file: replaced by a new file, or written in place where only that keeps its properties.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, UnlinkatFlags};

use super::{
    CHUNK_BYTES, FileSnapshot, MIN_THREAD_BYTES, ObjectVersion, OtherNames, PinnedPath, open_regular,
    read_full, reopen,
};
use crate::error::ToolError;
use crate::file_errors;
use crate::file_identity::{FileIdentity, FileStamp};
use crate::folder_handle;
use crate::fs::in_place;
use crate::fs::temp_file::{TempGuard, create_temp, temp_name};
use base::crash;
use base::open;
use types::ids::CallId;

impl PinnedPath {
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
        let errno = |e: Errno| file_errors::open_error(path, e);
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
            None => self.link_new(&folder, &temp_name, name)?,
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

    /// Gives the new file its name, unless another file has appeared there: a hard link never replaces one.
    fn link_new(&self, folder: &File, temp_name: &str, name: &OsStr) -> Result<(), ToolError> {
        let path = &self.path;
        let errno = |e: Errno| file_errors::open_error(path, e);
        match nix::unistd::linkat(folder, temp_name, folder, name, AtFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::EEXIST) => Err(self.appeared_error(folder)),
            // File systems without hard links.
            Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EMLINK) => {
                if open_regular(folder.as_fd(), Path::new(name), path)?.is_some() {
                    return Err(file_errors::changed_content_error(path));
                }
                nix::fcntl::renameat(folder, temp_name, folder, name).map_err(errno)
            }
            Err(e) => Err(errno(e)),
        }
    }

    /// Whether a new file can replace this one without losing its owner, its attributes or its access list, which are
    /// copied.
    fn can_stand_in(&self, temp: &File, before: &FileSnapshot) -> Result<bool, ToolError> {
        let meta = temp.metadata().map_err(|e| ToolError::io(&self.path, &e))?;
        let Some((current, _)) = self.open_now()? else {
            return Err(file_errors::changed_content_error(&self.path));
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
        let opened = open::open_below(self.folder.as_fd(), Path::new(name), flags, Mode::empty());
        let mut file = File::from(opened.map_err(|e| file_errors::open_error(path, e))?);
        let meta = file.metadata().map_err(io)?;
        if FileIdentity::from_metadata(&meta) != FileIdentity::from_metadata(&self.require_found()?.meta) {
            return Err(file_errors::changed_path_error(path));
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
            .map_err(|e| file_errors::open_error(&self.path, e))?;
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
            Err(Errno::ENOENT) => Err(file_errors::changed_content_error(&self.path)),
            Err(errno) => Err(file_errors::open_error(&self.path, errno)),
        }
    }

    /// The folder must still be at its path. Otherwise, the file would be created in another place.
    fn require_place(&self) -> Result<(), ToolError> {
        let above = 1 + self.missing.len();
        let parent =
            self.path.ancestors().nth(above).and_then(|path| path.strip_prefix(&self.anchor.path).ok());
        let Some(parent) = parent else { return Err(file_errors::changed_path_error(&self.path)) };
        let now = folder_handle::open_folder_handle(self.anchor.folder.as_fd(), parent).ok();
        let now = now.and_then(|now| now.metadata().ok()).map(|meta| FileIdentity::from_metadata(&meta));
        let held = self.folder.metadata().ok().map(|meta| FileIdentity::from_metadata(&meta));
        if now.is_none() || now != held || !self.anchor.is_in_place() {
            return Err(file_errors::changed_path_error(&self.path));
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
            _ => Err(file_errors::changed_content_error(&self.path)),
        }
    }

    /// The object must be the judged one, with the content that was read. Returns its version from before the
    /// comparison.
    fn require_unchanged(&self, before: &FileSnapshot) -> Result<ObjectVersion, ToolError> {
        let found = self.require_found()?;
        let Some((mut file, meta)) = self.open_now()? else {
            return Err(file_errors::changed_content_error(&self.path));
        };
        let is_same_object = FileIdentity::from_metadata(&meta) == FileIdentity::from_metadata(&found.meta);
        let is_same_content = meta.len() == before.bytes.len() as u64
            && holds(&mut file, &before.bytes).map_err(|e| ToolError::io(&self.path, &e))?;
        if !is_same_content {
            return Err(file_errors::changed_content_error(&self.path));
        }
        // An editor that saves the same content may create a new object. The judged object is gone then.
        if is_same_object {
            Ok(ObjectVersion::from_metadata(&meta))
        } else {
            Err(file_errors::changed_path_error(&self.path))
        }
    }

    /// A file or a link appeared where none existed.
    fn appeared_error(&self, folder: &File) -> ToolError {
        let Some(name) = &self.name else { return file_errors::changed_path_error(&self.path) };
        match nix::fcntl::readlinkat(folder, name.as_os_str()) {
            Ok(_) => file_errors::changed_path_error(&self.path),
            Err(_) => file_errors::changed_content_error(&self.path),
        }
    }

    /// Creates the missing folders below the pinned one.
    fn make_folders(&self) -> Result<File, ToolError> {
        let open_error = |e: Errno| file_errors::open_error(&self.path, e);
        let mut folder = reopen(&self.folder, Path::new("")).map_err(open_error)?;
        for name in &self.missing {
            match nix::sys::stat::mkdirat(&folder, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(open_error(e)),
            }
            folder = reopen(&folder, Path::new(name)).map_err(|errno| match errno {
                // A link in place of a folder is reported like a file.
                Errno::ENOTDIR => file_errors::changed_path_error(&self.path),
                errno => open_error(errno),
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

fn sync_folder(folder: &File) {
    let _ = reopen(folder, Path::new("")).map(|folder| folder.sync_all());
}
