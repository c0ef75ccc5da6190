//! Walking a folder as ripgrep does: `.gitignore` respected (also without git), hidden files
//! left out, links not followed.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::care::Access;
use super::context::Context;
use super::disk;
use super::refusal::Refusal;
use crate::types::tool::{PathCare, ResolvedPath};

/// The folder (or file) a search starts at; the current folder if none is given.
pub(super) fn root(context: &Context, path: Option<&str>) -> Result<ResolvedPath, Refusal> {
    let path = context.resolve(path.filter(|path| !path.is_empty()).unwrap_or("."), Access::Read)?;
    // What may be read anyway is checked right here; elsewhere a person is asked first.
    if path.in_workspace && path.care == PathCare::Ordinary {
        require_existing(&path.path)?;
    }
    Ok(path)
}

pub(super) fn require_existing(path: &Path) -> Result<std::fs::Metadata, Refusal> {
    let meta = std::fs::symlink_metadata(path).map_err(|e| Refusal::io(path, &e))?;
    if meta.is_symlink() {
        return Err(disk::changed_underway(path));
    }
    Ok(meta)
}

pub(super) fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.require_git(false).follow_links(false).filter_entry(|entry| !is_kernel_folder(entry));
    builder
}

/// File systems in which reading has effects, never ends, or shows other processes.
fn is_kernel_folder(entry: &DirEntry) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|folder| entry.path() == Path::new(folder))
}

/// The regular file of an entry.
pub(super) fn file(entry: Result<DirEntry, ignore::Error>) -> Option<PathBuf> {
    let entry = entry.ok()?;
    entry.file_type().is_some_and(|kind| kind.is_file()).then(|| entry.into_path())
}
