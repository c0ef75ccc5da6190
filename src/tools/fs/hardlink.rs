//! Files with several names (hard links). A link in a path is judged by its target, but no name of a hard link
//! is the real one. Other names are therefore searched in the folders of credentials, in the daemon's folders
//! and in the workspace. The most sensitive name counts. A file with names that were not found is judged as if
//! it were outside the workspace.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::file_identity::FileIdentity;
use crate::sensitivity;
use crate::sensitivity::{Access, SecretNames, SensitivePaths};
use types::credentials::{CREDENTIALS, SETTINGS};
use types::tool::PathSensitivity;

/// Entries that are inspected in total, so that judging stays fast.
const MAX_ENTRIES: usize = 10_000;

/// Folders from a workspace upwards whose protected files are inspected.
const MAX_FOLDERS_ABOVE: usize = 256;

/// Further folders of a home folder with auto-executed files.
const AUTO_EXECUTED_FOLDERS: &[&str] =
    &["", ".cargo", ".config/agentd", ".local/share/agentd", ".config/autostart", ".config/systemd/user"];

/// The folders of a home folder with credentials and auto-executed files, without duplicates.
fn sensitive_folders(home: &Path) -> BTreeSet<PathBuf> {
    let listed_paths = CREDENTIALS.iter().chain(SETTINGS).map(Path::new);
    let around = listed_paths.flat_map(|path| [Some(path), path.parent()]).flatten();
    around.chain(AUTO_EXECUTED_FOLDERS.iter().map(Path::new)).map(|folder| home.join(folder)).collect()
}

/// Folders that package managers fill with hard links to their own store.
const PACKAGE_FOLDERS: &[&str] =
    &["node_modules", "site-packages", ".venv", "venv", "target", "objects", ".pnpm-store"];

/// What is known about a regular file with several names.
pub(crate) struct NamedFile {
    pub(crate) sensitivity: PathSensitivity,
    /// Names that a rule matches.
    pub(crate) matched_aliases: Vec<PathBuf>,
    /// Whether all names lie in the workspace, outside folders of package managers.
    pub(crate) is_shared_in_workspace: bool,
}

/// Sensitivity of a regular file with several names, and the name that a rule matches. `hidden` returns whether
/// a rule denies reading a path.
pub(crate) fn sensitivity_of_names<'r>(
    path: &Path,
    meta: &Metadata,
    access: Access,
    by_name: PathSensitivity,
    roots: impl Iterator<Item = &'r Path>,
    places: &SensitivePaths,
    hidden: &dyn Fn(&Path) -> bool,
) -> NamedFile {
    let roots: Vec<&Path> = roots.collect();
    let mut search =
        AliasSearch { identity: FileIdentity::from_metadata(meta), names: Vec::new(), left: MAX_ENTRIES };
    for folder in sensitive_folders(&places.home) {
        search.search_folder(&folder, 0);
    }
    for folder in &places.protected {
        search.search_folder(folder, 3);
    }
    let is_filled = is_filled(path);
    let wanted = usize::try_from(meta.nlink()).unwrap_or(usize::MAX);
    for root in roots.iter().copied() {
        // The files of a project count in the folders above the workspace, too.
        for folder in root.ancestors().take(MAX_FOLDERS_ABOVE) {
            search.search_folder(&folder.join(".git"), 0);
            search.search_folder(&folder.join(".git/hooks"), 0);
            search.search_folder(&folder.join(".agentd"), 1);
        }
        if search.names.len() < wanted {
            search.search_folder(root, usize::MAX);
        }
    }
    search.names.sort();
    search.names.dedup();
    let is_own = |name: &PathBuf| roots.iter().any(|root| name.starts_with(root)) && !self::is_filled(name);
    let is_shared_in_workspace = search.names.len() == wanted && search.names.iter().all(is_own);
    let is_all = search.names.len() >= wanted || is_filled;
    let of_names = search.names.iter().map(|name| sensitivity::sensitivity(name, access, places));
    let linked = if is_all { PathSensitivity::Ordinary } else { PathSensitivity::HardLinked };
    let by_names = of_names.fold(sensitivity::strictest(by_name, linked), sensitivity::strictest);
    let matched_aliases: Vec<PathBuf> =
        search.names.into_iter().filter(|name| name != path && hidden(name)).collect();
    let of_rules =
        if matched_aliases.is_empty() { PathSensitivity::Ordinary } else { PathSensitivity::Secret };
    let sensitivity = sensitivity::strictest(by_names, of_rules);
    NamedFile { sensitivity, matched_aliases, is_shared_in_workspace }
}

