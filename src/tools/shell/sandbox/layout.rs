//! What a call may write, what it may only read within that, and what it does not see. The same for
//! every level; how much of it a level can hold is the level's matter.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::blocked::Ground;
use super::git;
use super::place::{is_stand_in, notes_beside};
use super::temp;
use crate::tools::care;
use crate::tools::context::Context;
use crate::tools::disk::is_missing;
use crate::types::credentials::CREDENTIALS;

/// Secrets of the machine, and sockets of services that would do outside what is forbidden inside.
const OF_THE_MACHINE: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/run/user",
    "/run/dbus",
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/libvirt",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/tmux",
    "/run/screen",
];

/// What package managers keep below the home folder, writable for commands that reach the network:
/// without it nothing can be installed. What is put there is used by other projects, too.
const CACHES: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".bun/install/cache",
    ".local/share/pnpm",
    ".yarn/berry",
    "go/pkg",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
];

/// Folders of submodules, and work trees, that are looked at.
const MOST_FOLDERS: usize = 300;
/// Entries of folders that are looked at to find them.
const MOST_ENTRIES: usize = 4_000;
/// Bytes of the path of a submodule's folder; the kernel takes 4,095, and it is mounted elsewhere as well.
const LONGEST: usize = 2_000;
/// Links on the way to a path; the kernel's own number, path_resolution(7).
const MOST_LINKS: usize = 40;

/// Where a command may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tools::shell) struct Layout {
    /// Existing files and folders that it may change.
    pub(super) writable: Vec<PathBuf>,
    /// Within these it may change only what `writable` names below them; they exist.
    pub(super) guarded: Vec<PathBuf>,
    /// Folders that may be changed and not be moved away, since they hold guarded ones.
    pub(super) pinned: Vec<PathBuf>,
    /// What would be guarded and does not exist.
    pub(super) absent: Vec<PathBuf>,
    /// Existing files and folders that it does not see.
    pub(super) hidden: Vec<PathBuf>,
    /// Its folder for temporary files.
    pub(super) temp: PathBuf,
    /// `HOME`, which is to be seen wherever it is.
    pub(super) home: PathBuf,
    /// A `.git` file that would say what to guard.
    pub(super) unreadable: Option<PathBuf>,
}

impl Layout {
    /// Looks at what there is, and makes the folder for temporary files. Waits for the disk.
    ///
    /// # Errors
    /// That folder cannot be made, or is not ours alone.
    pub(in crate::tools::shell) fn of(context: &Context, network: bool) -> std::io::Result<Self> {
        let settings = &context.settings.sandbox;
        let (scene, home) = (&context.scene, &context.places.home);
        let mut layout = Self {
            temp: temp::folder_of(&settings.temp, context.scene.session_id)?,
            home: home.clone(),
            ..Self::default()
        };
        // The folders beside it may be gone since.
        // Nor is what stands in the place of one.
        let jail = context.jails.of(scene);
        let additional = scene.additional.iter().filter(|folder| folder.is_dir() && !jail.is_moved(folder));
        layout.writable.push(scene.workspace.clone());
        layout.writable.extend(additional.clone().cloned());
        layout.writable.extend(settings.writable.iter().filter_map(|path| path.canonicalize().ok()));
        let asked = layout.writable.clone();
        if network {
            layout.writable.extend(below(home, CACHES));
        }
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let secrets = credentials(home, &asked)
            .into_iter()
            .chain(care::moved(home, &variable))
            .chain(OF_THE_MACHINE.iter().map(PathBuf::from));
        // Whoever lists a secret as writable means it.
        let secrets = secrets.filter(|path| !asked.contains(path));
        // Where a folder on the way cannot be searched, a command may open it again: all of it is hidden.
        let covered = |path: PathBuf| match fs::symlink_metadata(&path) {
            Ok(meta) => (!meta.is_symlink()).then_some(path),
            Err(error) if is_missing(&error) => None,
            Err(_) => barrier(&path),
        };
        layout.hidden = settings.hidden.iter().cloned().chain(secrets).filter_map(covered).collect();
        layout.hidden.sort();
        layout.hidden.dedup();
        layout.guard(&scene.workspace);
        additional.for_each(|folder| layout.guard(folder));
        settings.hidden.iter().for_each(|path| layout.keep_away(path));
        // What stands there is removed after a crash: nobody else says what.
        if let Some(notes) = notes_beside(&layout.temp).filter(|notes| layout.may_change(notes)) {
            temp::own(&notes)?;
            layout.guarded.push(notes);
        }
        layout.pin_what_is_above();
        match layout.unreadable.take() {
            Some(path) => Err(std::io::Error::other(format!(
                "{} cannot be read, so what it leads to cannot be protected; make it readable",
                path.display()
            ))),
            None => Ok(layout),
        }
    }

