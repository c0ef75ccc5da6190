//! From the text of a path to a judged object that is held, so that nothing that happens on the disk
//! between judging and opening leads elsewhere (P4, S24).
//!
//! Two phases: [`Jail::decide`] says what a path means and takes hold of it (of the folder it lies in
//! and, if it exists, of the object itself); [`Held`] opens, replaces or removes just that, or fails.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde_json::json;

use crate::tools::error::ToolError;
use crate::tools::fs::aliases;
use crate::tools::fs::disk;
use crate::tools::fs::disk::Identity;
use crate::tools::fs::hardlink;
use crate::tools::fs::pinned::{Anchor, Found, PinnedPath};
use crate::tools::fs::resolve;
use crate::tools::sensitivity::git_config_paths;
use crate::tools::sensitivity::{Access, SensitivePaths, is_directory, sensitivity, strictest};
use crate::types::names;
use crate::types::tool::{PathSensitivity, ResolvedPath};

/// The workspace folders of a session, held open since they were first used.
#[derive(Debug)]
pub struct Jail {
    /// The first is the one that relative rules start at.
    roots: Vec<Root>,
    places: Arc<SensitivePaths>,
}

/// One workspace folder.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// Nothing, if it was missing or no folder.
    anchor: Option<Arc<Anchor>>,
}

impl Root {
    fn hold(path: &Path) -> Self {
        let anchor = Anchor::slash().ok().and_then(|slash| {
            let below = path.strip_prefix("/").ok()?;
            let folder = disk::hold_folder(slash.folder.as_fd(), below).ok()?;
            Anchor::new(path.to_path_buf(), folder).ok().map(Arc::new)
        });
        Self { path: path.to_path_buf(), anchor }
    }

    /// Whether something else stands in its place.
    fn is_moved(&self) -> bool {
        match &self.anchor {
            Some(anchor) => !anchor.is_in_place() && !is_gone(&self.path),
            // Its path was free of links once.
            None => self.path.is_symlink(),
        }
    }
}

impl Jail {
    /// Takes hold of `workspaces`: absolute paths, free of links. `home` is where `~` leads;
    /// `protected` are the daemon's own folders. One that is missing is found again when it is there.
    #[must_use]
    pub fn open(workspaces: &[PathBuf], home: &Path, protected: &[PathBuf]) -> Self {
        Self::hold(workspaces, Arc::new(SensitivePaths::new(home, protected).with_links()))
    }

    pub(in crate::tools) fn hold(workspaces: &[PathBuf], places: Arc<SensitivePaths>) -> Self {
        Self { roots: workspaces.iter().map(|path| Root::hold(path)).collect(), places }
    }

    /// Whether every folder is still the one that is held, as far as it matters: a folder that was
    /// removed and made anew is another one, but nobody is led astray by taking that.
    pub(in crate::tools) fn is_current(&self) -> bool {
        self.roots.iter().all(|root| match &root.anchor {
            Some(anchor) => !anchor.is_removed(),
            None => Root::hold(&root.path).anchor.is_none(),
        })
    }

    /// For what goes by paths: those of the workspace, and of the folder that `cwd` lies in, must still lead to what is
    /// held.
    ///
    /// # Errors
    /// One was moved away, and something else stands in its place.
    pub(in crate::tools) fn in_place(&self, cwd: &Path) -> Result<(), ToolError> {
        let counts = |at: usize, root: &Root| at == 0 || cwd.starts_with(&root.path);
        let mut counting = self.roots.iter().enumerate().filter(|(at, root)| counts(*at, root));
        counting.find(|(_, root)| root.is_moved()).map_or(Ok(()), |(_, root)| Err(replaced(&root.path)))
    }

    /// Whether something else stands in the place of one of its folders.
    pub(in crate::tools) fn is_moved(&self, folder: &Path) -> bool {
        self.roots.iter().any(|root| root.path == folder && root.is_moved())
    }

    /// What `text` means for `access`, relative to `cwd`, and a hold on it. Opens nothing for reading
    /// or writing, and never waits.
    ///
    /// # Errors
    /// The path cannot be meant (hidden characters, a process's folder, too many links), is neither
    /// file nor folder, or changes while it is looked at.
    pub fn decide(&self, text: &str, cwd: &Path, access: Access) -> Result<PinnedPath, ToolError> {
        self.decide_with(text, cwd, access, &|_| false)
    }

