//! Stores, replaces and deletes documents with all dependent data, in one transaction each.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::read::{document, document_row};
use crate::store::chunks::{chunk_rows, insert_chunks};
use crate::store::entities::{EntityContribution, contribute_entity};
use crate::store::references;
use crate::store::relations::{RelationContribution, TouchedRows, contribute_relation};
use crate::store::schema::origin;
use crate::store::writer::{
    DocumentContent, EntityRecord, RelationRecord, Writer, generation, raise_generation,
};
use crate::types::{DocId, ErrorKind, KnowledgeError};
use types::knowledge::{DocumentSource, DocumentStatus, IndexLevel};

/// A document that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    pub id: DocId,
    /// Path relative to the workspace. Replaces the document that has it.
    pub path: Option<String>,
    /// Hash of its content.
    pub hash: String,
    /// The origin of its text.
    pub source: DocumentSource,
    /// Language, if known.
    pub language: Option<String>,
    /// Size of the text in bytes.
    pub bytes: u64,
    /// Time of the file's last change in nanoseconds since the Unix epoch; 0 for inserted documents.
    pub modified_ns: i64,
}

/// Result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The document was deleted.
    Deleted,
    /// There is no such document.
    NotFound,
}

impl Writer {
    /// Stores a document with its chunks and its graph, and removes the document that had its id or path: one
    /// transaction, the new rows first.
    pub fn store_document(
        &mut self,
        new: &NewDocument,
        content: &DocumentContent,
        level: IndexLevel,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let mut touched = TouchedRows::default();
            // The keys of the old rows are removed, so that both can exist until the end of the transaction.
            let old: Vec<i64> = connection
                .prepare_cached("select id from kn_doc where key = ?1 or path = ?2")?
                .query_map(params![new.id.0, new.path], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut created_ms = now_ms;
            for id in &old {
                created_ms = connection
                    .prepare_cached(
                        "update kn_doc set key = '-' || id, path = null where id = ?1 returning created_ms",
                    )?
                    .query_row([id], |row| row.get(0))?;
                connection
                    .prepare_cached("update kn_chunk set key = '-' || id where doc_id = ?1")?
                    .execute([id])?;
            }
            let doc = insert_row(connection, new, DocumentStatus::Processed, level, created_ms)?;
            connection
                .prepare_cached("update kn_doc set updated_ms = ?2 where id = ?1")?
                .execute(params![doc, now_ms])?;
            let chunks = insert_chunks(connection, doc, &content.chunks)?;
            base::crash::point("KN.chunks");
            let statements = StatementSource { chunks: &chunks, origin: origin::STRUCTURE, ts: now_ms };
            statements.store_records(connection, &content.entities, &content.relations, &mut touched)?;
            references::insert(connection, &chunks, content)?;
            base::crash::point("KN.graph");
            for id in old {
                remove_rows(connection, id, &mut touched)?;
            }
            touched.rebuild(connection)?;
            raise_generation(connection)?;
            base::crash::point("KN.commit");
            Ok(())
        })
    }

    /// Stores the records of a model for a document, in place of earlier ones, and marks the document as read at
    /// level semantic: one transaction. The answers are in the cache by then, so a crash repeats no model call.
    ///
    /// # Errors
    /// The write failed, or the document is gone.
    pub fn store_extraction(
        &mut self,
        id: &DocId,
        entities: &[EntityRecord],
        relations: &[RelationRecord],
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let doc = document_row(connection, id.as_str())?.ok_or_else(|| no_document(id.as_str()))?;
            let chunks = chunk_rows(connection, doc)?;
            let mut touched = TouchedRows::default();
            for chunk in &chunks {
                remove_contributions(connection, *chunk, Some(origin::MODEL), &mut touched)?;
            }
            let statements = StatementSource { chunks: &chunks, origin: origin::MODEL, ts: now_ms };
            statements.store_records(connection, entities, relations, &mut touched)?;
            touched.rebuild(connection)?;
            connection
                .prepare_cached(
                    "update kn_doc set status = 'processed', level = 'semantic', error = null, updated_ms = ?2 where id = ?1",
                )?
                .execute(params![doc, now_ms])?;
            raise_generation(connection)?;
            base::crash::point("KN.extraction");
            Ok(())
        })
    }

    /// Changes the state of a document.
    pub fn set_status(
        &mut self,
        id: &DocId,
        status: DocumentStatus,
        error: Option<&str>,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            connection
                .prepare_cached("update kn_doc set status = ?2, error = ?3, updated_ms = ?4 where key = ?1")?
                .execute(params![id.0, status.as_str(), error, now_ms])?;
            Ok(())
        })
    }

    /// Deletes a document by its id or path with everything that only it states, in one transaction. Cached answers
    /// stay unless `with_cache`.
    pub fn delete_document(
        &mut self,
        id_or_path: &str,
        with_cache: bool,
    ) -> Result<DeleteOutcome, KnowledgeError> {
        self.transaction(|connection| {
            let Some(found) = document(connection, id_or_path)? else { return Ok(DeleteOutcome::NotFound) };
            if with_cache {
                connection
                    .prepare_cached(
                        "delete from kn_cache where chunk_id in (select c.id from kn_chunk c join kn_doc d on d.id = c.doc_id \
                         where d.key = ?1)",
                    )?
                    .execute([found.id.as_str()])?;
            }
            delete(connection, &found.id)?;
            references::resolve_all(connection)?;
            raise_generation(connection)?;
            Ok(DeleteOutcome::Deleted)
        })
    }
}

