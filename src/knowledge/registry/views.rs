//! Views for clients: documents, the graph, the state.

use std::path::Path;

use super::Indexes;
use crate::export::{SubGraph, around};
use crate::store::DocumentFilter;
use crate::traits::IndexReader as _;
use crate::types::{Chunk, DocId, ErrorKind, IndexCounts, KnowledgeError};
use types::knowledge::{CacheKind, Document, DocumentStatus, IndexJobView, IndexState, IndexStatus};

/// Chunks of a document that a reply shows.
const MAX_SHOWN_CHUNKS: usize = 500;
/// Number of entities with which a graph without a start begins.
const GRAPH_START_ENTITIES: u32 = 20;

/// The status of an index without a level.
fn index_status(state: IndexState, counts: IndexCounts, job: Option<IndexJobView>) -> IndexStatus {
    IndexStatus {
        state,
        level: None,
        documents: counts.documents,
        failed_documents: counts.failed_documents,
        chunks: counts.chunks,
        entities: counts.entities,
        relations: counts.relations,
        generation: 0,
        job,
        watched: false,
        notice: None,
        left_out_folders: Vec::new(),
        left_out_files: 0,
    }
}

impl Indexes {
    /// State and size of an index; a workspace without one is no error.
    pub async fn status(&self, workspace: &Path) -> Result<IndexStatus, KnowledgeError> {
        if !self.has_index(workspace) {
            return Ok(index_status(IndexState::None, IndexCounts::default(), self.newest_job(workspace)));
        }
        let store = self.store(workspace).await?;
        let (counts, generation, level, stored, notice, left_out) = store
            .read_rows(|reader| {
                let (job, notice, left_out) = (reader.newest_job()?, reader.notice()?, reader.left_out()?);
                Ok((reader.counts()?, reader.generation()?, reader.level()?, job, notice, left_out))
            })
            .await?;
        let (left_out_folders, left_out_files) = left_out;
        // Read the job after the index was opened, because opening a damaged index starts one.
        let job = self.newest_job(workspace);
        let last = job.as_ref().map(|job| job.state.as_str()).or(stored.as_ref().map(|job| {
            match job.state.as_str() {
                "failed" => "failed",
                _ => "done",
            }
        }));
        let state = match last {
            Some("running") => IndexState::Indexing,
            Some("failed") => IndexState::Failed,
            _ => IndexState::Ready,
        };
        let watched = self.is_watched(workspace);
        let status = index_status(state, counts, job);
        Ok(IndexStatus { level, generation, watched, notice, left_out_folders, left_out_files, ..status })
    }

    /// A page of documents in the order of their ids.
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
    pub async fn clear_cache(&self, workspace: &Path, kinds: Vec<CacheKind>) -> Result<u64, KnowledgeError> {
        self.store(workspace).await?.write(move |writer| writer.clear_cache(&kinds)).await
    }
}
