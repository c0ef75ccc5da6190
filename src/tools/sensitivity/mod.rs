//! How sensitive a path is, by tables over resolved paths. Pure.
//!
//! Names are compared after case folding (`types::names`), because some file systems treat such spellings as
//! the same file.

mod auto_executed;
pub(super) mod git_config_paths;
pub(super) mod repository;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use types::credentials::{CREDENTIALS, SETTINGS};
use types::names;
use types::secret_names;
use types::tool::PathSensitivity;

pub(super) use repository::is_directory;

/// The access that the caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read, list or search the path.
    Read,
    /// Create, change or remove the path.
    Edit,
}

/// Links in one folder that are followed.
const MAX_LINKS: usize = 2_000;
/// Folders in the home folder whose links are other names of settings.
const FOLDERS_WITH_LINKS: [&str; 4] = ["", ".config", ".local", ".local/share"];
/// Folders of agents in the home folder. What their links lead to, such as a skill in a repository, tells models what to
/// do, so that changes of it count as changes below the folder. Reading it is ordinary.
const FOLDERS_OF_AGENTS: [&str; 12] = [
    ".claude",
    ".claude/agents",
    ".claude/commands",
    ".claude/skills",
    ".kode/agents",
    ".kode/commands",
    ".kode/skills",
    ".agents/skills",
    ".config/agentd/agents",
    ".config/agentd/commands",
    ".config/agentd/jobs",
    ".config/agentd/skills",
];
/// Maximum number of names that are listed of a folder. In a larger folder, resolving the paths is cheaper
/// than listing.
const MAX_LISTED_NAMES: usize = 4096;

/// The folded names in folders, each read once. Most names of the tables are in no home folder, and resolving
/// a path costs a system call for each of its folders. `None` for a folder that cannot be listed or has too
/// many names.
#[derive(Default)]
struct FolderListings(HashMap<PathBuf, Option<HashSet<String>>>);

impl FolderListings {
    /// Whether the name may exist: false if a folder on the path does not list the next part. The result may
    /// be wrong for automounted folders, which may resolve names that they do not list.
    fn may_have(&mut self, folder: &Path, name: &Path) -> bool {
        let mut folder = folder.to_path_buf();
        for part in name {
            let names = self.0.entry(folder.clone()).or_insert_with(|| {
                let mut entries = std::fs::read_dir(&folder).ok()?;
                let name = |entry: io::Result<DirEntry>| {
                    Some(names::fold_case(&entry.ok()?.file_name().to_string_lossy()))
                };
                let listed = entries.by_ref().take(MAX_LISTED_NAMES).map(name).collect::<Option<_>>()?;
                entries.next().is_none().then_some(listed)
            });
            match names {
                None => return true,
                Some(names) if !names.contains(&names::fold_case(&part.to_string_lossy())) => return false,
                Some(_) => folder.push(part),
            }
        }
        true
    }
}

/// Folders that the tables refer to.
#[derive(Clone, Debug)]
pub(super) struct SensitivePaths {
    pub(super) home: PathBuf,
    /// The daemon's own folders.
    pub(super) protected: Vec<PathBuf>,
    folded_home: Vec<String>,
    folded_protected: Vec<Vec<String>>,
    /// A worktree of the daemon that the session may use, although it lies in one of those folders.
    worktree: Option<PathBuf>,
    /// Targets of links in the home folder to credentials.
    linked: Vec<Vec<String>>,
    /// Targets of links in the home folder, each with its link. A path below the target has a second name below
    /// the link.
    aliases: Vec<(Vec<String>, Vec<String>)>,
    /// The same for the links in folders of agents.
    agent_aliases: Vec<(Vec<String>, Vec<String>)>,
}

impl SensitivePaths {
    pub(super) fn new(home: &Path, protected: &[PathBuf]) -> Self {
        Self {
            home: home.to_path_buf(),
            protected: protected.to_vec(),
            folded_home: folded_parts(home),
            folded_protected: protected.iter().map(|folder| folded_parts(folder)).collect(),
            worktree: None,
            linked: Vec::new(),
            aliases: Vec::new(),
            agent_aliases: Vec::new(),
        }
    }

    /// The same tables for a session that works in this worktree of the daemon.
    pub(super) fn in_worktree(&self, worktree: PathBuf) -> Self {
        Self { worktree: Some(worktree), ..self.clone() }
    }

