//! Links in a workspace at the paths of auto-executed files: `.git`, `.agentd`, `.github/workflows`,
//! `AGENTS.md` and others. A repository may contain such a link, so that a file with a harmless name is the one
//! that is executed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools::fs::resolve;
use crate::tools::sensitivity::repository;

/// Entries that are inspected in one workspace.
const MOST_ENTRIES: usize = 4_000;

/// One such link (or `.git` file).
pub(in crate::tools) struct Alias {
    /// Path of the link.
    pub(in crate::tools) name: PathBuf,
    /// Target of the link.
    pub(in crate::tools) target: PathBuf,
}

/// The links at the top of a workspace and in the hidden folders there.
pub(in crate::tools) fn of(workspace: &Path) -> Vec<Alias> {
    let mut found: Vec<Alias> = git_file(workspace).into_iter().collect();
    let mut left = MOST_ENTRIES;
    let mut folders = vec![workspace.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return found;
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                let name = entry.path();
                found.extend(resolve::follow(&name).ok().map(|target| Alias { name, target }));
            } else if kind.is_dir()
                && folder == workspace
                && entry.file_name().as_encoded_bytes().starts_with(b".")
            {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// The `.git` file of a work tree points to a repository that may have any name.
fn git_file(workspace: &Path) -> Option<Alias> {
    let name = workspace.join(".git");
    fs::symlink_metadata(&name).ok().filter(fs::Metadata::is_file)?;
    let target = resolve::follow(&repository::named_in(&name)?).ok()?;
    Some(Alias { name, target })
}
