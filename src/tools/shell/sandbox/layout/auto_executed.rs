//! Protects files of a workspace that git and the daemon execute or apply outside the sandbox, at any depth.

use std::fs;
use std::path::{Path, PathBuf};

use crate::file_errors::is_missing;
use crate::sensitivity::repository;
use crate::shell::sandbox::git;
use crate::shell::sandbox::layout::FsPolicy;
use crate::shell::sandbox::layout::unreadable::{is_shut, is_there, kind};
use crate::shell::sandbox::placeholders::is_placeholder;
use project::folders::ProjectFolders;

/// Folders of submodules, and work trees, that are inspected per repository.
const MAX_REPOSITORY_FOLDERS: usize = 300;
/// Limit over the whole workspace, including submodules of work trees of submodules.
const MAX_WORKSPACE_FOLDERS: usize = 1_000;
/// Maximum number of folder entries that are inspected to find these folders.
const MAX_ENTRIES: usize = 4_000;
/// Bytes of the path of a submodule's folder. The kernel's limit is 4,095, and the path is also mounted at a
/// longer one.
const MAX_SUBMODULE_PATH_BYTES: usize = 2_000;
impl FsPolicy {
    /// Protects files of a workspace that programs outside the sandbox execute or apply.
    pub(crate) fn guard(&mut self, workspace: &Path) {
        self.guard_one(workspace.join(".agentd"));
        let git = workspace.join(".git");
        let is_folder = || fs::symlink_metadata(&git).is_ok_and(|meta| meta.is_dir());
        if !is_placeholder(&git) && is_folder() && !is_placeholder(&git) {
            self.guard_git(&git);
            self.pinned.push(git);
        } else if let Some(real) = self.linked_within(&git).filter(|real| real.is_dir()) {
            self.guard_git(&real);
            self.pinned.push(real);
        } else {
            if let Some(real) = git::work_tree(&git) {
                self.open_work_tree(&real);
            } else if let Some(real) = git::named_in(&git).filter(|real| self.is_writable_root(real)) {
                self.guard_git(&real);
                self.pinned.push(real);
            } else {
                self.open_submodule(&git);
            }
            if git.is_file() && repository::text_of(&git).is_none() && git.is_file() {
                self.unreadable = Some(git.clone());
            }
            self.guard_one(git);
        }
        let git = workspace.join(".git");
        if git::is_bare(workspace, is_there(&git) && !is_placeholder(&git)) {
            self.guard_git(workspace);
        }
    }

    /// Opens the repository of a work tree that begins above the workspace, so that a command can commit. Its other
    /// files stay closed.
    pub(crate) fn open_repository_above(&mut self, workspace: &Path, home: &Path) {
        let folders = ProjectFolders::find(workspace, home);
        let (top, git) = (folders.root(), folders.root().join(".git"));
        if top == workspace || self.may_change(top) || !self.opens_repositories {
            return;
        }
        if fs::symlink_metadata(&git).is_ok_and(|meta| meta.is_dir()) {
            if git::is_of_folder(&git, workspace) {
                self.open_repository(git);
            }
        } else if let Some(real) = git::work_tree(&git) {
            self.open_work_tree(&real);
        } else {
            self.open_submodule(&git);
        }
    }

    fn open_work_tree(&mut self, real: &git::WorkTreeFolders) {
        self.writable.push(real.own.clone());
        self.open_repository(real.common.clone());
        // The file that names the rest of its repository, and its own configuration.
        self.guard_one(real.own.join("commondir"));
        self.guard_one(real.own.join("config.worktree"));
        // Sessions in other folders find the work tree by this file.
        self.guard_one(real.own.join("gitdir"));
    }

    fn open_submodule(&mut self, git: &Path) {
        if self.opens_repositories
            && let Some(real) = git::submodule(git)
        {
            self.open_repository(real);
        }
    }

    fn open_repository(&mut self, git: PathBuf) {
        // This comes first: link targets are guarded only in writable folders.
        self.writable.push(git.clone());
        self.guard_git(&git);
    }

    fn guard_git(&mut self, git: &Path) {
        self.guard_repository(git);
        // Guard this file also while git does not read it, because the user may enable it (git-worktree(1)).
        self.guard_one(git.join("config.worktree"));
        self.guard_modules(&git.join("modules"));
        self.guard_trees(git);
    }

    /// Guards the files of a repository that git executes or applies. `commondir` refers to another
    /// repository's configuration and hooks (gitrepository-layout(5)).
    fn guard_repository(&mut self, git: &Path) {
        self.guard_one(git.join("config"));
        self.guard_one(git.join("hooks"));
        // With a placeholder, git ignores the name of the work tree.
        let shared = git.join("commondir");
        if is_there(&shared) && !is_placeholder(&shared)
            || !git::names_work_tree(git)
            || git::is_of_named_tree(git)
        {
            self.guard_one(shared);
        }
        if git.join("info").is_dir() {
            self.guard_one(git.join("info/attributes"));
        }
    }

