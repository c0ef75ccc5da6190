//! Views for clients: documents, the graph, the state.

use std::path::Path;

use super::Indexes;
use super::jobs::JobView;
use crate::export::{SubGraph, around};
use crate::store::DocumentFilter;
use crate::traits::IndexReader as _;
use crate::types::{
    CacheKind, Chunk, DocId, Document, DocumentStatus, ErrorKind, IndexCounts, KnowledgeError, Level,
};
use types::knowledge::IndexState;

/// Chunks of a document that a reply shows.
const MAX_SHOWN_CHUNKS: usize = 500;
/// Number of entities with which a graph without a start begins.
const GRAPH_START_ENTITIES: u32 = 20;

/// State and size of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStatus {
    /// The state.
    pub state: IndexState,
    /// Level of the newest job.
    pub level: Option<Level>,
    /// Number of rows.
    pub counts: IndexCounts,
    /// Rises with each change.
    pub generation: u64,
    /// The newest job since the daemon started.
    pub job: Option<JobView>,
    /// Whether the files are watched, so that a change starts a job.
    pub is_watched: bool,
    /// The notice for the user, for example about data that a damaged file lost.
    pub notice: Option<String>,
}

impl Indexes {
    /// State and size of an index; a workspace without one is no error.
    ///
    /// # Errors
    /// The index could not be read.
    pub async fn status(&self, workspace: &Path) -> Result<IndexStatus, KnowledgeError> {
        let job = self.newest_job(workspace);
        if !self.has_index(workspace) {
            let (state, counts) = (IndexState::None, IndexCounts::default());
            let (level, generation, is_watched, notice) = (None, 0, false, None);
            return Ok(IndexStatus { state, level, counts, generation, job, is_watched, notice });
        }
        let store = self.store(workspace).await?;
        let (counts, generation, level, stored, notice) = store
            .read_rows(|reader| {
                let (job, notice) = (reader.newest_job()?, reader.notice()?);
                Ok((reader.counts()?, reader.generation()?, reader.level()?, job, notice))
            })
            .await?;
        // A job may have begun meanwhile: opening a damaged index starts one.
        let job = self.newest_job(workspace);
        let last =
            job.as_ref().map(|job| job.state).or(stored.as_ref().map(|job| match job.state.as_str() {
                "failed" => "failed",
                _ => "done",
            }));
        let state = match last {
            Some("running") => IndexState::Indexing,
            Some("failed") => IndexState::Failed,
            _ => IndexState::Ready,
        };
        let is_watched = self.is_watched(workspace);
        Ok(IndexStatus { state, level, counts, generation, job, is_watched, notice })
    }

    /// A page of documents in the order of their ids.
    ///
    /// # Errors
    /// The index could not be read.
    pub async fn documents(
        &self,
        workspace: &Path,
        status: Option<DocumentStatus>,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Document>, KnowledgeError> {
        let filter = DocumentFilter { status, after: after.map(DocId) };
        self.store(workspace).await?.read_rows(move |reader| reader.documents(&filter, limit)).await
    }

    /// A document by its id or path, with its first chunks.
    ///
    /// # Errors
    /// There is no such document, or the index could not be read.
    pub async fn document(
        &self,
        workspace: &Path,
        id: String,
    ) -> Result<(Document, Vec<Chunk>), KnowledgeError> {
        let read = move |reader: &crate::store::Reader| {
            let document = reader.document(&id)?.ok_or_else(|| {
                let text =
                    format!("could not find the document {id}: the index has none with this id or path");
                KnowledgeError::new(ErrorKind::NotFound, format!("{text}; see knowledge.documents.list"))
            })?;
            let mut chunks = reader.document_chunks(document.id.as_str())?;
            chunks.truncate(MAX_SHOWN_CHUNKS);
            Ok((document, chunks))
        };
        self.store(workspace).await?.read_rows(read).await
    }

    /// A part of the graph around an entity, or around the entities with the most relations.
    ///
    /// # Errors
    /// There is no such entity, or the index could not be read.
    pub async fn graph(
        &self,
        workspace: &Path,
        name: Option<String>,
        depth: u32,
        max_nodes: usize,
    ) -> Result<SubGraph, KnowledgeError> {
        let read = move |reader: &crate::store::Reader| {
            let start = match &name {
                Some(name) => reader.entities(reader.find_entity(name)?.as_slice())?,
                None => reader.greatest_entities(GRAPH_START_ENTITIES)?,
            };
            if let (Some(name), true) = (&name, start.is_empty()) {
                let text = format!("could not find the entity {name}: the index has none with this name");
                return Err(KnowledgeError::new(
                    ErrorKind::NotFound,
                    format!("{text}; query it for the exact name"),
                ));
            }
            around(reader, start, depth, max_nodes)
        };
        self.store(workspace).await?.read_rows(read).await
    }

    /// Removes cached answers of models. Returns their number.
    ///
    /// # Errors
    /// The index could not be written.
    pub async fn clear_cache(&self, workspace: &Path, kinds: Vec<CacheKind>) -> Result<u64, KnowledgeError> {
        self.store(workspace).await?.write(move |writer| writer.clear_cache(&kinds)).await
    }
}
