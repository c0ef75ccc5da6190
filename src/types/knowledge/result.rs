//! Results of questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::query::{Keywords, QueryMode};

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryStatus {
    /// There is an answer, or the context that was asked for.
    Success,
    /// Nothing was found; no model was asked for an answer.
    NoContext,
    /// An index read or the answer call failed; `error` says why.
    Failed,
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryError {
    /// A stable code.
    pub kind: String,
    /// The text for users.
    pub message: String,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryResult {
    /// How it ended.
    pub status: QueryStatus,
    /// The answer; empty if only the context was asked for.
    pub response: String,
    /// The whole prompt, if only the context was asked for; empty if nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What was found.
    pub raw_data: RawData,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<QueryError>,
}

/// What a query found, after the limits were applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawData {
    /// Entities in the order of the prompt.
    pub entities: Vec<FoundEntity>,
    /// Relations in the order of the prompt.
    pub relations: Vec<FoundRelation>,
    /// Chunks in the order of the prompt.
    pub chunks: Vec<FoundChunk>,
    /// The files of the chunks.
    pub references: Vec<Reference>,
    /// How it was found.
    pub metadata: Metadata,
}

/// An entity in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundEntity {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub entity_type: String,
    /// Its description.
    pub description: String,
    /// Number of its relations.
    pub rank: u32,
}

/// A relation in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundRelation {
    /// One end.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Its keywords.
    pub keywords: String,
    /// Its description.
    pub description: String,
    /// Its strength.
    pub weight: f64,
    /// Sum of the relations of both ends.
    pub rank: u32,
}

/// A chunk in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundChunk {
    /// Its id.
    pub chunk_id: String,
    /// The file or document, as in `references`.
    pub reference_id: String,
    /// Path in the workspace; empty if the document has none.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// The symbol or heading that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its text.
    pub content: String,
    /// Score of the reranker, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank_score: Option<f64>,
}

/// A file that chunks of the context come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// `1` is the file with the most chunks; empty for chunks without a path.
    pub reference_id: String,
    /// Its path.
    pub path: String,
    /// First and last line of each chunk, in their order in the file, joined where they touch.
    pub lines: Vec<(u32, u32)>,
    /// The chunks.
    pub chunk_ids: Vec<String>,
}

/// How a result was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// The mode.
    pub query_mode: QueryMode,
    /// The keywords.
    pub keywords: Keywords,
    /// The model gave no keywords; the query itself was searched.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keywords_failed: bool,
    /// Entities, relations and chunks before the limits.
    pub found: FoundCounts,
    /// Chunks that entities or relations name and that do not exist any more.
    #[serde(default)]
    pub missing_chunks: usize,
    /// Tokens of the parts of the prompt.
    pub tokens: PromptTokens,
    /// The answer comes from the cache.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// What did not work and was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Number of the index state that was read.
    #[serde(default)]
    pub generation: u64,
}

/// Numbers before the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundCounts {
    /// Entities.
    pub entities: usize,
    /// Relations.
    pub relations: usize,
    /// Chunks.
    pub chunks: usize,
}

/// Tokens of the parts of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTokens {
    /// The system prompt without data.
    pub system: usize,
    /// Entities.
    pub entities: usize,
    /// Relations.
    pub relations: usize,
    /// Chunks.
    pub chunks: usize,
    /// The query.
    pub query: usize,
    /// The conversation before the query. It is not a part of the budget.
    pub history: usize,
}

// serde passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if takes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
