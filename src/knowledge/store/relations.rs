//! Relations: stores contributions and computes the rows from them. Also lists the summaries that are due.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::describe;
use super::entities::{MAX_SOURCES, current_description, ensure_entity, entity_statements, rebuild_entity};
use super::schema::origin;
use super::words::split_words;
use super::writer::{Writer, raise_generation};
use crate::types::KnowledgeError;

/// One statement about a relation.
pub(super) struct RelationContribution<'a> {
    pub chunk: i64,
    pub origin: i64,
    pub source: &'a str,
    pub target: &'a str,
    pub keywords: &'a str,
    pub description: &'a str,
    pub weight: f64,
    pub ts: i64,
}

/// Rows that a transaction touched and must compute again.
#[derive(Debug, Default)]
pub(super) struct TouchedRows {
    pub entities: BTreeSet<i64>,
    pub relations: BTreeSet<i64>,
}

impl TouchedRows {
    /// Computes the touched rows again: relations first, because a removed one changes the degrees of its ends.
    pub fn rebuild(mut self, connection: &Connection) -> Result<(), KnowledgeError> {
        for relation in std::mem::take(&mut self.relations) {
            if let Some((a, b)) = rebuild_relation(connection, relation)? {
                self.entities.extend([a, b]);
            }
        }
        for entity in self.entities {
            rebuild_entity(connection, entity)?;
        }
        Ok(())
    }
}

/// The row of a relation by the rows of its ends.
pub(super) fn relation_id(
    connection: &Connection,
    one: i64,
    other: i64,
) -> Result<Option<i64>, KnowledgeError> {
    let mut statement = connection.prepare_cached("select id from kn_relation where a = ?1 and b = ?2")?;
    Ok(statement.query_row([one.min(other), one.max(other)], |row| row.get(0)).optional()?)
}

/// Stores a statement and records the rows that it touches. Missing ends are created as stubs. A relation of a name
/// with itself, for example after a merge of names, is dropped.
pub(super) fn contribute_relation(
    connection: &Connection,
    contribution: &RelationContribution<'_>,
    touched: &mut TouchedRows,
) -> Result<Option<i64>, KnowledgeError> {
    let source = ensure_entity(connection, contribution.source, "", "")?;
    let target = ensure_entity(connection, contribution.target, "", "")?;
    if source == target {
        touched.entities.insert(source);
        return Ok(None);
    }
    let is_forward = source < target;
    let id = match relation_id(connection, source, target)? {
        Some(id) => id,
        None => {
            let keywords = keyword_union([contribution.keywords]);
            let ends = ends_text(contribution.source, contribution.target);
            let words = split_words([ends.as_str(), keywords.as_str(), contribution.description]);
            connection
                .prepare_cached(
                    "insert into kn_relation (a, b, forward, keywords, description, weight, ends, words) \
                     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?
                .execute(params![
                    source.min(target),
                    source.max(target),
                    is_forward,
                    keywords,
                    contribution.description,
                    contribution.weight,
                    ends,
                    words
                ])?;
            connection.last_insert_rowid()
        }
    };
    connection
        .prepare_cached(
            "insert into kn_relation_desc \
             (relation_id, chunk_id, origin, forward, keywords, description, weight, ts) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do update set \
             keywords = keywords || ',' || excluded.keywords, \
             description = case when length(excluded.description) > length(description) \
                 then excluded.description else description end, \
             weight = max(weight, excluded.weight)",
        )?
        .execute(params![
            id,
            contribution.chunk,
            contribution.origin,
            is_forward,
            contribution.keywords,
            contribution.description,
            contribution.weight,
            contribution.ts
        ])?;
    touched.relations.insert(id);
    touched.entities.extend([source, target]);
    Ok(Some(id))
}

/// The text of both ends for the full-text index, in the order of the alphabet.
pub(super) fn ends_text(one: &str, other: &str) -> String {
    if one <= other { format!("{one} {other}") } else { format!("{other} {one}") }
}

/// Key words of several comma-separated lists: sorted, each once.
pub(super) fn keyword_union<'a>(lists: impl IntoIterator<Item = &'a str>) -> String {
    let words: BTreeSet<&str> = lists
        .into_iter()
        .flat_map(|list| list.split([',', '，']))
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    words.into_iter().collect::<Vec<_>>().join(",")
}

/// The statements of a relation's chunks.
struct RelationStatements {
    custom: Option<(String, String, f64)>,
    /// Statements from a to b minus statements from b to a; `None` without any statement.
    balance: Option<i64>,
    keywords: Vec<String>,
    descriptions: Vec<String>,
    /// The greatest weight of each chunk.
    weights: BTreeMap<i64, f64>,
    has_model: bool,
}

fn relation_statements(connection: &Connection, id: i64) -> Result<RelationStatements, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select chunk_id, origin, forward, keywords, description, weight from kn_relation_desc where relation_id = ?1 \
         order by ts, length(description) desc, description, chunk_id limit ?2",
    )?;
    let mut rows = statement.query(params![id, i64::try_from(MAX_SOURCES).unwrap_or(i64::MAX)])?;
    let mut found = RelationStatements {
        custom: None,
        balance: None,
        keywords: Vec::new(),
        descriptions: Vec::new(),
        weights: BTreeMap::new(),
        has_model: false,
    };
    while let Some(row) = rows.next()? {
        let (chunk, from): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (forward, keywords, description): (bool, String, String) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let weight: f64 = row.get(5)?;
        if from == origin::CUSTOM {
            found.custom = Some((keywords, description, weight));
            // A direction that a user set outweighs all others.
            found.balance = Some(if forward { i64::MAX / 2 } else { i64::MIN / 2 });
            continue;
        }
        found.has_model |= from == origin::MODEL;
        found.balance = Some(found.balance.unwrap_or(0) + if forward { 1 } else { -1 });
        found.keywords.push(keywords);
        found.descriptions.push(description);
        let known = found.weights.entry(chunk).or_insert(weight);
        *known = known.max(weight);
    }
    found.descriptions = describe::distinct_descriptions(found.descriptions);
    Ok(found)
}

