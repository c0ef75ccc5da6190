//! Folders for temporary files: one per session, below a folder that only the daemon's user can access.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::shell::sandbox::placeholders::NOTES_FOLDER;
use base::open;
use types::hex;
use types::ids::SessionId;

/// Empty file and empty folder that are mounted over hidden paths.
pub(super) struct EmptySources {
    pub(super) folder: PathBuf,
    pub(super) file: PathBuf,
}

/// Length of a folder's name in bytes.
const NAME: usize = 12;
/// Names in the root folder that are not folders of sessions.
const RESERVED_NAMES: &[&str] = &["empty", "nothing", "stages", NOTES_FOLDER];
/// Name prefix of a folder that is being removed.
const REMOVAL_PREFIX: &str = "going-";

/// The name is short because commands create sockets in the folder. The end of an id is its random part.
fn name_of(session: SessionId) -> String {
    let id = session.to_string();
    id.get(id.len().saturating_sub(NAME)..).unwrap_or(&id).to_owned()
}

/// Returns the folder of a session and creates it if necessary.
///
/// # Errors
/// The folder cannot be created, or other users have access to its parent.
pub(crate) fn folder_of(root: &Path, session: SessionId) -> io::Result<PathBuf> {
    create_own_root(root)?;
    // The path of the root may contain links; its last component may not.
    let folder = open::real(root)?.join(name_of(session));
    create_untrusted_folder(&folder)?;
    Ok(folder)
}

/// Removes the folder of a session that has ended, if it exists.
///
/// # Errors
/// The folder exists and could not be removed.
pub(crate) fn forget(root: &Path, session: SessionId) -> io::Result<()> {
    remove(root, &name_of(session))
}

/// Lists the folders of sessions and remains of interrupted removals. Blocks on the disk.
///
/// # Errors
/// The folders could not be listed.
pub(crate) fn folders(root: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    create_own_root(root)?;
    let is_of_session = |name: &str| name.len() == NAME && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| is_of_session(name) || name.starts_with(REMOVAL_PREFIX)).collect())
}

/// Removes the folders of `found` that belong to no session of `kept_sessions`, and returns their number. A
/// failure is logged and the folder stays. Blocks on the disk.
pub(crate) fn sweep(root: &Path, found: &[String], kept_sessions: &[SessionId]) -> usize {
    let kept_names: HashSet<String> = kept_sessions.iter().map(|session| name_of(*session)).collect();
    let mut removed = 0;
    for name in found.iter().filter(|name| !kept_names.contains(*name)) {
        match remove(root, name) {
            Ok(()) => removed += 1,
            Err(error) => {
                tracing::warn!(%error, folder = name, "could not remove a folder of temporary files")
            }
        }
    }
    removed
}

fn remove(root: &Path, name: &str) -> io::Result<()> {
    let folder = root.join(name);
    let going = match name.starts_with(REMOVAL_PREFIX) {
        true => folder,
        false => {
            // Rename it first, so that a command that starts now gets a new folder.
            let going = root.join(format!("{REMOVAL_PREFIX}{name}"));
            match fs::rename(&folder, &going) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                // Remains of an earlier removal use this name.
                Err(_) if going.exists() => {
                    clear(&going)?;
                    fs::rename(&folder, &going)?;
                }
                renamed => renamed?,
            }
            going
        }
    };
    match clear(&going) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        cleared => cleared,
    }
}

/// Removes a folder with its content. Links are not followed.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_all(folder);
            fs::remove_dir_all(folder)
        }
        done => done,
    }
}

/// Makes folders writable again that a command made read-only, as package caches do.
fn open_all(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        // No process can replace the folder by a link: its session or its daemon has ended.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()),
        );
    }
}

/// Creates an empty folder and an empty file below `root`.
pub(super) fn create_empty_sources(root: &Path) -> io::Result<EmptySources> {
    create_own_root(root)?;
    let nothing = EmptySources { folder: root.join("empty"), file: root.join("nothing") };
    create_own_folder(&nothing.folder)?;
    create_own_file(&nothing.file)?;
    Ok(nothing)
}

