//! Watches the folders with commands, skills, agents and instructions, so that clients are notified of changes at
//! once.
//!
//! This is only a notification. The files are read again for each use, so a change that cannot be watched, for
//! example because the system's limit of watches is reached, counts from the next turn all the same.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::folders::ProjectFolders;
use base::watch::{FolderChange, FolderWatcher};

/// Maximum number of watched folders of a workspace, and of levels below a folder of extensions.
const MAX_FOLDERS: usize = 512;
const MAX_DEPTH: usize = 5;

/// The folders of extensions in a workspace and in the home folder.
const PROGRAM_FOLDERS: [&str; 4] = [".agentd", ".claude", ".kode", AGENTS_FOLDER];
/// Has only skills for this daemon.
const AGENTS_FOLDER: &str = ".agents";
/// Their folders with Markdown files.
const KIND_FOLDERS: [&str; 3] = ["commands", "skills", "agents"];
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CLAUDE.local.md"];
/// A folder that may have instructions in addition to those of its project.
const INSTRUCTION_FOLDER: &str = ".claude";
const INSTRUCTIONS_KIND: &str = "instructions";

/// The places of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchedPaths {
    /// The folders of its sessions' project.
    pub project: ProjectFolders,
    /// The user's configuration folder.
    pub user_dir: Option<PathBuf>,
}

/// The changed files of a workspace that extend its sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedExtensions {
    /// Their kinds: `commands`, `skills`, `agents`, `instructions`.
    pub kinds: BTreeSet<&'static str>,
    /// Their paths, as far as they are known; at most [`MAX_NAMED_FILES`].
    pub files: BTreeSet<PathBuf>,
}

impl ChangedExtensions {
    fn add(&mut self, path: PathBuf, kind: &'static str) {
        self.kinds.insert(kind);
        if self.files.len() < MAX_NAMED_FILES {
            self.files.insert(path);
        }
    }
}

/// Maximum number of changed files that are named.
const MAX_NAMED_FILES: usize = 50;

impl WatchedPaths {
    /// The folders to watch that exist now, each with the path by which its files are found: a link may lead to it.
    /// Blocking.
    #[must_use]
    pub fn existing_folders(&self) -> HashMap<PathBuf, PathBuf> {
        let mut found: HashMap<PathBuf, PathBuf> =
            self.bases().map(|folder| (folder.to_owned(), folder.to_owned())).collect();
        for program in self.program_folders() {
            found.entry(program.clone()).or_insert_with(|| program.clone());
            for kind in KIND_FOLDERS {
                add_folders_below(&program.join(kind), 0, &mut found);
            }
        }
        found.retain(|folder, _| folder.is_dir());
        found
    }

    /// The folders of the project, the nearest first, and the home folder.
    fn bases(&self) -> impl Iterator<Item = &Path> {
        self.project.nearest_first().chain([self.project.home()])
    }

    /// The folders that may have folders of extensions.
    fn program_folders(&self) -> impl Iterator<Item = PathBuf> {
        let programs = self.bases().flat_map(|base| PROGRAM_FOLDERS.map(|name| base.join(name)));
        programs.chain(self.user_dir.clone())
    }

    /// The kind of change for this path; `None` if it is irrelevant.
    fn change_kind(&self, path: &Path) -> Option<&'static str> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent()?;
        let is_user_file = self.user_dir.as_deref() == Some(folder);
        let base = if folder.ends_with(INSTRUCTION_FOLDER) { folder.parent()? } else { folder };
        if INSTRUCTION_FILES.contains(&name)
            && (is_user_file || self.project.cwd().starts_with(base) || base == self.project.home())
        {
            return Some(INSTRUCTIONS_KIND);
        }
        let below = self.program_folders().find_map(|program| {
            let below = path.strip_prefix(&program).ok()?;
            let kind = below.iter().next()?.to_str()?;
            let is_read = !program.ends_with(AGENTS_FOLDER) || kind == "skills";
            KIND_FOLDERS.into_iter().find(|known| *known == kind && is_read)
        })?;
        // A path without an ending may be a folder that appeared or vanished with its files.
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
        matches!(ending.as_deref(), None | Some("md")).then_some(below)
    }
}

fn add_folders_below(folder: &Path, depth: usize, found: &mut HashMap<PathBuf, PathBuf>) {
    if depth > MAX_DEPTH || found.len() >= MAX_FOLDERS || !folder.is_dir() {
        return;
    }
    // Changes are reported below the path that is watched, so a link is watched by its target.
    let Ok(real) = folder.canonicalize() else { return };
    if found.contains_key(&real) {
        return;
    }
    found.insert(real, folder.to_owned());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FOLDERS) {
        let is_hidden =
            entry.file_name().to_string_lossy().starts_with('.') || entry.file_name() == "node_modules";
        if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
            add_folders_below(&entry.path(), depth + 1, found);
        }
    }
}

