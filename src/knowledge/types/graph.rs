//! Entities, relations, and the results of a search.

use serde::{Deserialize, Serialize};

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

/// An undirected edge of the graph. The pair of its ends is its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// One end. `source` and `target` keep the direction in which the relation was first described.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Key words, separated by commas and sorted.
    pub keywords: String,
    /// Its description.
    pub description: String,
    /// Strength: at least the number of chunks that name it.
    pub weight: f64,
}

impl Relation {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> PairKey {
        PairKey::new(&self.source, &self.target)
    }
}

/// The key of a relation: both ends, the lesser first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairKey {
    a: String,
    b: String,
}

impl PairKey {
    /// The key of the relation between two names.
    #[must_use]
    pub fn new(one: &str, other: &str) -> Self {
        let (a, b) = if one <= other { (one, other) } else { (other, one) };
        Self { a: a.to_owned(), b: b.to_owned() }
    }

    /// The lesser name.
    #[must_use]
    pub fn first(&self) -> &str {
        &self.a
    }

    /// The greater name.
    #[must_use]
    pub fn second(&self) -> &str {
        &self.b
    }
}

/// A relation as the query needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The relation.
    pub relation: Relation,
    /// Degree of one end plus degree of the other.
    pub rank: u32,
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