/// Creates an empty file that only the daemon's user can access, or checks that it is one.
fn create_own_file(file: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut options = fs::OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(file) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::symlink_metadata(file)?,
                made => return made.map(|_| ()),
            }
        }
        scanned_folders => scanned_folders?,
    };
    if !(meta.is_file() && meta.nlink() == 1 && meta.len() == 0 && is_own(&meta)) {
        return Err(foreign_folder_error(file));
    }
    if meta.mode() & 0o777 != 0o600 {
        // No command can create a link in this folder.
        fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Folders below `root` that belong to no session; they are mounted for commands.
pub(super) fn mounted_folders(root: &Path) -> io::Result<[PathBuf; 3]> {
    let EmptySources { folder, file } = create_empty_sources(root)?;
    let stages = root.join("stages");
    create_own_folder(&stages)?;
    Ok([folder, file, stages])
}

/// An empty mount point in the command's own mount table: a folder, or a file for a file.
pub(super) fn stage(root: &Path, nth: usize, is_file: bool) -> io::Result<PathBuf> {
    if is_file {
        staged(root, &format!("{nth}-file"), create_own_file)
    } else {
        staged(root, &nth.to_string(), create_own_folder)
    }
}

fn staged(root: &Path, name: &str, own_it: fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let stages = root.join("stages");
    create_own_folder(&stages)?;
    let stage = stages.join(name);
    own_it(&stage)?;
    // Without links, as the path is looked up later.
    open::real(&stage)
}

/// A mount point in a folder.
pub(super) struct MountPoint {
    /// Relative to that folder.
    pub(super) path: PathBuf,
    pub(super) is_file: bool,
}

/// Creates a folder that contains exactly these mount points.
pub(super) fn create_mount_points(root: &Path, create_mount_points: &[MountPoint]) -> io::Result<PathBuf> {
    let mut name = Sha256::new();
    for MountPoint { path, is_file } in create_mount_points {
        name.update(path.as_os_str().as_bytes());
        name.update([0, u8::from(*is_file)]);
    }
    let folder = staged(root, &hex::encode(&name.finalize())[..20], create_own_folder)?;
    for MountPoint { path, is_file } in create_mount_points {
        let place = folder.join(path);
        if *is_file {
            place.parent().map_or(Ok(()), fs::create_dir_all)?;
            create_own_file(&place)?;
        } else {
            fs::create_dir_all(place)?;
        }
    }
    Ok(folder)
}

/// Creates a folder that only the daemon's user can access, or checks that it is one.
pub(super) fn create_own_folder(folder: &Path) -> io::Result<()> {
    restrict_if(folder, &|_| true)
}

/// Like [`create_own_folder`], for the root folder. Folders of sessions are checked when they are used, and
/// other names are not used.
fn create_own_root(root: &Path) -> io::Result<()> {
    restrict_if(root, &|name| RESERVED_NAMES.iter().any(|used| name == *used))
}

fn restrict_if(folder: &Path, counts: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
    let Some(mode) = create_closed(folder)?.filter(|mode| mode & 0o022 != 0) else { return Ok(()) };
    // If other users could write, check for files that they put there. Restore the mode on failure, so that the
    // next check repeats this.
    let is_fine = holds_own_entries_only(folder, counts);
    if !matches!(is_fine, Ok(true)) {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    }
    if is_fine? { Ok(()) } else { Err(foreign_folder_error(folder)) }
}

/// Like [`create_own_folder`], for a folder that commands fill. Its content is not trusted.
fn create_untrusted_folder(folder: &Path) -> io::Result<()> {
    create_closed(folder).map(|_| ())
}

/// Creates a folder, or resets a mode that a command changed and returns the old mode. No other user can put a
/// link at this path.
fn create_closed(folder: &Path) -> io::Result<Option<u32>> {
    let meta = match fs::symlink_metadata(folder) {
        // The folder usually exists, and a lookup costs less than an attempt to create it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::symlink_metadata(folder)?,
                made => return made.map(|()| None),
            }
        }
        scanned_folders => scanned_folders?,
    };
    let mut mode = meta.mode() & 0o7777;
    if meta.is_dir() && !is_own(&meta) && nix::unistd::geteuid().is_root() {
        // A command of root may give the folder away; its new owner could have written there.
        std::os::unix::fs::lchown(folder, Some(0), Some(0))?;
        mode |= 0o020;
    } else if !meta.is_dir() || !is_own(&meta) {
        return Err(foreign_folder_error(folder));
    } else if mode == 0o700 {
        return Ok(None);
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    Ok(Some(mode))
}

/// Whether all relevant entries of a folder that was open to other users belong to the daemon's user and are
/// not links.
fn holds_own_entries_only(folder: &Path, counts: &dyn Fn(&OsStr) -> bool) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !counts(&entry.file_name()) {
            continue;
        }
        let meta = entry.metadata()?;
        if !is_own(&meta) || !(meta.is_dir() || meta.is_file() && meta.nlink() == 1) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_own(meta: &fs::Metadata) -> bool {
    meta.uid() == nix::unistd::geteuid().as_raw()
}

