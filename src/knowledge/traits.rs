//! Interfaces of the index: to a model, an embedder and files, and to the index for a query.

use std::ops::ControlFlow;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::types::{
    Chunk, ChunkId, Edge, Entity, FileRefusal, IndexCounts, JobEvent, KnowledgeError, ModelUsage, SearchHit,
    SearchText, VectorKind,
};
use types::knowledge::{CacheKind, ChatMessage, PairKey};

/// The purpose of a model call. It decides the priority of the call and its name in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallPurpose {
    /// Keywords of a query.
    Keywords,
    /// The answer to a query.
    Answer,
    /// A summary of descriptions.
    Summary,
    /// Entities and relations of a chunk.
    Extract,
}

impl CallPurpose {
    /// Calls with a lower number run first.
    #[must_use]
    pub const fn priority(self) -> u8 {
        match self {
            CallPurpose::Keywords | CallPurpose::Answer => 5,
            CallPurpose::Summary => 8,
            CallPurpose::Extract => 10,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    pub purpose: CallPurpose,
    /// The system prompt.
    pub system: String,
    /// The messages; the last one is the user's.
    pub messages: Vec<ChatMessage>,
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    pub usage: ModelUsage,
    /// Whether the model stopped at its length limit. Such an answer is used, but not cached.
    pub truncated: bool,
}

/// A model. Errors have the kind `Model`, or `Cancelled` when `cancel` fired, and contain the usage of the failed
/// call. Each call ends by itself soon after `cancel` fired or its time limit passed, so it must not be dropped to
/// stop it.
pub trait LanguageModel: Send + Sync {
    /// Provider, model and parameters, as far as they change answers: a part of cache keys.
    fn identity(&self) -> String;

    /// Price of this usage in micro-dollars, if it is known.
    fn price(&self, _input_tokens: u64, _output_tokens: u64) -> Option<u64> {
        None
    }

    /// Calls the model and waits for the complete answer.
    fn complete(
        &self,
        call: ModelCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>>;

    /// Calls the model and sends each part of the answer as it arrives. The joined parts are the answer's text. A
    /// dropped receiver counts as cancelled.
    fn stream(
        &self,
        call: ModelCall,
        deltas: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>>;
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Id of the model, stored with each vector. Vectors of another model are stale.
    fn model_id(&self) -> String;

    /// Length of its vectors; `None` until the first reply shows it.
    fn dimension(&self) -> Option<usize>;

    /// Maximum number of texts in one call of [`Embedder::embed`].
    fn batch_size(&self) -> usize {
        64
    }

    /// One vector per text, in order, of equal length. Errors have the kind `Embedder`.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, KnowledgeError>>;
}

/// A file that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Path relative to the workspace, with `/`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
}

/// The function that a walk calls for each file. `Break` ends the walk.
pub type FileVisit<'a> = dyn FnMut(FileEntry) -> ControlFlow<()> + 'a;

/// The files of one workspace, opened with the checks of the tools. Both calls block.
pub trait FileSource: Send + Sync {
    /// Visits the regular files below these paths (all if empty) in any order, each once. Honours ignore files.
    /// Leaves out sensitive paths, links, everything outside the workspace, and folders that
    /// [`crate::is_left_out_folder`] names, unless they are in `paths`. Ends early when `is_stopped`. Returns the
    /// folders that were left out, at most [`crate::MAX_LEFT_OUT_FOLDERS`].
    fn walk(
        &self,
        paths: &[String],
        is_stopped: &dyn Fn() -> bool,
        visit: &mut FileVisit<'_>,
    ) -> Result<Vec<String>, KnowledgeError>;

    /// Size and time of a file that was indexed, or `None` if it does not exist any more. Does not open it.
    fn find(&self, path: &str) -> Option<FileEntry>;

    /// The content of a file of at most `max_bytes`.
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileRefusal>;
}

/// Receives the events of an index job. Called on the job's own task; must not block.
pub trait JobSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: JobEvent);
}

/// The read access of a query: one snapshot of the index, the same for all calls on one reader. Its calls block.
///
/// Results depend on the index alone: equal scores are ordered by key. Lists keep the order of the given keys; keys
/// that do not exist are skipped unless said otherwise.
pub trait IndexReader {
    /// Rises with each change of the index.
    fn generation(&self) -> Result<u64, KnowledgeError>;

    /// Number of rows.
    fn counts(&self) -> Result<IndexCounts, KnowledgeError>;

    /// Full-text search over names and descriptions of entities. Best first.
    fn search_entities(&self, text: &SearchText, k: usize) -> Result<Vec<SearchHit<String>>, KnowledgeError>;

    /// Full-text search over key words, ends and descriptions of relations. Best first.
    fn search_relations(
        &self,
        text: &SearchText,
        k: usize,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError>;

    /// Full-text search over path, symbol and text of chunks. Best first.
    fn search_chunks(&self, text: &str, k: usize) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError>;

    /// The nearest entities by cosine similarity, at least `min_cosine`. Empty if there are no vectors of this model.
    fn nearest_entities(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<String>>, KnowledgeError>;

    /// Like [`IndexReader::nearest_entities`], for relations.
    fn nearest_relations(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError>;

    /// Like [`IndexReader::nearest_entities`], for chunks.
    fn nearest_chunks(
        &self,
        query: &QueryVector,
        k: usize,
        min_cosine: f32,
    ) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError>;

    /// Cosine similarity of these chunks; `None` for a chunk without a vector of this model. As long as `chunks`.
    fn similarities(
        &self,
        query: &QueryVector,
        chunks: &[ChunkId],
    ) -> Result<Vec<Option<f32>>, KnowledgeError>;

    /// Whether there are rows of this kind without a vector of this model and, if it is known, this dimension.
    fn has_stale_vectors(
        &self,
        kind: VectorKind,
        model: &str,
        dimension: Option<usize>,
    ) -> Result<bool, KnowledgeError>;

    /// The entities with these names and their degrees.
    fn entities(&self, names: &[String]) -> Result<Vec<Entity>, KnowledgeError>;

    /// All relations of these entities, each once, ordered by rank, weight (both descending) and pair.
    fn edges_of(&self, names: &[String]) -> Result<Vec<Edge>, KnowledgeError>;

    /// The relations of these pairs and the degrees of their ends.
    fn relations(&self, pairs: &[PairKey]) -> Result<Vec<Edge>, KnowledgeError>;

    /// The chunks with these ids.
    fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<Chunk>, KnowledgeError>;

    /// The source chunks of each entity in the order of its list. As long as `names`; empty for unknown names.
    fn entity_chunks(&self, names: &[String]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError>;

    /// The source chunks of each relation. As long as `pairs`.
    fn relation_chunks(&self, pairs: &[PairKey]) -> Result<Vec<Vec<ChunkId>>, KnowledgeError>;

    /// Those of these paths that are files of the workspace, as they were when they were indexed. Inserted documents may
    /// have paths too.
    fn files(&self, paths: &[String]) -> Result<Vec<FileEntry>, KnowledgeError>;

    /// A cached answer.
    fn cached(&self, kind: CacheKind, key: &str) -> Result<Option<String>, KnowledgeError>;
}

/// An embedded text, with the model that embedded it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryVector {
    /// [`Embedder::model_id`].
    pub model: String,
    /// The vector. It need not be normalised.
    pub values: Vec<f32>,
}
