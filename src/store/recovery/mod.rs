//! The health of the database, its backups, and what is done about a damaged one.

pub(super) mod backup;
pub(super) mod daily_backups;
pub(super) mod health;
pub(super) mod recover_damaged;
pub(super) mod salvage;
pub(super) mod summaries;