    /// The same. `hidden` says of a path whether a rule keeps it from being read: that holds for the
    /// other names of the file as well.
    pub(in crate::tools) fn decide_with(
        &self,
        text: &str,
        cwd: &Path,
        access: Access,
        hidden: &dyn Fn(&Path) -> bool,
    ) -> Result<PinnedPath, ToolError> {
        let (path, written) = resolve::resolve(text, cwd, &self.places.home)?;
        let mut held = self.decide_resolved(path, access, hidden)?;
        // `.git/config` stays what it is if `.git` is a link, and so does `~/.netrc`.
        held.resolved.care = strictest(held.resolved.care, sensitivity(&written, access, &self.places));
        // A slash at the end says that a folder is meant.
        let means_folder = text.ends_with('/') || text.ends_with("/.");
        if means_folder && !held.is_folder() && (held.exists() || access == Access::Edit) {
            let kind = if held.exists() { Errno::ENOTDIR } else { Errno::EISDIR };
            return Err(ToolError::io(&held.path, &kind.into()));
        }
        Ok(held)
    }

    /// The same for a path that was resolved before.
    pub(in crate::tools) fn decide_resolved(
        &self,
        path: PathBuf,
        access: Access,
        hidden: &dyn Fn(&Path) -> bool,
    ) -> Result<PinnedPath, ToolError> {
        let (anchor, in_workspace) = self.anchor(&path)?;
        let below = path.strip_prefix(&anchor.path).unwrap_or(&path).to_path_buf();
        let (folder, missing) = hold_above(&anchor, &below, &path)?;
        let name = below.file_name().map(ToOwned::to_owned);
        let found = match &name {
            None => Some(Arc::new(
                Found::new(anchor.folder.try_clone().map_err(|e| ToolError::io(&path, &e))?)
                    .map_err(|e| ToolError::io(&path, &e))?,
            )),
            Some(name) if missing.is_empty() => find(&folder, Path::new(name), &path)?,
            Some(_) => None,
        };
        let nearest = found.as_ref().map_or(&folder, |found| &found.handle);
        if disk::is_of_processes(nearest) && !path.starts_with("/proc") {
            return Err(resolve::magic(&path));
        }
        let mut care = sensitivity(&path, access, &self.places);
        let mut ruled = Vec::new();
        if let Some(found) = &found {
            disk::refuse_special(&path, found.meta.file_type())?;
            if found.meta.is_file() {
                (care, ruled) = self.care_of_names(&path, found, access, care, hidden);
            }
        }
        if access == Access::Edit {
            care = strictest(care, self.care_by_surroundings(&path, &folder, &missing));
        }
        let resolved = ResolvedPath { path, in_workspace, care, ruled };
        Ok(PinnedPath { resolved, anchor, folder: Arc::new(folder), missing, name, found })
    }

    /// A file with several names is as delicate as the most delicate of them.
    fn care_of_names(
        &self,
        path: &Path,
        found: &Found,
        access: Access,
        by_name: PathSensitivity,
        hidden: &dyn Fn(&Path) -> bool,
    ) -> (PathSensitivity, Vec<PathBuf>) {
        use std::os::unix::fs::MetadataExt as _;
        if found.meta.nlink() < 2 || by_name == PathSensitivity::Protected {
            return (by_name, Vec::new());
        }
        let roots = self.roots.iter().map(|root| root.path.as_path());
        hardlink::care(path, &found.meta, access, by_name, roots, &self.places, hidden)
    }

    /// What other paths make of this one: links that stand where something is obeyed, and repositories
    /// that are not called `.git`.
    fn care_by_surroundings(
        &self,
        path: &Path,
        folder: &File,
        missing: &[std::ffi::OsString],
    ) -> PathSensitivity {
        let roots = self.roots.iter().map(|root| root.path.as_path());
        let aliases = roots.flat_map(aliases::of).filter_map(|alias| {
            let below = path.strip_prefix(&alias.target).ok()?;
            Some(sensitivity(&alias.name.join(below), Access::Edit, &self.places))
        });
        let by_alias = aliases.fold(PathSensitivity::Ordinary, strictest);
        let mut named =
            self.roots.iter().flat_map(|root| git_config_paths::by_git(&root.path, &self.places.home));
        let by_git = match named.any(|named| path.starts_with(named)) {
            true => PathSensitivity::AutoExecuted,
            false => PathSensitivity::Ordinary,
        };
        let by_alias = strictest(by_alias, by_git);
        // Git takes for a repository whatever looks like one.
        let name = path.file_name().map(|name| names::fold(&name.to_string_lossy())).unwrap_or_default();
        let is_control = missing.is_empty()
            && matches!(name.as_str(), "config" | "config.worktree" | "head" | "hooks")
            && is_directory(folder.as_fd());
        let repository =
            path.ancestors().skip(1).find(|at| at.file_name().is_some_and(|name| name == "hooks"));
        let repository = repository.and_then(|hooks| hooks.parent()?.strip_prefix("/").ok());
        let is_hook = repository.is_some_and(|at| {
            let held = disk::open_root().and_then(|slash| disk::hold_folder(slash.as_fd(), at));
            held.is_ok_and(|held| is_directory(held.as_fd()))
        });
        if is_control || is_hook { PathSensitivity::Protected } else { by_alias }
    }

