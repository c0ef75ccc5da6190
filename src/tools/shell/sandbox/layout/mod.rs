//! The paths that a call may write, the protected paths within them, and the hidden paths. The policy is the
//! same for all sandbox levels; each level enforces the part that it supports.

mod auto_executed;
mod first_seen;
mod hidden;
mod secrets;
mod unreadable;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use first_seen::FirstSeen;
use secrets::{HomeDir, PACKAGE_CACHES, WritableRoots};
use unreadable::{closed_parent, find_link, resolve_foreign_links, unsearchable_ancestor};

use super::level::{CallSandbox, Level};
use super::temp;
use crate::context::ToolContext;
use crate::file_errors::is_missing;
use crate::shell::sandbox::placeholders::{is_placeholder, notes_path};
use base::open::real;

/// Maximum number of folders above the workspace whose protected files are guarded.
const MAX_FOLDERS_ABOVE: usize = 256;

/// Access of a command to the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FsPolicy {
    /// Existing files and folders that the command may change.
    pub(super) writable: Vec<PathBuf>,
    /// Existing paths that are read-only, except for the entries of `writable` below them.
    pub(super) guarded: Vec<PathBuf>,
    /// Folders that the command may change but not move, because they contain guarded paths.
    pub(super) pinned: Vec<PathBuf>,
    /// Paths that would be guarded but do not exist.
    pub(super) absent: Vec<PathBuf>,
    /// Existing files and folders that are hidden from the command.
    pub(super) hidden: Vec<PathBuf>,
    /// The command's folder for temporary files.
    pub(super) temp: PathBuf,
    /// `HOME`, which stays visible wherever it is.
    pub(super) home: PathBuf,
    /// The daemon's own socket.
    pub(super) socket: Option<PathBuf>,
    /// Number of folders of submodules and work trees that were scanned.
    pub(super) scanned_folders: usize,
    /// Whether repositories outside the writable folders are opened, since their protected files can be guarded.
    pub(super) opens_repositories: bool,
    /// A `.git` file that cannot be read, so that the paths to guard are unknown.
    pub(super) unreadable: Option<PathBuf>,
}

/// Writable paths and the current folder of a command. A failure at a writable path has another cause than the
/// sandbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct SandboxView {
    pub(crate) cwd: PathBuf,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) guarded: Vec<PathBuf>,
    /// Hidden paths.
    pub(crate) unseen: Vec<PathBuf>,
    pub(crate) home: PathBuf,
}

impl FsPolicy {
    /// Builds the policy from the current files and creates the folder for temporary files. Blocks on the disk.
    ///
    /// # Errors
    /// The folder for temporary files cannot be made, or other users have access to it.
    pub(crate) fn from_context(
        context: &ToolContext,
        first_seen: &FirstSeen,
        choice: CallSandbox,
    ) -> std::io::Result<Self> {
        let settings = &context.settings.sandbox;
        let (session_context, home) = (&context.session_context, &context.places.home);
        let mut layout = Self {
            temp: temp::folder_of(&settings.temp, context.session_context.session_id)?,
            home: home.clone(),
            socket: context
                .settings
                .socket
                .as_deref()
                .map(|socket| real(socket).unwrap_or_else(|_| socket.to_owned())),
            ..Self::default()
        };
        // A command may make the folder searchable again, and nothing in it would be guarded.
        for folder in std::iter::once(&session_context.workspace).chain(&session_context.additional) {
            if unreadable::is_locked(folder) {
                layout.unreadable = Some(folder.clone());
            }
        }
        // An additional folder may be gone, or another file may be in its place.
        let jail = context.jail();
        let additional =
            session_context.additional.iter().filter(|folder| folder.is_dir() && !jail.is_moved(folder));
        layout.writable.push(session_context.workspace.clone());
        layout.writable.extend(additional.clone().cloned());
        layout.writable.extend(settings.writable.iter().filter_map(|path| resolve_foreign_links(path)));
        let chosen_folders = layout.writable.clone();
        let at_home = HomeDir::at(home).ok();
        let caches = at_home
            .as_ref()
            .filter(|_| choice.network)
            .map_or_else(Vec::new, |at_home| at_home.below(PACKAGE_CACHES));
        layout.writable.extend(caches.iter().cloned());
        let root = layout.temp.parent().unwrap_or(Path::new("/")).to_owned();
        let reach =
            WritableRoots { chosen_folders: &chosen_folders, caches: &caches, temp: &root, of_all: false };
        layout.hidden = hidden::hidden_paths(context, first_seen, at_home.as_ref(), &reach);
        layout.opens_repositories = choice.guards;
        layout.guard(&session_context.workspace);
        layout.open_repository_above(&session_context.workspace, home);
        additional.for_each(|folder| layout.guard(folder));
        // The files of the folders above the workspace count as well, and an additional folder may contain them.
        let above = session_context.workspace.ancestors().skip(1).take(MAX_FOLDERS_ABOVE);
        let is_writable = |folder: &&Path| chosen_folders.iter().any(|root| folder.starts_with(root));
        let is_guarded = |folder: &Path| session_context.additional.iter().any(|other| other == folder);
        above.take_while(is_writable).filter(|it| !is_guarded(it)).for_each(|folder| layout.guard(folder));
        settings.hidden.iter().for_each(|path| layout.hide(path));
        // After a crash, the daemon removes placeholders by these notes. Nothing else records them.
        if let Some(notes) = notes_path(&layout.temp).filter(|notes| layout.may_change(notes)) {
            temp::create_own_folder(&notes)?;
            layout.guarded.push(notes);
            // Guard the folders that the daemon mounts for commands, and their sources.
            layout.guarded.extend(temp::mounted_folders(&root)?);
        }
        if layout.may_change(&layout.temp) && !layout.writable.contains(&layout.temp) {
            // A command must not replace the folder by another one.
            layout.pinned.push(layout.temp.clone());
        }
        layout.pin_ancestors();
        if let Some(link) =
            settings.daemon_files.iter().find_map(|path| find_link(path, &|folder| layout.may_change(folder)))
        {
            return Err(std::io::Error::other(format!(
                "{} is a link on the way to what the daemon itself reads, in a folder that commands may write: put what \
                 it leads to in its place, or work in another folder",
                link.display()
            )));
        }
        match layout.unreadable.take() {
            Some(path) => Err(std::io::Error::other(format!(
                "{} cannot be read, so what it holds or leads to cannot be protected; make it readable",
                path.display()
            ))),
            None => Ok(layout),
        }
    }

