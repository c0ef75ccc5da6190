//! Remembers where hidden paths were at the daemon's first check, because a command may since have removed a
//! link that led to one. Targets of later links are hidden only while the link exists; remembering them would
//! let a command choose which paths stay hidden.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::shell::sandbox::layout::secrets::Located;
use base::open::is_plain;
use base::sync::lock;

/// First locations of hidden paths. They are kept as long as the daemon runs, also across reloads of the
/// configuration.
#[derive(Debug, Default)]
pub(crate) struct FirstSeen {
    known: Mutex<SeenPath>,
}

#[derive(Debug, Default)]
struct SeenPath {
    /// Configured paths and their first targets.
    first_targets: HashMap<PathBuf, Option<PathBuf>>,
    /// First locations of the credentials.
    credentials: Option<Vec<PathBuf>>,
    /// Folders that could not be searched at the first check.
    shut: Vec<PathBuf>,
}

impl SeenPath {
    fn record_locations(&mut self, seen: Vec<Located>) {
        let is_new = self.credentials.is_none();
        let mut shut = Vec::new();
        let known = self.credentials.get_or_insert_default();
        for sight in seen {
            match sight {
                // Later paths in other folders are not remembered.
                Located::Found(path) if is_new || self.shut.iter().any(|folder| path.starts_with(folder)) => {
                    if !known.contains(&path) {
                        known.push(path);
                    }
                }
                Located::Unsearchable(folder) if is_new || self.shut.contains(&folder) => shut.push(folder),
                Located::Found(_) | Located::Unsearchable(_) | Located::Missing => {}
            }
        }
        self.shut = shut;
    }
}

impl FirstSeen {
    /// The first target of a configured path, if it exists and differs from the current target.
    pub(crate) fn moved_target(&self, name: &Path, now: Option<&Path>) -> Option<PathBuf> {
        let mut known = lock(&self.known);
        let first = match known.first_targets.get(name) {
            Some(first) => first.clone(),
            None => {
                known.first_targets.insert(name.to_owned(), now.map(Path::to_owned));
                return None;
            }
        };
        drop(known);
        first.filter(|first| Some(first.as_path()) != now && is_plain(first))
    }

    /// The first locations of credentials that still exist and are not among the current ones. `look` returns
    /// the locations for a session without a workspace. It is called until every folder could be searched.
    pub(crate) fn credentials(&self, now: &[PathBuf], look: impl FnOnce() -> Vec<Located>) -> Vec<PathBuf> {
        let is_whole = |known: &SeenPath| known.credentials.is_some() && known.shut.is_empty();
        if !is_whole(&lock(&self.known)) {
            // Do not wait for the disk while holding the lock.
            let seen = look();
            lock(&self.known).record_locations(seen);
        }
        let known = lock(&self.known);
        let first = known.credentials.iter().flatten();
        let missing_paths: Vec<PathBuf> = first.filter(|path| !now.contains(path)).cloned().collect();
        drop(known);
        missing_paths.into_iter().filter(|path| is_plain(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use crate::shell::sandbox::layout::first_seen::*;

    #[test]
    fn first_seen_hidden_paths_are_kept_and_later_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [first, later, linked] = ["first", "later", "linked"].map(|name| root.join(name));
        for path in [&first, &later, &linked] {
            fs::create_dir(path).unwrap();
        }
        let memory = FirstSeen::default();
        let all = || [&first, &linked].map(|path| Located::Found(path.clone())).into();
        let none = || panic!("it is known");
        assert!(memory.credentials(&[first.clone(), linked.clone()], all).is_empty());
        assert_eq!(memory.credentials(std::slice::from_ref(&later), none), [first.clone(), linked.clone()]);
        // Only folders that could not be searched are searched again.
        let shut = FirstSeen::default();
        let some = || vec![Located::Unsearchable(root.join("later")), Located::Found(first.clone())];
        assert_eq!(shut.credentials(&[], some), std::slice::from_ref(&first));
        let open = || [&later, &linked].map(|path| Located::Found(path.clone())).into();
        assert_eq!(shut.credentials(&[], open), [first.clone(), later.clone()]);
        assert_eq!(shut.credentials(&[], none), [first.clone(), later.clone()]);
        // A path that is now reached through a link cannot be covered.
        fs::remove_dir(&linked).unwrap();
        symlink(&later, &linked).unwrap();
        assert_eq!(memory.credentials(&[], none), std::slice::from_ref(&first));

        let [name, none] = ["name", "none"].map(|name| root.join(name));
        assert_eq!(memory.moved_target(&name, Some(&first)), None);
        assert_eq!(memory.moved_target(&none, None), None);
        assert_eq!(memory.moved_target(&name, Some(&later)), Some(first.clone()));
        assert_eq!(memory.moved_target(&name, Some(&first)), None);
        assert_eq!(memory.moved_target(&none, Some(&later)), None, "nothing was there");
        assert_eq!(memory.moved_target(&name, None), Some(first));
    }
}
