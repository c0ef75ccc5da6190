//! Worktrees of real repositories in temporary folders.

mod attacks;
mod create;
mod finish;
mod hostile;
mod merge;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use types::worktree::WorktreeChoice;

/// Ends the work in a worktree. Nothing cancels it.
async fn finish(
    own: &OwnWorktree,
    choice: &WorktreeChoice,
    message: &str,
) -> Result<Finished, WorktreeProblem> {
    crate::worktree::finish(own, choice, message, &CancellationToken::new()).await
}

/// A repository with one commit, and a folder for worktrees next to it.
struct Place {
    dir: TempDir,
}

impl Place {
    /// `None`, with a report, on a machine without git.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let place = Self { dir };
        fs::create_dir(place.top()).expect("made");
        if Command::new("git").arg("--version").output().is_err() {
            base::skip_test!("there is no git");
            return None;
        }
        place.git(&["init", "-q", "-b", "trunk"]);
        place.git(&["config", "user.name", "Ann"]);
        place.git(&["config", "user.email", "ann@example.org"]);
        place.write("a.txt", "one\n");
        place.write("sub/b.txt", "two\n");
        place.write(".gitignore", "*.secret\nbuild/\n");
        place.commit_all("first");
        Some(place)
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("resolved")
    }

    fn top(&self) -> PathBuf {
        self.root().join("repository")
    }

    fn worktrees(&self) -> PathBuf {
        self.root().join("data/worktrees")
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.top().join(path), text);
    }

    fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.top(), args)
    }

    async fn create(&self, name: &str) -> NewWorktree {
        self.create_with(name, &WorktreeChoice::with_defaults()).await.expect("made")
    }

    async fn create_with(&self, name: &str, choice: &WorktreeChoice) -> Result<NewWorktree, WorktreeProblem> {
        create(&self.top(), choice, name, &self.worktrees(), &CancellationToken::new()).await
    }

    /// Git's folder of a worktree.
    fn git_folder(&self, name: &str) -> PathBuf {
        self.top().join(".git/worktrees").join(name)
    }

    /// The daemon's own folder for worktrees.
    fn state(&self) -> PathBuf {
        self.root().join("data/worktree-git")
    }

    fn note(&self, name: &str) -> PathBuf {
        self.state().join(name).with_extension("json")
    }

    /// Nothing is left of any worktree: no folder, no note of git, no branch of the daemon, no lock file.
    fn assert_nothing_left(&self) {
        let left = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
        assert_eq!(left(&self.worktrees()), 0, "folders of worktrees");
        assert_eq!(left(&self.top().join(".git/worktrees")), 0, "notes of git");
        assert_eq!(self.git(&["branch", "--list", "agentd/*"]), "", "branches");
        let own = fs::read_dir(self.state()).into_iter().flatten().flatten();
        let own: Vec<_> = own.map(|entry| entry.file_name()).filter(|name| !is_lock(name.as_ref())).collect();
        assert!(own.is_empty(), "the daemon's own files: {own:?}");
        self.assert_no_lock_file();
    }

    fn assert_no_lock_file(&self) {
        let mut folders = vec![self.top().join(".git")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                let path = entry.path();
                assert!(!is_lock(&path), "{}", path.display());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lock")
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

/// Runs git as a user would, and returns its output.
fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().expect("started");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}
