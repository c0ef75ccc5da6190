//! Finds the entity that a user means: by its whole name, or by a part that identifies it.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::entities::{entity_id, resolve_alias};
use crate::types::{ErrorKind, KnowledgeError};

/// Candidates that an error lists.
const MAX_CANDIDATES: usize = 20;

/// Queries that name entities by a part of their name `?1`, the more exact ones first. Each has at most `?2` rows.
const PARTS: &[&str] = &[
    // `Parser` for `Parser (src/parser.rs)`: the names between `Parser (` and `Parser )`.
    "select name from kn_entity where name >= ?1 || ' (' and name < ?1 || ' )' order by name limit ?2",
    // `parse` for `Parser::parse (src/parser.rs)`.
    "select distinct e.name from kn_symbol s join kn_entity e on e.name = s.entity where s.name = ?1 \
     or (instr(?1, '::') > 0 and s.parent || '::' || s.name = ?1) order by e.name limit ?2",
    // `parser.rs` for `src/parser.rs`.
    "select name from kn_entity where substr(name, -length(?1) - 1) = '/' || ?1 order by name limit ?2",
];

/// Query for names that differ from the given one only in case.
const OTHER_CASE_QUERY: &str = "select name from kn_entity where name = ?1 collate nocase or \
     substr(name, 1, length(?1) + 2) = ?1 || ' (' collate nocase order by name limit ?2";

/// The whole name of the entity that a user means; `None` if no name fits.
///
/// # Errors
/// Several entities fit equally well, or the read failed.
pub(super) fn find_entity(connection: &Connection, name: &str) -> Result<Option<String>, KnowledgeError> {
    match find_exact_or_part(connection, name)? {
        None => single_match(connection, OTHER_CASE_QUERY, name),
        found => Ok(found),
    }
}

/// The entity that a user means, or the given name for a new entity. A name that differs only in case is a
/// new name.
///
/// # Errors
/// Several entities fit equally well, or the read failed.
pub(super) fn find_name_or_given(connection: &Connection, name: &str) -> Result<String, KnowledgeError> {
    Ok(find_exact_or_part(connection, name)?.unwrap_or_else(|| name.to_owned()))
}

fn find_exact_or_part(connection: &Connection, name: &str) -> Result<Option<String>, KnowledgeError> {
    let exact = resolve_alias(connection, name)?;
    if entity_id(connection, &exact)?.is_some() {
        return Ok(Some(exact));
    }
    for sql in PARTS {
        if let Some(found) = single_match(connection, sql, name)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn single_match(connection: &Connection, sql: &str, name: &str) -> Result<Option<String>, KnowledgeError> {
    let limit = i64::try_from(MAX_CANDIDATES + 1).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![name, limit], |row| row.get::<_, String>(0))?;
    let names: BTreeSet<String> = rows.collect::<Result<_, _>>()?;
    match names.len() {
        0 | 1 => Ok(names.into_iter().next()),
        _ => Err(ambiguous_error(name, names)),
    }
}

fn ambiguous_error(name: &str, names: BTreeSet<String>) -> KnowledgeError {
    let has_more = names.len() > MAX_CANDIDATES;
    let candidates: Vec<String> = names.into_iter().take(MAX_CANDIDATES).collect();
    let more = if has_more { " and others" } else { "" };
    let text = format!(
        "could not tell which entity {name} is: several have this name: {}{more}; give the whole name",
        candidates.join(", ")
    );
    KnowledgeError { candidates, ..KnowledgeError::new(ErrorKind::Ambiguous, text) }
}
