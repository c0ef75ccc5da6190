//! Folders for temporary files: one a session, below one that is ours alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::types::ids::SessionId;

/// Stand-ins for what is hidden.
pub(super) struct Nothing {
    pub(super) folder: PathBuf,
    pub(super) file: PathBuf,
}

/// The folder of a session; makes it if it is not there.
///
/// # Errors
/// It cannot be made, or the folder above it is not ours alone.
pub(in crate::tools) fn folder_of(root: &Path, session: SessionId) -> io::Result<PathBuf> {
    own(root)?;
    // Short, since sockets are made there: the end of an id is its random part.
    let id = session.to_string();
    let folder = root.join(id.get(id.len().saturating_sub(12)..).unwrap_or(&id));
    own(&folder)?;
    Ok(folder)
}

/// An empty folder and an empty file below `root`.
pub(super) fn nothing(root: &Path) -> io::Result<Nothing> {
    own(root)?;
    let nothing = Nothing { folder: root.join("empty"), file: root.join("nothing") };
    own(&nothing.folder)?;
    fs::File::create(&nothing.file)?;
    Ok(nothing)
}

/// Makes a folder for us alone, or makes sure that it is one.
fn own(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let meta = fs::symlink_metadata(folder)?;
    let is_ours = meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    let wrong = || io::Error::other(format!("{} is not a folder of ours alone", folder.display()));
    if is_ours { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids::{Mint, Seed};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn the_folder_is_ours_alone_or_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let session = Mint::new(0, Seed(7)).session();
        let root = dir.path().join("t");
        let folder = folder_of(&root, session).unwrap();
        assert_eq!(folder_of(&root, session).unwrap(), folder);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert!(folder.file_name().unwrap().len() <= 12);
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(folder_of(&root, session).unwrap_err().to_string().contains("not a folder of ours"));
        symlink(dir.path(), dir.path().join("link")).unwrap();
        folder_of(&dir.path().join("link"), session).unwrap_err();
    }
}
