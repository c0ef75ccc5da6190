//! Relations of the graph.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A relation between two entities: an undirected edge of the graph. The pair of its ends is its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relation {
    /// Name of the entity at one end. `source` and `target` keep the direction in which the relation was first
    /// described.
    pub source: String,
    /// Name of the entity at the other end.
    pub target: String,
    /// Its keywords.
    pub keywords: String,
    /// Its description.
    pub description: String,
    /// Its strength; a higher number means a stronger relation.
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
