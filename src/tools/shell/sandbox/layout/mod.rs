//! What a call may write, what it may only read within that, and what it does not see. The same for
//! every level; how much of it a level can hold is the level's matter.

mod auto_executed;
mod hidden;
mod secrets;
mod unreadable;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) use secrets::Located;
use secrets::{CACHES, HomeDir, WritableRoots};
use unreadable::{barrier, closed_around, link_on_the_way, without_own_links};

use super::blocked::SandboxView;
use super::temp;
use crate::tools::context::ToolContext;
use crate::tools::fs::disk::{is_missing, real};
use crate::tools::shell::sandbox::placeholders::{is_placeholder, notes_beside};

/// Where a command may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tools::shell) struct FsPolicy {
    /// Existing files and folders that it may change.
    pub(super) writable: Vec<PathBuf>,
    /// Within these it may change only what `writable` names below them; they exist.
    pub(super) guarded: Vec<PathBuf>,
    /// Folders that may be changed and not be moved away, since they hold guarded ones.
    pub(super) pinned: Vec<PathBuf>,
    /// What would be guarded and does not exist.
    pub(super) absent: Vec<PathBuf>,
    /// Existing files and folders that it does not see.
    pub(super) hidden: Vec<PathBuf>,
    /// Its folder for temporary files.
    pub(super) temp: PathBuf,
    /// `HOME`, which is to be seen wherever it is.
    pub(super) home: PathBuf,
    /// The daemon's own socket.
    pub(super) socket: Option<PathBuf>,
    /// How many folders of submodules and work trees were looked at.
    pub(super) looked: usize,
    /// A `.git` file that would say what to guard.
    pub(super) unreadable: Option<PathBuf>,
}

