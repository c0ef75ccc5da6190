//! Walks a folder like ripgrep: respects `.gitignore` (also without git), skips hidden files, does not follow
//! links. The walk uses paths; files that it finds are opened below the pinned folder.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use ignore::{DirEntry, WalkBuilder};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::fs::pinned::PinnedPath;
use crate::sensitivity::Access;
use types::tool::PathSensitivity;

/// The folder (or file) at which a search starts; by default the current folder.
pub(crate) fn search_root(context: &ToolContext, path: Option<&str>) -> Result<PinnedPath, ToolError> {
    let held = context.resolve(path.filter(|path| !path.is_empty()).unwrap_or("."), Access::Read)?;
    // If no permission is necessary, check the path now; otherwise the user answers a permission request first.
    if held.in_workspace && held.sensitivity == PathSensitivity::Ordinary {
        require_existing(&held)?;
    }
    Ok(held)
}

pub(crate) fn require_existing(held: &PinnedPath) -> Result<(), ToolError> {
    if held.exists() { Ok(()) } else { Err(ToolError::io(&held.path, &std::io::ErrorKind::NotFound.into())) }
}

/// A walk that skips paths that rules hide and counts them (a folder counts once).
pub(crate) struct Walk {
    pub(crate) builder: WalkBuilder,
    hidden: Arc<AtomicUsize>,
}

impl Walk {
    pub(crate) fn hidden_count(&self) -> usize {
        self.hidden.load(Relaxed)
    }

    /// The note for the model about skipped paths.
    pub(crate) fn hidden_note(&self) -> Option<String> {
        Some(self.hidden_count()).filter(|n| *n > 0).map(|n| {
            format!("({n} files or folders are left out: a permission rule keeps them from being read)")
        })
    }
}

/// A walk below `root` for `tool`.
pub(crate) fn below(context: &ToolContext, tool: &'static str, root: &Path) -> Walk {
    let mut builder = WalkBuilder::new(root);
    let unreadable = context.session_context.unreadable.clone();
    let hidden = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hidden);
    builder.require_git(false).follow_links(false).filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        if unreadable.is_unreadable(tool, entry.path()) {
            count.fetch_add(1, Relaxed);
            return false;
        }
        !is_kernel_folder(entry)
    });
    Walk { builder, hidden }
}

/// File systems in which reading has side effects, never ends, or shows other processes.
fn is_kernel_folder(entry: &DirEntry) -> bool {
    ["proc", "sys", "dev"].iter().any(|name| entry.file_name() == OsStr::new(name))
        && ["/proc", "/sys", "/dev"].iter().any(|folder| entry.path() == Path::new(folder))
}

/// Whether the entry is a regular file.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}
