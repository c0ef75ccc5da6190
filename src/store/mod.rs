//! Floor 2: SQLite. The only folder that knows there is SQL.
//!
//! One thread owns the one connection that writes, and commits what waits as a group; reads go
//! through a small read-only pool. The journal (`event`) is the truth; the other tables are
//! summaries, written in the same transaction.

mod audit;
mod backup;
mod blobs;
mod changes;
mod error;
mod folding;
mod grants;
mod health;
mod ledger;
mod lies;
mod open;
mod processes;
mod read;
mod readers;
mod rescue;
mod rolling;
mod rows;
mod saved;
mod script;
mod sessions;
mod site;
mod statements;
mod summaries;
mod trust;
mod writer;

#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod lasting_tests;
#[cfg(test)]
mod ledger_tests;
#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trip_tests;

pub use audit::{AuditCheck, AuditQuery};
pub use backup::problems;
pub use blobs::StoredBlob;
pub use error::StoreError;
pub use ledger::LedgerQuery;
pub use open::{Store, StoreOwner};
pub use read::{JournalRow, Page, Settled, StoredItem};
pub use rescue::{Summarise, notices};
pub use rolling::backups;
pub use rows::{
    Append, Idempotency, ItemRow, NewSession, PendingGrant, ProcessRow, RequestRow, Row, SessionKey, Summary,
    Sync,
};
pub use sessions::{IdempotentReply, SessionQuery, SettledRequest, StoredRequest};
pub use trust::TrustChange;
