//! The sandbox of a command, prepared before the command may start. Preparation changes nothing in the
//! workspace. Placeholders are created at the start and usually match the prepared state.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kept;
use super::layout::FsPolicy;
use super::level::{Choice, Level};
use super::probe::Available;
use super::sockets::without_sockets;
use super::temp::{self, Nothing};
use crate::tools::fs::disk;
use crate::tools::shell::sandbox::bwrap;
use crate::tools::shell::sandbox::landlock;
use crate::tools::shell::sandbox::landlock::Means;
use crate::tools::shell::sandbox::placeholders::{Placeholders, notes_beside, there};
use crate::tools::shell::sandbox::readonly_mounts::{Cover, Guards};

/// The sandbox for one policy at level 2 or 3.
#[derive(Debug)]
pub(in crate::tools::shell) struct Draft {
    pub(super) choice: Choice,
    pub(super) layout: FsPolicy,
    /// Source of the empty files and folders over hidden paths.
    root: PathBuf,
    pub(super) made: Made,
}

/// The prepared sandbox.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Guarded paths that do not exist. The prepared state assumes that they have placeholders when the command
    /// starts.
    absent: Vec<PathBuf>,
    pub(super) guards: Guards,
    pub(super) rules: Option<Arc<OwnedFd>>,
    /// Arguments in front of the command: bubblewrap with its options, except for those of a single start.
    pub(super) wrapper: Vec<OsString>,
}

impl Draft {
    /// Prepares a sandbox. `root` is the folder for temporary files of all sessions. Blocks on the disk.
    ///
    /// # Errors
    /// A necessary file could not be read or created.
    pub(in crate::tools::shell) fn of(
        choice: Choice,
        layout: FsPolicy,
        root: &Path,
        here: &Available,
    ) -> io::Result<Self> {
        // A folder without a repository may get one: at level 2, the command that creates it is judged like any
        // other. At level 3, where no request is made, it is denied. A placeholder for `.agentd` would block
        // `git stash -u` and `git clone URL .`. A new `.agentd` has no effect before the user trusts it.
        let is_kept = |path: &&PathBuf| match choice.level {
            Level::Bubblewrap => true,
            _ => choice.guards && !path.ends_with(".git") && !path.ends_with(".agentd"),
        };
        let absent = layout.absent.iter().filter(is_kept).cloned().collect();
        let mut draft = Self { choice, layout, root: root.to_owned(), made: Made::default() };
        draft.made = draft.make(absent, here)?;
        Ok(draft)
    }

    /// A sandbox without restrictions.
    #[cfg(test)]
    pub(super) fn empty(choice: Choice) -> Self {
        Self { choice, layout: FsPolicy::default(), root: PathBuf::new(), made: Made::default() }
    }

    /// The policy that it enforces.
    pub(in crate::tools::shell) fn layout(&self) -> &FsPolicy {
        &self.layout
    }

    fn make(&self, absent: Vec<PathBuf>, here: &Available) -> io::Result<Made> {
        let Self { choice, layout, root, .. } = self;
        if choice.level == Level::Bubblewrap {
            let nothing = temp::nothing(root)?;
            let mut mounts = bwrap::mounts(layout, &absent, &nothing);
            let mut inner = bwrap::within(layout, &mut mounts);
            bwrap::with_spots(&mut inner, &mounts, |spots| temp::spots(root, spots))?;
            let mut stages = 0;
            let mut next = |is_file| {
                stages += 1;
                temp::stage(root, stages, is_file)
            };
            let hidden = bwrap::hidden(&mut mounts, &disk::real(root)?);
            let staged = bwrap::staged(&mut mounts, inner, &mut next)?;
            let guards = Guards::of(staged.into_iter().chain(hidden).collect(), &nothing)?;
            let mut wrapper = vec![here.bwrap.clone().into()];
            wrapper.extend(bwrap::arguments(mounts, choice.network, nix::unistd::geteuid().is_root()));
            return Ok(Made { absent, guards, rules: landlock::of_scope(here.abi)?.map(Arc::new), wrapper });
        }
        let rules = kept::rules(layout, Means::of(*choice))?;
        let mut guards = Guards::default();
        if choice.guards {
            let nothing = temp::nothing(root)?;
            let hidden: Vec<(PathBuf, Cover)> = hidden_within(layout, &nothing).collect();
            // A path in a covered folder is not visible.
            let is_seen = |(path, _): &(PathBuf, Cover)| {
                !hidden.iter().any(|(above, _)| path.starts_with(above) && path != above)
            };
            let covers = covers(layout, &absent).chain(hidden.iter().cloned()).filter(is_seen);
            let covers = covers.chain(without_sockets(layout, &nothing)?).collect();
            guards = Guards::apart(covers, &nothing, &rules, here.abi, !layout.lies_in_shared_memory())?;
        }
        Ok(Made { absent, guards, rules: Some(rules), wrapper: Vec::new() })
    }

    /// Creates placeholders for missing guarded paths; most exist already. Keep the result until the command
    /// has ended.
    ///
    /// # Errors
    /// A placeholder could not be created.
    pub(super) fn stand(&mut self, here: &Available) -> io::Result<Placeholders> {
        let placed = Placeholders::new(&self.made.absent, notes_beside(&self.layout.temp).as_deref())?;
        let absent = there(&self.made.absent);
        if absent != self.made.absent {
            self.made = self.make(absent, here)?;
        }
        Ok(placed)
    }
}

/// Guards and pins that are mounted at level 2.
fn covers<'l>(layout: &'l FsPolicy, absent: &'l [PathBuf]) -> impl Iterator<Item = (PathBuf, Cover)> + 'l {
    // A command could move the folder and put another one in its place.
    let holds =
        |folder: &&PathBuf| layout.writable.iter().any(|other| folder.starts_with(other) && other != *folder);
    let pinned = layout.writable.iter().filter(holds).chain(&layout.pinned).map(|path| (path, Cover::Pin));
    let guarded = layout.guarded.iter().chain(absent).map(|path| (path, Cover::Guard));
    pinned.chain(guarded).map(|(path, cover)| (path.clone(), cover))
}

/// Hidden paths that are covered at level 2 because they lie in a writable folder.
fn hidden_within<'l>(
    layout: &'l FsPolicy,
    nothing: &'l Nothing,
) -> impl Iterator<Item = (PathBuf, Cover)> + 'l {
    layout.hidden.iter().filter(|path| layout.is_covered(path)).map(|path| {
        let cover = if path.is_dir() { &nothing.folder } else { &nothing.file };
        (path.clone(), Cover::Hide(cover.clone()))
    })
}
