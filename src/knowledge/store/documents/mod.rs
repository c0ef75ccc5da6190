//! Documents: known files, inserted texts, storing and replacing, status, deletion.

mod files;
mod inserts;
mod read;
mod write;

pub use files::{KnownFile, SkippedFile};
pub use read::{DocumentFilter, UnreadDocument};
pub(super) use read::{document, documents};
pub use write::{DeleteOutcome, NewDocument};
