//! What holds a command (S25): bubblewrap and seccomp (level 3), Landlock, seccomp and rlimits
//! (level 2), rlimits alone (level 1).
//!
//! - `level`: the levels, the settings, and which level a call gets.
//! - `probe`: what works on this machine, found out by trying it.
//! - `layout`: what a call may write, what it may not, what it does not see.
//! - `memory`: where hidden things lay when links led to them.
//! - `bubble`, `rules`, `filter`: the same in the words of bubblewrap, Landlock and seccomp.
//! - `guards`: what of a workspace may only be read, by mounts; `sockets`: what of the hidden is covered at level 2.
//! - `draft`: what can be made of all this before a command may start; `found`: drafts of calls that were judged; `kept`:
//!   rules of Landlock that are used again.
//! - `confine`: all of it made before a fork, and enforced after it.
//! - `place`: stand-ins for protected places that do not exist; `linger`: those of a moment ago; `temp`: the folders of sessions.
//! - `blocked`: whether a failure looks like the sandbox's doing.

mod blocked;
mod bwrap;
mod draft;
mod first_seen;
mod found;
mod git;
mod kept;
mod landlock;
mod layout;
mod level;
mod placeholder_cache;
mod placeholders;
mod probe;
mod readonly_mounts;
mod seccomp;
mod sockets;
mod spawn;
mod temp;

pub(super) use blocked::{SandboxView, suspect, words as blocked_words};
pub(super) use draft::Draft;
pub(in crate::tools) use found::Found;
pub(super) use layout::FsPolicy;
pub(super) use level::{Choice, Level};
pub use level::{LevelSetting, NetworkSetting, SandboxSettings};
pub(in crate::tools) use placeholder_cache::PlaceholderCache;
pub(in crate::tools) use placeholders::clear_left as clear_stand_ins;
pub use probe::Available;
pub(super) use spawn::{Confined, raise};
pub(in crate::tools) use temp::{folders as temp_folders, forget as forget_temp, sweep as sweep_temp};
