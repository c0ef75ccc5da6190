//! Data about the files of a workspace, to decide which ones are read again.

use rusqlite::params;

use super::write::{NewDocument, delete, insert_row};
use crate::store::writer::{Writer, raise_generation};
use crate::types::{DocId, KnowledgeError};
use types::knowledge::{DocumentStatus, IndexLevel};

/// Changes when the content rules for omitted files change, so that all files are read again.
const SKIP_RULES: i64 = 2;

/// Data about a file, to decide whether it must be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Its document.
    pub id: DocId,
    pub path: String,
    /// Hash of its content.
    pub hash: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
    /// The level at which it was processed.
    pub level: IndexLevel,
    /// State of the document.
    pub status: DocumentStatus,
}

/// A file that was read and omitted because of its content: it is no text, or it holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFile {
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
}

impl Writer {
    /// All documents that are files.
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
                level: IndexLevel::from_name(&level).unwrap_or(IndexLevel::Lexical),
                status: DocumentStatus::from_name(&status).unwrap_or(DocumentStatus::Failed),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Records the new time of files whose content did not change.
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

    /// Files that were read and omitted because of their content, by the current rules.
    pub fn skipped_files(&self) -> Result<Vec<SkippedFile>, KnowledgeError> {
        let mut statement = self
            .connection()
            .prepare_cached("select path, bytes, mtime_ns from kn_skipped where rules = ?1")?;
        let rows = statement.query_map([SKIP_RULES], |row| {
            Ok(SkippedFile { path: row.get(0)?, bytes: row.get(1)?, modified_ns: row.get(2)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Records files that were read and omitted, so that the next scan does not read them, and removes the records of
    /// those at `removed_paths`.
    pub fn note_skipped(
        &mut self,
        skipped: &[SkippedFile],
        removed_paths: &[String],
    ) -> Result<(), KnowledgeError> {
        if skipped.is_empty() && removed_paths.is_empty() {
            return Ok(());
        }
        self.transaction(|connection| {
            for path in removed_paths {
                connection.prepare_cached("delete from kn_skipped where path = ?1")?.execute([path])?;
            }
            for file in skipped {
                connection
                    .prepare_cached(
                        "insert or replace into kn_skipped (path, bytes, mtime_ns, rules) values (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![file.path, file.bytes, file.modified_ns, SKIP_RULES])?;
            }
            Ok(())
        })
    }

    /// Removes a file of the workspace from the index. The job resolves references to its symbols later.
    pub fn remove_file(&mut self, id: &DocId) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            delete(connection, id.as_str())?;
            raise_generation(connection)?;
            Ok(())
        })
    }

    /// Stores that a file could not be indexed, in place of its document.
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
                delete(connection, &id)?;
            }
            let doc = insert_row(connection, new, DocumentStatus::Failed, IndexLevel::Lexical, now_ms)?;
            connection
                .prepare_cached("update kn_doc set error = ?2 where id = ?1")?
                .execute(params![doc, error])?;
            raise_generation(connection)?;
            Ok(())
        })
    }
}