    /// The paths that the sandbox of a command hides. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Self::from_context`].
    pub(crate) fn hidden_paths(
        context: &ToolContext,
        first_seen: &FirstSeen,
        network: bool,
    ) -> std::io::Result<Vec<PathBuf>> {
        let choice = CallSandbox { level: Level::Landlock, network, guards: false };
        Ok(Self::from_context(context, first_seen, choice)?.hidden)
    }

    /// Whether mounts can hide this path: it lies in a writable folder and contains nothing that must stay
    /// visible. At level 2, a folder that contains a hidden path would itself get no rights, so that no file
    /// could be created in it.
    pub(super) fn is_covered(&self, hidden: &Path) -> bool {
        let seen = self.writable.iter().chain([&self.temp, &self.home]);
        self.writable.iter().any(|folder| hidden.starts_with(folder) && hidden != folder)
            && !seen.chain(&self.socket).any(|path| path.starts_with(hidden))
    }

    /// Whether a writable folder lies in shared memory. The command cannot have its own shared memory then.
    pub(super) fn lies_in_shared_memory(&self) -> bool {
        self.writable.iter().chain([&self.temp]).any(|path| path.starts_with("/dev/shm"))
    }

    /// The data that explains why a command failed in the sandbox.
    pub(crate) fn sandbox_view(&self, cwd: &Path) -> SandboxView {
        let writable = self.writable.iter().chain([&self.temp]).cloned().collect();
        let guarded = self.guarded.iter().chain(&self.absent).chain(&self.hidden).cloned().collect();
        SandboxView {
            cwd: cwd.to_owned(),
            writable,
            guarded,
            unseen: self.hidden.clone(),
            home: self.home.clone(),
        }
    }

    /// Whether a path lies in a cache folder of a package manager that does not exist yet.
    pub(super) fn lies_in_missing_cache(home: &Path, path: &Path) -> bool {
        let mut caches = PACKAGE_CACHES.iter().map(|name| home.join(name));
        caches.any(|cache| path.starts_with(&cache) && !cache.exists())
    }

    /// Pins the folders between a writable folder and a mount. A mount covers a name, and a command could
    /// move such a folder together with the name.
    pub(super) fn pin_ancestors(&mut self) {
        let within =
            |folder: &Path| self.writable.iter().any(|root| folder.starts_with(root) && folder != root);
        let shut: HashSet<&Path> =
            self.guarded.iter().chain(&self.absent).chain(&self.hidden).map(PathBuf::as_path).collect();
        let mut pins = BTreeSet::new();
        let inner = self.writable.iter().filter(|folder| within(folder));
        for path in shut.iter().copied().chain(self.pinned.iter().chain(inner).map(PathBuf::as_path)) {
            let above = path.ancestors().skip(1).take_while(|folder| within(folder));
            // A path in a covered folder cannot be moved.
            pins.extend(above.filter(|folder| !folder.ancestors().any(|above| shut.contains(above))));
        }
        let known: HashSet<&PathBuf> = self.pinned.iter().chain(&self.writable).collect();
        let pins = pins.into_iter().map(Path::to_owned).filter(|folder| !known.contains(folder));
        let pins: Vec<PathBuf> = pins.collect();
        self.pinned.extend(pins);
    }

