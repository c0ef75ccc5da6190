//! Index jobs: scan, split, extract, merge, summarise, embed.
//!
//! - `scan.rs` compares the files of a workspace with the index. `left_out.rs` names folders that no job reads.
//! - `text.rs` decodes files, and refuses binaries and secrets. `notebook.rs` reads the cells of notebooks, and
//!   `minified.rs` recognises code that a program wrote.
//! - `chunk.rs` splits texts. `prepare.rs` combines chunks and structure for the store.
//! - `job.rs` runs a job from scan to end. It may stop at any point and can be started again: every document is
//!   stored in one transaction, and every model answer is in the cache before it is used.
//! - `request.rs` is the request of a job, and `indexer.rs` holds the parts that a job uses. `progress.rs` limits its work
//!   and reports its progress.
//! - `estimate.rs` estimates the cost of a job. `embed.rs` computes missing vectors.
//! - `inserts.rs` handles documents that are no files. `restore.rs` restores them after damage of the index file.
//! - `semantic/` asks a model for entities, relations and summaries.

mod chunk;
mod embed;
mod estimate;
mod indexer;
mod inserts;
mod job;
mod left_out;
mod minified;
mod notebook;
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
mod hostile_tests;
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
pub use left_out::{MAX_LEFT_OUT_FOLDERS, is_left_out_folder};
pub use progress::Budget;
pub use request::IndexRequest;
pub use text::MAX_FILE_BYTES;
