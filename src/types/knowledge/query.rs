//! Queries of the index of a workspace.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Role;

/// The parts of the index that a query reads.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QueryMode {
    /// Entities, and the chunks that name them.
    Local,
    /// Entities and relations, no chunks.
    Global,
    /// Entities, relations, and the chunks of the entities.
    #[default]
    Hybrid,
    /// Chunks found by their text alone.
    Naive,
    /// Entities, relations, the chunks of the entities, and chunks found by their text.
    Mix,
    /// Nothing: the query fails at once.
    Bypass,
}

impl QueryMode {
    /// All modes, in the order of the reference.
    pub const ALL: [Self; 6] =
        [Self::Local, Self::Global, Self::Hybrid, Self::Naive, Self::Mix, Self::Bypass];

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether entities are searched.
    #[must_use]
    pub const fn has_entities(self) -> bool {
        matches!(self, Self::Local | Self::Global | Self::Hybrid | Self::Mix)
    }

    /// Whether relations are searched without an option that asks for it.
    #[must_use]
    pub const fn has_relations(self) -> bool {
        matches!(self, Self::Global | Self::Hybrid | Self::Mix)
    }

    /// Whether the chunks of the entities are used.
    #[must_use]
    pub const fn has_entity_chunks(self) -> bool {
        matches!(self, Self::Local | Self::Hybrid | Self::Mix)
    }

    /// Whether chunks are searched by the text of the query.
    #[must_use]
    pub const fn has_direct_chunks(self) -> bool {
        matches!(self, Self::Naive | Self::Mix)
    }

    /// Whether the query needs keywords.
    #[must_use]
    pub const fn needs_keywords(self) -> bool {
        self.has_entities()
    }
}

impl fmt::Display for QueryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for QueryMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|mode| mode.name()).collect();
            format!("there is no such mode; choose one of {}", names.join(", "))
        })
    }
}

/// How entities are ordered after the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityOrder {
    /// By the number of their relations, the largest first.
    #[default]
    Degree,
    /// In the order in which the search found them.
    Similarity,
}

/// How the chunks of entities are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkPick {
    /// The chunks most similar to the query. Without vectors, `weight` applies.
    #[default]
    Vector,
    /// More chunks for the first entities than for the last ones.
    Weight,
}

/// One message of a conversation: before a query, or of a model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChatMessage {
    /// Its author.
    pub role: Role,
    /// Its text.
    pub content: String,
}

impl ChatMessage {
    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// The keywords of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keywords {
    /// Themes and intentions.
    pub high_level: Vec<String>,
    /// Names and concrete things.
    pub low_level: Vec<String>,
}

impl Keywords {
    /// The search text for entities: all keywords and the query, joined by a space.
    #[must_use]
    pub fn search_text(&self, query: &str) -> String {
        let parts = self.high_level.iter().chain(&self.low_level).map(String::as_str);
        parts.chain([query]).collect::<Vec<_>>().join(" ")
    }

    /// The search text for relations: the themes, or the query if there are none.
    #[must_use]
    pub fn relation_text(&self, query: &str) -> String {
        if self.high_level.is_empty() { query.to_owned() } else { self.high_level.join(" ") }
    }

    /// Whether there are no keywords.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.high_level.is_empty() && self.low_level.is_empty()
    }

    /// Uses the query itself if there are no keywords, also if the query is long.
    #[must_use]
    pub fn or_query(self, query: &str) -> Self {
        if !self.is_empty() {
            return self;
        }
        Self { low_level: vec![query.trim().to_owned()], high_level: Vec::new() }
    }
}

/// The current stage of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryStage {
    /// Asks the model for keywords.
    ExtractingKeywords,
    /// Searches entities.
    RetrievingEntities,
    /// Searches relations.
    RetrievingRelations,
    /// Searches chunks.
    RetrievingChunks,
    /// Ranks chunks again.
    Reranking,
    /// Applies the limits and writes the prompt.
    BuildingContext,
    /// The model writes the answer.
    GeneratingResponse,
}