/// Entries of the workspace that a search inspects to find other names of its files.
const MAX_SEARCH_ENTRIES: usize = 200_000;

/// All names of the files of a workspace, for a search that finds files with several names.
pub(crate) struct WorkspaceNames {
    files: HashMap<FileIdentity, NameCount>,
    /// Credentials of the home folder and of the daemon.
    sensitive: HashSet<FileIdentity>,
}

#[derive(Default)]
struct NameCount {
    names: u64,
    /// Whether one name is a secret or a rule denies reading it.
    is_protected: bool,
}

impl WorkspaceNames {
    /// Scans the workspace, up to [`MAX_SEARCH_ENTRIES`] entries or until `stop` returns true. Names that were
    /// not reached stay unknown.
    pub(crate) fn find<'r>(
        roots: impl Iterator<Item = &'r Path>,
        places: &SensitivePaths,
        is_unreadable: &dyn Fn(&Path) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let mut files: HashMap<FileIdentity, NameCount> = HashMap::new();
        let mut secrets = SecretNames::new(places);
        let mut folders: VecDeque<PathBuf> = roots.map(Path::to_path_buf).collect();
        // A root inside another one is scanned once.
        let mut seen = HashSet::new();
        let mut left = MAX_SEARCH_ENTRIES;
        while let Some(folder) = folders.pop_front().filter(|_| left > 0 && !stop()) {
            let Ok(meta) = fs::symlink_metadata(&folder) else { continue };
            if !meta.is_dir() || !seen.insert(FileIdentity::from_metadata(&meta)) {
                continue;
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten().take(left) {
                left -= 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    folders.push_back(entry.path());
                } else if kind.is_file() {
                    let path = entry.path();
                    let identity = FileIdentity { device: meta.dev(), inode: entry.ino() };
                    let known = files.entry(identity).or_default();
                    known.names += 1;
                    known.is_protected |= secrets.contain_path(&path) || is_unreadable(&path);
                }
            }
        }
        Self { files, sensitive: sensitive_files(places) }
    }

    /// Whether a search may show a file with several names: all of them are known and none is sensitive. Files
    /// in folders of package managers are always shown.
    pub(crate) fn allow(&self, path: &Path, meta: &Metadata) -> bool {
        let identity = FileIdentity::from_metadata(meta);
        let known = self.files.get(&identity);
        let all_known = || known.is_some_and(|known| known.names >= meta.nlink()) || is_filled(path);
        !self.sensitive.contains(&identity) && known.is_none_or(|known| !known.is_protected) && all_known()
    }
}

fn is_filled(path: &Path) -> bool {
    path.iter().any(|part| PACKAGE_FOLDERS.iter().any(|name| part == *name))
}

/// Files of a home folder and of the daemon that probably hold credentials.
fn sensitive_files(places: &SensitivePaths) -> HashSet<FileIdentity> {
    let folders = sensitive_folders(&places.home).into_iter().chain(places.protected.iter().cloned());
    let mut found = HashSet::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten().take(MAX_ENTRIES) {
            if sensitivity::sensitivity(&entry.path(), Access::Read, places) == PathSensitivity::Secret
                && let Ok(meta) = fs::symlink_metadata(entry.path())
                && meta.is_file()
                && meta.nlink() > 1
            {
                found.insert(FileIdentity::from_metadata(&meta));
            }
        }
    }
    found
}

struct AliasSearch {
    identity: FileIdentity,
    names: Vec<PathBuf>,
    left: usize,
}

impl AliasSearch {
    /// Searches for other names in `folder` and up to `depth` levels below it, nearest first.
    fn search_folder(&mut self, folder: &Path, depth: usize) {
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
