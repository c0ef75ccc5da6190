//! Resolves the text of a path to a judged object and keeps it open, so that a change on the disk between
//! judging and opening cannot redirect the call.
//!
//! There are two phases: [`Jail::decide`] resolves a path and opens handles of its folder and, if it exists, of
//! the object. [`PinnedPath`] opens, replaces or removes exactly this object, or fails.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::sys::stat::Mode;
use serde_json::json;

use crate::error::ToolError;
use crate::file_errors;
use crate::file_identity::FileIdentity;
use crate::folder_handle;
use crate::fs::hardlink;
use crate::fs::hardlink::NamedFile;
use crate::fs::pinned::{OtherNames, PinnedFolder, PinnedObject, PinnedPath};
use crate::fs::resolve;
use crate::sensitivity::git_config_paths;
use crate::sensitivity::{Access, SensitivePaths, is_directory, sensitivity, strictest};
use base::open;
use base::sync::lock;
use types::ids::SessionId;
use types::names;
use types::tool::{PathSensitivity, ResolvedPath};

/// The workspace folders of a session, kept open since their first use.
#[derive(Debug)]
pub struct Jail {
    /// The first one is the base of relative rules.
    roots: Vec<WorkspaceRoot>,
    places: Arc<SensitivePaths>,
    /// Folder for undo records of files that are written in place.
    undo_folder: Option<Arc<Path>>,
}

/// One workspace folder.
#[derive(Debug)]
struct WorkspaceRoot {
    path: PathBuf,
    /// `None` if it was missing or not a folder.
    anchor: Option<Arc<PinnedFolder>>,
}

impl WorkspaceRoot {
    fn hold(path: &Path) -> Self {
        let anchor = PinnedFolder::slash().ok().and_then(|slash| {
            let below = path.strip_prefix("/").ok()?;
            let folder = folder_handle::open_folder_handle(slash.folder.as_fd(), below).ok()?;
            PinnedFolder::new(path.to_path_buf(), folder).ok().map(Arc::new)
        });
        Self { path: path.to_path_buf(), anchor }
    }

    /// Whether another file is now at the path of this folder.
    fn is_moved(&self) -> bool {
        match &self.anchor {
            Some(anchor) => !anchor.is_in_place() && !is_gone(&self.path),
            // The path contained no link when it was opened.
            None => self.path.is_symlink(),
        }
    }
}

impl Jail {
    /// Opens `workspaces`: absolute paths, free of links. `home` is the target of `~`; `protected` are the
    /// daemon's own folders. A missing workspace is opened again once it exists.
    #[must_use]
    pub fn open(workspaces: &[PathBuf], home: &Path, protected: &[PathBuf]) -> Self {
        Self::hold(workspaces, Arc::new(SensitivePaths::new(home, protected).with_links()))
    }

    pub(crate) fn hold(workspaces: &[PathBuf], places: Arc<SensitivePaths>) -> Self {
        let roots = workspaces.iter().map(|path| WorkspaceRoot::hold(path)).collect();
        Self { roots, places, undo_folder: None }
    }

    /// Sets the folder for undo records of files that are written in place.
    #[must_use]
    pub(crate) fn with_undo_folder(self, undo_folder: Option<Arc<Path>>) -> Self {
        Self { undo_folder, ..self }
    }

    /// Whether every relevant folder is still the one that is open. A folder that was removed and created again
    /// is another object, but using it redirects no call.
    pub(crate) fn is_current(&self) -> bool {
        self.roots.iter().all(|root| match &root.anchor {
            Some(anchor) => !anchor.is_removed(),
            None => WorkspaceRoot::hold(&root.path).anchor.is_none(),
        })
    }

