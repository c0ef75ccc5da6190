//! Creates a folder that only its owner can access, or checks one before anything is created in it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::error::TransportError;

/// Permission bits for writing by others, and the sticky bit of shared folders.
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Creates the folder (0700, for any umask) or checks it. It must be a folder and no link, owned by this user, closed
/// to group and others, and not replaceable by other users. Returns a handle of exactly the folder that was checked.
///
/// # Errors
/// `UnsafeFolder` says how to fix it; `Io` is the system's error. An unsafe folder is left unchanged.
pub fn private_folder(folder: &Path) -> Result<File, TransportError> {
    if let Some(above) = folder.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)
            .map_err(|e| TransportError::io("make the folder", above, e))?;
        check_above(folder, above)?;
    }
    let made = match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(TransportError::io("make the folder", folder, e)),
    };
    if made {
        // An unusual umask may have removed permissions of the owner.
        fs::set_permissions(folder, Permissions::from_mode(0o700))
            .map_err(|e| TransportError::io("make private", folder, e))?;
    }
    check_folder(folder)
}

/// Checks a folder like [`private_folder`], but does not create one.
///
/// # Errors
/// Same as [`private_folder`]; `Io` also if the folder does not exist.
pub fn check_folder(folder: &Path) -> Result<File, TransportError> {
    if let Some(above) = folder.parent() {
        check_above(folder, above)?;
    }
    let bad = |why: String| TransportError::UnsafeFolder { path: folder.to_owned(), why };
    let handle = match open_folder(folder) {
        Ok(handle) => handle,
        Err(e) => {
            let kind = fs::symlink_metadata(folder).map(|m| m.file_type());
            return Err(match kind {
                Ok(kind) if kind.is_symlink() => bad("it is a link; name the folder itself".into()),
                Ok(kind) if !kind.is_dir() => bad("it is not a folder".into()),
                _ => TransportError::io("open the folder", folder, e),
            });
        }
    };
    let meta = handle.metadata().map_err(|e| TransportError::io("look at", folder, e))?;
    let (owner, us) = (meta.uid(), geteuid().as_raw());
    if owner != us {
        return Err(bad(format!(
            "it belongs to user {owner}, and we are user {us}; choose a folder of your own, or chown it"
        )));
    }
    let mode = meta.mode() & 0o7777;
    if mode & (STICKY | OTHERS_WRITE) != 0 {
        return Err(bad(format!(
            "it is open to everybody (mode {mode:04o}); choose a folder of its own inside it"
        )));
    }
    if mode & 0o777 != 0o700 {
        return Err(bad(format!("its mode is {mode:04o}; chmod it to 0700")));
    }
    Ok(handle)
}

/// If all users may write to the parent folder and it has no sticky bit, another user can replace even a
/// private folder with another one.
fn check_above(folder: &Path, above: &Path) -> Result<(), TransportError> {
    let meta = fs::metadata(above).map_err(|e| TransportError::io("look at", above, e))?;
    let mode = meta.mode() & 0o7777;
    if mode & OTHERS_WRITE == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    let why = format!(
        "everybody may replace it, since {} has mode {mode:04o}; chmod o-w {0}, or choose another place",
        above.display()
    );
    Err(TransportError::UnsafeFolder { path: folder.to_owned(), why })
}

/// Whether the folder would be directly in a folder that all users share, like `/tmp`.
pub fn is_in_shared_place(folder: &Path) -> bool {
    let above = folder.parent().and_then(|above| fs::metadata(above).ok());
    above.is_some_and(|above| above.mode() & (STICKY | OTHERS_WRITE) != 0)
}

/// Opens the folder itself, never the target of a link.
pub(super) fn open_folder(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits()).open(folder)
}

#[cfg(test)]
mod tests {
    use crate::private_dir::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn assert_refused(path: &Path, says: &str) {
        let error = private_folder(path).unwrap_err();
        assert_eq!(error.name(), "unsafe_folder", "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }

    #[test]
    fn runtime_folder_replaceable_by_others_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let shared = scratch.path().join("shared");
        fs::create_dir(&shared).unwrap();
        for (open, is_safe) in [(0o777, false), (0o702, false), (0o1777, true), (0o775, true)] {
            fs::set_permissions(&shared, Permissions::from_mode(open)).unwrap();
            let folder = shared.join("mine");
            if is_safe {
                private_folder(&folder).unwrap();
                assert_eq!(mode(&folder), 0o700);
                fs::remove_dir(&folder).unwrap();
            } else {
                assert_refused(&folder, "chmod o-w");
                assert!(!folder.exists(), "{open:o}");
            }
            assert_eq!(is_in_shared_place(&folder), open & 0o1002 != 0, "{open:o}");
        }
    }

    #[test]
    fn runtime_folder_of_other_user_is_refused() {
        if !geteuid().is_root() {
            base::skip_test!("giving a folder to another user needs root");
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let theirs = scratch.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
        assert_refused(&theirs, "belongs to user 65534");
        assert_eq!(fs::metadata(&theirs).unwrap().uid(), 65_534, "left as it is");
    }
}