    /// What a failure of a command can be held against.
    pub(in crate::tools::shell) fn ground(&self, cwd: &Path) -> Ground {
        let writable = self.writable.iter().chain([&self.temp]).cloned().collect();
        let guarded = self.guarded.iter().chain(&self.absent).chain(&self.hidden).cloned().collect();
        Ground { cwd: cwd.to_owned(), writable, guarded }
    }

    /// Protects what in a workspace is obeyed outside of the sandbox (P4).
    pub(super) fn guard(&mut self, workspace: &Path) {
        self.guard_one(workspace.join(".agentd"));
        let git = workspace.join(".git");
        if !is_stand_in(&git) && git.is_dir() && !git.is_symlink() && !is_stand_in(&git) {
            self.guard_git(&git);
            self.pinned.push(git);
        } else if let Some(real) = self.linked_within(&git).filter(|real| real.is_dir()) {
            self.guard_git(&real);
            self.pinned.push(real);
        } else {
            if let Some(real) = git::work_tree(&git) {
                self.guard_git(&real.common);
                // What says where the rest of its repository lies, and a configuration of its own.
                self.guard_one(real.own.join("commondir"));
                self.guard_one(real.own.join("config.worktree"));
                self.writable.push(real.common);
                self.writable.push(real.own);
            } else if let Some(real) = git::named_in(&git).filter(|real| self.is_part(real)) {
                self.guard_git(&real);
                self.pinned.push(real);
            }
            if git.is_file() && fs::File::open(&git).is_err() {
                self.unreadable = Some(git.clone());
            }
            self.guard_one(git);
        }
        if git::is_bare(workspace) {
            self.guard_git(workspace);
        }
    }

    fn guard_git(&mut self, git: &Path) {
        self.guard_repository(git);
        // Also where git does not read it yet: a person may tell it to (git-worktree(1)).
        self.guard_one(git.join("config.worktree"));
        self.guard_modules(&git.join("modules"));
        self.guard_trees(git);
    }

    /// What git obeys in a repository. `commondir` leads to another's configuration and hooks
    /// (gitrepository-layout(5)).
    fn guard_repository(&mut self, git: &Path) {
        self.guard_one(git.join("config"));
        self.guard_one(git.join("hooks"));
        let shared = git.join("commondir");
        if is_there(&shared) && !is_stand_in(&shared) || !git::says_where(git) {
            self.guard_one(shared);
        }
    }

    /// Other work trees of the repository, which lie where a command does not write: it would write what git obeys
    /// there.
    fn guard_trees(&mut self, git: &Path) {
        let trees = git.join("worktrees");
        // Who may not list it may be let again by a command.
        let mut is_excessive = is_shut(&trees);
        let found: Vec<PathBuf> = fs::read_dir(&trees)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .take(MOST_ENTRIES + 1)
            .enumerate()
            .inspect(|(n, _)| is_excessive |= *n == MOST_ENTRIES)
            .map(|(_, own)| own)
            .filter(|own| git::tree_of(own).is_some_and(|tree| !self.may_change(&tree)))
            .take(MOST_FOLDERS + 1)
            .collect();
        if is_excessive || found.len() > MOST_FOLDERS {
            // More than anybody has: none of them is changed.
            return self.guard_one(trees);
        }
        for own in &found {
            for name in ["commondir", "gitdir", "config.worktree"] {
                self.guard_one(own.join(name));
            }
        }
        if !found.is_empty() {
            self.pinned.extend(found);
            self.pinned.push(trees);
        }
    }

