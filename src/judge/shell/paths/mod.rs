//! Paths that a command line names, by its text only: nothing is read from disk.

pub(super) mod braces;
pub(super) mod cwd_tracking;
pub(super) mod files;
pub(super) mod resolve;
pub(super) mod sensitive_paths;
pub(super) mod write_targets;