    /// Checks for calls that use paths: the workspace, and the folder that contains `cwd`, must still be the
    /// open ones.
    ///
    /// # Errors
    /// A folder was moved away, and another file is in its place.
    pub(crate) fn require_in_place(&self, cwd: &Path) -> Result<(), ToolError> {
        let counts = |at: usize, root: &WorkspaceRoot| at == 0 || cwd.starts_with(&root.path);
        let mut counting = self.roots.iter().enumerate().filter(|(at, root)| counts(*at, root));
        counting.find(|(_, root)| root.is_moved()).map_or(Ok(()), |(_, root)| Err(replaced_error(&root.path)))
    }

    /// Whether another file is now at the path of this workspace folder.
    pub(crate) fn is_moved(&self, folder: &Path) -> bool {
        self.roots.iter().any(|root| root.path == folder && root.is_moved())
    }

    /// Resolves `text` for `access`, relative to `cwd`, and pins the result. Opens nothing for reading or
    /// writing, and never waits.
    ///
    /// # Errors
    /// The path is invalid (hidden characters, a process's folder, too many links), is neither file nor folder,
    /// or changes during the lookup.
    pub fn decide(&self, text: &str, cwd: &Path, access: Access) -> Result<PinnedPath, ToolError> {
        self.decide_with(text, cwd, access, &|_| false)
    }

    /// Like [`Self::decide`]. `hidden` returns whether a rule denies reading a path; this also applies to
    /// other names of the file.
    pub(crate) fn decide_with(
        &self,
        text: &str,
        cwd: &Path,
        access: Access,
        hidden: &dyn Fn(&Path) -> bool,
    ) -> Result<PinnedPath, ToolError> {
        let (path, written) = resolve::resolve(text, cwd, &self.places.home)?;
        let mut held = self.decide_resolved(path, access, hidden)?;
        // Its writer probably meant the folder that a shell would name, so the path counts as one outside.
        if resolve::is_other_tilde(text) {
            held.resolved.in_workspace = false;
        }
        // `.git/config` stays sensitive if `.git` is a link, and so does `~/.netrc`.
        if written != held.resolved.path {
            let by_written_name = sensitivity(&written, access, &self.places);
            held.resolved.sensitivity = strictest(held.resolved.sensitivity, by_written_name);
        }
        // A slash at the end requires a folder.
        let means_folder = text.ends_with('/') || text.ends_with("/.");
        if means_folder && !held.is_folder() && (held.exists() || access == Access::Edit) {
            let kind = if held.exists() { Errno::ENOTDIR } else { Errno::EISDIR };
            return Err(ToolError::io(&held.path, &kind.into()));
        }
        Ok(held)
    }