/// The Markdown files of a folder. A folder may have appeared together with them.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.take(MAX_FOLDERS).map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Watches the places of all workspaces with one handle of the system.
pub struct ExtensionWatcher {
    folders: FolderWatcher,
    /// The watched folders of each workspace, with the paths by which their files are found.
    places: HashMap<WatchedPaths, HashMap<PathBuf, PathBuf>>,
    has_failed: bool,
}

impl ExtensionWatcher {
    /// A watcher without folders.
    ///
    /// # Errors
    /// The system gives no handle; the reason, for users.
    pub fn new() -> Result<Self, String> {
        Ok(Self { folders: FolderWatcher::new()?, places: HashMap::new(), has_failed: false })
    }

    /// Watches exactly these workspaces from now on. Blocking.
    pub fn set_places(&mut self, wanted: &HashSet<WatchedPaths>) {
        let unwanted: Vec<WatchedPaths> =
            self.places.keys().filter(|it| !wanted.contains(it)).cloned().collect();
        for places in unwanted {
            let folders = self.places.remove(&places).unwrap_or_default();
            folders.keys().for_each(|folder| self.folders.release(folder));
        }
        for places in wanted {
            if !self.places.contains_key(places) {
                self.places.insert(places.clone(), HashMap::new());
                self.refresh(places);
            }
        }
    }

    /// Watches folders that appeared, and forgets those that vanished. Returns the paths of the new ones by which their
    /// files are found. Blocking.
    fn refresh(&mut self, places: &WatchedPaths) -> Vec<PathBuf> {
        let now = places.existing_folders();
        let before = self.places.insert(places.clone(), now.clone()).unwrap_or_default();
        before.keys().filter(|it| !now.contains_key(*it)).for_each(|folder| self.folders.release(folder));
        let new: Vec<(PathBuf, PathBuf)> =
            now.into_iter().filter(|(it, _)| !before.contains_key(it)).collect();
        new.iter().for_each(|(folder, _)| self.acquire(folder));
        new.into_iter().map(|(_, shown)| shown).collect()
    }

    fn acquire(&mut self, folder: &Path) {
        if let Err(error) = self.folders.acquire(folder)
            && !std::mem::replace(&mut self.has_failed, true)
        {
            let folder = folder.display();
            tracing::warn!(error, %folder, "could not watch a folder; its changes count from the next turn");
        }
    }

    /// Waits for changes until none comes for a moment, and returns them for each workspace. Cancel-safe until the
    /// first change; a change that is lost later is noticed at the next turn.
    pub async fn next_changes(&mut self) -> Vec<(WatchedPaths, ChangedExtensions)> {
        let changes = self.folders.next_changes().await;
        self.changes_by_workspace(&changes)
    }

    /// The path by which a changed file is found.
    fn shown_path(&self, places: &WatchedPaths, path: &Path) -> PathBuf {
        let shown = path.parent().and_then(|folder| self.places.get(places)?.get(folder));
        match (shown, path.file_name()) {
            (Some(shown), Some(name)) => shown.join(name),
            _ => path.to_owned(),
        }
    }

