//! Placeholders for protected paths that do not exist. A mount needs an existing path, so the daemon creates an
//! empty folder or a file with git's default text while a command runs. Without a placeholder, a command could
//! create `.git` and its hooks.
//!
//! Before a placeholder is created, a *note* of it is written: a link to its path in the folder for temporary files.
//! After a crash, the next daemon removes the placeholders that the notes name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, openat2, renameat2};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::file_errors::is_missing;
use crate::file_identity;
use base::sync::lock;

/// Number of commands that need each placeholder. Removing a placeholder would remove the mount over it in
/// every sandbox that uses it.
static PLACEHOLDER_NEEDS: Mutex<BTreeMap<PathBuf, PlaceholderNeed>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct PlaceholderNeed {
    /// Number of running commands that need the placeholder.
    commands: usize,
    /// Path of its note, if it has one.
    note: Option<PathBuf>,
}

fn lock_needs() -> MutexGuard<'static, BTreeMap<PathBuf, PlaceholderNeed>> {
    // A panic cannot leave the counts inconsistent.
    lock(&PLACEHOLDER_NEEDS)
}

/// Text of the placeholder at this path; `None` if the placeholder is a folder. Git outside the sandbox reads the file while it exists
/// (gitrepository-layout(5)).
fn placeholder_text(path: &Path) -> Option<&'static str> {
    match path.file_name()?.to_str()? {
        // The folder itself holds the shared parts. The slash is necessary because libgit2 ignores a single
        // dot.
        "commondir" => Some("./\n"),
        "config" | "config.worktree" | "attributes" => Some(""),
        _ => None,
    }
}

/// Whether the path is a placeholder and counts as missing. A placeholder to which a user added content is an
/// ordinary file or folder.
pub(super) fn is_placeholder(path: &Path) -> bool {
    lock_needs().contains_key(path) && is_unchanged(path)
}

/// Whether the path has exactly the content with which a placeholder is created.
fn is_unchanged(path: &Path) -> bool {
    PlaceholderTarget::open_parent(path).is_ok_and(|target| target.is_unchanged())
}

/// A name in a folder that was opened without links. Other processes may replace any folder by a link; creating
/// and removing use the opened folder.
struct PlaceholderTarget<'p> {
    folder: OwnedFd,
    name: &'p OsStr,
    text: Option<&'static str>,
}

impl<'p> PlaceholderTarget<'p> {
    /// Opens the folder of a path without following links.
    fn open_parent(path: &'p Path) -> io::Result<Self> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::NotFound)?;
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        Ok(Self { folder: openat2(AT_FDCWD, folder, how)?, name, text: placeholder_text(path) })
    }

