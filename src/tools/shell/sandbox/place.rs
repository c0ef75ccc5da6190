//! Stand-ins for protected places that do not exist, for as long as a command runs, so that something can be
//! put over them: an empty folder, or a file that says to git what it takes for granted without it. Who makes
//! `.git` while it is protected would otherwise make its hooks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tools::disk;

/// How many commands need a stand-in that was made here. To remove one is to take the cover off in
/// every sandbox that has it.
static NEEDED: Mutex<BTreeMap<PathBuf, Need>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct Need {
    commands: usize,
    note: Option<PathBuf>,
}

fn needed() -> MutexGuard<'static, BTreeMap<PathBuf, Need>> {
    // Numbers are right at every moment.
    NEEDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a stand-in says, if it is a file: git reads it while it is there, also outside (gitrepository-layout(5)).
fn text_of(path: &Path) -> Option<&'static str> {
    match path.file_name()?.to_str()? {
        // The folder itself is where the shared parts lie. With a slash: libgit2 takes the dot for nothing.
        "commondir" => Some("./\n"),
        "config" | "config.worktree" => Some(""),
        _ => None,
    }
}

/// Whether what is there stands in for something, so that nothing is. What somebody has put something into is what it
/// looks like.
pub(super) fn is_stand_in(path: &Path) -> bool {
    needed().contains_key(path) && is_as_made(path)
}

fn is_as_made(path: &Path) -> bool {
    match text_of(path) {
        None => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
        Some(text) => {
            let is_so_long = |meta: fs::Metadata| meta.is_file() && meta.len() == text.len() as u64;
            fs::symlink_metadata(path).is_ok_and(is_so_long)
                && fs::read(path).is_ok_and(|found| found == text.as_bytes())
        }
    }
}