    /// The folders of submodules have the same. They are named as the submodules are, by paths
    /// (gitsubmodules(7)); all above them is pinned, so that nothing is put in their place.
    fn guard_modules(&mut self, modules: &Path) {
        let (pinned, guarded, absent) = (self.pinned.len(), self.guarded.len(), self.absent.len());
        let mut folders = vec![modules.to_owned()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            let is_folder = fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir());
            if !is_folder {
                continue;
            }
            seen += 1;
            let is_long = folder.as_os_str().len() > LONGEST;
            if seen > MOST_FOLDERS || folders.len() > MOST_ENTRIES || is_long || is_shut(&folder) {
                // More than anybody has: nothing of them is changed.
                self.pinned.truncate(pinned);
                self.guarded.truncate(guarded);
                self.absent.truncate(absent);
                return self.guard_one(modules.to_owned());
            }
            // A command can take away the former, and not the latter.
            if ["HEAD", "config"].iter().any(|name| folder.join(name).is_file()) {
                self.guard_repository(&folder);
                let of_tree = folder.join("config.worktree");
                if is_there(&of_tree) {
                    self.guard_one(of_tree);
                }
                // Its own submodules.
                folders.push(folder.join("modules"));
            } else {
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                folders.extend(entries.take(MOST_ENTRIES + 1).map(|entry| entry.path()));
            }
            self.pinned.push(folder);
        }
    }

    /// A cover is over a name: whatever lies between it and the folder that may be written could be moved away, and the
    /// name with it.
    pub(super) fn pin_what_is_above(&mut self) {
        let within =
            |folder: &Path| self.writable.iter().any(|root| folder.starts_with(root) && folder != root);
        let shut: HashSet<&Path> =
            self.guarded.iter().chain(&self.absent).chain(&self.hidden).map(PathBuf::as_path).collect();
        let mut pins = BTreeSet::new();
        let inner = self.writable.iter().filter(|folder| within(folder));
        for path in shut.iter().copied().chain(self.pinned.iter().chain(inner).map(PathBuf::as_path)) {
            let above = path.ancestors().skip(1).take_while(|folder| within(folder));
            // What lies in a covered folder cannot be moved.
            pins.extend(above.filter(|folder| !folder.ancestors().any(|above| shut.contains(above))));
        }
        let known: HashSet<&PathBuf> = self.pinned.iter().chain(&self.writable).collect();
        let pins = pins.into_iter().map(Path::to_owned).filter(|folder| !known.contains(folder));
        let pins: Vec<PathBuf> = pins.collect();
        self.pinned.extend(pins);
    }

    fn may_change(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether a command may write there, and it is not all that it may write.
    fn is_part(&self, real: &Path) -> bool {
        self.may_change(real) && !self.writable.iter().any(|folder| folder.starts_with(real))
    }

    /// What would be hidden and is not there is not made either: policies of the daemon, where somebody works in his
    /// home folder (S25). The first that is missing on the way stands for all below it.
    fn keep_away(&mut self, path: &Path) {
        let missing = |path: &Path| fs::symlink_metadata(path).is_err() || is_stand_in(path);
        let Some(first) = path.ancestors().take_while(|path| missing(path)).last() else { return };
        // Nothing is made through links.
        let Some((folder, name)) = first.parent().zip(first.file_name()) else { return };
        let first = &folder.canonicalize().map_or_else(|_| first.to_owned(), |folder| folder.join(name));
        let is_within = self.writable.iter().any(|folder| first.starts_with(folder));
        if is_within && !self.absent.iter().any(|path| path == first) {
            self.absent.push(first.to_owned());
        }
    }

    /// Where a link leads, if that is part of what a command may write.
    fn linked_within(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::symlink_metadata(path).ok()?.is_symlink().then(|| path.canonicalize().ok())??;
        self.is_part(&real).then_some(real)
    }

    fn guard_one(&mut self, path: PathBuf) {
        // Asked before and after the look: a stand-in comes and goes with the commands beside this one.
        if is_stand_in(&path) {
            self.absent.push(path);
            return;
        }
        match fs::symlink_metadata(&path) {
            // Nothing can be put over a link. What it leads to can be guarded, but for what holds all the rest.
            Ok(meta) if meta.is_symlink() => {
                let real = self.linked_within(&path).or_else(|| barrier(&path).filter(|at| self.is_part(at)));
                self.guarded.extend(real);
            }
            Ok(_) if !is_stand_in(&path) => self.guarded.push(path),
            Ok(_) => self.absent.push(path),
            Err(error) => match if is_missing(&error) { closed_around(&path) } else { barrier(&path) } {
                // A command may open it again.
                Some(shut) if self.is_part(&shut) || !self.may_change(&shut) => self.guarded.push(shut),
                _ => self.absent.push(path),
            },
        }
    }
}