    /// Opens a name of the folder without following a link and without waiting.
    fn open(&self, name: &OsStr, flags: OFlag) -> io::Result<fs::File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(nix::fcntl::openat(&self.folder, name, flags, Mode::from_bits_truncate(0o644))?.into())
    }

    /// Whether the name has exactly the content with which a placeholder is created.
    fn is_unchanged(&self) -> bool {
        let Some(text) = self.text else {
            let Ok(folder) = self.open(self.name, OFlag::O_RDONLY | OFlag::O_DIRECTORY) else { return false };
            let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()));
            return entries.is_ok_and(|mut entries| entries.next().is_none());
        };
        let Ok(file) = self.open(self.name, OFlag::O_RDONLY) else { return false };
        let has_same_length =
            file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == text.len() as u64);
        let mut content = Vec::new();
        has_same_length && file.take(64).read_to_end(&mut content).is_ok() && content == text.as_bytes()
    }

    /// Creates the placeholder and its whole text in one step, because git may read it at any time. Other users
    /// may use the repository, and git fails on a file that it cannot read.
    fn create(&self) -> io::Result<()> {
        let readable = fs::Permissions::from_mode(0o644);
        match self.text {
            None => Ok(nix::sys::stat::mkdirat(&self.folder, self.name, Mode::from_bits_truncate(0o777))?),
            Some("") => {
                let file = self.open(self.name, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL)?;
                file.set_permissions(readable)
            }
            Some(text) => {
                if self.exists() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                // The name is random: another user who created a predictable name first would block every
                // command.
                let draft_name = OsString::from(format!(".agentd-{}", uuid::Uuid::now_v7().simple()));
                let mut file = self.open(&draft_name, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL)?;
                let written = file.write_all(text.as_bytes()).and_then(|()| file.set_permissions(readable));
                let flags = RenameFlags::RENAME_NOREPLACE;
                let renamed = written.and_then(|()| {
                    Ok(renameat2(&self.folder, draft_name.as_os_str(), &self.folder, self.name, flags)?)
                });
                if renamed.is_err() {
                    let _ = unlinkat(&self.folder, draft_name.as_os_str(), UnlinkatFlags::NoRemoveDir);
                }
                renamed
            }
        }
    }

    /// Whether the name exists, also as a dangling link.
    fn exists(&self) -> bool {
        fstatat(&self.folder, self.name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes the placeholder only if it is unchanged. Returns whether no placeholder is left: it was removed, or
    /// the name has other content.
    fn remove(&self) -> bool {
        let flag = if self.text.is_none() { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
        if self.text.is_none() || self.is_unchanged() {
            let _ = unlinkat(&self.folder, self.name, flag);
        }
        match fstatat(&self.folder, self.name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(_) => !self.is_unchanged(),
            // A folder that was closed meanwhile does not show whether the placeholder exists.
            Err(error) => is_missing(&error.into()),
        }
    }
}

/// A set of placeholders. Dropping the last user of a placeholder removes it.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Vec<PathBuf>);

/// Folder of the notes of placeholders, below the folder for temporary files.
pub(super) const NOTES_FOLDER: &str = "placeholders";

/// The notes folder of the sessions whose folders for temporary files are siblings of `temp`.
pub(super) fn notes_path(temp: &Path) -> Option<PathBuf> {
    Some(temp.parent().filter(|root| !root.as_os_str().is_empty())?.join(NOTES_FOLDER))
}

/// The note of a placeholder: a link to it.
fn note_path(notes: &Path, path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let digest = file_identity::sha256(path.as_os_str().as_bytes());
    notes.join(&digest[..20])
}

/// Writes the note. If this fails, the only effect is that the placeholder may remain after a crash.
fn write_note(notes: &Path, path: &Path) -> PathBuf {
    let note = note_path(notes, path);
    let write = || std::os::unix::fs::symlink(path, &note);
    let is_notes_folder_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if write().as_ref().is_err_and(is_notes_folder_missing) && fs::create_dir(notes).is_ok() {
        let _ = write();
    }
    note
}

/// Removes the note of a placeholder that no longer exists.
fn remove_note(note: Option<PathBuf>) {
    if let Some(note) = note {
        let _ = fs::remove_file(note);
    }
}

/// Removes placeholders that a crashed daemon left, for notes below this folder for temporary files. Returns
/// the number of removed placeholders. No command may be running.
pub(crate) fn remove_leftovers(root: &Path) -> usize {
    let entries = fs::read_dir(root.join(NOTES_FOLDER)).into_iter().flatten().flatten();
    let mut removed = 0;
    for entry in entries {
        // The daemon creates placeholders at these paths only.
        let is_ours =
            |path: &PathBuf| note_path(&root.join(NOTES_FOLDER), path) == entry.path() && is_unchanged(path);
        if let Some(path) = fs::read_link(entry.path()).ok().filter(is_ours) {
            let _ = PlaceholderTarget::open_parent(&path).map(|target| target.remove());
            removed += usize::from(fs::symlink_metadata(&path).is_err());
        }
        let _ = fs::remove_file(entry.path());
    }
    removed
}

impl Placeholders {
    /// Whether there is no placeholder to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates placeholders at missing paths. Each one is noted in `notes` first, so that the next daemon can
    /// remove it after a crash.
    ///
    /// # Errors
    /// A placeholder cannot be created. A path is skipped without an error if its folder is not writable,
    /// because a command cannot create the path either.
    pub(super) fn new(paths: &[PathBuf], notes: Option<&Path>) -> io::Result<Self> {
        let mut needs = lock_needs();
        let mut created = Self::default();
        for path in paths {
            if let Some(need) = needs.get_mut(path) {
                // Another process may have removed it meanwhile.
                if fs::symlink_metadata(path).is_err()
                    && let Err(error) =
                        PlaceholderTarget::open_parent(path).and_then(|target| target.create())
                {
                    // The rollback of earlier placeholders takes the same lock.
                    drop(needs);
                    return Err(error);
                }
                need.commands += 1;
                created.0.push(path.clone());
                continue;
            }
            let note = notes.map(|notes| write_note(notes, path));
            match PlaceholderTarget::open_parent(path).and_then(|target| target.create()) {
                Ok(()) => {
                    needs.insert(path.clone(), PlaceholderNeed { commands: 1, note });
                    created.0.push(path.clone());
                }
                Err(error) => {
                    remove_note(note);
                    // If the path exists by now, its owner decides whether it is a placeholder.
                    if error.kind() != io::ErrorKind::AlreadyExists
                        && !is_unwritable_for_commands(&error, path)
                    {
                        drop(needs);
                        return Err(error);
                    }
                }
            }
        }
        Ok(created)
    }
}

/// Returns the paths that exist by now: placeholders, and files that another process created first.
pub(super) fn existing_paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
    let exists = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
    paths.into_iter().filter(exists).cloned().collect()
}

/// Whether commands cannot create the path either, after this error of the daemon. A folder without write permission
/// that belongs to our own user does not count, because a command could make it writable again.
fn is_unwritable_for_commands(error: &io::Error, path: &Path) -> bool {
    let is_folder_of_other_user = || {
        let folder = path.parent().and_then(|folder| fs::symlink_metadata(folder).ok());
        folder.is_some_and(|folder| folder.uid() != nix::unistd::geteuid().as_raw())
    };
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => true,
        io::ErrorKind::PermissionDenied => is_folder_of_other_user(),
        _ => false,
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        let mut needs = lock_needs();
        for path in &self.0 {
            let Some(need) = needs.get_mut(path) else { continue };
            need.commands -= 1;
            if need.commands == 0 {
                let note = needs.remove(path).and_then(|need| need.note);
                // The next daemon removes placeholders that could not be removed now.
                let target = PlaceholderTarget::open_parent(path);
                if target.map_or_else(|error| is_missing(&error), |target| target.remove()) {
                    remove_note(note);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use crate::shell::sandbox::placeholders::*;

    #[test]
    fn placeholder_stays_until_last_command_ends() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [dir.path().join(".git"), dir.path().join("there")];
        fs::create_dir(&paths[1]).unwrap();
        let first = Placeholders::new(&paths, None).unwrap();
        let second = Placeholders::new(&paths, None).unwrap();
        drop(first);
        assert!(paths[0].is_dir());
        drop(second);
        assert!(!paths[0].exists() && paths[1].exists());
        Placeholders::new(&[dir.path().join("no/such")], None).unwrap_err();
        // No placeholder is needed in a folder where commands cannot create files.
        let failed = |code, path: &str| {
            is_unwritable_for_commands(&io::Error::from_raw_os_error(code), Path::new(path))
        };
        assert!(failed(libc::EROFS, "/x") && !failed(libc::ENOSPC, "/x"));
        let mine = paths[0].display().to_string();
        assert!(!failed(libc::EACCES, &mine), "who owns the folder can make it");
        assert_eq!(existing_paths(&paths), [paths[1].clone()]);
    }

    #[test]
    fn unrecreatable_placeholder_is_reported_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d/commondir");
        fs::create_dir(dir.path().join("d")).unwrap();
        let paths = vec![path];
        let first = Placeholders::new(&paths, None).unwrap();
        fs::rename(dir.path().join("d"), dir.path().join("gone")).unwrap();
        std::os::unix::fs::symlink("gone", dir.path().join("d")).unwrap();
        fs::remove_file(dir.path().join("gone/commondir")).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(Placeholders::new(&paths, None).map(drop)));
        let result =
            receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("it does not wait for itself");
        result.unwrap_err();
        drop(first);
    }

    #[test]
    fn placeholder_file_has_default_content_and_keeps_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        let paths = [path("commondir"), path("config.worktree"), path("config")];
        fs::write(&paths[2], "[core]\n").unwrap();
        let placed = Placeholders::new(&paths, None).unwrap();
        assert_eq!(fs::read(&paths[0]).unwrap(), b"./\n");
        assert_eq!(paths.each_ref().map(|path| is_placeholder(path)), [true, true, false]);
        fs::write(&paths[1], "[core]\n").unwrap();
        assert!(!is_placeholder(&paths[1]));
        drop(placed);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(!paths[0].exists() && !is_placeholder(&paths[0]));
    }

    #[test]
    fn leftover_placeholders_are_removed_by_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("temp");
        fs::create_dir(&root).unwrap();
        let paths = ["commondir", "hooks", "there"].map(|name| dir.path().join(name));
        fs::create_dir(&paths[2]).unwrap();
        let notes = notes_path(&root.join("session"));
        let first = Placeholders::new(&paths, notes.as_deref()).unwrap();
        assert_eq!(fs::metadata(&paths[0]).unwrap().permissions().mode() & 0o777, 0o644);
        std::mem::forget(first);
        // A note whose name does not match its target is ignored.
        let other = dir.path().join("config.worktree");
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, root.join(NOTES_FOLDER).join("evil")).unwrap();
        assert_eq!(remove_leftovers(&root), 2);
        assert!(!paths[0].exists() && !paths[1].exists() && paths[2].exists() && other.exists());
        assert_eq!(fs::read_dir(root.join(NOTES_FOLDER)).unwrap().count(), 0);
        paths.iter().for_each(|path| _ = lock_needs().remove(path));

        // No note remains after a regular removal, even if a user creates the same file later.
        drop(Placeholders::new(&paths, notes.as_deref()).unwrap());
        fs::create_dir(&paths[1]).unwrap();
        assert_eq!(remove_leftovers(&root), 0);
        assert!(paths[1].exists());
        assert_eq!(notes_path(Path::new("")), None);
    }
}