/// Computes a relation's row from its contributions, or deletes it if there are none. Returns its ends if the row was
/// deleted.
pub(super) fn rebuild_relation(
    connection: &Connection,
    id: i64,
) -> Result<Option<(i64, i64)>, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select r.a, r.b, ea.name, eb.name, r.forward, r.keywords, r.description, r.weight, r.ends, r.summary_due \
         from kn_relation r join kn_entity ea on ea.id = r.a join kn_entity eb on eb.id = r.b where r.id = ?1",
    )?;
    let current = statement
        .query_row([id], |row| {
            Ok((
                (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?),
                (row.get::<_, String>(2)?, row.get::<_, String>(3)?),
                (
                    row.get::<_, bool>(4)?,
                    row.get::<_, String>(5)?,
                    row.get::<_, String>(6)?,
                    row.get::<_, f64>(7)?,
                    row.get::<_, String>(8)?,
                    row.get::<_, bool>(9)?,
                ),
            ))
        })
        .optional()?;
    let Some((pair, names, current)) = current else { return Ok(None) };
    let statements = relation_statements(connection, id)?;
    let Some(balance) = statements.balance else {
        connection.prepare_cached("delete from kn_relation where id = ?1")?.execute([id])?;
        return Ok(Some(pair));
    };
    // Row numbers depend on the order of documents, so names decide a tie.
    let forward = if balance == 0 { names.0 <= names.1 } else { balance > 0 };
    let ends = ends_text(&names.0, &names.1);
    let wanted = if let Some((keywords, description, weight)) = statements.custom {
        (forward, keyword_union([keywords.as_str()]), description, weight, ends, false)
    } else {
        let (description, is_due) =
            current_description(connection, &ends, &statements.descriptions, statements.has_model)?;
        let keywords = keyword_union(statements.keywords.iter().map(String::as_str));
        // The sum over chunks, but at least their number, so that reading a chunk again changes nothing.
        let sum: f64 = statements.weights.values().sum();
        let count = u32::try_from(statements.weights.len()).unwrap_or(u32::MAX);
        (forward, keywords, description, sum.max(f64::from(count)), ends, is_due)
    };
    if wanted == current {
        return Ok(None);
    }
    let words = split_words([wanted.4.as_str(), wanted.1.as_str(), wanted.2.as_str()]);
    connection
        .prepare_cached(
            "update kn_relation set forward = ?2, keywords = ?3, description = ?4, weight = ?5, ends = ?6, \
             summary_due = ?7, words = ?8 where id = ?1",
        )?
        .execute(params![id, wanted.0, wanted.1, wanted.2, wanted.3, wanted.4, wanted.5, words])?;
    Ok(None)
}

/// Descriptions that a model must summarise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSummary {
    /// Row of the entity or the relation.
    row: i64,
    /// Whether these are descriptions of a relation, not of an entity.
    pub is_relation: bool,
    /// The entity's name, or both ends.
    pub name: String,
    /// The descriptions in order.
    pub descriptions: Vec<String>,
}

impl Writer {
    /// Entities and relations whose summary is due, at most `limit` of each.
    pub fn pending_summaries(&self, limit: u32) -> Result<Vec<PendingSummary>, KnowledgeError> {
        let connection = self.connection();
        let mut pending = Vec::new();
        let mut statement = connection
            .prepare_cached("select id, name from kn_entity where summary_due = 1 order by id limit ?1")?;
        let rows = statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows.collect::<Result<Vec<(i64, String)>, _>>()? {
            let descriptions = entity_statements(connection, row.0)?.descriptions;
            pending.push(PendingSummary { row: row.0, is_relation: false, name: row.1, descriptions });
        }
        let mut statement = connection
            .prepare_cached("select id, ends from kn_relation where summary_due = 1 order by id limit ?1")?;
        let rows = statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows.collect::<Result<Vec<(i64, String)>, _>>()? {
            let descriptions = relation_statements(connection, row.0)?.descriptions;
            pending.push(PendingSummary { row: row.0, is_relation: true, name: row.1, descriptions });
        }
        Ok(pending)
    }

    /// Stores the summary of these descriptions and uses it. If the descriptions changed meanwhile, the summary stays
    /// due.
    pub fn put_summary(
        &mut self,
        pending: &PendingSummary,
        model: &str,
        summary: &str,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let key = describe::summary_key(model, &pending.name, &pending.descriptions);
            connection.execute(
                "insert or replace into kn_summary (key, text) values (?1, ?2)",
                [key.as_str(), summary],
            )?;
            if pending.is_relation {
                rebuild_relation(connection, pending.row)?;
            } else {
                rebuild_entity(connection, pending.row)?;
            }
            base::crash::point("KN.summary");
            raise_generation(connection)?;
            Ok(())
        })
    }
}