    /// Guards other work trees of the repository that commands cannot write. Through the repository, a command
    /// could write files that git applies there.
    fn guard_trees(&mut self, git: &Path) {
        let trees = git.join("worktrees");
        // Git follows a link in the same way.
        if fs::symlink_metadata(&trees).is_ok_and(|meta| meta.is_symlink()) {
            return self.guard_one(trees);
        }
        let entries = match fs::read_dir(&trees) {
            Ok(entries) => Some(entries),
            Err(error) if is_missing(&error) => None,
            // If the folder cannot be listed, a command may make it readable again.
            Err(_) => return self.guard_one(trees),
        };
        let mut is_excessive = is_shut(&trees);
        let all: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .take(MAX_ENTRIES + 1)
            .enumerate()
            .inspect(|(n, _)| is_excessive |= *n == MAX_ENTRIES)
            // Only a command creates links here, and nothing is mounted through a link.
            .filter(|(_, entry)| !entry.file_type().is_ok_and(|kind| kind.is_symlink()))
            .map(|(_, entry)| entry.path())
            .collect();
        self.scanned_folders += all.len();
        let lies_elsewhere = |own: &&PathBuf| {
            is_shut(own)
                || match git::work_tree_of(own) {
                    git::WorkTreeLocation::At(tree) => !self.is_own(&tree),
                    // If a command removed this work tree, git may prune it. Other work trees may come back.
                    git::WorkTreeLocation::Gone(tree) => {
                        let tree = nearest(&tree);
                        // Commands at level 3 see their own folder at this path.
                        !self.is_own(&tree) && !tree.starts_with("/tmp")
                    }
                    git::WorkTreeLocation::Nowhere => false,
                    git::WorkTreeLocation::Unknown => true,
                }
        };
        let found: Vec<PathBuf> =
            all.iter().filter(lies_elsewhere).take(MAX_REPOSITORY_FOLDERS + 1).cloned().collect();
        if is_excessive
            || found.len() > MAX_REPOSITORY_FOLDERS
            || self.scanned_folders > MAX_WORKSPACE_FOLDERS
        {
            // No real repository has this many work trees; all of them become read-only.
            return self.guard_one(trees);
        }
        for own in &found {
            for name in ["commondir", "gitdir", "config.worktree"] {
                self.guard_one(own.join(name));
            }
        }
        // The submodules of a work tree lie in its git folder, wherever its files lie.
        all.iter().for_each(|own| self.guard_modules(&own.join("modules")));
        if !found.is_empty() {
            self.pinned.extend(found);
            self.pinned.push(trees);
        }
    }

    /// Whether a command may write the path, including its temporary files.
    fn is_own(&self, path: &Path) -> bool {
        self.may_change(path) || path.starts_with(&self.temp) && self.temp != Path::new("")
    }

    /// Guards the same files in folders of submodules. Their names are paths (gitsubmodules(7)). All ancestors
    /// are pinned, so that a command cannot replace them.
    fn guard_modules(&mut self, modules: &Path) {
        let (pinned, guarded, absent) = (self.pinned.len(), self.guarded.len(), self.absent.len());
        let mut folders = vec![modules.to_owned()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            let is_unknown = match fs::symlink_metadata(&folder) {
                Ok(meta) if !meta.is_dir() => continue,
                Err(error) if is_missing(&error) => continue,
                scanned_folders => scanned_folders.is_err(),
            };
            (seen, self.scanned_folders) = (seen + 1, self.scanned_folders + 1);
            let inner: Vec<_> =
                fs::read_dir(&folder).into_iter().flatten().flatten().take(MAX_ENTRIES + 1).collect();
            let is_excessive = seen > MAX_REPOSITORY_FOLDERS
                || inner.len().max(folders.len()) > MAX_ENTRIES
                || self.scanned_folders > MAX_WORKSPACE_FOLDERS;
            let is_long = folder.as_os_str().len() > MAX_SUBMODULE_PATH_BYTES;
            // A command can remove `HEAD` but not `config`.
            let named = ["HEAD", "config"].map(|name| kind(&folder.join(name)));
            let is_unknown = is_unknown || is_shut(&folder) || named.iter().any(Result::is_err);
            if is_excessive || is_long || is_unknown {
                // No real repository has this many submodules, or a command may open the folder again. All
                // submodules become read-only.
                self.pinned.truncate(pinned);
                self.guarded.truncate(guarded);
                self.absent.truncate(absent);
                return self.guard_one(modules.to_owned());
            }
            let is_one = named.into_iter().flatten().flatten().any(|kind| kind.is_file());
            if is_one {
                self.guard_repository(&folder);
                let of_tree = folder.join("config.worktree");
                if is_there(&of_tree) || git::reads_tree_config(&folder) {
                    self.guard_one(of_tree);
                }
                self.guard_trees(&folder);
            }
            // A submodule may lie in the folder of another one, among that one's own submodules. A command may
            // also have made an intermediate folder look like a submodule.
            let inner = inner.into_iter().filter(|entry| !entry.file_type().is_ok_and(|kind| !kind.is_dir()));
            let is_passed = |path: &PathBuf| is_one && !folder.ends_with("modules") && is_inside_of_one(path);
            folders.extend(inner.map(|entry| entry.path()).filter(|path| !is_passed(path)));
            self.pinned.push(folder);
        }
    }
}