    /// What `path` is opened below, and whether that is a workspace.
    fn anchor(&self, path: &Path) -> Result<(Arc<Anchor>, bool), ToolError> {
        let slash = || Anchor::slash().map(Arc::new).map_err(|e| disk::refused(Path::new("/"), e));
        let Some(root) = self.roots.iter().find(|root| path.starts_with(&root.path)) else {
            return Ok((slash()?, false));
        };
        match &root.anchor {
            Some(anchor) if anchor.is_in_place() => Ok((Arc::clone(anchor), true)),
            Some(_) => Err(replaced(&root.path)),
            None => Ok((slash()?, true)),
        }
    }

    /// Whether its folders are these.
    pub(in crate::tools) fn is_of<'p>(&self, workspaces: impl Iterator<Item = &'p PathBuf>) -> bool {
        self.roots.iter().map(|root| &root.path).eq(workspaces)
    }
}

/// The deepest folder above `below` that exists, and the names of those that do not.
fn hold_above(
    anchor: &Anchor,
    below: &Path,
    path: &Path,
) -> Result<(File, Vec<std::ffi::OsString>), ToolError> {
    let mut missing = Vec::new();
    let mut at = below.parent().unwrap_or(Path::new(""));
    loop {
        match disk::hold_folder(anchor.folder.as_fd(), at) {
            Ok(folder) => {
                missing.reverse();
                return Ok((folder, missing));
            }
            Err(Errno::ENOENT) => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(disk::refused(path, Errno::ENOENT));
                };
                missing.push(name.to_owned());
                at = parent;
            }
            // A link where a folder was wanted is reported like a file there.
            Err(Errno::ENOTDIR) if anchor.path.join(at).is_symlink() => {
                return Err(disk::changed_underway(path));
            }
            Err(errno) => return Err(disk::refused(path, errno)),
        }
    }
}

fn find(folder: &File, name: &Path, path: &Path) -> Result<Option<Arc<Found>>, ToolError> {
    match disk::open_below(folder.as_fd(), name, OFlag::O_PATH, Mode::empty()) {
        Ok(fd) => {
            Found::new(File::from(fd)).map(|found| Some(Arc::new(found))).map_err(|e| ToolError::io(path, &e))
        }
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(disk::refused(path, errno)),
    }
}

/// Nothing stands there at all: who goes there is told so.
fn is_gone(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err()
}

/// Something else stands where the workspace was.
fn replaced(root: &Path) -> ToolError {
    ToolError::new(
        "workspace_replaced",
        format!(
            "{} is not the folder that this session works in any more: it was moved away or unmounted, and something \
             else stands in its place",
            root.display()
        ),
    )
    .with(json!({ "workspace": root }))
}

impl Anchor {
    /// The root of all paths.
    pub(in crate::tools) fn slash() -> Result<Self, Errno> {
        let folder = disk::open_root()?;
        Self::new(PathBuf::from("/"), folder).map_err(|_| Errno::EIO)
    }

    pub(in crate::tools) fn new(path: PathBuf, folder: File) -> std::io::Result<Self> {
        let identity = Identity::of(&folder.metadata()?);
        Ok(Self { path, folder, identity })
    }

    /// Whether its path leads to it, and not by a link.
    pub(in crate::tools) fn is_in_place(&self) -> bool {
        if self.path == Path::new("/") {
            return true;
        }
        let Ok(slash) = disk::open_root() else { return false };
        let Ok(below) = self.path.strip_prefix("/") else { return false };
        disk::hold_folder(slash.as_fd(), below)
            .is_ok_and(|now| now.metadata().is_ok_and(|meta| Identity::of(&meta) == self.identity))
    }

    fn is_removed(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.folder.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
}
