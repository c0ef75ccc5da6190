//! Floor 2: SQLite. The only folder that knows there is SQL.
//!
//! One writer task owns the one connection that writes and commits what waits as a group; reads go
//! through a small read-only pool. The journal (`event`) is the truth; the other tables are
//! summaries, written in the same transaction.

mod error;
mod open;
mod processes;
mod read;
mod rows;
mod script;
mod writer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trip_tests;

pub use error::StoreError;
pub use open::{Store, StoreOwner};
pub use read::{IdempotentReply, JournalRow, SettledRequest, StoredItem, StoredRequest};
pub use rows::{
    Append, Idempotency, ItemRow, NewSession, ProcessRow, RequestRow, Row, SessionKey, Summary, Sync,
};
