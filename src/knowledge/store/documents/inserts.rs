//! Inserted documents before they are in the index: the text is stored until its chunks are.

use rusqlite::params;

use super::read::{document, has_hash};
use super::write::{NewDocument, delete, insert_row};
use crate::store::writer::{Writer, raise_generation};
use crate::types::{DocId, KnowledgeError};
use types::knowledge::{DocumentSource, DocumentStatus, IndexLevel};

impl Writer {
    /// Stores an inserted document durably before it is processed. Returns false if this id and hash were
    /// already processed; that document stays as it is.
    pub fn accept_document(
        &mut self,
        new: &NewDocument,
        text: &str,
        now_ms: i64,
    ) -> Result<bool, KnowledgeError> {
        self.transaction(|connection| {
            if let Some(known) = document(connection, new.id.as_str())?
                && known.id == new.id.0
            {
                let is_processed = known.status == DocumentStatus::Processed;
                if is_processed && has_hash(connection, &known.id, &new.hash)? {
                    return Ok(false);
                }
                // The new text replaces a document that is not processed or has another text.
                delete(connection, new.id.as_str())?;
            }
            let same_path = new.path.as_deref().map(|path| document(connection, path)).transpose()?.flatten();
            if let Some(other) = same_path.filter(|other| other.path == new.path) {
                delete(connection, &other.id)?;
            }
            let doc = insert_row(connection, new, DocumentStatus::Pending, IndexLevel::Lexical, now_ms)?;
            connection
                .prepare_cached("insert into kn_doc_text (doc_id, text) values (?1, ?2)")?
                .execute(params![doc, text])?;
            raise_generation(connection)?;
            Ok(true)
        })
    }

    /// Inserted documents that are not processed, with their texts, at most `limit` after this id.
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
}
