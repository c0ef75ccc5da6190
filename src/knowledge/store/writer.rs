//! The writing connection and the records that it takes.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::types::{Chunk, KnowledgeError};
use types::knowledge::IndexLevel;

/// A statement about an entity by one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRecord {
    /// Index of the chunk in the document's list.
    pub chunk: usize,
    /// The entity's name, normalised.
    pub name: String,
    /// Its type, in lower case.
    pub entity_type: String,
    /// The chunk's statement about it.
    pub description: String,
}

/// A statement about a relation by one chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationRecord {
    /// Index of the chunk in the document's list.
    pub chunk: usize,
    /// One end.
    pub source: String,
    /// The other end, never equal to `source`.
    pub target: String,
    /// Key words, separated by commas.
    pub keywords: String,
    /// The chunk's statement about it.
    pub description: String,
    /// Its weight, 1.0 unless a model gave another one.
    pub weight: f64,
}

/// A symbol that references can be resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolRecord {
    /// Index of the chunk with its definition.
    pub chunk: usize,
    /// Name of its entity.
    pub entity: String,
    /// The name by which code refers to it, such as `submit`.
    pub name: String,
    /// The type or module that encloses it, such as `Registry`. Empty at the top of a file.
    pub parent: String,
}

/// The form in which code mentions a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// `name(…)`, `Qualifier::name(…)`.
    Call,
    /// `receiver.name(…)`, with an unknown type of the receiver.
    MethodCall,
    /// A declaration that imports a name or a file.
    Import,
    /// A link of a Markdown document.
    Link,
}

impl ReferenceKind {
    const ALL: [Self; 4] = [Self::Call, Self::MethodCall, Self::Import, Self::Link];

    /// The key word of the relations that it makes.
    pub(super) const fn keyword(self) -> &'static str {
        match self {
            ReferenceKind::Call | ReferenceKind::MethodCall => "calls",
            ReferenceKind::Import => "imports",
            ReferenceKind::Link => "links",
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            ReferenceKind::Call => "call",
            ReferenceKind::MethodCall => "method",
            ReferenceKind::Import => "import",
            ReferenceKind::Link => "link",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A mention of a name, to be resolved to a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRecord {
    /// Index of the chunk with the mention.
    pub chunk: usize,
    /// The entity that mentions it: a function or the file.
    pub source: String,
    pub kind: ReferenceKind,
    /// The name, such as `submit`.
    pub name: String,
    /// The name before it, such as `Registry` in `Registry::submit`. Empty if there is none.
    pub qualifier: String,
}

/// All data that is stored of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentContent {
    /// Its chunks in order.
    pub chunks: Vec<Chunk>,
    /// Statements of its syntax about entities.
    pub entities: Vec<EntityRecord>,
    /// Statements of its syntax about relations.
    pub relations: Vec<RelationRecord>,
    /// The symbols that it defines.
    pub symbols: Vec<SymbolRecord>,
    /// The names that it mentions.
    pub references: Vec<ReferenceRecord>,
}

/// The writing connection. Its methods are in the files of the tables that they change.
#[derive(Debug)]
pub struct Writer {
    connection: Connection,
}

/// Names of values in `kn_meta`.
pub(super) mod meta {
    /// Rises with each change of the index.
    pub const GENERATION: &str = "generation";
    /// The workspace's path.
    pub const WORKSPACE: &str = "workspace";
    /// The highest level of its jobs.
    pub const LEVEL: &str = "level";
    /// The model whose summaries are used.
    pub const MODEL: &str = "model";
    /// The damaged file that this one replaces, until its readable rows were copied.
    pub const DAMAGED: &str = "damaged";
    /// The notice for the user about this index.
    pub const NOTICE: &str = "notice";
    /// The folders that the last job over everything left out, as a JSON list.
    pub const LEFT_OUT: &str = "left_out";
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Result<Self, KnowledgeError> {
        Ok(Self { connection })
    }

    /// Runs a write in one transaction. An error rolls it back.
    pub(super) fn transaction<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<T, KnowledgeError>,
    ) -> Result<T, KnowledgeError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = write(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// The connection, for reads of the writing thread.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Records the workspace that this index belongs to.
    pub fn set_workspace(&mut self, workspace: &str) -> Result<(), KnowledgeError> {
        if meta_value(&self.connection, meta::WORKSPACE)?.as_deref() == Some(workspace) {
            return Ok(());
        }
        self.transaction(|connection| set_meta(connection, meta::WORKSPACE, workspace))
    }

    /// Records the folders that a job over everything left out.
    pub fn set_left_out(&mut self, folders: &[String]) -> Result<(), KnowledgeError> {
        let text = serde_json::to_string(folders).unwrap_or_default();
        if meta_value(&self.connection, meta::LEFT_OUT)?.unwrap_or_else(|| "[]".into()) == text {
            return Ok(());
        }
        self.transaction(|connection| set_meta(connection, meta::LEFT_OUT, &text))
    }

    /// Records the model whose summaries are used.
    pub fn set_model(&mut self, identity: &str) -> Result<(), KnowledgeError> {
        self.transaction(|connection| set_meta(connection, meta::MODEL, identity))
    }

    /// Raises the level of the index. A job at a lower level removes nothing.
    pub fn raise_level(&mut self, level: IndexLevel) -> Result<(), KnowledgeError> {
        let current =
            meta_value(&self.connection, meta::LEVEL)?.and_then(|name| IndexLevel::from_name(&name));
        if current.is_some_and(|current| current >= level) {
            return Ok(());
        }
        self.transaction(|connection| set_meta(connection, meta::LEVEL, level.as_str()))
    }
}

pub(super) fn meta_value(connection: &Connection, key: &str) -> Result<Option<String>, KnowledgeError> {
    let mut statement = connection.prepare_cached("select value from kn_meta where key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

pub(super) fn set_meta(connection: &Connection, key: &str, value: &str) -> Result<(), KnowledgeError> {
    connection
        .prepare_cached(
            "insert into kn_meta (key, value) values (?1, ?2) on conflict (key) do update set value = ?2",
        )?
        .execute([key, value])?;
    Ok(())
}

/// The number that rises with each change of the index.
pub(super) fn generation(connection: &Connection) -> Result<u64, KnowledgeError> {
    Ok(meta_value(connection, meta::GENERATION)?.and_then(|value| value.parse().ok()).unwrap_or(0))
}

/// Raises the generation. Each transaction that changes possible results of a query calls it once.
pub(super) fn raise_generation(connection: &Connection) -> Result<u64, KnowledgeError> {
    let next = generation(connection)? + 1;
    set_meta(connection, meta::GENERATION, &next.to_string())?;
    Ok(next)
}
