//! Changes by users: entities and relations are created, edited, merged and deleted.
//!
//! An edit is a contribution without a chunk. It overrides extracted values, and stays when documents change.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::entities::{EntityContribution, contribute_entity, entity_id, resolve_alias};
use super::lookup::{find_entity, find_name_or_given};
use super::relations::{RelationContribution, TouchedRows, contribute_relation, ends_text, relation_id};
use super::schema::origin;
use super::words::split_words;
use super::writer::{Writer, raise_generation};
use crate::types::{ErrorKind, KnowledgeError};
use types::knowledge::PairKey;

/// Chunk of a user's contribution.
const NO_CHUNK: i64 = 0;

/// New values of an entity; `None` keeps a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityEdit {
    /// A new name. The old one becomes an alias, so that the next extraction finds the entity.
    pub name: Option<String>,
    /// A new type.
    pub entity_type: Option<String>,
    /// A new description.
    pub description: Option<String>,
}

/// New values of a relation; `None` keeps a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelationEdit {
    /// New key words, separated by commas.
    pub keywords: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// A new weight.
    pub weight: Option<f64>,
}

impl Writer {
    /// Creates an entity. A stub of this name becomes complete.
    ///
    /// # Errors
    /// An entity of this name exists, or the write failed.
    pub fn create_entity(
        &mut self,
        name: &str,
        entity_type: &str,
        description: &str,
        now_ms: i64,
    ) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let name = resolve_alias(connection, name)?;
            if is_complete(connection, &name)? {
                return Err(exists(&name));
            }
            set_custom_entity(connection, &name, entity_type, description, now_ms)?;
            raise_generation(connection)?;
            Ok(())
        })
    }

    /// Changes an entity and returns its name.
    ///
    /// # Errors
    /// There is no such entity, the new name is taken, or the write failed.
    pub fn update_entity(
        &mut self,
        name: &str,
        edit: &EntityEdit,
        now_ms: i64,
    ) -> Result<String, KnowledgeError> {
        self.transaction(|connection| {
            let id = existing_entity(connection, name)?;
            let (current, entity_type, description) = entity_row(connection, id)?;
            let mut touched = TouchedRows::default();
            let mut name = current.clone();
            if let Some(new) = edit.name.as_deref().filter(|new| *new != current) {
                if entity_id(connection, new)?.is_some() {
                    return Err(exists(new));
                }
                connection.execute("delete from kn_alias where alias = ?1", [new])?;
                connection.execute(
                    "update kn_entity set name = ?2, words = ?3 where id = ?1",
                    params![id, new, split_words([new, description.as_str()])],
                )?;
                add_alias(connection, &current, new)?;
                touched
                    .relations
                    .extend(relations_of(connection, id)?.into_iter().map(|relation| relation.0));
                name = new.to_owned();
            }
            if edit.entity_type.is_some() || edit.description.is_some() {
                let entity_type = edit.entity_type.as_deref().unwrap_or(&entity_type);
                let description = edit.description.as_deref().unwrap_or(&description);
                set_custom_entity(connection, &name, entity_type, description, now_ms)?;
            }
            touched.rebuild(connection)?;
            raise_generation(connection)?;
            Ok(name)
        })
    }

    /// Merges entities into one target. The target gets their sources and relations, and their names become
    /// aliases. The target is created if it does not exist. Relations between merged entities are dropped.
    /// Returns the target's name.
    ///
    /// # Errors
    /// A source does not exist, or the write failed.
    pub fn merge_entities(
        &mut self,
        sources: &[String],
        target: &str,
        edit: &EntityEdit,
        now_ms: i64,
    ) -> Result<String, KnowledgeError> {
        self.transaction(|connection| {
            let target = find_name_or_given(connection, target)?;
            let mut ids = BTreeSet::new();
            for source in sources {
                ids.insert(existing_entity(connection, source)?);
            }
            let target_id = match entity_id(connection, &target)? {
                Some(id) => id,
                None => super::entities::ensure_entity(connection, &target, "", "")?,
            };
            ids.remove(&target_id);
            let mut touched = TouchedRows::default();
            touched.entities.insert(target_id);
            for id in ids {
                let (name, entity_type, description) = entity_row(connection, id)?;
                move_statements(connection, id, target_id, now_ms, (&entity_type, &description))?;
                for (relation, other) in relations_of(connection, id)? {
                    move_relation(connection, relation, id, other, target_id, &mut touched)?;
                }
                connection.execute("delete from kn_entity where id = ?1", [id])?;
                add_alias(connection, &name, &target)?;
            }
            touched.rebuild(connection)?;
            if edit.entity_type.is_some() || edit.description.is_some() {
                let (_, entity_type, description) = entity_row(connection, target_id)?;
                let entity_type = edit.entity_type.as_deref().unwrap_or(&entity_type);
                let description = edit.description.as_deref().unwrap_or(&description);
                set_custom_entity(connection, &target, entity_type, description, now_ms)?;
            }
            raise_generation(connection)?;
            Ok(target)
        })
    }

    /// Deletes an entity with its relations. A later extraction may create it again.
    ///
    /// # Errors
    /// There is no such entity, or the write failed.
    pub fn delete_entity(&mut self, name: &str) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let id = existing_entity(connection, name)?;
            let name = entity_row(connection, id)?.0;
            let mut touched = TouchedRows::default();
            for (relation, other) in relations_of(connection, id)? {
                remove_relation(connection, relation)?;
                touched.entities.insert(other);
            }
            connection.execute("delete from kn_entity_desc where entity_id = ?1", [id])?;
            connection.execute("delete from kn_entity where id = ?1", [id])?;
            connection.execute("delete from kn_alias where name = ?1", [name])?;
            touched.rebuild(connection)?;
            raise_generation(connection)?;
            Ok(())
        })
    }

    /// Creates a relation and returns its key. Missing ends become stubs.
    ///
    /// # Errors
    /// The relation exists, both ends are the same, or the write failed.
    pub fn create_relation(
        &mut self,
        source: &str,
        target: &str,
        keywords: &str,
        description: &str,
        weight: f64,
        now_ms: i64,
    ) -> Result<PairKey, KnowledgeError> {
        self.transaction(|connection| {
            let (source, target) =
                (find_name_or_given(connection, source)?, find_name_or_given(connection, target)?);
            if source == target {
                return Err(KnowledgeError::new(
                    ErrorKind::Invalid,
                    format!(
                        "could not relate {source} to itself: a relation has two ends; name another target"
                    ),
                ));
            }
            if relation_of_names(connection, &source, &target)?.is_some() {
                return Err(KnowledgeError::new(
                    ErrorKind::Exists,
                    format!(
                        "could not create the relation of {source} and {target}: it exists; update it instead"
                    ),
                ));
            }
            set_custom_relation(connection, (&source, &target), keywords, description, weight, now_ms)?;
            raise_generation(connection)?;
            Ok(PairKey::new(&source, &target))
        })
    }

    /// Changes a relation and returns its key.
    ///
    /// # Errors
    /// There is no such relation, or the write failed.
    pub fn update_relation(
        &mut self,
        pair: &PairKey,
        edit: &RelationEdit,
        now_ms: i64,
    ) -> Result<PairKey, KnowledgeError> {
        self.transaction(|connection| {
            let id = find_relation(connection, pair)?;
            let (source, target, keywords, description, weight) = connection.query_row(
                "select case when r.forward then ea.name else eb.name end, \
                 case when r.forward then eb.name else ea.name end, r.keywords, r.description, r.weight \
                 from kn_relation r join kn_entity ea on ea.id = r.a join kn_entity eb on eb.id = r.b where r.id = ?1",
                [id],
                |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        row.get::<_, String>(1)?,
                        row.get::<_, String>(2)?,
                        row.get::<_, String>(3)?,
                        row.get::<_, f64>(4)?,
                    ))
                },
            )?;
            let keywords = edit.keywords.as_deref().unwrap_or(&keywords);
            let description = edit.description.as_deref().unwrap_or(&description);
            let weight = edit.weight.unwrap_or(weight);
            set_custom_relation(connection, (&source, &target), keywords, description, weight, now_ms)?;
            raise_generation(connection)?;
            Ok(PairKey::new(&source, &target))
        })
    }

    /// Deletes a relation, and the stubs that only it named.
    ///
    /// # Errors
    /// There is no such relation, or the write failed.
    pub fn delete_relation(&mut self, pair: &PairKey) -> Result<(), KnowledgeError> {
        self.transaction(|connection| {
            let id = find_relation(connection, pair)?;
            let mut touched = TouchedRows::default();
            let pair: (i64, i64) =
                connection.query_row("select a, b from kn_relation where id = ?1", [id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            touched.entities.extend([pair.0, pair.1]);
            remove_relation(connection, id)?;
            touched.rebuild(connection)?;
            raise_generation(connection)?;
            Ok(())
        })
    }
}

fn exists(name: &str) -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::Exists,
        format!("could not use the name {name}: an entity has it; update or merge that entity instead"),
    )
}

