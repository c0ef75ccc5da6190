//! Files with several names (hard links). Links in a path are followed and judged by where they lead;
//! of a hard link nobody can tell which name is the real one. So the other names are looked for: where
//! credentials and the daemon's files lie, and in the workspace. The most delicate name counts, and a
//! file that has names nobody found is judged as if it lay elsewhere.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::care::{self, Access, Places};
use super::disk::Identity;
use crate::types::tool::PathCare;

/// Entries that are looked at in all, so that a verdict comes at once.
const MOST_ENTRIES: usize = 10_000;

/// Where credentials and what is obeyed lie in a home folder.
const DELICATE: &[&str] = &[
    "",
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".cargo",
    ".config/gh",
    ".config/gcloud",
    ".config/git",
    ".config/agentd",
    ".local/share/agentd",
    ".config/autostart",
    ".config/systemd/user",
];

/// Folders that package managers fill with hard links to their own store.
const FILLED: &[&str] =
    &["node_modules", "site-packages", ".venv", "venv", "target", "objects", ".pnpm-store"];

/// How careful to be with a regular file of more than one name. `hidden` says of a path whether a
/// rule keeps it from being read.
pub(super) fn care<'r>(
    path: &Path,
    meta: &Metadata,
    access: Access,
    by_name: PathCare,
    roots: impl Iterator<Item = &'r Path>,
    places: &Places,
    hidden: &dyn Fn(&Path) -> bool,
) -> PathCare {
    let mut search = Search { identity: Identity::of(meta), names: Vec::new(), left: MOST_ENTRIES };
    for folder in DELICATE {
        search.look(&places.home.join(folder), 0);
    }
    for folder in &places.protected {
        search.look(folder, 3);
    }
    let is_filled = path.iter().any(|part| FILLED.iter().any(|name| part == *name));
    let wanted = usize::try_from(meta.nlink()).unwrap_or(usize::MAX);
    for root in roots {
        search.look(&root.join(".git"), 0);
        search.look(&root.join(".git/hooks"), 0);
        search.look(&root.join(".agentd"), 1);
        if !is_filled && search.names.len() < wanted {
            search.look(root, usize::MAX);
        }
    }
    search.names.sort();
    search.names.dedup();
    let known = search.names.iter().fold(by_name, |strictest, name| {
        let of_name = if hidden(name) { PathCare::Secret } else { care::care(name, access, places) };
        care::strictest(strictest, of_name)
    });
    if search.names.len() >= wanted || is_filled {
        known
    } else {
        care::strictest(known, PathCare::HardLinked)
    }
}

/// The files of a home folder and of the daemon that likely hold credentials.
pub(super) fn delicate(places: &Places) -> HashSet<Identity> {
    let folders =
        DELICATE.iter().map(|folder| places.home.join(folder)).chain(places.protected.iter().cloned());
    let mut found = HashSet::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten().take(MOST_ENTRIES) {
            if care::care(&entry.path(), Access::Read, places) == PathCare::Secret
                && let Ok(meta) = fs::symlink_metadata(entry.path())
                && meta.is_file()
                && meta.nlink() > 1
            {
                found.insert(Identity::of(&meta));
            }
        }
    }
    found
}

struct Search {
    identity: Identity,
    names: Vec<PathBuf>,
    left: usize,
}

impl Search {
    /// Looks for other names in `folder`, and so many floors below it, nearest first.
    fn look(&mut self, folder: &Path, depth: usize) {
        let mut folders = VecDeque::from([(folder.to_path_buf(), depth)]);
        while let Some((folder, depth)) = folders.pop_front() {
            let is_here = fs::symlink_metadata(&folder)
                .is_ok_and(|meta| meta.is_dir() && meta.dev() == self.identity.device);
            let Some(entries) = is_here.then(|| fs::read_dir(&folder).ok()).flatten() else { continue };
            for entry in entries.flatten() {
                if self.left == 0 {
                    return;
                }
                self.left -= 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && depth > 0 {
                    folders.push_back((entry.path(), depth - 1));
                } else if kind.is_file() && entry.ino() == self.identity.inode {
                    self.names.push(entry.path());
                }
            }
        }
    }
}