    /// Like [`Self::decide_with`], for a path that was resolved before.
    pub(crate) fn decide_resolved(
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
                PinnedObject::new(anchor.folder.try_clone().map_err(|e| ToolError::io(&path, &e))?)
                    .map_err(|e| ToolError::io(&path, &e))?,
            )),
            Some(name) if missing.is_empty() => find(&folder, Path::new(name), &path)?,
            Some(_) => None,
        };
        let nearest = found.as_ref().map_or(&folder, |found| &found.handle);
        if open::is_of_processes(nearest) && !path.starts_with("/proc") {
            return Err(resolve::process_file_error(&path));
        }
        let mut sensitivity = sensitivity(&path, access, &self.places);
        let mut matched_aliases = Vec::new();
        let mut other_names = OtherNames::Separate;
        if let Some(found) = &found {
            file_errors::refuse_special(&path, found.meta.file_type())?;
            if found.meta.is_file() {
                let named = self.named_file(&path, found, access, sensitivity, hidden);
                (sensitivity, matched_aliases) = (named.sensitivity, named.matched_aliases);
                if named.is_shared_in_workspace {
                    other_names = OtherNames::Shared;
                }
            }
        }
        if access == Access::Edit {
            sensitivity = strictest(sensitivity, self.sensitivity_by_surroundings(&path, &folder, &missing));
        }
        let resolved = ResolvedPath { path, in_workspace, sensitivity, matched_aliases };
        let undo_folder = self.undo_folder.clone();
        let folder = Arc::new(folder);
        Ok(PinnedPath { resolved, anchor, folder, missing, name, found, names: other_names, undo_folder })
    }

    /// A file with several names is as sensitive as the most sensitive one.
    fn named_file(
        &self,
        path: &Path,
        found: &PinnedObject,
        access: Access,
        by_name: PathSensitivity,
        hidden: &dyn Fn(&Path) -> bool,
    ) -> NamedFile {
        use std::os::unix::fs::MetadataExt as _;
        if found.meta.nlink() < 2 || by_name == PathSensitivity::Protected {
            return NamedFile {
                sensitivity: by_name,
                matched_aliases: Vec::new(),
                is_shared_in_workspace: false,
            };
        }
        let roots = self.roots.iter().map(|root| root.path.as_path());
        hardlink::sensitivity_of_names(path, &found.meta, access, by_name, roots, &self.places, hidden)
    }

    /// Sensitivity because of other paths: links at the paths of auto-executed files, and repositories that are
    /// not named `.git`.
    fn sensitivity_by_surroundings(
        &self,
        path: &Path,
        folder: &File,
        missing: &[std::ffi::OsString],
    ) -> PathSensitivity {
        let roots = self.roots.iter().map(|root| root.path.as_path());
        let aliases = roots.flat_map(resolve::aliases_of).filter_map(|alias| {
            let below = path.strip_prefix(&alias.target).ok()?;
            Some(sensitivity(&alias.name.join(below), Access::Edit, &self.places))
        });
        let by_alias = aliases.fold(PathSensitivity::Ordinary, strictest);
        let mut named = self
            .roots
            .iter()
            .flat_map(|root| git_config_paths::paths_named_by_git(&root.path, &self.places.home));
        let by_git = match named.any(|named| path.starts_with(named)) {
            true => PathSensitivity::AutoExecuted,
            false => PathSensitivity::Ordinary,
        };
        let by_alias = strictest(by_alias, by_git);
        // Git accepts any folder that looks like a repository.
        let name = path.file_name().map(|name| names::fold_case(&name.to_string_lossy())).unwrap_or_default();
        let is_control = missing.is_empty()
            && matches!(name.as_str(), "config" | "config.worktree" | "head" | "hooks")
            && is_directory(folder.as_fd());
        let repository =
            path.ancestors().skip(1).find(|at| at.file_name().is_some_and(|name| name == "hooks"));
        let repository = repository.and_then(|hooks| hooks.parent()?.strip_prefix("/").ok());
        let is_hook = repository.is_some_and(|at| {
            let held = folder_handle::open_root()
                .and_then(|slash| folder_handle::open_folder_handle(slash.as_fd(), at));
            held.is_ok_and(|held| is_directory(held.as_fd()))
        });
        if is_control || is_hook { PathSensitivity::Protected } else { by_alias }
    }

    /// The anchor below which `path` is opened, and whether that is a workspace.
    fn anchor(&self, path: &Path) -> Result<(Arc<PinnedFolder>, bool), ToolError> {
        let slash =
            || PinnedFolder::slash().map(Arc::new).map_err(|e| file_errors::open_error(Path::new("/"), e));
        let Some(root) = self.roots.iter().find(|root| path.starts_with(&root.path)) else {
            return Ok((slash()?, false));
        };
        match &root.anchor {
            Some(anchor) if anchor.is_in_place() => Ok((Arc::clone(anchor), true)),
            Some(_) => Err(replaced_error(&root.path)),
            None => Ok((slash()?, true)),
        }
    }

    /// Whether these are the workspace folders of this jail.
    pub(crate) fn has_same_workspaces<'p>(&self, workspaces: impl Iterator<Item = &'p PathBuf>) -> bool {
        self.roots.iter().map(|root| &root.path).eq(workspaces)
    }
}

