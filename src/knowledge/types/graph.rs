//! Entities, relations, and the results of a search.

use serde::{Deserialize, Serialize};
use types::knowledge::Relation;

/// A node of the graph. Its name is its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Unique name.
    pub name: String,
    /// Its type, in lower case: `function`, `file`, `person` …
    #[serde(rename = "type")]
    pub entity_type: String,
    /// Its description. Empty for a stub.
    pub description: String,
    /// Number of its relations.
    pub degree: u32,
    /// Whether the entity is so far only named as an end of a relation.
    pub stub: bool,
}

/// A relation as the query needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    pub relation: Relation,
    /// Degree of one end plus degree of the other.
    pub rank: u32,
}

/// The text of a full-text search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchText {
    /// Words that the caller chose. They are searched before words of the question.
    pub keywords: Vec<String>,
    pub question: String,
}

impl SearchText {
    /// Keywords and question, joined by spaces.
    #[must_use]
    pub fn joined(&self) -> String {
        self.keywords.iter().chain([&self.question]).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl From<&str> for SearchText {
    fn from(question: &str) -> Self {
        Self { keywords: Vec::new(), question: question.to_owned() }
    }
}

/// One result of a search. A higher score is better.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit<K> {
    /// The result.
    pub key: K,
    /// BM25 (negated, so that higher is better) or cosine similarity.
    pub score: f64,
}

/// The kinds of rows that have vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// Name and description of an entity.
    Entity,
    /// Key words, ends and description of a relation.
    Relation,
    /// Path, symbol and text of a chunk.
    Chunk,
}