fn no_relation(pair: &PairKey) -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::NotFound,
        format!(
            "could not find a relation of {} and {}: the index has none; check both names with knowledge.graph",
            pair.first(),
            pair.second()
        ),
    )
}

/// The row of a relation whose ends a user names.
fn find_relation(connection: &Connection, pair: &PairKey) -> Result<i64, KnowledgeError> {
    let (one, other) = (find_entity(connection, pair.first())?, find_entity(connection, pair.second())?);
    let id = match (one, other) {
        (Some(one), Some(other)) => relation_of_names(connection, &one, &other)?,
        _ => None,
    };
    id.ok_or_else(|| no_relation(pair))
}

/// The row of the entity that a user means.
fn existing_entity(connection: &Connection, name: &str) -> Result<i64, KnowledgeError> {
    let found = find_entity(connection, name)?;
    found.map(|found| entity_id(connection, &found)).transpose()?.flatten().ok_or_else(|| {
        KnowledgeError::new(
            ErrorKind::NotFound,
            format!("could not find the entity {name}: the index has none with this name; search it with knowledge.query"),
        )
    })
}

fn entity_row(connection: &Connection, id: i64) -> Result<(String, String, String), KnowledgeError> {
    let mut statement =
        connection.prepare_cached("select name, type, description from kn_entity where id = ?1")?;
    Ok(statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
}

fn is_complete(connection: &Connection, name: &str) -> Result<bool, KnowledgeError> {
    let stub: Option<bool> = connection
        .prepare_cached("select stub from kn_entity where name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(stub == Some(false))
}

fn relation_of_names(connection: &Connection, one: &str, other: &str) -> Result<Option<i64>, KnowledgeError> {
    let (one, other) = (resolve_alias(connection, one)?, resolve_alias(connection, other)?);
    match (entity_id(connection, &one)?, entity_id(connection, &other)?) {
        (Some(one), Some(other)) => relation_id(connection, one, other),
        _ => Ok(None),
    }
}

/// Relations of an entity, each with its other end.
fn relations_of(connection: &Connection, id: i64) -> Result<Vec<(i64, i64)>, KnowledgeError> {
    let mut statement = connection.prepare_cached(
        "select id, b from kn_relation where a = ?1 union all select id, a from kn_relation where b = ?1",
    )?;
    let rows = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn remove_relation(connection: &Connection, id: i64) -> Result<(), KnowledgeError> {
    connection.execute("delete from kn_relation_desc where relation_id = ?1", [id])?;
    connection.execute("update kn_reference set relation_id = null where relation_id = ?1", [id])?;
    connection.execute("delete from kn_relation where id = ?1", [id])?;
    Ok(())
}

pub(super) fn set_custom_entity(
    connection: &Connection,
    name: &str,
    entity_type: &str,
    description: &str,
    now_ms: i64,
) -> Result<(), KnowledgeError> {
    if let Some(id) = entity_id(connection, name)? {
        connection.execute(
            "delete from kn_entity_desc where entity_id = ?1 and origin = ?2",
            params![id, origin::CUSTOM],
        )?;
    }
    let contribution = EntityContribution {
        chunk: NO_CHUNK,
        origin: origin::CUSTOM,
        name,
        entity_type,
        description,
        ts: now_ms,
    };
    let id = contribute_entity(connection, &contribution)?;
    super::entities::rebuild_entity(connection, id)?;
    Ok(())
}

pub(super) fn set_custom_relation(
    connection: &Connection,
    (source, target): (&str, &str),
    keywords: &str,
    description: &str,
    weight: f64,
    now_ms: i64,
) -> Result<(), KnowledgeError> {
    if let Some(id) = relation_of_names(connection, source, target)? {
        connection.execute(
            "delete from kn_relation_desc where relation_id = ?1 and origin = ?2",
            params![id, origin::CUSTOM],
        )?;
    }
    let contribution = RelationContribution {
        chunk: NO_CHUNK,
        origin: origin::CUSTOM,
        source,
        target,
        keywords,
        description,
        weight,
        ts: now_ms,
    };
    let mut touched = TouchedRows::default();
    contribute_relation(connection, &contribution, &mut touched)?;
    touched.rebuild(connection)
}

/// Makes a name an alias. Aliases of the old name follow, so that no chain arises.
fn add_alias(connection: &Connection, alias: &str, name: &str) -> Result<(), KnowledgeError> {
    connection.execute("update kn_alias set name = ?2 where name = ?1", [alias, name])?;
    connection.execute("delete from kn_alias where alias = name", [])?;
    connection.execute("insert or replace into kn_alias (alias, name) values (?1, ?2)", [alias, name])?;
    Ok(())
}

/// Gives the statements about an entity to another one. A user's own text becomes an ordinary statement of its own,
/// because it would override the target's text.
fn move_statements(
    connection: &Connection,
    from: i64,
    to: i64,
    now_ms: i64,
    (entity_type, description): (&str, &str),
) -> Result<(), KnowledgeError> {
    let custom = connection.execute(
        "delete from kn_entity_desc where entity_id = ?1 and origin = ?2",
        params![from, origin::CUSTOM],
    )?;
    if custom > 0 && !description.is_empty() {
        // Negative chunk numbers are statements of merged entities.
        connection.execute(
            "insert or ignore into kn_entity_desc (entity_id, chunk_id, origin, type, description, ts) \
             values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![to, -from, origin::STRUCTURE, entity_type, description, now_ms],
        )?;
    }
    // If one chunk has two statements, the one with the longer description is kept.
    connection.execute(
        "insert into kn_entity_desc (entity_id, chunk_id, origin, type, description, ts) \
         select ?2, chunk_id, origin, type, description, ts from kn_entity_desc where entity_id = ?1 \
         on conflict do update set type = excluded.type, description = excluded.description \
         where length(excluded.description) > length(description)",
        [from, to],
    )?;
    connection.execute("delete from kn_entity_desc where entity_id = ?1", [from])?;
    Ok(())
}

/// Gives a relation of a merged entity to the target.
fn move_relation(
    connection: &Connection,
    relation: i64,
    from: i64,
    other: i64,
    to: i64,
    touched: &mut TouchedRows,
) -> Result<(), KnowledgeError> {
    if other == to {
        remove_relation(connection, relation)?;
        return Ok(());
    }
    touched.entities.insert(other);
    let moved = match relation_id(connection, to, other)? {
        Some(id) => id,
        None => {
            let (to_name, other_name) = (entity_row(connection, to)?.0, entity_row(connection, other)?.0);
            let ends = ends_text(&to_name, &other_name);
            connection.execute(
                "insert into kn_relation (a, b, forward, keywords, description, weight, ends, words) \
                 values (?1, ?2, 1, '', '', 0, ?3, ?4)",
                params![to.min(other), to.max(other), ends, split_words([ends.as_str()])],
            )?;
            connection.last_insert_rowid()
        }
    };
    // `forward` means from the lesser row to the greater one, and the merged end has another row now.
    let is_flipped = (from < other) != (to < other);
    connection.execute(
        "insert into kn_relation_desc (relation_id, chunk_id, origin, forward, keywords, description, weight, ts) \
         select ?2, chunk_id, origin, case when ?3 then 1 - forward else forward end, keywords, description, weight, ts \
         from kn_relation_desc where relation_id = ?1 \
         on conflict do update set keywords = keywords || ',' || excluded.keywords, \
         weight = max(weight, excluded.weight)",
        params![relation, moved, is_flipped],
    )?;
    connection
        .execute("update kn_reference set relation_id = ?2 where relation_id = ?1", [relation, moved])?;
    connection.execute("delete from kn_relation_desc where relation_id = ?1", [relation])?;
    connection.execute("delete from kn_relation where id = ?1", [relation])?;
    touched.relations.insert(moved);
    Ok(())
}
