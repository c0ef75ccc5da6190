//! Documents: known files, storing and replacing, status, deletion.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::chunks::{chunk_rows, chunks_of_document, insert_chunks};
use super::entities::{EntityContribution, contribute_entity};
use super::references;
use super::relations::{RelationContribution, Touched, contribute_relation};
use super::schema::origin;
use super::writer::{DocumentContent, EntityRecord, RelationRecord, Writer, raise_generation};
use crate::knowledge::types::{
    Chunk, DocId, Document, DocumentSource, DocumentStatus, ErrorKind, KnowledgeError, Level,
};

/// A document that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    /// Its id.
    pub id: DocId,
    /// Path relative to the workspace. Replaces the document that has it.
    pub path: Option<String>,
    /// Hash of its content.
    pub hash: String,
    /// Where its text comes from.
    pub source: DocumentSource,
    /// Language, if known.
    pub language: Option<String>,
    /// Size of its text.
    pub bytes: u64,
    /// Time of the file's last change in nanoseconds since the Unix epoch; 0 for inserted documents.
    pub modified_ns: i64,
}

/// What is known of a file, to decide whether it must be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Its document.
    pub id: DocId,
    /// Its path.
    pub path: String,
    /// Hash of its content.
    pub hash: String,
    /// Its size.
    pub bytes: u64,
    /// Time of its last change.
    pub modified_ns: i64,
    /// The level that it was processed at.
    pub level: Level,
    /// State.
    pub status: DocumentStatus,
}

/// A document that a model has not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadDocument {
    /// Its id.
    pub id: DocId,
    /// Its path.
    pub path: Option<String>,
    /// Tokens of its chunks.
    pub tokens: u64,
}

/// Which documents a list holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Only this state.
    pub status: Option<DocumentStatus>,
    /// Only after this id, the last one of the page before.
    pub after: Option<DocId>,
}

/// Result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// It is gone.
    Deleted,
    /// There is no such document.
    NotFound,
}

const DOCUMENT_COLUMNS: &str = "d.key, d.path, d.hash, d.source, d.status, d.level, d.error, d.lang, d.bytes, \
     (select count(*) from kn_chunk c where c.doc_id = d.id), d.created_ms, d.updated_ms";

fn document_of_row(row: &Row<'_>) -> rusqlite::Result<Document> {
    let (source, status, level): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(5)?);
    Ok(Document {
        id: DocId(row.get(0)?),
        path: row.get(1)?,
        hash: row.get(2)?,
        source: if source == "file" { DocumentSource::File } else { DocumentSource::Inserted },
        status: DocumentStatus::from_name(&status).unwrap_or(DocumentStatus::Failed),
        level: Level::from_name(&level).unwrap_or(Level::Lexical),
        error: row.get(6)?,
        language: row.get(7)?,
        bytes: row.get(8)?,
        chunks: row.get(9)?,
        created_at_ms: row.get(10)?,
        updated_at_ms: row.get(11)?,
    })
}

