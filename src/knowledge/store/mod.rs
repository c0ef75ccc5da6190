//! One SQLite file per workspace: documents, chunks, the graph, full text, vectors, cached answers, jobs.
//!
//! All SQL of the index is in this folder. One thread writes and one reads; both own their connection. Writes take
//! plain records and are one transaction each. Unless a function says more, its error is that the read or the write
//! failed.

mod cache;
mod chunks;
mod cjk;
mod describe;
mod documents;
mod edit;
mod entities;
mod error;
mod file;
mod inserted_documents;
mod jobs;
mod lookup;
mod reader;
mod references;
mod relations;
mod salvage;
mod schema;
mod search;
mod thread;
mod vector_index;
mod vectors;
pub mod words;
mod writer;

pub use cache::{CachedAnswer, StoredJob};
pub use describe::{MAX_JOINED_DESCRIPTIONS, MAX_JOINED_TOKENS, summary_key};
pub use documents::{DeleteOutcome, DocumentFilter, KnownFile, NewDocument, SkippedFile, UnreadDocument};
pub use edit::{EntityEdit, RelationEdit};
pub use file::{delete_index, index_path};
pub use inserted_documents::{InsertedDocuments, KeptDocument, kept_name};
pub use jobs::unfinished_jobs;
pub use reader::Reader;
pub use relations::PendingSummary;
pub use salvage::SalvageReport;
pub use thread::WorkThread;
pub use vectors::PendingVector;
pub use writer::{
    DocumentContent, EntityRecord, ReferenceKind, ReferenceRecord, RelationRecord, SymbolRecord, Writer,
};

#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

use super::traits::IndexReader;
use super::types::{ErrorKind, KnowledgeError};

/// An open index. Clones share the threads; the file is closed when the last clone is dropped.
#[derive(Clone)]
pub struct KnowledgeStore {
    path: PathBuf,
    writer: WorkThread<Writer>,
    reader: WorkThread<Reader>,
    was_rebuilt: bool,
    damaged: Arc<AtomicBool>,
}

impl std::fmt::Debug for KnowledgeStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KnowledgeStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KnowledgeStore {
    /// Opens the file, or creates it. A damaged file is set aside first. Blocking.
    ///
    /// # Errors
    /// The file or a thread could not be opened.
    pub fn open(path: &Path) -> Result<Self, KnowledgeError> {
        let (connection, aside) = file::open_to_write(path)?;
        Self::from_connection(path, connection, aside.as_deref())
    }

    fn from_connection(
        path: &Path,
        connection: Connection,
        aside: Option<&Path>,
    ) -> Result<Self, KnowledgeError> {
        let reader = Reader::new(file::open_to_read(path)?);
        let mut writer = Writer::new(connection)?;
        if let Some(aside) = aside {
            writer.note_damaged_file(aside)?;
        }
        Ok(Self {
            path: path.to_owned(),
            writer: WorkThread::start("index-write", writer)?,
            reader: WorkThread::start("index-read", reader)?,
            was_rebuilt: aside.is_some(),
            damaged: Arc::default(),
        })
    }

    /// Sets a damaged file aside and opens an empty one. No other handle of the file may be open. Blocking.
    ///
    /// # Errors
    /// The file could not be renamed or opened.
    pub fn reopen_empty(path: &Path) -> Result<Self, KnowledgeError> {
        let aside = file::set_aside(path)?;
        let (connection, _) = file::open_to_write(path)?;
        let mut store = Self::from_connection(path, connection, aside.as_deref())?;
        store.was_rebuilt = true;
        Ok(store)
    }

    /// The second copy of inserted documents.
    #[must_use]
    pub fn inserted_documents(&self) -> InsertedDocuments {
        InsertedDocuments::for_index(&self.path)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a damaged file was set aside when this one was opened. The index is empty then and must be
    /// built again.
    #[must_use]
    pub fn was_rebuilt(&self) -> bool {
        self.was_rebuilt
    }

    /// Whether a read or write found damage. If so, the owner drops this handle and calls
    /// [`KnowledgeStore::reopen_empty`].
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Runs a read on one snapshot of the index.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn IndexReader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        self.read_rows(move |reader| read(reader)).await
    }

    /// Runs a read that needs more than the calls of [`IndexReader`], on one snapshot.
    pub async fn read_rows<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        let result = self.reader.run(move |reader| reader.snapshot(read)).await;
        self.note_damage(result)
    }

    /// Runs a write. Each call of [`Writer`] that changes something is one transaction.
    pub async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&mut Writer) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        let result = self.writer.run(write).await;
        self.note_damage(result)
    }

    fn note_damage<T>(&self, result: Result<T, KnowledgeError>) -> Result<T, KnowledgeError> {
        if let Err(error) = &result
            && error.kind == ErrorKind::Damaged
        {
            self.damaged.store(true, Ordering::Relaxed);
        }
        result
    }
}
