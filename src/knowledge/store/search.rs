//! Full-text search.

use rusqlite::{Connection, params};

use super::words::match_query;
use crate::types::{ChunkId, KnowledgeError, SearchHit, SearchText};
use types::knowledge::PairKey;

/// Maximum number of results of one search.
const MAX_RESULTS: usize = 10_000;

/// Rows of the best matches in a full-text table, best first. `order by +rank` makes SQLite keep only the best rows;
/// FTS5 itself would sort all of them.
fn search(
    connection: &Connection,
    sql: &str,
    text: &SearchText,
    k: usize,
) -> Result<Vec<(i64, f64)>, KnowledgeError> {
    let Some(query) = match_query(text) else { return Ok(Vec::new()) };
    let limit = i64::try_from(k.min(MAX_RESULTS)).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![query, limit], |row| Ok((row.get(0)?, row.get::<_, f64>(1)?)))?;
    // SQLite's bm25 is lower for better matches.
    Ok(rows.map(|row| row.map(|(id, score)| (id, -score))).collect::<Result<_, _>>()?)
}

/// Turns rows into keys, drops rows that are gone, and orders equal scores by key.
pub(super) fn keyed_hits<K: Ord>(
    rows: Vec<(i64, f64)>,
    key: impl Fn(i64) -> Result<Option<K>, KnowledgeError>,
) -> Result<Vec<SearchHit<K>>, KnowledgeError> {
    let mut hits = Vec::with_capacity(rows.len());
    for (row, score) in rows {
        if let Some(key) = key(row)? {
            hits.push(SearchHit { key, score });
        }
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key)));
    Ok(hits)
}

pub(super) fn entities(
    connection: &Connection,
    text: &SearchText,
    k: usize,
) -> Result<Vec<SearchHit<String>>, KnowledgeError> {
    let sql = "select rowid, rank from kn_fts_entity where kn_fts_entity match ?1 order by +rank limit ?2";
    keyed_hits(search(connection, sql, text, k)?, |row| entity_name(connection, row))
}

pub(super) fn relations(
    connection: &Connection,
    text: &SearchText,
    k: usize,
) -> Result<Vec<SearchHit<PairKey>>, KnowledgeError> {
    let sql =
        "select rowid, rank from kn_fts_relation where kn_fts_relation match ?1 order by +rank limit ?2";
    keyed_hits(search(connection, sql, text, k)?, |row| relation_pair(connection, row))
}

pub(super) fn chunks(
    connection: &Connection,
    text: &str,
    k: usize,
) -> Result<Vec<SearchHit<ChunkId>>, KnowledgeError> {
    let sql = "select rowid, rank from kn_fts_chunk where kn_fts_chunk match ?1 order by +rank limit ?2";
    keyed_hits(search(connection, sql, &text.into(), k)?, |row| chunk_key(connection, row))
}

pub(super) fn entity_name(connection: &Connection, row: i64) -> Result<Option<String>, KnowledgeError> {
    key(connection, "select name from kn_entity where id = ?1", row)
}

pub(super) fn chunk_key(connection: &Connection, row: i64) -> Result<Option<ChunkId>, KnowledgeError> {
    Ok(key(connection, "select key from kn_chunk where id = ?1", row)?.map(ChunkId))
}

pub(super) fn relation_pair(connection: &Connection, row: i64) -> Result<Option<PairKey>, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select ea.name, eb.name from kn_relation r join kn_entity ea on ea.id = r.a join kn_entity eb on eb.id = r.b \
         where r.id = ?1",
    )?;
    let mut rows = statement.query([row])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    Ok(Some(PairKey::new(&found.get::<_, String>(0)?, &found.get::<_, String>(1)?)))
}

fn key(connection: &Connection, sql: &str, row: i64) -> Result<Option<String>, KnowledgeError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([row])?;
    Ok(match rows.next()? {
        Some(found) => Some(found.get(0)?),
        None => None,
    })
}
