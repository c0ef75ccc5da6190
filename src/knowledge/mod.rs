//! A searchable index of a workspace: chunks of text, and a graph of entities and relations.
//!
//! - `store/` holds one SQLite file per workspace and is the only place with SQL. It implements [`IndexReader`].
//! - `index/` scans files, splits them into chunks, and merges extracted records into the graph.
//! - `graph/` derives entities and relations from syntax trees.
//! - `query/` answers: keywords → search → context → answer.
//!
//! The index receives models, embeddings and files through [`LanguageModel`], [`Embedder`] and [`FileSource`];
//! `daemon/wiring` implements them.

pub mod embed;
pub mod export;
pub mod graph;
pub mod index;
pub mod query;
pub mod registry;
pub mod store;
pub mod tokens;
pub mod traits;
pub mod types;

pub use index::{MAX_LEFT_OUT_FOLDERS, is_left_out_folder};
pub use traits::{
    CallPurpose, Completion, Embedder, FileEntry, FileSource, FileVisit, IndexReader, JobSink, LanguageModel,
    ModelCall, QueryVector,
};
pub use types::{
    Chunk, ChunkId, DocId, Edge, Entity, ErrorKind, FileRefusal, IndexCounts, JobEvent, JobOutcome,
    KnowledgeError, ModelUsage, SearchHit, SearchText, VectorKind,
};
