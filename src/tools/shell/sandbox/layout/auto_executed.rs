//! What git and the daemon obey of a workspace outside of the sandbox, wherever it lies (P4).

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools::fs::disk::is_missing;
use crate::tools::sensitivity::repository;
use crate::tools::shell::sandbox::git;
use crate::tools::shell::sandbox::layout::FsPolicy;
use crate::tools::shell::sandbox::layout::unreadable::{is_shut, is_there, kind};
use crate::tools::shell::sandbox::placeholders::is_placeholder;

/// Folders of submodules, and work trees, that are looked at.
const MOST_FOLDERS: usize = 300;
/// The same over all of a workspace, also those of submodules of work trees of submodules.
const MOST_LOOKS: usize = 1_000;
/// Entries of folders that are looked at to find them.
const MOST_ENTRIES: usize = 4_000;
/// Bytes of the path of a submodule's folder; the kernel takes 4,095, and it is mounted elsewhere as well.
const LONGEST: usize = 2_000;
impl FsPolicy {
    /// Protects what in a workspace is obeyed outside of the sandbox (P4).
    pub(in crate::tools::shell::sandbox) fn guard(&mut self, workspace: &Path) {
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
                // First: what links in it lead to is guarded where it may be written.
                self.writable.push(real.common.clone());
                self.writable.push(real.own.clone());
                self.guard_git(&real.common);
                // What says where the rest of its repository lies, and a configuration of its own.
                self.guard_one(real.own.join("commondir"));
                self.guard_one(real.own.join("config.worktree"));
                // And by which sessions elsewhere know that the work tree is there.
                self.guard_one(real.own.join("gitdir"));
            } else if let Some(real) = git::named_in(&git).filter(|real| self.is_writable_root(real)) {
                self.guard_git(&real);
                self.pinned.push(real);
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
        if is_there(&shared) && !is_placeholder(&shared) || !git::says_where(git) {
            self.guard_one(shared);
        }
    }

