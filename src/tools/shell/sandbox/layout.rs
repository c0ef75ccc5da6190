//! What a call may write, what it may only read within that, and what it does not see. The same for
//! every level; how much of it a level can hold is the level's matter.

use std::fs;
use std::path::{Path, PathBuf};

use super::blocked::Ground;
use super::place::is_stand_in;
use super::temp;
use crate::tools::care;
use crate::tools::context::Context;
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

/// Folders of submodules that are looked at.
const MOST_FOLDERS: usize = 300;

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
        let additional = scene.additional.iter().filter(|folder| folder.is_dir());
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
        layout.hidden =
            settings.hidden.iter().cloned().chain(secrets).filter(|path| is_there(path)).collect();
        layout.hidden.sort();
        layout.hidden.dedup();
        layout.guard(&scene.workspace);
        additional.for_each(|folder| layout.guard(folder));
        Ok(layout)
    }

    /// What a failure of a command can be held against.
    pub(in crate::tools::shell) fn ground(&self, cwd: &Path) -> Ground {
        let writable = self.writable.iter().chain([&self.temp]).cloned().collect();
        let guarded = self.guarded.iter().chain(&self.absent).chain(&self.hidden).cloned().collect();
        Ground { cwd: cwd.to_owned(), writable, guarded }
    }

    /// Protects what in a workspace is obeyed outside of the sandbox (P4).
    fn guard(&mut self, workspace: &Path) {
        self.guard_one(workspace.join(".agentd"));
        let git = workspace.join(".git");
        if !is_stand_in(&git) && git.is_dir() && !git.is_symlink() && !is_stand_in(&git) {
            self.guard_git(&git);
            self.pinned.push(git);
        } else {
            if let Some(real) = work_tree(&git) {
                self.guard_git(&real.common);
                // What says where the rest of its repository lies, and a configuration of its own.
                let own = ["commondir", "config.worktree"].map(|name| real.own.join(name));
                own.into_iter().filter(|path| is_there(path)).for_each(|path| self.guard_one(path));
                self.writable.push(real.common);
                self.writable.push(real.own);
            }
            self.guard_one(git);
        }
    }

    fn guard_git(&mut self, git: &Path) {
        for name in ["config", "hooks"] {
            self.guard_one(git.join(name));
        }
        let worktree = git.join("config.worktree");
        if is_there(&worktree) {
            self.guard_one(worktree);
        }
        self.guard_modules(&git.join("modules"));
    }

    /// The folders of submodules have the same two. They are named as the submodules are, by paths
    /// (gitsubmodules(7)); all above them is pinned, so that nothing is put in their place.
    fn guard_modules(&mut self, modules: &Path) {
        let mut folders = vec![modules.to_owned()];
        let mut left = MOST_FOLDERS;
        while let Some(folder) = folders.pop() {
            let is_folder = fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir());
            if !is_folder {
                continue;
            }
            if left == 0 {
                // More than anybody has: none of the rest is changed.
                self.guard_one(folder);
                continue;
            }
            left -= 1;
            if folder.join("HEAD").is_file() {
                self.guard_one(folder.join("config"));
                self.guard_one(folder.join("hooks"));
                // Its own submodules.
                folders.push(folder.join("modules"));
            } else {
                folders
                    .extend(fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            self.pinned.push(folder);
        }
    }

    fn guard_one(&mut self, path: PathBuf) {
        // Asked before and after the look: a stand-in comes and goes with the commands beside this one.
        if is_stand_in(&path) {
            self.absent.push(path);
            return;
        }
        match fs::symlink_metadata(&path) {
            // Nothing can be put over a link, and what it leads to is judged where that is.
            Ok(meta) if meta.is_symlink() => {}
            Ok(_) if !is_stand_in(&path) => self.guarded.push(path),
            Ok(_) | Err(_) => self.absent.push(path),
        }
    }
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
    let Ok(real_home) = home.canonicalize() else { return Vec::new() };
    // Many lie in a few folders, of which each is looked at once.
    let mut folders: Vec<(&Path, bool)> = Vec::new();
    let mut found = Vec::new();
    for name in CREDENTIALS.iter().map(Path::new) {
        let folder = name.parent().filter(|folder| *folder != Path::new(""));
        let is_reached = folder.is_none_or(|folder| {
            let known = folders.iter().find(|(path, _)| *path == folder).map(|(_, there)| *there);
            known.unwrap_or_else(|| {
                let there = home.join(folder).is_dir();
                folders.push((folder, there));
                there
            })
        });
        let path = home.join(name);
        if !is_reached || fs::symlink_metadata(&path).is_err() {
            continue;
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

/// The folders of git behind a work tree that was made by `git worktree`.
struct WorkTree {
    common: PathBuf,
    own: PathBuf,
}

/// Where the `.git` of a work tree leads, if what is there names this work tree, too: a file in the
/// workspace alone opens no folder elsewhere (gitrepository-layout(5)).
fn work_tree(git: &Path) -> Option<WorkTree> {
    let line = |path: &Path| Some(fs::read_to_string(path).ok()?.trim_end().to_owned());
    let own = PathBuf::from(line(git)?.strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let is_mutual = Path::new(&line(&own.join("gitdir"))?).canonicalize().ok()? == git.canonicalize().ok()?;
    let common = own.join(line(&own.join("commondir"))?).canonicalize().ok()?;
    let is_inside = own.parent() == Some(common.join("worktrees").as_path()) && common.join("HEAD").is_file();
    (is_mutual && is_inside).then_some(WorkTree { common, own })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_tree_opens_the_folder_that_names_it_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = root.join("main/.git/worktrees/w");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(root.join("w")).unwrap();
        fs::write(root.join("main/.git/HEAD"), "x").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", root.join("w/.git").display())).unwrap();
        fs::write(root.join("w/.git"), format!("gitdir: {}\n", own.display())).unwrap();
        let found = work_tree(&root.join("w/.git")).unwrap();
        assert_eq!((found.common, found.own), (root.join("main/.git"), own.clone()));
        let mut layout = Layout::default();
        layout.guard(&root.join("w"));
        assert!(layout.guarded.contains(&own.join("commondir")), "{layout:?}");

        fs::write(own.join("gitdir"), format!("{}\n", root.join("other/.git").display())).unwrap();
        assert!(work_tree(&root.join("w/.git")).is_none());
    }

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
        assert_eq!(layout.absent, [ws.join(".git/hooks"), sub.join("config"), sub.join("hooks")]);
        assert_eq!(layout.pinned, [ws.join(".git/modules"), sub, ws.join(".git")]);
    }
}