/// One page of documents in the order of their ids.
pub(super) fn documents(
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
pub(super) fn document(
    connection: &Connection,
    id_or_path: &str,
) -> Result<Option<Document>, KnowledgeError> {
    let sql = format!(
        "select {DOCUMENT_COLUMNS} from kn_doc d where d.key = ?1 or d.path = ?1 order by d.key = ?1 desc limit 1"
    );
    Ok(connection.prepare_cached(&sql)?.query_row([id_or_path], document_of_row).optional()?)
}

fn document_row(connection: &Connection, id: &str) -> Result<Option<i64>, KnowledgeError> {
    let mut statement = connection.prepare_cached("select id from kn_doc where key = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?)
}

impl Writer {
    /// All documents that are files.
    ///
    /// # Errors
    /// The read failed.
    pub fn known_files(&self) -> Result<Vec<KnownFile>, KnowledgeError> {
        let mut statement = self.connection().prepare_cached(
            "select key, path, hash, bytes, mtime_ns, level, status from kn_doc where source = 'file' and path is not null",
        )?;
        let rows = statement.query_map([], |row| {
            let (level, status): (String, String) = (row.get(5)?, row.get(6)?);
            Ok(KnownFile {
                id: DocId(row.get(0)?),
                path: row.get(1)?,
                hash: row.get(2)?,
                bytes: row.get(3)?,
                modified_ns: row.get(4)?,
                level: Level::from_name(&level).unwrap_or(Level::Lexical),
                status: DocumentStatus::from_name(&status).unwrap_or(DocumentStatus::Failed),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Notes the new time of files whose content did not change.
    ///
    /// # Errors
    /// The write failed.
    pub fn touch_files(&mut self, files: &[(DocId, i64)]) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            for (id, modified_ns) in files {
                connection
                    .prepare_cached("update kn_doc set mtime_ns = ?2 where key = ?1")?
                    .execute(params![id.0, modified_ns])?;
            }
            Ok(())
        })
    }

    /// Stores an inserted document durably before it is processed. A processed document with this id and hash stays as it
    /// is: then the result is false.
    ///
    /// # Errors
    /// The write failed.
    pub fn accept_document(
        &mut self,
        new: &NewDocument,
        text: &str,
        now_ms: i64,
    ) -> Result<bool, KnowledgeError> {
        self.transaction(|connection| {
            if let Some(known) = document(connection, new.id.as_str())?
                && known.id == new.id
            {
                if known.hash == new.hash && known.status == DocumentStatus::Processed {
                    return Ok(false);
                }
                // Not processed, or another text under the caller's id: the new text replaces it.
                delete(connection, &new.id)?;
            }
            let same_path = new.path.as_deref().map(|path| document(connection, path)).transpose()?.flatten();
            if let Some(other) = same_path.filter(|other| other.path == new.path) {
                delete(connection, &other.id)?;
            }
            let doc = insert_row(connection, new, DocumentStatus::Pending, Level::Lexical, now_ms)?;
            connection
                .prepare_cached("insert into kn_doc_text (doc_id, text) values (?1, ?2)")?
                .execute(params![doc, text])?;
            raise_generation(connection)?;
            Ok(true)
        })
    }

    /// Inserted documents that are not processed, with their texts, at most `limit` after this id.
    ///
    /// # Errors
    /// The read failed.
    pub fn unprocessed_inserts(
        &self,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(NewDocument, String)>, KnowledgeError> {
        let mut statement = self.connection().prepare_cached(
            "select d.key, d.path, d.hash, d.lang, d.bytes, t.text from kn_doc d join kn_doc_text t on t.doc_id = d.id \
             where d.status <> 'processed' and d.key > ?1 order by d.key limit ?2",
        )?;
        let rows = statement.query_map(params![after, limit], |row| {
            let new = NewDocument {
                id: DocId(row.get(0)?),
                path: row.get(1)?,
                hash: row.get(2)?,
                source: DocumentSource::Inserted,
                language: row.get(3)?,
                bytes: row.get(4)?,
                modified_ns: 0,
            };
            Ok((new, row.get(5)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Documents that a model has not read yet, in the order of their ids.
    ///
    /// # Errors
    /// The read failed.
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
    ///
    /// # Errors
    /// The read failed.
    pub fn document_chunks(&self, id: &DocId) -> Result<Vec<Chunk>, KnowledgeError> {
        chunks_of_document(self.connection(), id.as_str())
    }

    /// Stores a document with its chunks and its graph, and removes the document that had its id or path: one transaction,
    /// the new rows first.
    ///
    /// # Errors
    /// The write failed.
    pub fn store_document(
        &mut self,
        new: &NewDocument,
        content: &DocumentContent,
        level: Level,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let mut touched = Touched::default();
            // The old rows give up their keys, so that both can exist until the end of the transaction.
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
            crate::crash::point("KN.chunks");
            let statements = Statements { chunks: &chunks, origin: origin::STRUCTURE, ts: now_ms };
            statements.contribute(connection, &content.entities, &content.relations, &mut touched)?;
            references::insert(connection, &chunks, content)?;
            crate::crash::point("KN.graph");
            for id in old {
                remove_rows(connection, id, &mut touched)?;
            }
            touched.settle(connection)?;
            raise_generation(connection)?;
            crate::crash::point("KN.commit");
            Ok(())
        })
    }

    /// Stores what a model found in a document, in place of what a model found earlier, and marks the document as read at
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
            let mut touched = Touched::default();
            for chunk in &chunks {
                remove_contributions(connection, *chunk, Some(origin::MODEL), &mut touched)?;
            }
            let statements = Statements { chunks: &chunks, origin: origin::MODEL, ts: now_ms };
            statements.contribute(connection, entities, relations, &mut touched)?;
            touched.settle(connection)?;
            connection
                .prepare_cached(
                    "update kn_doc set status = 'processed', level = 'semantic', error = null, updated_ms = ?2 where id = ?1",
                )?
                .execute(params![doc, now_ms])?;
            raise_generation(connection)?;
            crate::crash::point("KN.extraction");
            Ok(())
        })
    }

    /// Changes the state of a document.
    ///
    /// # Errors
    /// The write failed.
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

    /// Stores that a file could not be indexed, in place of its document.
    ///
    /// # Errors
    /// The write failed.
    pub fn fail_document(
        &mut self,
        new: &NewDocument,
        error: &str,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let old: Vec<String> = connection
                .prepare_cached("select key from kn_doc where key = ?1 or path = ?2")?
                .query_map(params![new.id.0, new.path], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for id in old {
                delete(connection, &DocId(id))?;
            }
            let doc = insert_row(connection, new, DocumentStatus::Failed, Level::Lexical, now_ms)?;
            connection
                .prepare_cached("update kn_doc set error = ?2 where id = ?1")?
                .execute(params![doc, error])?;
            raise_generation(connection)?;
            Ok(())
        })
    }

    /// Deletes a document by its id or path with everything that only it says, in one transaction. Cached answers stay
    /// unless `with_cache`.
    ///
    /// # Errors
    /// The write failed.
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

fn insert_row(
    connection: &Connection,
    new: &NewDocument,
    status: DocumentStatus,
    level: Level,
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
            super::writer::generation(connection)? + 1,
            now_ms
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Deletes a document with all that depends on it.
fn delete(connection: &Connection, id: &DocId) -> Result<(), KnowledgeError> {
    let Some(doc) = document_row(connection, id.as_str())? else { return Ok(()) };
    let mut touched = Touched::default();
    remove_rows(connection, doc, &mut touched)?;
    touched.settle(connection)
}

fn remove_rows(connection: &Connection, doc: i64, touched: &mut Touched) -> Result<(), KnowledgeError> {
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

/// Removes what a chunk says (all, or of one origin) and notes the rows to compute again.
fn remove_contributions(
    connection: &Connection,
    chunk: i64,
    only: Option<i64>,
    touched: &mut Touched,
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

/// Whose statements these are.
struct Statements<'a> {
    chunks: &'a [i64],
    origin: i64,
    ts: i64,
}

impl Statements<'_> {
    /// Stores records: entities before relations. A record of a chunk that does not exist is dropped.
    fn contribute(
        &self,
        connection: &Connection,
        entities: &[EntityRecord],
        relations: &[RelationRecord],
        touched: &mut Touched,
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