impl FsPolicy {
    /// Looks at what there is, and makes the folder for temporary files. Waits for the disk.
    ///
    /// # Errors
    /// That folder cannot be made, or is not ours alone.
    pub(in crate::tools::shell) fn of(context: &ToolContext, network: bool) -> std::io::Result<Self> {
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
        // A command may open it again, and nothing in it would be guarded.
        for folder in std::iter::once(&session_context.workspace).chain(&session_context.additional) {
            if unreadable::is_locked(folder) {
                layout.unreadable = Some(folder.clone());
            }
        }
        // A folder beside it may be gone since, or something else may stand in its place.
        let jail = context.jails.of(session_context);
        let additional =
            session_context.additional.iter().filter(|folder| folder.is_dir() && !jail.is_moved(folder));
        layout.writable.push(session_context.workspace.clone());
        layout.writable.extend(additional.clone().cloned());
        layout.writable.extend(settings.writable.iter().filter_map(|path| without_own_links(path)));
        let asked = layout.writable.clone();
        let at_home = HomeDir::at(home).ok();
        let caches =
            at_home.as_ref().filter(|_| network).map_or_else(Vec::new, |at_home| at_home.below(CACHES));
        layout.writable.extend(caches.iter().cloned());
        let root = layout.temp.parent().unwrap_or(Path::new("/")).to_owned();
        let reach = WritableRoots { asked: &asked, caches: &caches, temp: &root, of_all: false };
        layout.hidden = hidden::hidden(context, at_home.as_ref(), &reach);
        layout.guard(&session_context.workspace);
        additional.for_each(|folder| layout.guard(folder));
        settings.hidden.iter().for_each(|path| layout.hide(path));
        // What stands there is removed after a crash: nobody else says what.
        if let Some(notes) = notes_beside(&layout.temp).filter(|notes| layout.may_change(notes)) {
            temp::own(&notes)?;
            layout.guarded.push(notes);
            // Nor what is mounted for commands, or from where.
            layout.guarded.extend(temp::ours(&root)?);
        }
        if layout.may_change(&layout.temp) && !layout.writable.contains(&layout.temp) {
            // Nor is something else put in its place.
            layout.pinned.push(layout.temp.clone());
        }
        layout.pin_what_is_above();
        if let Some(link) =
            settings.obeyed.iter().find_map(|path| link_on_the_way(path, &|folder| layout.may_change(folder)))
        {
            return Err(std::io::Error::other(format!(
                "{} is a link on the way to what the daemon itself obeys, in a folder that commands may write: put what \
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

    /// What lies hidden within what a command may write, and holds nothing that it is to see: mounts cover it. At level 2
    /// a folder with something hidden in it would get no rights itself, and nothing new could be made there.
    pub(super) fn is_covered(&self, hidden: &Path) -> bool {
        let seen = self.writable.iter().chain([&self.temp, &self.home]);
        self.writable.iter().any(|folder| hidden.starts_with(folder) && hidden != folder)
            && !seen.chain(&self.socket).any(|path| path.starts_with(hidden))
    }

    /// Whether somebody works in memory that all share: it cannot be a command's own then.
    pub(super) fn lies_in_shared_memory(&self) -> bool {
        self.writable.iter().chain([&self.temp]).any(|path| path.starts_with("/dev/shm"))
    }

    /// What a failure of a command can be held against.
    pub(in crate::tools::shell) fn sandbox_view(&self, cwd: &Path) -> SandboxView {
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

    /// Whether a place lies where package managers would keep something if its folder were there.
    pub(super) fn lies_in_missing_cache(home: &Path, path: &Path) -> bool {
        let mut caches = CACHES.iter().map(|name| home.join(name));
        caches.any(|cache| path.starts_with(&cache) && !cache.exists())
    }

    /// A cover is over a name: whatever lies between it and the folder that may be written could be moved away, and the
    /// name with it.
    pub(super) fn pin_what_is_above(&mut self) {
        let within =
            |folder: &Path| self.writable.iter().any(|root| folder.starts_with(root) && folder != root);
        let shut: HashSet<&Path> =
            self.guarded.iter().chain(&self.absent).chain(&self.hidden).map(PathBuf::as_path).collect();
        let mut pins = BTreeSet::new();
        let inner = self.writable.iter().filter(|folder| within(folder));
        for path in shut.iter().copied().chain(self.pinned.iter().chain(inner).map(PathBuf::as_path)) {
            let above = path.ancestors().skip(1).take_while(|folder| within(folder));
            // What lies in a covered folder cannot be moved.
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

    /// Whether a command may write there, and it is not all that it may write.
    fn is_writable_root(&self, real: &Path) -> bool {
        self.may_change(real) && !self.writable.iter().any(|folder| folder.starts_with(real))
    }

    /// What would be hidden and is not there is not made either: policies of the daemon, where somebody works in his
    /// home folder (S25). The first that is missing on the way stands for all below it.
    fn hide(&mut self, path: &Path) {
        let missing = |path: &Path| fs::symlink_metadata(path).is_err() || is_placeholder(path);
        let Some(first) = path.ancestors().take_while(|path| missing(path)).last() else { return };
        // Nothing is made through links.
        let Some((folder, name)) = first.parent().zip(first.file_name()) else { return };
        let first = &real(folder).map_or_else(|_| first.to_owned(), |folder| folder.join(name));
        let is_within = self.writable.iter().any(|folder| first.starts_with(folder));
        if is_within && !self.absent.iter().any(|path| path == first) {
            self.absent.push(first.to_owned());
        }
    }

    /// Where a link leads, if that is part of what a command may write.
    fn linked_within(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::symlink_metadata(path).ok()?.is_symlink().then(|| path.canonicalize().ok())??;
        self.is_writable_root(&real).then_some(real)
    }

    fn guard_one(&mut self, path: PathBuf) {
        // Asked before and after the look: a stand-in comes and goes with the commands beside this one.
        if is_placeholder(&path) {
            self.absent.push(path);
            return;
        }
        match fs::symlink_metadata(&path) {
            // Nothing can be put over a link. What it leads to can be guarded, but for what holds all the rest.
            Ok(meta) if meta.is_symlink() => {
                let real = self
                    .linked_within(&path)
                    .or_else(|| barrier(&path).filter(|at| self.is_writable_root(at)));
                self.guarded.extend(real);
            }
            Ok(_) if !is_placeholder(&path) => self.guarded.push(path),
            Ok(_) => self.absent.push(path),
            Err(error) => match if is_missing(&error) { closed_around(&path) } else { barrier(&path) } {
                // A command may open it again.
                Some(shut) if self.is_writable_root(&shut) || !self.may_change(&shut) => {
                    self.guarded.push(shut)
                }
                // It was opened or closed meanwhile, or would have to be guarded with all that may be written.
                shut if !is_missing(&error) && (shut.is_some() || is_open(&path)) => {
                    self.unreadable = Some(path);
                }
                _ => self.absent.push(path),
            },
        }
    }
}

/// Whether a path lies in one of these, or is one.
fn is_within(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether a look at it does not fail.
fn is_open(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or_else(|error| is_missing(&error), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::shell::sandbox::layout::unreadable::is_shut;

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
        // While it stands in for something, nothing is there.
        let placed =
            crate::tools::shell::sandbox::placeholders::Placeholders::new(&layout.absent, None).unwrap();
        let mut beside = FsPolicy { writable: vec![home.clone()], ..FsPolicy::default() };
        beside.hide(&home.join(".config/agentd"));
        drop(placed);
        assert_eq!(beside.absent, [home.join(".config")]);
    }

    #[test]
    fn unsearchable_path_differs_from_missing_path() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shut/in")).unwrap();
        symlink("shut", root.join("link")).unwrap();
        // A name that no folder can hold is as little told from one that is not there.
        let long = "x".repeat(300);
        assert_eq!(barrier(&root.join("shut").join(&long)), Some(root.join("shut")));
        assert_eq!(barrier(&root.join("shut/in")), None);
        assert_eq!(barrier(&root.join("none/in")), None);
        let mut layout = FsPolicy { writable: vec![root.clone()], ..FsPolicy::default() };
        layout.guard_one(root.join("shut").join(&long));
        assert_eq!((layout.guarded.as_slice(), layout.absent.len()), (&[root.join("shut")][..], 0));
        if nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED: root may search every folder");
            return;
        }
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(barrier(&root.join("link/in")), Some(root.join("shut")));
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
