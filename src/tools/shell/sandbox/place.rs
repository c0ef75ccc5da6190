//! Stand-ins for protected places that do not exist, for as long as a command runs: an empty folder in
//! each place, so that something can be put over it. Who makes `.git` while it is protected would
//! otherwise make its hooks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many commands need a stand-in that was made here. To remove one is to take the cover off in
/// every sandbox that has it.
static NEEDED: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

fn needed() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    // Numbers are right at every moment.
    NEEDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether what is there stands in for something, so that nothing is. What somebody has put something into is what it
/// looks like.
pub(super) fn is_stand_in(path: &Path) -> bool {
    let is_known = needed().contains_key(path);
    is_known && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
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
            match fs::create_dir(path) {
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
                // Only an empty one goes.
                let _ = fs::remove_dir(path);
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
}