    /// The parts of a path that decide about it: in the session's worktree those below, with its name as the first one.
    fn judged_parts<'p, 's>(&self, path: &Path, parts: &'p [&'s str]) -> &'p [&'s str] {
        match &self.worktree {
            Some(worktree) if path.starts_with(worktree) => {
                &parts[worktree.iter().count().saturating_sub(2).min(parts.len())..]
            }
            _ => parts,
        }
    }

    /// Adds the current targets of links in the home folder. Blocks on the disk.
    pub(super) fn with_links(mut self) -> Self {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let Ok(home) = self.home.canonicalize() else { return self };
        // A target that contains the home folder is ignored: all of the home folder would be sensitive.
        let moved = relocated_folders(&variable).into_iter().filter_map(|place| place.canonicalize().ok());
        self.linked.extend(moved.filter(|real| !home.starts_with(real)).map(|place| folded_parts(&place)));
        let mut listings = FolderListings::default();
        for name in CREDENTIALS.iter().chain(SETTINGS) {
            if listings.may_have(&home, Path::new(name))
                && let Ok(real) = self.home.join(name).canonicalize()
                && real != home.join(name)
                && !home.starts_with(&real)
            {
                self.linked.push(folded_parts(&real));
            }
        }
        let links_in = |folders: &[&str]| folders.iter().flat_map(|name| link_targets(&home, name)).collect();
        self.aliases = links_in(&FOLDERS_WITH_LINKS);
        self.agent_aliases = links_in(&FOLDERS_OF_AGENTS);
        self
    }

    /// Other names of a path for this access, through links in the home folder.
    fn other_names<'p>(&'p self, parts: &'p [&'p str], access: Access) -> impl Iterator<Item = Vec<&'p str>> {
        let named = move |(real, link): &'p (Vec<String>, Vec<String>)| {
            let rest = starts_with_parts(parts, real).then(|| &parts[real.len()..])?;
            Some(link.iter().map(String::as_str).chain(rest.iter().copied()).collect())
        };
        let of_agents = self.agent_aliases.iter().filter(move |_| access == Access::Edit);
        self.aliases.iter().chain(of_agents).filter_map(named)
    }

    fn lead_to_sensitive(&self, parts: &[&str]) -> bool {
        self.linked.iter().any(|place| starts_with_parts(parts, place))
    }

    /// The parts below the home folder.
    fn below_home<'p, 's>(&self, parts: &'p [&'s str]) -> Option<&'p [&'s str]> {
        let home = &self.folded_home;
        (!home.is_empty() && parts.len() > home.len() && starts_with_parts(parts, home))
            .then(|| &parts[home.len()..])
    }
}

fn link_targets(home: &Path, folder: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let folder = home.join(folder);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    // Limit the count: a folder with this many links does not hold settings.
    links
        .take(MAX_LINKS)
        .filter_map(|link| {
            let real = link.path().canonicalize().ok().filter(|real| !home.starts_with(real))?;
            Some((folded_parts(&real), folded_parts(&folder.join(link.file_name()))))
        })
        .collect()
}

/// Classifies a resolved path for one access. Secrets matter for reading; auto-executed and protected files
/// matter for writing.
pub(super) fn sensitivity(path: &Path, access: Access, places: &SensitivePaths) -> PathSensitivity {
    let parts = folded_parts(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let parts = places.judged_parts(path, &parts);
    let others = places.other_names(parts, access).map(|parts| sensitivity_of_name(&parts, access, places));
    others.fold(
        sensitivity_of_name(parts, access, places),
        |care, other| if care < other { other } else { care },
    )
}

fn sensitivity_of_name(parts: &[&str], access: Access, places: &SensitivePaths) -> PathSensitivity {
    let below_home = places.below_home(parts);
    let daemon = is_daemon_place(parts, below_home, places);
    match access {
        Access::Read
            if daemon || places.lead_to_sensitive(parts) || secret_names::is_secret(parts, below_home) =>
        {
            PathSensitivity::Secret
        }
        Access::Read => PathSensitivity::Ordinary,
        Access::Edit if daemon || repository::is_git_control(parts) => PathSensitivity::Protected,
        Access::Edit => match agentd_folder(parts) {
            Some(care) => care,
            None if auto_executed::is_auto_executed(parts, below_home) => PathSensitivity::AutoExecuted,
            None if secret_names::is_secret(parts, below_home) => PathSensitivity::Secret,
            None => PathSensitivity::Ordinary,
        },
    }
}

/// Checks for many files whether they probably hold secrets. Results for a folder are cached for the next file
/// in it.
pub(super) struct SecretNames<'p> {
    places: &'p SensitivePaths,
    folder: PathBuf,
    parts: Vec<String>,
}

