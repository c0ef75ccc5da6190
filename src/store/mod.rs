//! SQLite. No other folder contains SQL.
//!
//! One thread owns the only connection that writes, and commits waiting requests as a group. Reads use a small
//! read-only pool. Access is split by type, see [`handle`]: only a [`JournalWriter`] appends to a journal. The
//! journal (table `event`) is authoritative. The other tables are summaries, written in the same transaction.

mod command;
mod database_file;
mod error;
mod fault_injection;
mod handle;
mod health;
mod job_rows;
mod open;
mod read;
mod readers;
mod recovery;
mod rows;
mod sql_batch;
mod tables;
mod wal;
mod writer;

#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod lasting_tests;
#[cfg(test)]
mod ledger_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trip_tests;

pub use error::StoreError;
pub use handle::{JournalWriter, Store, StoreOwner, StoreReader};
pub use job_rows::{
    DeliveryTry, JobCommit, JobRow, JobWrite, OwedDelivery, ScheduleWrite, WorktreeOwner, WorktreeRow,
};
pub use open::check_schema;
pub use read::events::{ItemHead, ItemQuery, SettledTurns, StoredItem};
pub use read::requests::{IdempotentReply, SettledRequest, StoredRequest};
pub use read::sessions::SessionQuery;
pub use recovery::backup::problems;
pub use recovery::daily_backups::backups;
pub use recovery::recover_damaged::{SummaryFn, notices};
pub use rows::{
    Append, Durability, Idempotency, InitialHistory, ItemRow, JournalRow, MessageText, NewSession, Page,
    PendingGrant, ProcessRow, RequestRow, Row, SessionKey, TrustChange,
};
pub use tables::audit::{AuditCheck, AuditQuery};
pub use tables::blobs::StoredBlob;
pub use tables::deliveries::PendingDelivery;
pub use tables::jobs::{JOBS_PAUSED, JobQuery, JobSpending, StoredJob};
pub use tables::ledger::LedgerQuery;
pub use tables::worktrees::SessionActivity;
