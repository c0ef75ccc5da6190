//! Index jobs: scan, split, extract, merge, summarise, embed.
//!
//! - `scan.rs` compares the files of a workspace with the index. `text.rs` refuses binaries and secrets.
//! - `chunk.rs` splits texts. `prepare.rs` combines chunks and structure for the store.
//! - `job.rs` runs a job from scan to end. It may stop at any point and can be started again: every document is
//!   stored in one transaction, and every model answer is in the cache before it is used.
//! - `inserts.rs` handles documents that are no files. `restore.rs` restores them after damage of the index file.
//! - `semantic/` asks a model for entities, relations and summaries.

mod chunk;
mod embed;
mod estimate;
mod indexer;
mod inserts;
mod job;
mod prepare;
mod progress;
mod request;
mod restore;
mod scan;
pub mod semantic;
mod text;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use chunk::{ChunkSettings, WINDOW_OVERLAP_TOKENS, WINDOW_TOKENS};
pub use embed::embed_pending;
pub use estimate::estimate;
pub use indexer::Indexer;
pub use inserts::insert_documents;
pub use job::run_job;
pub use progress::Budget;
pub use request::IndexRequest;
pub use text::MAX_FILE_BYTES;
