//! Finds the repository that git would use in a folder, by file names alone: git itself would apply its
//! configuration.

use std::path::{Path, PathBuf};

use judge::Repository;

use crate::folders::{open_plain, read_up_to};

/// Searches for a repository like git, from the folder upwards (git-rev-parse(1), "--git-dir";
/// `setup_git_directory` of its setup.c). The search checks each folder first for `.git`, then whether the
/// folder itself looks like a repository. In the second case, the repository may be cloned content.
#[must_use]
pub fn repository(workspace: &Path) -> Repository {
    for (at, folder) in workspace.ancestors().enumerate() {
        let own = folder.join(".git");
        let kind = own.symlink_metadata().map(|meta| meta.file_type());
        if kind.is_ok_and(|kind| !kind.is_dir()) {
            // A link or a file may also lead to cloned content, unless the target lies in a repository's own
            // folder.
            let is_sound =
                gitfile_target(folder, &own).is_some_and(|target| target.iter().any(|part| part == ".git"));
            let found = if at == 0 { Repository::Top } else { Repository::Above };
            return if is_sound { found } else { Repository::Content };
        }
        let is_bare = || folder.join("HEAD").symlink_metadata().is_ok();
        if own.join("HEAD").symlink_metadata().is_ok() {
            // Git skips a `.git` folder that it does not accept as a repository. This code does not repeat
            // git's checks, so git may use the repository that the content looks like.
            if at == 0 && is_bare() {
                return Repository::Content;
            }
            return if at == 0 { Repository::Top } else { Repository::Above };
        }
        // The `objects` and `refs` of a bare repository may lie elsewhere (gitrepository-layout(5),
        // "commondir").
        if is_bare() {
            return Repository::Content;
        }
    }
    Repository::Nowhere
}

/// The target of a `.git` that is not a folder (gitrepository-layout(5), "gitfile").
fn gitfile_target(folder: &Path, own: &Path) -> Option<PathBuf> {
    let real = own.canonicalize().ok()?;
    if real.is_dir() {
        return Some(real);
    }
    // A pipe instead of a file must not block.
    let text = String::from_utf8(read_up_to(open_plain(&real).ok()?, MAX_FILE_BYTES).ok()??).ok()?;
    folder.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// Maximum bytes that are read of a `.git` file: its prefix and the longest path.
const MAX_FILE_BYTES: u64 = 4_200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn repository_lookalike_content_is_distinguished_from_repository() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        let sub = top.join("a/b");
        fs::create_dir_all(&sub).unwrap();
        // The temporary folder itself may lie in a repository.
        let around = match repository(dir.path()) {
            Repository::Top => Repository::Above,
            around => around,
        };
        assert_eq!(repository(&sub), around);
        fs::create_dir_all(top.join(".git")).unwrap();
        assert_eq!(repository(&top), around, "an empty one is none");
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!((repository(&top), repository(&sub)), (Repository::Top, Repository::Above));
        fs::write(top.join("HEAD"), "").unwrap();
        assert_eq!(repository(&top), Repository::Content, "which of the two git takes is not known by names");
        fs::remove_file(top.join("HEAD")).unwrap();
        fs::write(top.join("a/HEAD"), "").unwrap();
        assert_eq!(repository(&sub), Repository::Content);
        // A `.git` that leads into a repository: a work tree, a submodule.
        fs::create_dir_all(top.join(".git/worktrees/b")).unwrap();
        fs::write(sub.join(".git"), format!("gitdir: {}\n", top.join(".git/worktrees/b").display())).unwrap();
        assert_eq!(repository(&sub), Repository::Top);
        fs::create_dir_all(sub.join("x/store.d")).unwrap();
        for text in ["gitdir: x/store.d\n", "gitdir: /none\n", "", "x/store.d"] {
            fs::write(sub.join(".git"), text).unwrap();
            assert_eq!(repository(&sub), Repository::Content, "{text:?}");
        }
        fs::remove_file(sub.join(".git")).unwrap();
        std::os::unix::fs::symlink("x/store.d", sub.join(".git")).unwrap();
        assert_eq!(repository(&sub), Repository::Content);
    }
}
