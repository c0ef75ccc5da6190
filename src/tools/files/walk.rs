//! Walks a folder like ripgrep: respects `.gitignore` (also without git), skips hidden files, does not follow
//! links. The walk uses paths; files that it finds are opened below the pinned folder.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

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

/// Time for counting the files that a search without result has left out, and the entries that are looked at.
const MAX_COUNT_TIME: Duration = Duration::from_millis(200);
const MAX_COUNTED: usize = 100_000;

/// A walk that skips paths that rules hide and counts them (a folder counts once).
pub(crate) struct Walk {
    pub(crate) builder: WalkBuilder,
    /// Whether it also walks over hidden and ignored files.
    pub(crate) is_open: bool,
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

    /// The note for the model about hidden and ignored files that are `wanted`, for a search that found nothing. `how`
    /// says how to search them. Counts for a limited time.
    pub(crate) fn unsearched_note(
        &self,
        context: &ToolContext,
        wanted: impl Fn(&Path) -> bool,
        how: &str,
    ) -> Option<String> {
        if self.is_open {
            return None;
        }
        let (started_at, hidden) = (Instant::now(), self.hidden_count());
        let mut left = MAX_COUNTED;
        let mut is_cut = false;
        let mut files = |builder: &WalkBuilder| -> Vec<PathBuf> {
            let entries = builder.build().take_while(|_| {
                left = left.saturating_sub(1);
                is_cut |= left == 0 || started_at.elapsed() > MAX_COUNT_TIME;
                !is_cut
            });
            entries.flatten().filter(is_file).map(DirEntry::into_path).filter(|path| wanted(path)).collect()
        };
        let searched: HashSet<PathBuf> = files(&self.builder).into_iter().collect();
        let mut all = self.builder.clone();
        all.standard_filters(false);
        let mut unsearched = files(&all);
        self.hidden.store(hidden, Relaxed);
        if is_cut && unsearched.is_empty() {
            return Some(format!("(hidden and ignored files were not searched; {how})"));
        }
        // Without all of the searched files, their number would be wrong.
        unsearched.retain(|path| !searched.contains(path));
        let example = context.show(unsearched.iter().min()?);
        let about = if is_cut { "about " } else { "" };
        Some(format!(
            "({about}{} hidden or ignored files were not searched, such as {example}; {how})",
            unsearched.len()
        ))
    }
}

/// A walk below `root` for `tool`. If hidden or ignored files of the root are asked for, all of its files are walked
/// over, except those of git, unless `spells_git`.
pub(crate) fn below(context: &ToolContext, tool: &'static str, root: &Path, spells_git: bool) -> Walk {
    let mut builder = plain(root);
    let unreadable = context.session_context.unreadable.clone();
    let hidden = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hidden);
    builder.filter_entry(move |entry| {
        if entry.depth() == 0 {
            return true;
        }
        if unreadable.is_unreadable(tool, entry.path()) {
            count.fetch_add(1, Relaxed);
            return false;
        }
        !is_kernel_folder(entry) && (spells_git || entry.file_name() != OsStr::new(".git"))
    });
    let is_open = LeftOut::new(context).is_folder_left_out(root);
    if is_open {
        builder.standard_filters(false);
    }
    Walk { builder, is_open, hidden }
}

fn plain(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.require_git(false).follow_links(false);
    builder
}

/// Finds out what a walk from the top of the workspace leaves out. Keeps the lists of folders.
pub(crate) struct LeftOut<'c> {
    context: &'c ToolContext,
    shown: HashMap<PathBuf, HashSet<OsString>>,
}

impl<'c> LeftOut<'c> {
    pub(crate) fn new(context: &'c ToolContext) -> Self {
        Self { context, shown: HashMap::new() }
    }

    /// The names that a walk shows of a folder.
    fn shown(&mut self, folder: &Path) -> &HashSet<OsString> {
        self.shown.entry(folder.to_owned()).or_insert_with(|| {
            let entries =
                plain(folder).max_depth(Some(1)).build().flatten().filter(|entry| entry.depth() == 1);
            entries.map(|entry| entry.file_name().to_owned()).collect()
        })
    }

    /// Whether a walk of its folder leaves out this entry.
    fn is_entry_left_out(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        !self.shown(folder).contains(name)
    }

    /// Whether a folder of the workspace is hidden or ignored, or lies in such a one, or ignores all that it holds.
    pub(crate) fn is_folder_left_out(&mut self, folder: &Path) -> bool {
        let root = self.context.session_context.roots().find(|root| folder.starts_with(root));
        let Some(root) = root.filter(|root| *root != folder && folder.is_dir()) else { return false };
        let within = folder.ancestors().take_while(|above| above != root);
        within.collect::<Vec<_>>().into_iter().any(|above| self.is_entry_left_out(above))
            || self.shown(folder).is_empty()
                && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Whether a file below `root` is shown: the first part of its path that a walk leaves out must be opened.
    pub(crate) fn is_shown(&mut self, root: &Path, file: &Path, is_opened: impl Fn(&OsStr) -> bool) -> bool {
        let parts = file.strip_prefix(root).into_iter().flat_map(Path::components);
        let paths = parts.scan(root.to_owned(), |path, part| {
            path.push(part);
            Some((path.clone(), part.as_os_str()))
        });
        let first = paths.into_iter().find(|(path, _)| self.is_entry_left_out(path));
        first.is_none_or(|(_, name)| is_opened(name))
    }
}

/// The parts of a glob that name a folder, or its dot, each with all parts before it, as globs of `ignore`. Such a
/// folder is searched although it is hidden or ignored.
pub(crate) fn spelled_folders(glob: &str) -> Vec<String> {
    let parts: Vec<&str> = glob.trim_start_matches('/').split('/').collect();
    let folders = (0..parts.len() - 1).filter(|at| is_spelled(parts[*at]));
    folders.map(|at| format!("/{}/", parts[..=at].join("/"))).collect()
}

/// Whether a part of a glob has no wildcards, or begins with a dot.
pub(crate) fn is_spelled(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && (part.starts_with('.') || !part.contains(['*', '?', '[', '\\']))
}

/// Whether a glob names the folder of git.
pub(crate) fn spells_git(glob: &str) -> bool {
    glob.split('/').any(|part| part == ".git")
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
