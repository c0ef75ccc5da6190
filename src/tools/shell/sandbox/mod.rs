//! The sandbox of commands: bubblewrap and seccomp (level 3), Landlock, seccomp and rlimits (level 2), rlimits
//! alone (level 1).
//!
//! - `level`: the levels, the settings, and the level of a call.
//! - `probe`: tests which levels work on this machine.
//! - `layout`: writable, protected and hidden paths of a call, and their first targets.
//! - `bwrap`, `landlock`, `seccomp`: convert the policy for bubblewrap, Landlock and seccomp.
//! - `readonly_mounts`: read-only mounts of a workspace; `sockets`: hidden paths that level 2 covers.
//! - `spawn`: creates the sandbox before a fork and enforces it after the fork.
//! - `placeholders`: placeholders for missing protected paths; `temp`: folders of sessions.
//! - `cache`: rulesets and placeholders that the next command may reuse.
//! - `blocked`: guesses whether the sandbox caused a failure.

mod blocked;
mod bwrap;
mod cache;
mod git;
mod landlock;
mod layout;
mod level;
mod placeholders;
mod probe;
mod readonly_mounts;
mod seccomp;
mod sockets;
mod spawn;
mod temp;

pub(super) use blocked::{blocked_text, find_suspect};
pub(crate) use cache::PlaceholderCache;
pub(crate) use layout::FirstSeen;
pub(super) use layout::{FsPolicy, SandboxView};
pub use level::AvailableLevels;
pub(super) use level::{CallSandbox, Level};
pub(crate) use placeholders::remove_leftovers as remove_leftover_placeholders;
pub(super) use spawn::{CommandSandbox, raise};
pub(crate) use temp::{folders as temp_folders, forget as forget_temp, sweep as sweep_temp};