    /// Other work trees of the repository, which lie where a command does not write: it would write what git obeys
    /// there.
    fn guard_trees(&mut self, git: &Path) {
        let trees = git.join("worktrees");
        // Of what it leads to, git uses the same.
        if fs::symlink_metadata(&trees).is_ok_and(|meta| meta.is_symlink()) {
            return self.guard_one(trees);
        }
        let entries = match fs::read_dir(&trees) {
            Ok(entries) => Some(entries),
            Err(error) if is_missing(&error) => None,
            // Who may not list it may be let again by a command.
            Err(_) => return self.guard_one(trees),
        };
        let mut is_excessive = is_shut(&trees);
        let all: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST_ENTRIES + 1)
            .enumerate()
            .inspect(|(n, _)| is_excessive |= *n == MOST_ENTRIES)
            // Nobody but a command puts links there, and nothing is mounted through one.
            .filter(|(_, entry)| !entry.file_type().is_ok_and(|kind| kind.is_symlink()))
            .map(|(_, entry)| entry.path())
            .collect();
        self.looked += all.len();
        let lies_elsewhere = |own: &&PathBuf| {
            is_shut(own)
                || match git::tree_of(own) {
                    git::Tree::At(tree) => !self.is_own(&tree),
                    // One that a command removed is pruned by it; others may come back.
                    git::Tree::Gone(tree) => {
                        let tree = nearest(&tree);
                        // Commands of level 3 see a folder of their own there.
                        !self.is_own(&tree) && !tree.starts_with("/tmp")
                    }
                    git::Tree::Nowhere => false,
                    git::Tree::Unknown => true,
                }
        };
        let found: Vec<PathBuf> = all.iter().filter(lies_elsewhere).take(MOST_FOLDERS + 1).cloned().collect();
        if is_excessive || found.len() > MOST_FOLDERS || self.looked > MOST_LOOKS {
            // More than anybody has: none of them is changed.
            return self.guard_one(trees);
        }
        for own in &found {
            for name in ["commondir", "gitdir", "config.worktree"] {
                self.guard_one(own.join(name));
            }
        }
        // The submodules of each lie in it, wherever its files lie.
        all.iter().for_each(|own| self.guard_modules(&own.join("modules")));
        if !found.is_empty() {
            self.pinned.extend(found);
            self.pinned.push(trees);
        }
    }

    /// Whether a command may write there, among its temporary files too.
    fn is_own(&self, path: &Path) -> bool {
        self.may_change(path) || path.starts_with(&self.temp) && self.temp != Path::new("")
    }

    /// The folders of submodules have the same. They are named as the submodules are, by paths
    /// (gitsubmodules(7)); all above them is pinned, so that nothing is put in their place.
    fn guard_modules(&mut self, modules: &Path) {
        let (pinned, guarded, absent) = (self.pinned.len(), self.guarded.len(), self.absent.len());
        let mut folders = vec![modules.to_owned()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            let is_unknown = match fs::symlink_metadata(&folder) {
                Ok(meta) if !meta.is_dir() => continue,
                Err(error) if is_missing(&error) => continue,
                looked => looked.is_err(),
            };
            (seen, self.looked) = (seen + 1, self.looked + 1);
            let inner: Vec<_> =
                fs::read_dir(&folder).into_iter().flatten().flatten().take(MOST_ENTRIES + 1).collect();
            let is_excessive = seen > MOST_FOLDERS
                || inner.len().max(folders.len()) > MOST_ENTRIES
                || self.looked > MOST_LOOKS;
            let is_long = folder.as_os_str().len() > LONGEST;
            // A command can take away the former, and not the latter.
            let named = ["HEAD", "config"].map(|name| kind(&folder.join(name)));
            let is_unknown = is_unknown || is_shut(&folder) || named.iter().any(Result::is_err);
            if is_excessive || is_long || is_unknown {
                // More than anybody has, or what a command may open again: nothing of them is changed.
                self.pinned.truncate(pinned);
                self.guarded.truncate(guarded);
                self.absent.truncate(absent);
                return self.guard_one(modules.to_owned());
            }
            let is_one = named.into_iter().flatten().flatten().any(|kind| kind.is_file());
            if is_one {
                self.guard_repository(&folder);
                let of_tree = folder.join("config.worktree");
                if is_there(&of_tree) || git::reads_of_tree(&folder) {
                    self.guard_one(of_tree);
                }
                self.guard_trees(&folder);
            }
            // One may lie in another's folder, its own submodules among them; and what looks like one may only be on the
            // way to others, and a command have made it look so.
            let inner = inner.into_iter().filter(|entry| !entry.file_type().is_ok_and(|kind| !kind.is_dir()));
            let is_passed = |path: &PathBuf| is_one && !folder.ends_with("modules") && is_inside_of_one(path);
            folders.extend(inner.map(|entry| entry.path()).filter(|path| !is_passed(path)));
            self.pinned.push(folder);
        }
    }
}

/// Folders that git keeps in a repository. In most there is much, and in none a submodule, unless it is named so.
const INSIDE: &[&str] = &[
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
    INSIDE.iter().any(|name| path.ends_with(name)) && !path.join("config").is_file()
}

/// The next folder above a path that is there, links followed, with the rest of the path.
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
    use crate::tools::shell::sandbox::layout::auto_executed::*;

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

        // Without its HEAD it is one as long as its configuration is there.
        fs::rename(sub.join("HEAD"), sub.join("config")).unwrap();
        // Where it says where its work tree lies, git would not look at that with a stand-in beside it.
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
        (0..MOST_FOLDERS - 2).for_each(make);
        let mut layout = FsPolicy::default();
        layout.guard_modules(&modules);
        assert_eq!((layout.pinned.len(), layout.guarded.len()), (MOST_FOLDERS, 0));
        make(MOST_FOLDERS);
        let mut layout = FsPolicy::default();
        layout.guard_modules(&modules);
        assert_eq!(layout, FsPolicy { guarded: vec![modules], looked: layout.looked, ..FsPolicy::default() });
    }
}