impl<'p> SecretNames<'p> {
    pub(super) fn new(places: &'p SensitivePaths) -> Self {
        Self { places, folder: PathBuf::new(), parts: Vec::new() }
    }

    pub(super) fn contain_path(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        if folder != self.folder {
            self.folder = folder.to_path_buf();
            self.parts = folded_parts(folder);
        }
        let name = folded_parts(Path::new(name));
        let parts: Vec<&str> = self.parts.iter().chain(&name).map(String::as_str).collect();
        let parts = self.places.judged_parts(path, &parts);
        let below_home = self.places.below_home(parts);
        is_daemon_place(parts, below_home, self.places)
            || self.places.lead_to_sensitive(parts)
            || secret_names::is_secret(parts, below_home)
    }
}

/// Variables that set locations of home folders (XDG Base Directory Specification, manuals of Cargo and GnuPG).
const FOLDER_VARIABLES: &[(&str, &str)] = &[
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".cache", "XDG_CACHE_HOME"),
    (".cargo", "CARGO_HOME"),
    (".gnupg", "GNUPGHOME"),
];

/// Locations of credentials that environment variables set.
pub(super) fn relocated_folders(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, name) in FOLDER_VARIABLES {
        let Some(place) = variable(name).filter(|place| place.is_absolute()) else { continue };
        let relative_paths = CREDENTIALS.iter().filter_map(|path| Path::new(path).strip_prefix(folder).ok());
        found.extend(relative_paths.map(|rest| place.join(rest)));
    }
    found
}

/// Returns the stricter of two results for the same access.
pub(super) fn strictest(a: PathSensitivity, b: PathSensitivity) -> PathSensitivity {
    let rank = |care: PathSensitivity| match care {
        PathSensitivity::Ordinary => 0,
        PathSensitivity::HardLinked => 1,
        PathSensitivity::Secret => 2,
        PathSensitivity::AutoExecuted => 3,
        PathSensitivity::Protected => 4,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// The parts of a path, normalised as the least strict file system compares them.
fn folded_parts(path: &Path) -> Vec<String> {
    path.iter()
        .filter(|part| *part != "/")
        .map(|part| {
            let name = names::fold_case(&part.to_string_lossy());
            match short_name(&name) {
                Some(long) => long.to_owned(),
                None => name,
            }
        })
        .collect()
}

/// Short names that Windows generates for the most important names. The second form applies when the first four
/// are in use.
fn short_name(name: &str) -> Option<&'static str> {
    // This runs for each part of each path, and few parts contain `~`.
    if !name.as_bytes().contains(&b'~') {
        return None;
    }
    let (stem, number) = name.split_once('~')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    match stem {
        _ if !is_number => None,
        "git" | "gi7eba" => Some(".git"),
        "agentd" => Some(".agentd"),
        _ => None,
    }
}

fn starts_with_parts(parts: &[&str], folder: &[String]) -> bool {
    !folder.is_empty()
        && folder.len() <= parts.len()
        && folder.iter().zip(parts).all(|(a, b)| a.as_str() == *b)
}

/// Whether the path is a configuration, data or runtime folder of the daemon, configured or default. The socket
/// and the database are recognised by name in any folder.
fn is_daemon_place(parts: &[&str], below_home: Option<&[&str]>, places: &SensitivePaths) -> bool {
    places.folded_protected.iter().any(|folder| starts_with_parts(parts, folder))
        || matches!(parts, ["etc", "agentd", ..] | ["run", "user", _, "agentd", ..])
        || matches!(below_home, Some([".config", "agentd", ..] | [".local", "share" | "state", "agentd", ..]))
        || matches!(parts, [.., "agentd.sock" | "agentd.db" | "agentd.db-wal" | "agentd.db-shm"])
}

/// `.agentd/` and its content at any depth; `None` elsewhere.
fn agentd_folder(parts: &[&str]) -> Option<PathSensitivity> {
    let at = parts.iter().position(|part| *part == ".agentd")?;
    Some(match parts.get(at + 1) {
        Some(&("agents" | "commands" | "skills")) => PathSensitivity::AutoExecuted,
        _ => PathSensitivity::Protected,
    })
}
