//! Finds the root of a folder's repository.

use std::path::{Path, PathBuf};

/// The nearest folder at or above `cwd` that contains `.git`. Git itself is not run.
pub(super) fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf)
}