fn foreign_folder_error(folder: &Path) -> io::Error {
    io::Error::other(format!("{} is not a folder of ours alone; move it away", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use types::ids::{Mint, Seed};

    #[test]
    fn temp_folder_is_private_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let session = Mint::new(0, Seed(7)).session();
        let root = dir.path().join("t");
        let folder = folder_of(&root, session).unwrap();
        assert_eq!(folder_of(&root, session).unwrap(), folder);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert!(folder.file_name().unwrap().len() <= 12);
        symlink("/", folder.join("of-a-command")).unwrap();
        for mode in [0o755, 0o500, 0, 0o777, 0o7777] {
            for closed in [&root, &folder] {
                fs::set_permissions(closed, fs::Permissions::from_mode(mode)).unwrap();
                assert_eq!(folder_of(&root, session).unwrap(), folder);
                assert_eq!(fs::metadata(closed).unwrap().mode() & 0o7777, 0o700, "{mode:o}");
            }
        }
        if nix::unistd::geteuid().is_root() {
            for foreign in [&root, &folder] {
                std::os::unix::fs::lchown(foreign, Some(65534), None).unwrap();
                assert_eq!(folder_of(&root, session).unwrap(), folder);
                assert_eq!(fs::metadata(foreign).unwrap().uid(), 0);
            }
        }
        // If other users could write, they may have put a link there.
        let opened = || fs::set_permissions(&root, fs::Permissions::from_mode(0o770)).unwrap();
        symlink("/", root.join("nothing")).unwrap();
        opened();
        for _ in 0..2 {
            assert!(folder_of(&root, session).unwrap_err().to_string().contains("not a folder of ours"));
        }
        fs::remove_file(root.join("nothing")).unwrap();
        folder_of(&root, session).unwrap();
        symlink(dir.path(), dir.path().join("link")).unwrap();
        folder_of(&dir.path().join("link"), session).unwrap_err();
    }

    #[test]
    fn temp_folders_of_ended_sessions_are_removed_only() {
        let dir = tempfile::tempdir().unwrap();
        let (root, mint) = (dir.path().join("t"), |seed| Mint::new(0, Seed(seed)).session());
        let (here, orphan, ended) = (mint(1), mint(2), mint(3));
        let folders = [here, orphan, ended].map(|session| folder_of(&root, session).unwrap());
        let other = create_empty_sources(&root).unwrap();
        fs::write(dir.path().join("mine"), "mine").unwrap();
        for folder in &folders {
            fs::create_dir_all(folder.join("closed/in")).unwrap();
            symlink(dir.path(), folder.join("link")).unwrap();
            fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
        }
        forget(&root, ended).unwrap();
        forget(&root, ended).unwrap();
        assert!(!folders[2].exists());
        // The state that a daemon leaves if it is killed during a removal.
        fs::create_dir_all(root.join(format!("{REMOVAL_PREFIX}{}", name_of(orphan))).join("rest")).unwrap();
        let found = super::folders(&root).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!((1..=2).contains(&sweep(&root, &found, &[here])));
        assert!(folders[0].join("closed/in").exists() && !folders[1].exists());
        assert!(other.folder.exists() && other.file.exists());
        assert_eq!(fs::read_dir(&root).unwrap().count(), 3);
        assert_eq!(fs::read_to_string(dir.path().join("mine")).unwrap(), "mine", "links are not followed");
        assert_eq!(super::folders(&dir.path().join("nonesuch")).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn temp_cleanup_does_not_follow_symlinks() {
        let dir = tempfile::tempdir().unwrap();
        let (root, mine) = (dir.path().join("t"), dir.path().join("mine"));
        let sources = create_empty_sources(&root).unwrap();
        fs::set_permissions(&sources.file, fs::Permissions::from_mode(0o000)).unwrap();
        create_empty_sources(&root).unwrap();
        fs::write(&mine, "years of work").unwrap();
        for link in [false, true] {
            fs::remove_file(&sources.file).unwrap();
            let put = if link { symlink(&mine, &sources.file) } else { fs::hard_link(&mine, &sources.file) };
            put.unwrap();
            assert!(create_empty_sources(&root).is_err());
            assert_eq!(fs::read_to_string(&mine).unwrap(), "years of work");
        }
    }
}