/// Folders that git keeps in a repository. Most contain many files, and none contains a submodule unless it has
/// this name.
const REPOSITORY_FOLDERS: &[&str] = &[
    "objects",
    "refs",
    "reftable",
    "logs",
    "info",
    "hooks",
    "branches",
    "worktrees",
    "lfs",
    "annex",
    "rr-cache",
    "svn",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

fn is_inside_of_one(path: &Path) -> bool {
    REPOSITORY_FOLDERS.iter().any(|name| path.ends_with(name)) && !path.join("config").is_file()
}

/// The nearest existing ancestor of a path with links resolved, joined with the rest of the path.
fn nearest(path: &Path) -> PathBuf {
    let mut above = path.ancestors().filter_map(|folder| Some((folder.canonicalize().ok()?, folder)));
    match above.next() {
        Some((real, folder)) => {
            path.strip_prefix(folder).map_or_else(|_| real.clone(), |rest| real.join(rest))
        }
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::sandbox::layout::auto_executed::*;

    #[test]
    fn auto_executed_paths_are_protected_when_missing() {
        let dir = tempfile::tempdir().unwrap();
        let ws = dir.path().canonicalize().unwrap();
        let mut layout = FsPolicy::default();
        layout.guard(&ws);
        assert_eq!(
            (layout.absent.clone(), layout.guarded.len()),
            (vec![ws.join(".agentd"), ws.join(".git")], 0)
        );

        fs::create_dir_all(ws.join(".git/modules/sub")).unwrap();
        fs::write(ws.join(".git/config"), "").unwrap();
        fs::write(ws.join(".git/modules/sub/HEAD"), "").unwrap();
        fs::create_dir(ws.join(".agentd")).unwrap();
        let mut layout = FsPolicy::default();
        layout.guard(&ws);
        assert_eq!(layout.guarded, [ws.join(".agentd"), ws.join(".git/config")]);
        let sub = ws.join(".git/modules/sub");
        let own = ["hooks", "commondir", "config.worktree"].map(|name| ws.join(".git").join(name));
        let of_sub = ["config", "hooks", "commondir"].map(|name| sub.join(name));
        assert_eq!(layout.absent, own.into_iter().chain(of_sub).collect::<Vec<_>>());
        assert_eq!(layout.pinned, [ws.join(".git/modules"), sub.clone(), ws.join(".git")]);

        // Without `HEAD`, a folder is a repository as long as its configuration exists.
        fs::rename(sub.join("HEAD"), sub.join("config")).unwrap();
        // If the configuration names the work tree, git would ignore it with a placeholder in the same folder.
        fs::write(ws.join(".git/config"), "[core]\n\tWorktree = ../..\n").unwrap();
        let mut layout = FsPolicy::default();
        layout.guard(&ws);
        assert!(layout.guarded.contains(&sub.join("config")), "{layout:?}");
        assert!(!layout.absent.contains(&ws.join(".git/commondir")), "{layout:?}");
    }

    #[test]
    fn link_targets_in_writable_folders_are_protected() {
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
        let mut layout = FsPolicy { writable: vec![ws.clone()], ..FsPolicy::default() };
        layout.guard(&ws);
        assert_eq!(layout.guarded, [ws.join("my-hooks")]);
        assert_eq!(layout.pinned, [ws.join("repo/modules"), ws.join("repo")]);
    }

    #[test]
    fn excess_submodules_are_protected_as_one_folder() {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().canonicalize().unwrap().join("modules");
        let make = |n: usize| fs::create_dir_all(modules.join(format!("group/{n}"))).unwrap();
        (0..MAX_REPOSITORY_FOLDERS - 2).for_each(make);
        let mut layout = FsPolicy::default();
        layout.guard_modules(&modules);
        assert_eq!((layout.pinned.len(), layout.guarded.len()), (MAX_REPOSITORY_FOLDERS, 0));
        make(MAX_REPOSITORY_FOLDERS);
        let mut layout = FsPolicy::default();
        layout.guard_modules(&modules);
        assert_eq!(
            layout,
            FsPolicy {
                guarded: vec![modules],
                scanned_folders: layout.scanned_folders,
                ..FsPolicy::default()
            }
        );
    }
}