fn no_document(id: &str) -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::NotFound,
        format!(
            "could not find the document {id}: the index has none with this id; list them with knowledge.documents.list"
        ),
    )
}

pub(super) fn insert_row(
    connection: &Connection,
    new: &NewDocument,
    status: DocumentStatus,
    level: IndexLevel,
    now_ms: i64,
) -> Result<i64, KnowledgeError> {
    let source = match new.source {
        DocumentSource::File => "file",
        DocumentSource::Inserted => "inserted",
    };
    connection
        .prepare_cached(
            "insert into kn_doc (key, path, hash, source, status, level, lang, bytes, mtime_ns, generation, created_ms, \
             updated_ms) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)",
        )?
        .execute(params![
            new.id.0,
            new.path,
            new.hash,
            source,
            status.as_str(),
            level.as_str(),
            new.language,
            new.bytes,
            new.modified_ns,
            generation(connection)? + 1,
            now_ms
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Deletes a document with all dependent data.
pub(super) fn delete(connection: &Connection, id: &str) -> Result<(), KnowledgeError> {
    let Some(doc) = document_row(connection, id)? else { return Ok(()) };
    let mut touched = TouchedRows::default();
    remove_rows(connection, doc, &mut touched)?;
    touched.rebuild(connection)
}

fn remove_rows(connection: &Connection, doc: i64, touched: &mut TouchedRows) -> Result<(), KnowledgeError> {
    for chunk in chunk_rows(connection, doc)? {
        remove_contributions(connection, chunk, None, touched)?;
        references::remove(connection, chunk)?;
        connection
            .prepare_cached("update kn_cache set chunk_id = null where chunk_id = ?1")?
            .execute([chunk])?;
        connection.prepare_cached("delete from kn_chunk where id = ?1")?.execute([chunk])?;
    }
    connection.prepare_cached("delete from kn_doc where id = ?1")?.execute([doc])?;
    Ok(())
}

/// Removes the statements of a chunk (all, or of one origin) and records the rows to compute again.
fn remove_contributions(
    connection: &Connection,
    chunk: i64,
    only: Option<i64>,
    touched: &mut TouchedRows,
) -> Result<(), KnowledgeError> {
    let mut entities = connection.prepare_cached(
        "delete from kn_entity_desc where chunk_id = ?1 and (?2 is null or origin = ?2) returning entity_id",
    )?;
    let rows: BTreeSet<i64> =
        entities.query_map(params![chunk, only], |row| row.get(0))?.collect::<Result<_, _>>()?;
    touched.entities.extend(rows);
    let mut relations = connection.prepare_cached(
        "delete from kn_relation_desc where chunk_id = ?1 and (?2 is null or origin = ?2) returning relation_id",
    )?;
    let rows: BTreeSet<i64> =
        relations.query_map(params![chunk, only], |row| row.get(0))?.collect::<Result<_, _>>()?;
    touched.relations.extend(rows);
    Ok(())
}

/// The origin of the statements.
struct StatementSource<'a> {
    chunks: &'a [i64],
    origin: i64,
    ts: i64,
}

impl StatementSource<'_> {
    /// Stores records: entities before relations. A record of a chunk that does not exist is dropped.
    fn store_records(
        &self,
        connection: &Connection,
        entities: &[EntityRecord],
        relations: &[RelationRecord],
        touched: &mut TouchedRows,
    ) -> Result<(), KnowledgeError> {
        for record in entities {
            let Some(chunk) = self.chunks.get(record.chunk) else { continue };
            let contribution = EntityContribution {
                chunk: *chunk,
                origin: self.origin,
                name: &record.name,
                entity_type: &record.entity_type,
                description: &record.description,
                ts: self.ts,
            };
            touched.entities.insert(contribute_entity(connection, &contribution)?);
        }
        for record in relations {
            let Some(chunk) = self.chunks.get(record.chunk) else { continue };
            let contribution = RelationContribution {
                chunk: *chunk,
                origin: self.origin,
                source: &record.source,
                target: &record.target,
                keywords: &record.keywords,
                description: &record.description,
                weight: record.weight,
                ts: self.ts,
            };
            contribute_relation(connection, &contribution, touched)?;
        }
        Ok(())
    }
}