/// The folder on the way to a path, links followed, that cannot be searched now, if we own it: then a command may open
/// it again. Also one in which the path is too long for a name.
fn barrier(path: &Path) -> Option<PathBuf> {
    let mut rest: Vec<_> = path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(meta) if meta.is_symlink() && links < MOST_LINKS => {
                links += 1;
                rest.extend(
                    fs::read_link(&next).ok()?.components().rev().map(|it| it.as_os_str().to_owned()),
                );
            }
            Ok(_) => at = next,
            Err(error) if is_missing(&error) => return None,
            Err(_) => return Some(at).filter(|at| is_ours(at)),
        }
    }
    None
}

/// The folder around a path, if nothing can be made in it now and we own it.
fn closed_around(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let meta = fs::symlink_metadata(folder).ok()?;
    let is_closed = meta.is_dir() && meta.mode() & 0o300 != 0o300 && !nix::unistd::geteuid().is_root();
    (is_closed && is_ours(folder)).then(|| folder.to_owned())
}

fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == nix::unistd::geteuid().as_raw())
}

/// Whether a folder is there and cannot be listed.
fn is_shut(folder: &Path) -> bool {
    fs::read_dir(folder).is_err_and(|error| !is_missing(&error))
}

/// Which of these are there below the home folder. Not through links: what they lead to is elsewhere.
fn below(home: &Path, names: &[&'static str]) -> Vec<PathBuf> {
    let is_real = home.canonicalize().is_ok_and(|real| real == home);
    let reached = |name: &&&str| {
        let mut path = home.to_owned();
        Path::new(name).components().all(|part| {
            path.push(part);
            is_there(&path)
        })
    };
    names.iter().filter(|_| is_real).filter(reached).map(|name| home.join(name)).collect()
}

/// Where the credentials of a home folder really lie: what is a link, or reached through one, is hidden in the place
/// that it leads to. But for what lies in a folder that was asked for: who works on the files that his home links
/// to works on these.
fn credentials(home: &Path, asked: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(real_home) = home.canonicalize() else { return barrier(home).into_iter().collect() };
    // Many lie in a few folders, of which each is looked at once.
    let mut folders: Vec<(&Path, bool)> = Vec::new();
    let mut found = Vec::new();
    for name in CREDENTIALS.iter().map(Path::new) {
        let folder = name.parent().filter(|folder| *folder != Path::new(""));
        let is_reached = folder.is_none_or(|folder| {
            let known = folders.iter().find(|(path, _)| *path == folder).map(|(_, there)| *there);
            known.unwrap_or_else(|| {
                let looked = fs::metadata(home.join(folder));
                // What cannot be searched is told by the look at the file.
                let there = looked.map_or_else(|error| !is_missing(&error), |meta| meta.is_dir());
                folders.push((folder, there));
                there
            })
        });
        let path = home.join(name);
        match fs::symlink_metadata(&path) {
            _ if !is_reached => continue,
            Err(error) if is_missing(&error) => continue,
            Ok(meta) if !meta.is_symlink() || path.canonicalize().is_ok() => {}
            Ok(_) | Err(_) => {
                found.extend(barrier(&path));
                continue;
            }
        }
        // A link to a place that holds the home hides nothing: all would be gone with it.
        if let Ok(real) = path.canonicalize()
            && !real_home.starts_with(&real)
            && (real == real_home.join(name) || !asked.iter().any(|folder| real.starts_with(folder)))
        {
            found.push(real);
        }
    }
    found
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_below_a_home_is_found_but_not_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("a/b")).unwrap();
        fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink(home.join("a"), home.join("link")).unwrap();
        let names = ["a/b", "file", "file/x", "link", "link/b", "none", "none/b"];
        let found = |home: &Path| below(home, &names);
        assert_eq!(found(&home), [home.join("a/b"), home.join("file")]);
        assert!(found(&home.join("link")).is_empty(), "a home behind a link");
    }

    #[test]
    fn credentials_are_hidden_where_they_really_lie() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let home = root.join("home");
        for folder in ["home/.aws", "home/dots/config/gh", "home/dots/ssh"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(home.join("dots/netrc"), "").unwrap();
        for (to, link) in [
            ("dots/netrc", ".netrc"),
            ("dots/ssh", ".ssh"),
            ("dots/config", ".config"),
            ("/", ".kube"),
            ("no", ".oci"),
        ] {
            symlink(to, home.join(link)).unwrap();
        }
        symlink(&home, root.join("link")).unwrap();
        let expected = ["dots/config/gh", "dots/netrc", "dots/ssh", ".aws"].map(|path| home.join(path));
        for home in [&home, &root.join("link")] {
            let mut found = credentials(home, &[]);
            found.sort_by(|a, b| b.cmp(a));
            let mut expected = expected.to_vec();
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(found, expected);
            assert_eq!(credentials(home, &[root.join("home/dots")]), [root.join("home/.aws")]);
        }
        let at_home = credentials(&home, std::slice::from_ref(&home));
        assert_eq!(at_home, [home.join(".aws")], "what lies there itself");
    }

    #[test]
    fn what_is_obeyed_is_guarded_also_where_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().canonicalize().unwrap();
        let mut layout = Layout::default();
        layout.guard(&ws);
        assert_eq!(
            (layout.absent.clone(), layout.guarded.len()),
            (vec![ws.join(".agentd"), ws.join(".git")], 0)
        );

        fs::create_dir_all(ws.join(".git/modules/sub")).unwrap();
        fs::write(ws.join(".git/config"), "").unwrap();
        fs::write(ws.join(".git/modules/sub/HEAD"), "").unwrap();
        fs::create_dir(ws.join(".agentd")).unwrap();
        let mut layout = Layout::default();
        layout.guard(&ws);
        assert_eq!(layout.guarded, [ws.join(".agentd"), ws.join(".git/config")]);
        let sub = ws.join(".git/modules/sub");
        let own = ["hooks", "commondir", "config.worktree"].map(|name| ws.join(".git").join(name));
        let of_sub = ["config", "hooks", "commondir"].map(|name| sub.join(name));
        assert_eq!(layout.absent, own.into_iter().chain(of_sub).collect::<Vec<_>>());
        assert_eq!(layout.pinned, [ws.join(".git/modules"), sub.clone(), ws.join(".git")]);

        // Without its HEAD it is one as long as its configuration is there.
        fs::rename(sub.join("HEAD"), sub.join("config")).unwrap();
        // Where it says where its work tree lies, git would not look at that with a stand-in beside it.
        fs::write(ws.join(".git/config"), "[core]\n\tWorktree = ../..\n").unwrap();
        let mut layout = Layout::default();
        layout.guard(&ws);
        assert!(layout.guarded.contains(&sub.join("config")), "{layout:?}");
        assert!(!layout.absent.contains(&ws.join(".git/commondir")), "{layout:?}");
    }

    #[test]
    fn what_would_be_hidden_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join("data")).unwrap();
        let mut layout = Layout { writable: vec![home.clone()], ..Layout::default() };
        for name in ["data", "data/policy", ".config/agentd", ".config/agentd/config.toml"] {
            layout.keep_away(&home.join(name));
        }
        layout.keep_away(Path::new("/nowhere/else"));
        assert_eq!(layout.absent, [home.join("data/policy"), home.join(".config")]);
        // While it stands in for something, nothing is there.
        let placed = super::super::place::Placed::new(&layout.absent, None).unwrap();
        let mut beside = Layout { writable: vec![home.clone()], ..Layout::default() };
        beside.keep_away(&home.join(".config/agentd"));
        drop(placed);
        assert_eq!(beside.absent, [home.join(".config")]);
    }

    #[test]
    fn what_a_link_leads_to_is_guarded_where_it_may_be_written() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let ws = root.join("ws");
        for folder in ["ws/repo/modules", "ws/my-hooks", "out"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink("repo", ws.join(".git")).unwrap();
        symlink("../my-hooks", ws.join("repo/hooks")).unwrap();
        symlink("../..", ws.join("repo/config")).unwrap();
        symlink(root.join("out"), ws.join(".agentd")).unwrap();
        let mut layout = Layout { writable: vec![ws.clone()], ..Layout::default() };
        layout.guard(&ws);
        assert_eq!(layout.guarded, [ws.join("my-hooks")]);
        assert_eq!(layout.pinned, [ws.join("repo/modules"), ws.join("repo")]);
    }

    #[test]
    fn more_submodules_than_anybody_has_are_guarded_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().canonicalize().unwrap().join("modules");
        let make = |n: usize| fs::create_dir_all(modules.join(format!("group/{n}"))).unwrap();
        (0..MOST_FOLDERS - 2).for_each(make);
        let mut layout = Layout::default();
        layout.guard_modules(&modules);
        assert_eq!((layout.pinned.len(), layout.guarded.len()), (MOST_FOLDERS, 0));
        make(MOST_FOLDERS);
        let mut layout = Layout::default();
        layout.guard_modules(&modules);
        assert_eq!(layout, Layout { guarded: vec![modules], ..Layout::default() });
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_what_is_not_there() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shut/in")).unwrap();
        symlink("shut", root.join("link")).unwrap();
        // A name that no folder can hold is as little told from one that is not there.
        let long = "x".repeat(300);
        assert_eq!(barrier(&root.join("shut").join(&long)), Some(root.join("shut")));
        assert_eq!(barrier(&root.join("shut/in")), None);
        assert_eq!(barrier(&root.join("none/in")), None);
        let mut layout = Layout { writable: vec![root.clone()], ..Layout::default() };
        layout.guard_one(root.join("shut").join(&long));
        assert_eq!((layout.guarded.as_slice(), layout.absent.len()), (&[root.join("shut")][..], 0));
        if nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED: root may search every folder");
            return;
        }
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(barrier(&root.join("link/in")), Some(root.join("shut")));
        let mut layout = Layout { writable: vec![root.clone()], ..Layout::default() };
        layout.guard_one(root.join("shut/in"));
        assert_eq!(layout.guarded, [root.join("shut")]);
        assert!(is_shut(&root.join("shut")) && !is_shut(&root));
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o500)).unwrap();
        let mut layout = Layout { writable: vec![root.clone()], ..Layout::default() };
        layout.guard_one(root.join("shut/new"));
        assert_eq!(layout.guarded, [root.join("shut")]);
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
