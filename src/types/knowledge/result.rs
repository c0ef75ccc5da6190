//! Results of queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::query::{Keywords, QueryMode};

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryStatus {
    /// The query has an answer, or the requested context.
    Success,
    /// The query found nothing, or the limits left nothing, so the daemon did not ask a model for an answer.
    NoContext,
    /// Reading the index or the model call for the answer failed; `error` gives the reason.
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryResult {
    /// How it ended.
    pub status: QueryStatus,
    /// The answer; empty if the client requested only the context.
    pub response: String,
    /// The whole prompt, if the client requested it with `only_need_context` or `include_context`; empty if nothing was
    /// found.
    pub context: Option<String>,
    /// The data that the query found.
    pub raw_data: RawData,
    /// Why it failed.
    pub error: Option<QueryError>,
}

/// The data that a query found, after the limits were applied.
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
    /// Details of the search.
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
    /// Name of the entity at one end.
    pub source: String,
    /// Name of the entity at the other end.
    pub target: String,
    /// Its keywords.
    pub keywords: String,
    /// Its description.
    pub description: String,
    /// Its strength; a higher number means a stronger relation.
    pub weight: f64,
    /// Sum of the numbers of relations of both entities.
    pub rank: u32,
}

/// A chunk in a result.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundChunk {
    /// Its id.
    pub chunk_id: String,
    /// `reference_id` of its file or document in `references`.
    pub reference_id: String,
    /// Path in the workspace; empty if the document has none.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// The symbol or heading that it contains.
    pub symbol: Option<String>,
    /// Its text.
    pub content: String,
    /// Score of the reranker, if there is one.
    pub rerank_score: Option<f64>,
}

/// A file that contains chunks of the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Id of the file in this result. `1` is the file with the most chunks; empty for chunks without a path.
    pub reference_id: String,
    /// Its path.
    pub path: String,
    /// First and last line of each chunk, in their order in the file. Adjacent ranges are joined.
    pub lines: Vec<(u32, u32)>,
    /// Ids of the chunks.
    pub chunk_ids: Vec<String>,
}

/// Details of the search of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// The mode of the query.
    pub query_mode: QueryMode,
    /// The keywords of the query.
    pub keywords: Keywords,
    /// Whether the model gave no keywords, so that the text of the query was searched.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keywords_failed: bool,
    /// Numbers of entities, relations and chunks before the limits were applied.
    pub found: FoundCounts,
    /// Number of chunks that entities or relations name but that no longer exist.
    #[serde(default)]
    pub missing_chunks: usize,
    /// Tokens of the parts of the prompt.
    pub tokens: PromptTokens,
    /// Whether the answer comes from the cache.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// Warnings about parts that failed and were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// With status `no_context`: `bypass`, `nothing_found`, `files_gone`, `reranker` or `token_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_context_reason: Option<String>,
    /// `generation` of the index that the query read.
    #[serde(default)]
    pub generation: u64,
}

/// Numbers of found parts before the limits were applied.
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
    /// The conversation before the query.
    pub history: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if takes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
