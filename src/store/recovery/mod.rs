//! Health of the database, backups, and recovery of a damaged database.

pub(super) mod backup;
pub(super) mod daily_backups;
pub(super) mod recover_damaged;
pub(super) mod salvage;
pub(super) mod summaries;
