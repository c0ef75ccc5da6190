//! Entities: stores contributions and computes the rows from them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::describe;
use super::schema::origin;
use super::words::split_words;
use super::writer::{meta, meta_value};
use crate::types::KnowledgeError;

/// Maximum number of source chunks that form the description of an entity or a relation. Later chunks are stored, but
/// do not change the description.
pub(super) const MAX_SOURCES: usize = 200;

/// One statement about an entity.
pub(super) struct EntityContribution<'a> {
    pub chunk: i64,
    pub origin: i64,
    pub name: &'a str,
    pub entity_type: &'a str,
    pub description: &'a str,
    pub ts: i64,
}

/// The name that a user merged this one into, or the name itself.
pub(super) fn resolve_alias(connection: &Connection, name: &str) -> Result<String, KnowledgeError> {
    let target = connection
        .prepare_cached("select name from kn_alias where alias = ?1")?
        .query_row([name], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(target.unwrap_or_else(|| name.to_owned()))
}

/// The row of an entity with exactly this name.
pub(super) fn entity_id(connection: &Connection, name: &str) -> Result<Option<i64>, KnowledgeError> {
    let mut statement = connection.prepare_cached("select id from kn_entity where name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// The row of an entity, created with these values if it is missing. [`rebuild_entity`] corrects them.
pub(super) fn ensure_entity(
    connection: &Connection,
    name: &str,
    entity_type: &str,
    description: &str,
) -> Result<i64, KnowledgeError> {
    let name = resolve_alias(connection, name)?;
    if let Some(id) = entity_id(connection, &name)? {
        return Ok(id);
    }
    let is_stub = entity_type.is_empty();
    connection
        .prepare_cached(
            "insert into kn_entity (name, type, description, stub, words) values (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            name,
            entity_type,
            description,
            is_stub,
            split_words([name.as_str(), description])
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Stores a statement. The caller rebuilds the entity afterwards.
pub(super) fn contribute_entity(
    connection: &Connection,
    contribution: &EntityContribution<'_>,
) -> Result<i64, KnowledgeError> {
    let id =
        ensure_entity(connection, contribution.name, contribution.entity_type, contribution.description)?;
    // If one chunk has two statements about the same name, the longer description is kept.
    connection
        .prepare_cached(
            "insert into kn_entity_desc (entity_id, chunk_id, origin, type, description, ts) \
             values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do update set type = excluded.type, \
             description = excluded.description where length(excluded.description) > length(description)",
        )?
        .execute(params![
            id,
            contribution.chunk,
            contribution.origin,
            contribution.entity_type,
            contribution.description,
            contribution.ts
        ])?;
    Ok(id)
}

/// The statements of an entity's chunks, in the order of its description.
pub(super) struct EntityStatements {
    pub custom: Option<(String, String)>,
    pub types: Vec<String>,
    pub descriptions: Vec<String>,
    pub has_model: bool,
}

pub(super) fn entity_statements(
    connection: &Connection,
    id: i64,
) -> Result<EntityStatements, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select origin, type, description from kn_entity_desc where entity_id = ?1 \
         order by ts, length(description) desc, description, chunk_id limit ?2",
    )?;
    let mut rows = statement.query(params![id, i64::try_from(MAX_SOURCES).unwrap_or(i64::MAX)])?;
    let mut found =
        EntityStatements { custom: None, types: Vec::new(), descriptions: Vec::new(), has_model: false };
    while let Some(row) = rows.next()? {
        let (from, entity_type, description): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if from == origin::CUSTOM {
            found.custom = Some((entity_type, description));
            continue;
        }
        found.has_model |= from == origin::MODEL;
        found.types.push(entity_type);
        found.descriptions.push(description);
    }
    found.descriptions = describe::distinct_descriptions(found.descriptions);
    Ok(found)
}

/// Computes an entity's row from its contributions, or deletes it if nothing names it any more. Returns whether the
/// row changed.
pub(super) fn rebuild_entity(connection: &Connection, id: i64) -> Result<bool, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select name, type, description, degree, stub, summary_due from kn_entity where id = ?1",
    )?;
    let current = statement
        .query_row([id], |row| {
            Ok((
                row.get::<_, String>(0)?,
                (
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, bool>(4)?,
                    row.get::<_, bool>(5)?,
                ),
                row.get::<_, i64>(3)?,
            ))
        })
        .optional()?;
    let Some((name, current, degree)) = current else { return Ok(false) };
    let statements = entity_statements(connection, id)?;
    let wanted = if let Some((entity_type, description)) = statements.custom {
        (entity_type, description, false, false)
    } else if statements.types.is_empty() {
        if degree == 0 {
            connection.prepare_cached("delete from kn_entity where id = ?1")?.execute([id])?;
            return Ok(true);
        }
        (String::new(), String::new(), true, false)
    } else {
        let (description, is_due) =
            current_description(connection, &name, &statements.descriptions, statements.has_model)?;
        (most_frequent(&statements.types), description, false, is_due)
    };
    if wanted == current {
        return Ok(false);
    }
    let words = split_words([name.as_str(), wanted.1.as_str()]);
    connection
        .prepare_cached(
            "update kn_entity set type = ?2, description = ?3, stub = ?4, summary_due = ?5, words = ?6 where id = ?1",
        )?
        .execute(params![id, wanted.0, wanted.1, wanted.2, wanted.3, words])?;
    Ok(true)
}

/// The description of these statements, and whether a summary is missing.
pub(super) fn current_description(
    connection: &Connection,
    name: &str,
    descriptions: &[String],
    has_model: bool,
) -> Result<(String, bool), KnowledgeError> {
    if !has_model || !describe::needs_summary(descriptions) {
        return Ok((describe::join_descriptions(descriptions), false));
    }
    let model = meta_value(connection, meta::MODEL)?.unwrap_or_default();
    let key = describe::summary_key(&model, name, descriptions);
    let summary: Option<String> = connection
        .prepare_cached("select text from kn_summary where key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    Ok(match summary {
        Some(summary) => (summary, false),
        None => (describe::join_descriptions(descriptions), true),
    })
}

/// The most frequent type. If several are equally frequent, the first in the alphabet is used, so that the order of
/// merges does not matter.
fn most_frequent(types: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entity_type in types {
        *counts.entry(entity_type).or_default() += 1;
    }
    let best = counts.into_iter().max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.0.cmp(one.0)));
    best.map(|(entity_type, _)| entity_type.to_owned()).unwrap_or_default()
}
