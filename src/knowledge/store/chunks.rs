//! Rows of chunks.

use rusqlite::{Connection, Row, params};

use super::words::split_words;
use crate::types::{Chunk, ChunkId, DocId, KnowledgeError};

/// Columns of a chunk, for [`chunk_of_row`]. `c` is `kn_chunk`, `d` is `kn_doc`.
pub(super) const CHUNK_COLUMNS: &str = "c.key, d.key, c.path, c.ord, c.text, c.tokens, c.start_byte, c.end_byte, \
     c.start_line, c.end_line, c.lang, c.symbol, c.content_hash";

pub(super) fn chunk_of_row(row: &Row<'_>) -> rusqlite::Result<Chunk> {
    Ok(Chunk {
        id: ChunkId(row.get(0)?),
        doc_id: DocId(row.get(1)?),
        path: row.get(2)?,
        ordinal: row.get(3)?,
        text: row.get(4)?,
        tokens: row.get(5)?,
        start_byte: row.get(6)?,
        end_byte: row.get(7)?,
        start_line: row.get(8)?,
        end_line: row.get(9)?,
        language: row.get(10)?,
        symbol: row.get(11)?,
        content_hash: row.get(12)?,
    })
}

/// Stores the chunks of a document and returns their rows in order.
pub(super) fn insert_chunks(
    connection: &Connection,
    doc: i64,
    chunks: &[Chunk],
) -> Result<Vec<i64>, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "insert into kn_chunk (key, doc_id, ord, text, tokens, start_byte, end_byte, start_line, end_line, lang, symbol, \
         content_hash, path, words) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let mut rows = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let words = split_words(
            [chunk.text.as_str()].into_iter().chain(chunk.path.as_deref()).chain(chunk.symbol.as_deref()),
        );
        statement.execute(params![
            chunk.id.0,
            doc,
            chunk.ordinal,
            chunk.text,
            chunk.tokens,
            chunk.start_byte,
            chunk.end_byte,
            chunk.start_line,
            chunk.end_line,
            chunk.language,
            chunk.symbol,
            chunk.content_hash,
            chunk.path,
            words
        ])?;
        rows.push(connection.last_insert_rowid());
    }
    Ok(rows)
}

/// The rows of a document's chunks in order.
pub(super) fn chunk_rows(connection: &Connection, doc: i64) -> Result<Vec<i64>, KnowledgeError> {
    let mut statement =
        connection.prepare_cached("select id from kn_chunk where doc_id = ?1 order by ord")?;
    let rows = statement.query_map([doc], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A document's chunks in order.
pub(super) fn chunks_of_document(connection: &Connection, doc: &str) -> Result<Vec<Chunk>, KnowledgeError> {
    let sql = format!(
        "select {CHUNK_COLUMNS} from kn_chunk c join kn_doc d on d.id = c.doc_id where d.key = ?1 order by c.ord"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([doc], chunk_of_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
