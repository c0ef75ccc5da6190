//! Which paths a command line names, by its text alone: nothing on the disk is read.

pub(super) mod braces;
pub(super) mod cwd_tracking;
pub(super) mod files;
pub(super) mod resolve;
pub(super) mod sensitive_paths;
pub(super) mod write_targets;
