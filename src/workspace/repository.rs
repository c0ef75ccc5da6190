//! Which repository git finds in a folder, by names alone: git itself would obey it.

use std::path::Path;

use crate::judge::Repository;

/// Looks for a repository as git does, from the folder upwards (git-rev-parse(1), "--git-dir"; `setup_git_directory` of
/// its setup.c): first for `.git`, then whether the folder itself looks like one. That may be content, from a clone, say.
#[must_use]
pub fn repository(workspace: &Path) -> Repository {
    for (at, folder) in workspace.ancestors().enumerate() {
        let own = folder.join(".git");
        if own.is_file() || own.join("HEAD").symlink_metadata().is_ok() {
            return if at == 0 { Repository::Top } else { Repository::Above };
        }
        // Of a bare one `objects` and `refs` may lie elsewhere (gitrepository-layout(5), "commondir").
        if folder.join("HEAD").symlink_metadata().is_ok() {
            return Repository::Content;
        }
    }
    Repository::Nowhere
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn content_that_looks_like_a_repository_is_told_from_one() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        let sub = top.join("a/b");
        fs::create_dir_all(&sub).unwrap();
        // Somebody may have one around the temporary folder.
        let around = match repository(dir.path()) {
            Repository::Top => Repository::Above,
            around => around,
        };
        assert_eq!(repository(&sub), around);
        fs::create_dir_all(top.join(".git")).unwrap();
        assert_eq!(repository(&top), around, "an empty one is none");
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!((repository(&top), repository(&sub)), (Repository::Top, Repository::Above));
        fs::write(top.join("a/HEAD"), "").unwrap();
        assert_eq!(repository(&sub), Repository::Content);
        fs::write(sub.join(".git"), "gitdir: /x\n").unwrap();
        assert_eq!(repository(&sub), Repository::Top);
    }
}
