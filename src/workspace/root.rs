//! Where a folder's repository begins.

use std::path::{Path, PathBuf};

/// The nearest folder at or above `cwd` that holds `.git`. Git itself is not run.
pub(super) fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf)
}