    fn may_change(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether commands may write the path, and it is not itself a writable root.
    fn is_writable_root(&self, real: &Path) -> bool {
        self.may_change(real) && !self.writable.iter().any(|folder| folder.starts_with(real))
    }

    /// If `path` does not exist, hide its first missing ancestor, so that a command cannot create it. This
    /// protects policies of the daemon when the user works in the home folder.
    fn hide(&mut self, path: &Path) {
        let missing = |path: &Path| fs::symlink_metadata(path).is_err() || is_placeholder(path);
        let Some(first) = path.ancestors().take_while(|path| missing(path)).last() else { return };
        // The daemon creates nothing through links.
        let Some((folder, name)) = first.parent().zip(first.file_name()) else { return };
        let first = &real(folder).map_or_else(|_| first.to_owned(), |folder| folder.join(name));
        let is_within = self.writable.iter().any(|folder| first.starts_with(folder));
        if is_within && !self.absent.iter().any(|path| path == first) {
            self.absent.push(first.to_owned());
        }
    }

    /// The target of a link, if commands may write there.
    fn linked_within(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::symlink_metadata(path).ok()?.is_symlink().then(|| path.canonicalize().ok())??;
        self.is_writable_root(&real).then_some(real)
    }

    fn guard_one(&mut self, path: PathBuf) {
        // Check before and after reading the metadata: other commands create and remove placeholders at the
        // same time.
        if is_placeholder(&path) {
            self.absent.push(path);
            return;
        }
        match fs::symlink_metadata(&path) {
            // A link cannot be covered by a mount. Its target can be guarded, unless it contains all other
            // paths.
            Ok(meta) if meta.is_symlink() => {
                let real = self
                    .linked_within(&path)
                    .or_else(|| unsearchable_ancestor(&path).filter(|at| self.is_writable_root(at)));
                self.guarded.extend(real);
            }
            Ok(_) if !is_placeholder(&path) => self.guarded.push(path),
            Ok(_) => self.absent.push(path),
            Err(error) => {
                match if is_missing(&error) { closed_parent(&path) } else { unsearchable_ancestor(&path) } {
                    // A command may make the folder searchable again.
                    Some(shut) if self.is_writable_root(&shut) || !self.may_change(&shut) => {
                        self.guarded.push(shut)
                    }
                    // The folder was opened or closed meanwhile, or all writable folders would have to be guarded
                    // with it.
                    shut if !is_missing(&error) && (shut.is_some() || is_open(&path)) => {
                        self.unreadable = Some(path);
                    }
                    _ => self.absent.push(path),
                }
            }
        }
    }
}

/// Whether a path equals or lies in one of these folders.
fn is_within(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether the metadata of the path can be read.
fn is_open(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or_else(|error| is_missing(&error), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::sandbox::layout::unreadable::is_shut;

    #[test]
    fn missing_hidden_path_hides_first_missing_ancestor() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join("data")).unwrap();
        let mut layout = FsPolicy { writable: vec![home.clone()], ..FsPolicy::default() };
        for name in ["data", "data/policy", ".config/agentd", ".config/agentd/config.toml"] {
            layout.hide(&home.join(name));
        }
        layout.hide(Path::new("/nowhere/else"));
        assert_eq!(layout.absent, [home.join("data/policy"), home.join(".config")]);
        // A placeholder counts as a missing path.
        let placed = crate::shell::sandbox::placeholders::Placeholders::new(&layout.absent, None).unwrap();
        let mut policy = FsPolicy { writable: vec![home.clone()], ..FsPolicy::default() };
        policy.hide(&home.join(".config/agentd"));
        drop(placed);
        assert_eq!(policy.absent, [home.join(".config")]);
    }

    #[test]
    fn unsearchable_path_differs_from_missing_path() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shut/in")).unwrap();
        symlink("shut", root.join("link")).unwrap();
        // A name that is too long counts as missing.
        let long = "x".repeat(300);
        assert_eq!(unsearchable_ancestor(&root.join("shut").join(&long)), Some(root.join("shut")));
        assert_eq!(unsearchable_ancestor(&root.join("shut/in")), None);
        assert_eq!(unsearchable_ancestor(&root.join("none/in")), None);
        let mut layout = FsPolicy { writable: vec![root.clone()], ..FsPolicy::default() };
        layout.guard_one(root.join("shut").join(&long));
        assert_eq!((layout.guarded.as_slice(), layout.absent.len()), (&[root.join("shut")][..], 0));
        if nix::unistd::geteuid().is_root() {
            base::skip_test!("root may search every folder");
            return;
        }
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(unsearchable_ancestor(&root.join("link/in")), Some(root.join("shut")));
        let mut layout = FsPolicy { writable: vec![root.clone()], ..FsPolicy::default() };
        layout.guard_one(root.join("shut/in"));
        assert_eq!(layout.guarded, [root.join("shut")]);
        assert!(is_shut(&root.join("shut")) && !is_shut(&root));
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o500)).unwrap();
        let mut layout = FsPolicy { writable: vec![root.clone()], ..FsPolicy::default() };
        layout.guard_one(root.join("shut/new"));
        assert_eq!(layout.guarded, [root.join("shut")]);
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
