//! Reads the data that a damaged index file still contains: edits of users, and answers of models, which cost money.
//! Everything else is made again from the workspace and from [`super::inserted_documents`].

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row, params};

use super::edit::{set_custom_entity, set_custom_relation};
use super::writer::{Writer, meta, meta_value, raise_generation, set_meta};
use crate::types::KnowledgeError;

/// The data that was read from a damaged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Edits of entities and relations.
    pub edits: u64,
    /// Answers and summaries of models.
    pub answers: u64,
    /// Ids of inserted documents.
    pub inserted: Vec<String>,
    /// Whether all rows of these kinds could be read.
    pub is_complete: bool,
}

/// Reads rows until the first that cannot be read, then from the other end. Returns whether all could be read. `{}`
/// in the query is replaced by the direction.
fn read_rows_from_both_ends(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> bool {
    let mut read = |direction: &str| -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&sql.replace("{}", direction))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    };
    read("asc").is_ok() || {
        // Rows that both directions reach are written twice, which changes nothing.
        let _ = read("desc");
        false
    }
}

impl Writer {
    /// Records the damaged file that this one replaces, until [`Writer::salvage`] has read it.
    pub fn note_damaged_file(&mut self, file: &Path) -> Result<(), KnowledgeError> {
        self.transaction(|connection| set_meta(connection, meta::DAMAGED, &file.to_string_lossy()))
    }

    /// The damaged file that this one replaces and that was not read yet.
    pub fn damaged_file(&self) -> Result<Option<PathBuf>, KnowledgeError> {
        let file = meta_value(self.connection(), meta::DAMAGED)?.filter(|file| !file.is_empty());
        Ok(file.map(PathBuf::from))
    }

    /// Copies the readable rows of the damaged file, in one transaction.
    ///
    /// # Errors
    /// The write failed. Unreadable rows are no error.
    pub fn salvage(&mut self, file: &Path, now_ms: i64) -> Result<SalvageReport, KnowledgeError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let found =
            Connection::open_with_flags(file, flags).map(|old| SalvagedRows::read(&old)).unwrap_or_default();
        self.transaction(|connection| {
            for (alias, name) in &found.aliases {
                connection
                    .execute("insert or ignore into kn_alias (alias, name) values (?1, ?2)", [alias, name])?;
            }
            for edit in &found.entities {
                set_custom_entity(connection, &edit.name, &edit.entity_type, &edit.description, now_ms)?;
            }
            for edit in &found.relations {
                let ends = (edit.source.as_str(), edit.target.as_str());
                set_custom_relation(
                    connection,
                    ends,
                    &edit.keywords,
                    &edit.description,
                    edit.weight,
                    now_ms,
                )?;
            }
            for answer in &found.answers {
                connection.execute(
                    "insert or ignore into kn_cache (kind, key, value, created_ms) values (?1, ?2, ?3, ?4)",
                    params![answer.kind, answer.key, answer.value, now_ms],
                )?;
            }
            for (key, text) in &found.summaries {
                connection
                    .execute("insert or ignore into kn_summary (key, text) values (?1, ?2)", [key, text])?;
            }
            set_meta(connection, meta::DAMAGED, "")?;
            raise_generation(connection)?;
            Ok(())
        })?;
        let edits = found.aliases.len() + found.entities.len() + found.relations.len();
        Ok(SalvageReport {
            edits: edits as u64,
            answers: (found.answers.len() + found.summaries.len()) as u64,
            inserted: found.inserted,
            is_complete: found.is_complete,
        })
    }

    /// Sets the notice for the user about this index; an empty text removes it.
    pub fn set_notice(&mut self, notice: &str) -> Result<(), KnowledgeError> {
        if meta_value(self.connection(), meta::NOTICE)?.unwrap_or_default() == notice {
            return Ok(());
        }
        self.transaction(|connection| set_meta(connection, meta::NOTICE, notice))
    }
}

struct EntityRow {
    name: String,
    entity_type: String,
    description: String,
}

struct RelationRow {
    source: String,
    target: String,
    keywords: String,
    description: String,
    weight: f64,
}

struct AnswerRow {
    kind: String,
    key: String,
    value: String,
}

#[derive(Default)]
struct SalvagedRows {
    aliases: Vec<(String, String)>,
    entities: Vec<EntityRow>,
    relations: Vec<RelationRow>,
    answers: Vec<AnswerRow>,
    summaries: Vec<(String, String)>,
    inserted: Vec<String>,
    is_complete: bool,
}

impl SalvagedRows {
    fn read(old: &Connection) -> Self {
        let mut found = Self::default();
        let all = [
            read_rows_from_both_ends(old, "select alias, name from kn_alias order by alias {}", |row| {
                found.aliases.push((row.get(0)?, row.get(1)?));
                Ok(())
            }),
            read_rows_from_both_ends(
                old,
                "select e.name, s.type, s.description from kn_entity_desc s join kn_entity e on e.id = s.entity_id \
                 where s.chunk_id = 0 and s.origin = 0 order by s.entity_id {}",
                |row| {
                    let (name, entity_type, description) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    found.entities.push(EntityRow { name, entity_type, description });
                    Ok(())
                },
            ),
            read_rows_from_both_ends(
                old,
                "select case when s.forward then a.name else b.name end, case when s.forward then b.name else a.name end, \
                 s.keywords, s.description, s.weight from kn_relation_desc s join kn_relation r on r.id = s.relation_id \
                 join kn_entity a on a.id = r.a join kn_entity b on b.id = r.b \
                 where s.chunk_id = 0 and s.origin = 0 order by s.relation_id {}",
                |row| {
                    let (source, target, keywords) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    let (description, weight) = (row.get(3)?, row.get(4)?);
                    found.relations.push(RelationRow { source, target, keywords, description, weight });
                    Ok(())
                },
            ),
            // Answers to queries belong to the old state of the index.
            read_rows_from_both_ends(
                old,
                "select kind, key, value from kn_cache where kind <> 'query' order by kind {}, key {}",
                |row| {
                    found.answers.push(AnswerRow { kind: row.get(0)?, key: row.get(1)?, value: row.get(2)? });
                    Ok(())
                },
            ),
            read_rows_from_both_ends(old, "select key, text from kn_summary order by key {}", |row| {
                found.summaries.push((row.get(0)?, row.get(1)?));
                Ok(())
            }),
            read_rows_from_both_ends(
                old,
                "select key from kn_doc where source = 'inserted' order by key {}",
                |row| {
                    found.inserted.push(row.get(0)?);
                    Ok(())
                },
            ),
        ];
        found.is_complete = all.into_iter().all(|is_read| is_read);
        for list in [&mut found.aliases, &mut found.summaries] {
            list.sort();
            list.dedup();
        }
        found.entities.sort_by(|one, other| one.name.cmp(&other.name));
        found.entities.dedup_by(|one, other| one.name == other.name);
        let ends = |row: &RelationRow| (row.source.clone(), row.target.clone());
        found.relations.sort_by_key(ends);
        found.relations.dedup_by(|one, other| ends(one) == ends(other));
        found.answers.sort_by(|one, other| (&one.kind, &one.key).cmp(&(&other.kind, &other.key)));
        found.answers.dedup_by(|one, other| (&one.kind, &one.key) == (&other.kind, &other.key));
        found.inserted.sort();
        found.inserted.dedup();
        found
    }
}
