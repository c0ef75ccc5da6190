//! Walking a folder as ripgrep does: `.gitignore` respected (also without git), hidden files
//! left out, links not followed. Walking goes by paths; what is found is opened below the held folder.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use ignore::{DirEntry, WalkBuilder};

use crate::tools::context::ToolContext;
use crate::tools::error::ToolError;
use crate::tools::fs::pinned::PinnedPath;
use crate::tools::sensitivity::Access;
use crate::types::tool::PathSensitivity;

/// The folder (or file) a search starts at; the current folder if none is given.
pub(in crate::tools) fn root(context: &ToolContext, path: Option<&str>) -> Result<PinnedPath, ToolError> {
    let held = context.resolve(path.filter(|path| !path.is_empty()).unwrap_or("."), Access::Read)?;
    // What may be read anyway is checked right here; elsewhere a person is asked first.
    if held.in_workspace && held.care == PathSensitivity::Ordinary {
        require_existing(&held)?;
    }
    Ok(held)
}

pub(in crate::tools) fn require_existing(held: &PinnedPath) -> Result<(), ToolError> {
    if held.exists() { Ok(()) } else { Err(ToolError::io(&held.path, &std::io::ErrorKind::NotFound.into())) }
}

/// A walk that leaves out what rules hide, and counts it (a folder as one).
pub(in crate::tools) struct Walk {
    pub(in crate::tools) builder: WalkBuilder,
    hidden: Arc<AtomicUsize>,
}

impl Walk {
    pub(in crate::tools) fn hidden(&self) -> usize {
        self.hidden.load(Relaxed)
    }

    /// What the model is told of that.
    pub(in crate::tools) fn hidden_note(&self) -> Option<String> {
        Some(self.hidden()).filter(|n| *n > 0).map(|n| {
            format!("({n} files or folders are left out: a permission rule keeps them from being read)")
        })
    }
}

/// Walks below `root` for `tool`.
pub(in crate::tools) fn below(context: &ToolContext, tool: &'static str, root: &Path) -> Walk {
    let mut builder = WalkBuilder::new(root);
    let unreadable = context.session_context.unreadable.clone();
    let hidden = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hidden);
    builder.require_git(false).follow_links(false).filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        if unreadable.covers(tool, entry.path()) {
            count.fetch_add(1, Relaxed);
            return false;
        }
        !is_kernel_folder(entry)
    });
    Walk { builder, hidden }
}

/// File systems in which reading has effects, never ends, or shows other processes.
fn is_kernel_folder(entry: &DirEntry) -> bool {
    ["proc", "sys", "dev"].iter().any(|name| entry.file_name() == OsStr::new(name))
        && ["/proc", "/sys", "/dev"].iter().any(|folder| entry.path() == Path::new(folder))
}

/// Whether the entry is a regular file.
pub(in crate::tools) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}