    fn changes_by_workspace(&mut self, changes: &[FolderChange]) -> Vec<(WatchedPaths, ChangedExtensions)> {
        let all: Vec<WatchedPaths> = self.places.keys().cloned().collect();
        let mut found = Vec::new();
        for places in all {
            let mut changed = ChangedExtensions::default();
            let mut add = |path: &Path| {
                if let Some(kind) = places.change_kind(path) {
                    changed.add(path.to_owned(), kind);
                }
            };
            for change in changes {
                if let FolderChange::Path(path) = change {
                    add(path);
                    add(&self.shown_path(&places, path));
                }
            }
            for folder in self.refresh(&places) {
                markdown_files(&folder).iter().for_each(|path| add(path));
            }
            if changes.contains(&FolderChange::Anything) {
                changed.kinds.extend(KIND_FOLDERS);
                changed.kinds.insert(INSTRUCTIONS_KIND);
            }
            if !changed.kinds.is_empty() {
                found.push((places, changed));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn next_change(watcher: &mut ExtensionWatcher) -> ChangedExtensions {
        let changed = tokio::time::timeout(Duration::from_secs(20), watcher.next_changes()).await;
        changed.expect("in time").pop().map(|(_, changed)| changed).unwrap_or_default()
    }

    async fn next_kinds(watcher: &mut ExtensionWatcher) -> Vec<&'static str> {
        next_change(watcher).await.kinds.into_iter().collect()
    }

    #[tokio::test]
    async fn folders_that_appear_later_are_watched_and_none_is_created() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        let (cwd, home) = (base.join("work"), base.join("home"));
        for folder in [&cwd, &home] {
            fs::create_dir(folder).expect("made");
        }
        let project = ProjectFolders::find(&cwd, &home);
        let places = WatchedPaths { project, user_dir: Some(home.join("config")) };
        let mut watcher = ExtensionWatcher::new().expect("a watcher");
        watcher.set_places(&HashSet::from([places.clone()]));
        assert_eq!(fs::read_dir(&cwd).expect("there").count(), 0, "nothing is created");
        fs::create_dir_all(cwd.join(".agentd/commands/team")).expect("made");
        fs::write(cwd.join(".agentd/commands/team/a.md"), "x").expect("written");
        assert_eq!(next_kinds(&mut watcher).await, ["commands"]);
        fs::write(cwd.join(".agentd/commands/team/b.md"), "x").expect("written");
        fs::write(cwd.join(".agentd/commands/team/b.txt"), "x").expect("written");
        fs::write(cwd.join("AGENTS.md"), "x").expect("written");
        let changed = next_change(&mut watcher).await;
        assert_eq!(changed.kinds, BTreeSet::from(["commands", "instructions"]));
        let files = [".agentd/commands/team/b.md", "AGENTS.md"].map(|name| cwd.join(name));
        assert_eq!(changed.files, BTreeSet::from(files), "only the changed files are named");
        fs::create_dir_all(cwd.join(".claude/skills/pdf")).expect("made");
        assert!(next_kinds(&mut watcher).await.is_empty(), "a folder without files changes nothing");
        fs::write(cwd.join(".claude/skills/pdf/SKILL.md"), "x").expect("written");
        assert_eq!(next_kinds(&mut watcher).await, ["skills"]);
        // Irrelevant changes are not reported, and without workspaces nothing is watched.
        fs::write(cwd.join("notes.md"), "x").expect("written");
        fs::write(cwd.join(".claude/settings.json"), "x").expect("written");
        let quiet = tokio::time::timeout(Duration::from_secs(1), watcher.next_changes()).await;
        assert!(quiet.is_err() || quiet.is_ok_and(|found| found.is_empty()));
        watcher.set_places(&HashSet::new());
        assert!(watcher.folders.is_empty());
    }

    #[test]
    fn files_of_folders_up_to_project_root_are_watched() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        for folder in
            ["r/.git/objects", "r/.git/refs", "r/sub/deep", "r/.claude/commands/team", "r/other/.claude"]
        {
            fs::create_dir_all(base.join(folder)).expect("made");
        }
        fs::write(base.join("r/.git/HEAD"), "ref: refs/heads/main\n").expect("written");
        let project = ProjectFolders::find(&base.join("r/sub/deep"), &base.join("home"));
        let places = WatchedPaths { project, user_dir: None };
        let folders = places.existing_folders();
        for (folder, is_watched) in [
            ("r", true),
            ("r/sub", true),
            ("r/.claude/commands/team", true),
            ("r/other/.claude", false),
            ("", false),
        ] {
            assert_eq!(folders.contains_key(&base.join(folder)), is_watched, "{folder}: {folders:?}");
        }
        for (path, kind) in [
            ("r/.claude/commands/team/a.md", Some("commands")),
            ("r/sub/.agentd/agents/a.md", Some("agents")),
            ("r/AGENTS.md", Some("instructions")),
            ("r/other/.claude/commands/a.md", None),
            ("r/.agents/skills/x/SKILL.md", Some("skills")),
            ("r/.agents/commands/x.md", None),
            ("r/.claude/CLAUDE.md", Some("instructions")),
            ("r/sub/CLAUDE.local.md", Some("instructions")),
            ("home/.claude/CLAUDE.md", Some("instructions")),
            ("r/other/.claude/CLAUDE.md", None),
        ] {
            assert_eq!(places.change_kind(&base.join(path)), kind, "{path}");
        }
    }

    #[tokio::test]
    async fn change_behind_a_link_is_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        for folder in ["r/.claude", "r/shared/pdf", "home"] {
            fs::create_dir_all(base.join(folder)).expect("made");
        }
        std::os::unix::fs::symlink("../shared", base.join("r/.claude/skills")).expect("linked");
        std::os::unix::fs::symlink("..", base.join("r/shared/pdf/up")).expect("linked");
        let project = ProjectFolders::find(&base.join("r"), &base.join("home"));
        let places = WatchedPaths { project, user_dir: None };
        let mut watcher = ExtensionWatcher::new().expect("a watcher");
        watcher.set_places(&HashSet::from([places]));
        fs::write(base.join("r/shared/pdf/SKILL.md"), "x").expect("written");
        assert_eq!(next_kinds(&mut watcher).await, ["skills"]);
    }

    #[test]
    fn number_of_watched_folders_is_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        let cwd = dir.path().canonicalize().expect("resolved");
        for n in 0..MAX_FOLDERS + 50 {
            fs::create_dir_all(cwd.join(format!(".claude/skills/s{n}"))).expect("made");
        }
        let project = ProjectFolders::find(&cwd, &cwd.join("none"));
        let places = WatchedPaths { project, user_dir: None };
        assert!(places.existing_folders().len() <= MAX_FOLDERS + 1);
    }
}
