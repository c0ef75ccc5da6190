//! Reads documents: lists, single ones, and those that a model has not read yet.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::store::chunks::chunks_of_document;
use crate::store::writer::Writer;
use crate::types::{Chunk, DocId, KnowledgeError};
use types::knowledge::{Document, DocumentSource, DocumentStatus, IndexLevel};

/// A document that a model has not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadDocument {
    pub id: DocId,
    pub path: Option<String>,
    /// Tokens of its chunks.
    pub tokens: u64,
}

/// The documents that a list contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Only this state.
    pub status: Option<DocumentStatus>,
    /// Only after this id, the last one of the page before.
    pub after: Option<DocId>,
}

const DOCUMENT_COLUMNS: &str = "d.key, d.path, d.status, d.level, d.source, d.error, d.lang, d.bytes, \
     (select count(*) from kn_chunk c where c.doc_id = d.id), d.updated_ms";

fn document_of_row(row: &Row<'_>) -> rusqlite::Result<Document> {
    let (status, level, source): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Document {
        id: row.get(0)?,
        path: row.get(1)?,
        status: DocumentStatus::from_name(&status).unwrap_or(DocumentStatus::Failed),
        level: IndexLevel::from_name(&level).unwrap_or(IndexLevel::Lexical),
        source: if source == "file" { DocumentSource::File } else { DocumentSource::Inserted },
        error: row.get(5)?,
        language: row.get(6)?,
        bytes: row.get(7)?,
        chunks: row.get(8)?,
        updated_at_ms: row.get(9)?,
    })
}

/// One page of documents in the order of their ids.
pub(crate) fn documents(
    connection: &Connection,
    filter: &DocumentFilter,
    limit: u32,
) -> Result<Vec<Document>, KnowledgeError> {
    let sql = format!(
        "select {DOCUMENT_COLUMNS} from kn_doc d where (?1 is null or d.status = ?1) and (?2 is null or d.key > ?2) \
         order by d.key limit ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let after = filter.after.as_ref().map(DocId::as_str);
    let rows = statement
        .query_map(params![filter.status.map(DocumentStatus::as_str), after, limit], document_of_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One document by its id or its path.
pub(crate) fn document(
    connection: &Connection,
    id_or_path: &str,
) -> Result<Option<Document>, KnowledgeError> {
    let sql = format!(
        "select {DOCUMENT_COLUMNS} from kn_doc d where d.key = ?1 or d.path = ?1 order by d.key = ?1 desc limit 1"
    );
    Ok(connection.prepare_cached(&sql)?.query_row([id_or_path], document_of_row).optional()?)
}

/// Whether the stored document has this hash of its content.
pub(super) fn has_hash(connection: &Connection, id: &str, hash: &str) -> Result<bool, KnowledgeError> {
    let mut statement = connection.prepare_cached("select hash = ?2 from kn_doc where key = ?1")?;
    Ok(statement.query_row([id, hash], |row| row.get(0)).optional()?.unwrap_or(false))
}

pub(super) fn document_row(connection: &Connection, id: &str) -> Result<Option<i64>, KnowledgeError> {
    let mut statement = connection.prepare_cached("select id from kn_doc where key = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?)
}

impl Writer {
    /// One document by its id or its path.
    pub fn find_document(&self, id_or_path: &str) -> Result<Option<Document>, KnowledgeError> {
        document(self.connection(), id_or_path)
    }

    /// Ids of all inserted documents.
    pub fn inserted_ids(&self) -> Result<Vec<DocId>, KnowledgeError> {
        let mut statement =
            self.connection().prepare_cached("select key from kn_doc where source = 'inserted'")?;
        let rows = statement.query_map([], |row| Ok(DocId(row.get(0)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Documents that a model has not read yet, in the order of their ids.
    pub fn unread_documents(&self) -> Result<Vec<UnreadDocument>, KnowledgeError> {
        let mut statement = self.connection().prepare_cached(
            "select d.key, d.path, sum(c.tokens) from kn_doc d join kn_chunk c on c.doc_id = d.id \
             where d.level <> 'semantic' and d.status <> 'pending' group by d.id order by d.key",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(UnreadDocument { id: DocId(row.get(0)?), path: row.get(1)?, tokens: row.get(2)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The chunks of a document.
    pub fn document_chunks(&self, id: &DocId) -> Result<Vec<Chunk>, KnowledgeError> {
        chunks_of_document(self.connection(), id.as_str())
    }
}
