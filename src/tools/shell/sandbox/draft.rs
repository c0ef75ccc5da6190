//! What holds a command, as far as it can be made before the command may start: nothing of it is seen where anybody
//! works. What has to stand there is made when it starts; mostly that is what the draft says.

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

/// Of one layout at level 2 or 3.
#[derive(Debug)]
pub(in crate::tools::shell) struct Draft {
    pub(super) choice: Choice,
    pub(super) layout: FsPolicy,
    /// Where stand-ins for what is hidden come from.
    root: PathBuf,
    pub(super) made: Made,
}

/// What holds the command.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// What is not there and is guarded all the same: something stands there when the command starts, as far as the draft
    /// knows.
    absent: Vec<PathBuf>,
    pub(super) guards: Guards,
    pub(super) rules: Option<Arc<OwnedFd>>,
    /// Before the command: bubblewrap with its arguments, but for what each start has of its own.
    pub(super) wrapper: Vec<OsString>,
}

impl Draft {
    /// Makes one. `root` is the folder for temporary files of all sessions. Waits for the disk.
    ///
    /// # Errors
    /// What is needed could not be looked at or made.
    pub(in crate::tools::shell) fn of(
        choice: Choice,
        layout: FsPolicy,
        root: &Path,
        here: &Available,
    ) -> io::Result<Self> {
        // A folder without a repository may get one: who makes it here is asked as for any command. At level
        // 3, where nobody is asked, it may not. And what stands in for `.agentd` would be in the way of `git
        // stash -u` and `git clone URL .`; what is made there is not obeyed before a person trusts it (S22).
        let is_kept = |path: &&PathBuf| match choice.level {
            Level::Bubblewrap => true,
            _ => choice.guards && !path.ends_with(".git") && !path.ends_with(".agentd"),
        };
        let absent = layout.absent.iter().filter(is_kept).cloned().collect();
        let mut draft = Self { choice, layout, root: root.to_owned(), made: Made::default() };
        draft.made = draft.make(absent, here)?;
        Ok(draft)
    }

    /// Of nothing.
    #[cfg(test)]
    pub(super) fn empty(choice: Choice) -> Self {
        Self { choice, layout: FsPolicy::default(), root: PathBuf::new(), made: Made::default() }
    }

    /// What it was made for.
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
            // What lies in a covered folder is not there.
            let is_seen = |(path, _): &(PathBuf, Cover)| {
                !hidden.iter().any(|(above, _)| path.starts_with(above) && path != above)
            };
            let covers = covers(layout, &absent).chain(hidden.iter().cloned()).filter(is_seen);
            let covers = covers.chain(without_sockets(layout, &nothing)?).collect();
            guards = Guards::apart(covers, &nothing, &rules, here.abi, !layout.lies_in_shared_memory())?;
        }
        Ok(Made { absent, guards, rules: Some(rules), wrapper: Vec::new() })
    }

    /// Makes what has to stand where nothing is, which mostly stands already. What comes with it is to be kept until the
    /// command has ended.
    ///
    /// # Errors
    /// It could not be made.
    pub(super) fn stand(&mut self, here: &Available) -> io::Result<Placeholders> {
        let placed = Placeholders::new(&self.made.absent, notes_beside(&self.layout.temp).as_deref())?;
        let absent = there(&self.made.absent);
        if absent != self.made.absent {
            self.made = self.make(absent, here)?;
        }
        Ok(placed)
    }
}

/// What is mounted over itself at level 2.
fn covers<'l>(layout: &'l FsPolicy, absent: &'l [PathBuf]) -> impl Iterator<Item = (PathBuf, Cover)> + 'l {
    // A folder within another could be moved away, and another put in its place.
    let holds =
        |folder: &&PathBuf| layout.writable.iter().any(|other| folder.starts_with(other) && other != *folder);
    let pinned = layout.writable.iter().filter(holds).chain(&layout.pinned).map(|path| (path, Cover::Pin));
    let guarded = layout.guarded.iter().chain(absent).map(|path| (path, Cover::Guard));
    pinned.chain(guarded).map(|(path, cover)| (path.clone(), cover))
}

/// What is covered at level 2 since it lies where a command may write.
fn hidden_within<'l>(
    layout: &'l FsPolicy,
    nothing: &'l Nothing,
) -> impl Iterator<Item = (PathBuf, Cover)> + 'l {
    layout.hidden.iter().filter(|path| layout.is_covered(path)).map(|path| {
        let cover = if path.is_dir() { &nothing.folder } else { &nothing.file };
        (path.clone(), Cover::Hide(cover.clone()))
    })
}
