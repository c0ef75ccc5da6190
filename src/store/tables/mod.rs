//! One file for each table other than the journal, with its reads and writes.
//!
//! Unless a function says more, its error is that the database could not be read.

pub(super) mod audit;
pub(super) mod blobs;
pub(super) mod changes;
pub(super) mod deliveries;
pub(super) mod grants;
pub(super) mod jobs;
pub(super) mod ledger;
pub(super) mod processes;
pub(super) mod schedules;
pub(super) mod texts;
pub(super) mod trust;
pub(super) mod worktrees;