/// The deepest existing ancestor below `below`, and the names of the missing ones.
fn hold_above(
    anchor: &PinnedFolder,
    below: &Path,
    path: &Path,
) -> Result<(File, Vec<std::ffi::OsString>), ToolError> {
    let mut missing = Vec::new();
    let mut at = below.parent().unwrap_or(Path::new(""));
    loop {
        match folder_handle::open_folder_handle(anchor.folder.as_fd(), at) {
            Ok(folder) => {
                missing.reverse();
                return Ok((folder, missing));
            }
            Err(Errno::ENOENT) => {
                let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
                    return Err(file_errors::open_error(path, Errno::ENOENT));
                };
                missing.push(name.to_owned());
                at = parent;
            }
            // A link in place of a folder is reported like a file.
            Err(Errno::ENOTDIR) if anchor.path.join(at).is_symlink() => {
                return Err(file_errors::changed_path_error(path));
            }
            Err(errno) => return Err(file_errors::open_error(path, errno)),
        }
    }
}

fn find(folder: &File, name: &Path, path: &Path) -> Result<Option<Arc<PinnedObject>>, ToolError> {
    match open::open_below(folder.as_fd(), name, open::HANDLE, Mode::empty()) {
        Ok(fd) => PinnedObject::new(File::from(fd))
            .map(|found| Some(Arc::new(found)))
            .map_err(|e| ToolError::io(path, &e)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(file_errors::open_error(path, errno)),
    }
}

/// Whether the path does not exist, which is reported to the model.
fn is_gone(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err()
}

/// The error if another file is at the path of the workspace.
fn replaced_error(root: &Path) -> ToolError {
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

impl PinnedFolder {
    /// The root folder of the file system.
    pub(crate) fn slash() -> Result<Self, Errno> {
        let folder = folder_handle::open_root()?;
        Self::new(PathBuf::from("/"), folder).map_err(|_| Errno::EIO)
    }

    pub(crate) fn new(path: PathBuf, folder: File) -> std::io::Result<Self> {
        let identity = FileIdentity::from_metadata(&folder.metadata()?);
        Ok(Self { path, folder, identity })
    }

    /// Whether the path still leads to the open folder without a link.
    pub(crate) fn is_in_place(&self) -> bool {
        if self.path == Path::new("/") {
            return true;
        }
        let Ok(slash) = folder_handle::open_root() else { return false };
        let Ok(below) = self.path.strip_prefix("/") else { return false };
        folder_handle::open_folder_handle(slash.as_fd(), below).is_ok_and(|now| {
            now.metadata().is_ok_and(|meta| FileIdentity::from_metadata(&meta) == self.identity)
        })
    }

    fn is_removed(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.folder.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
}

/// Maximal number of open workspaces; the least recently used one is closed first.
const MAX_OPEN_WORKSPACES: usize = 128;

/// Open workspaces by session.
#[derive(Debug)]
pub(crate) struct Jails {
    undo_folder: Option<Arc<Path>>,
    /// Most recently used last.
    held: Mutex<Vec<(SessionId, Arc<Jail>)>>,
}

impl Jails {
    pub(crate) fn new(undo_folder: Option<&Path>) -> Self {
        Self { undo_folder: undo_folder.map(Arc::from), held: Mutex::new(Vec::new()) }
    }

    /// The jail of a session with these workspace folders, whose first one decides `places`. Blocks on the disk.
    pub(crate) fn jail_for(
        &self,
        session_id: SessionId,
        roots: &[PathBuf],
        places: &Arc<SensitivePaths>,
    ) -> Arc<Jail> {
        let mut held = lock(&self.held);
        let known = held.iter().position(|(known, _)| *known == session_id);
        let jail = known
            .map(|at| held.remove(at).1)
            .filter(|jail| jail.has_same_workspaces(roots.iter()) && jail.is_current());
        let open = || Jail::hold(roots, Arc::clone(places)).with_undo_folder(self.undo_folder.clone());
        let jail = jail.unwrap_or_else(|| Arc::new(open()));
        held.push((session_id, Arc::clone(&jail)));
        if held.len() > MAX_OPEN_WORKSPACES {
            held.remove(0);
        }
        jail
    }
}