/// At once with all that it says: git reads what it finds.
fn make(path: &Path) -> io::Result<()> {
    let Some(text) = text_of(path) else { return fs::create_dir(path) };
    if fs::symlink_metadata(path).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if text.is_empty() {
        let file = fs::File::create_new(path)?;
        return file.set_permissions(fs::Permissions::from_mode(0o644));
    }
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut file = tempfile::Builder::new().prefix(".agentd-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    // Others may use the repository, and git does not pass over what it cannot read.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist_noclobber(path)?;
    Ok(())
}

/// Only what is as it was made goes.
fn remove(path: &Path) {
    if text_of(path).is_none() {
        let _ = fs::remove_dir(path);
    } else if is_as_made(path) {
        let _ = fs::remove_file(path);
    }
}

/// Stand-ins; the last to be dropped removes them.
#[derive(Debug, Default)]
pub(super) struct Placed(Vec<PathBuf>);

/// Where stand-ins are noted, below the folder for temporary files.
const NOTES: &str = "stand-ins";

/// The folder of notes of sessions whose folders for temporary files lie beside `temp`.
pub(super) fn notes_beside(temp: &Path) -> Option<PathBuf> {
    Some(temp.parent().filter(|root| !root.as_os_str().is_empty())?.join(NOTES))
}

/// The note of a stand-in: a link that leads to it.
fn note_of(notes: &Path, path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let digest = disk::sha256(path.as_os_str().as_bytes());
    notes.join(&digest[..20])
}

/// Without a note the stand-in may stay after a crash, no more.
fn note(notes: &Path, path: &Path) -> PathBuf {
    let note = note_of(notes, path);
    let write = || std::os::unix::fs::symlink(path, &note);
    let is_new = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if write().as_ref().is_err_and(is_new) && fs::create_dir(notes).is_ok() {
        let _ = write();
    }
    note
}

/// Of what does not stand any more.
fn take_back(note: Option<PathBuf>) {
    if let Some(note) = note {
        let _ = fs::remove_file(note);
    }
}

/// Removes what a daemon that died has left standing, of those below this folder for temporary files. Nothing may run
/// yet. Says how many.
pub(in crate::tools) fn clear_left(root: &Path) -> usize {
    let entries = fs::read_dir(root.join(NOTES)).into_iter().flatten().flatten();
    let mut removed = 0;
    for entry in entries {
        // Nothing else was ever put in the place of anything.
        let is_ours = |path: &PathBuf| note_of(&root.join(NOTES), path) == entry.path() && is_as_made(path);
        if let Some(path) = fs::read_link(entry.path()).ok().filter(is_ours) {
            remove(&path);
            removed += usize::from(fs::symlink_metadata(&path).is_err());
        }
        let _ = fs::remove_file(entry.path());
    }
    removed
}

impl Placed {
    /// Whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes them where nothing is. In `notes` each is noted before it stands, so that the next daemon removes what this
    /// one left.
    ///
    /// # Errors
    /// The folder around one cannot be written, so nobody else can make it either: such are left out. Other
    /// failures are told.
    pub(super) fn new(paths: &[PathBuf], notes: Option<&Path>) -> io::Result<Self> {
        let mut needed = needed();
        let mut placed = Self::default();
        for path in paths {
            if let Some(need) = needed.get_mut(path) {
                // Somebody may have removed it meanwhile.
                if fs::symlink_metadata(path).is_err() {
                    let _ = make(path);
                }
                need.commands += 1;
                placed.0.push(path.clone());
                continue;
            }
            let note = notes.map(|notes| note(notes, path));
            match make(path) {
                Ok(()) => {
                    needed.insert(path.clone(), Need { commands: 1, note });
                    placed.0.push(path.clone());
                }
                Err(error) => {
                    take_back(note);
                    // It is there by now, and whose it is counts.
                    if error.kind() != io::ErrorKind::AlreadyExists && !is_closed(&error) {
                        drop(needed);
                        return Err(error);
                    }
                }
            }
        }
        Ok(placed)
    }
}

/// Of these, what is there by now: what stands in, and what somebody else was faster to make.
pub(super) fn there<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
    let is_there = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
    paths.into_iter().filter(is_there).cloned().collect()
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

impl Drop for Placed {
    fn drop(&mut self) {
        let mut needed = needed();
        for path in &self.0 {
            let Some(need) = needed.get_mut(path) else { continue };
            need.commands -= 1;
            if need.commands == 0 {
                let note = needed.remove(path).and_then(|need| need.note);
                remove(path);
                take_back(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn a_stand_in_stays_until_the_last_command_that_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [dir.path().join(".git"), dir.path().join("there")];
        fs::create_dir(&paths[1]).unwrap();
        let first = Placed::new(&paths, None).unwrap();
        let second = Placed::new(&paths, None).unwrap();
        drop(first);
        assert!(paths[0].is_dir());
        drop(second);
        assert!(!paths[0].exists() && paths[1].exists());
        Placed::new(&[dir.path().join("no/such")], None).unwrap_err();
        // Where nobody can make anything, nothing has to stand in.
        let failed = |code| is_closed(&io::Error::from_raw_os_error(code));
        assert!(failed(libc::EROFS) && failed(libc::EACCES) && !failed(libc::ENOSPC));
        assert_eq!(there(&paths), [paths[1].clone()]);
    }

    #[test]
    fn a_file_that_stands_in_says_what_goes_without_saying_and_what_is_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        let paths = [path("commondir"), path("config.worktree"), path("config")];
        fs::write(&paths[2], "[core]\n").unwrap();
        let placed = Placed::new(&paths, None).unwrap();
        assert_eq!(fs::read(&paths[0]).unwrap(), b"./\n");
        assert_eq!(paths.each_ref().map(|path| is_stand_in(path)), [true, true, false]);
        fs::write(&paths[1], "[core]\n").unwrap();
        assert!(!is_stand_in(&paths[1]));
        drop(placed);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(!paths[0].exists() && !is_stand_in(&paths[0]));
    }

    #[test]
    fn what_a_daemon_left_standing_is_removed_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("temp");
        fs::create_dir(&root).unwrap();
        let paths = ["commondir", "hooks", "there"].map(|name| dir.path().join(name));
        fs::create_dir(&paths[2]).unwrap();
        let notes = notes_beside(&root.join("session"));
        let first = Placed::new(&paths, notes.as_deref()).unwrap();
        assert_eq!(fs::metadata(&paths[0]).unwrap().permissions().mode() & 0o777, 0o644);
        std::mem::forget(first);
        // A name that says something else is not believed.
        let other = dir.path().join("config.worktree");
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, root.join(NOTES).join("evil")).unwrap();
        assert_eq!(clear_left(&root), 2);
        assert!(!paths[0].exists() && !paths[1].exists() && paths[2].exists() && other.exists());
        assert_eq!(fs::read_dir(root.join(NOTES)).unwrap().count(), 0);
        paths.iter().for_each(|path| _ = needed().remove(path));

        // Of those that went as they should nothing is left to remove, also if somebody makes the same.
        drop(Placed::new(&paths, notes.as_deref()).unwrap());
        fs::create_dir(&paths[1]).unwrap();
        assert_eq!(clear_left(&root), 0);
        assert!(paths[1].exists());
        assert_eq!(notes_beside(Path::new("")), None);
    }
}
