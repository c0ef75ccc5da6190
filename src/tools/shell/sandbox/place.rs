//! Stand-ins for protected places that do not exist, for as long as a command runs, so that something can be
//! put over them: an empty folder, or a file that says to git what it takes for granted without it. Who makes
//! `.git` while it is protected would otherwise make its hooks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many commands need a stand-in that was made here. To remove one is to take the cover off in
/// every sandbox that has it.
static NEEDED: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

fn needed() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    // Numbers are right at every moment.
    NEEDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a stand-in says, if it is a file: git reads it while it is there, also outside (gitrepository-layout(5)).
fn text_of(path: &Path) -> Option<&'static str> {
    match path.file_name()?.to_str()? {
        // The folder itself is where the shared parts lie.
        "commondir" => Some(".\n"),
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
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut file = tempfile::Builder::new().prefix(".agentd-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
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

impl Placed {
    /// Makes them where nothing is.
    ///
    /// # Errors
    /// The folder around one cannot be written, so nobody else can make it either: such are left out. Other
    /// failures are told.
    pub(super) fn new(paths: &[PathBuf]) -> io::Result<Self> {
        let mut needed = needed();
        let mut placed = Self::default();
        for path in paths {
            if let Some(count) = needed.get_mut(path) {
                *count += 1;
                placed.0.push(path.clone());
                continue;
            }
            match make(path) {
                Ok(()) => {
                    needed.insert(path.clone(), 1);
                    placed.0.push(path.clone());
                }
                // It is there by now, and whose it is counts.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_closed(&error) => {}
                Err(error) => {
                    drop(needed);
                    return Err(error);
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
            let Some(count) = needed.get_mut(path) else { continue };
            *count -= 1;
            if *count == 0 {
                needed.remove(path);
                remove(path);
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
        let first = Placed::new(&paths).unwrap();
        let second = Placed::new(&paths).unwrap();
        drop(first);
        assert!(paths[0].is_dir());
        drop(second);
        assert!(!paths[0].exists() && paths[1].exists());
        Placed::new(&[dir.path().join("no/such")]).unwrap_err();
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
        let placed = Placed::new(&paths).unwrap();
        assert_eq!(fs::read(&paths[0]).unwrap(), b".\n");
        assert_eq!(paths.each_ref().map(|path| is_stand_in(path)), [true, true, false]);
        fs::write(&paths[1], "[core]\n").unwrap();
        assert!(!is_stand_in(&paths[1]));
        drop(placed);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(!paths[0].exists() && !is_stand_in(&paths[0]));
    }
}
