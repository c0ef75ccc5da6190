//! Parameters and reply of a query of an index.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use types::knowledge::{ChunkPick, EntityOrder, HistoryMessage, QueryMode};

/// `knowledge.query`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeQueryParams {
    /// The workspace folder whose index is queried, absolute.
    pub workspace: String,
    /// The question, at most 65,536 characters.
    pub query: String,
    /// The parts of the index that the query reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<QueryMode>,
    /// Keywords for themes. If these or `ll_keywords` are given, the daemon does not ask a model for keywords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hl_keywords: Option<Vec<String>>,
    /// Keywords for names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ll_keywords: Option<Vec<String>>,
    /// Whether the result has the prompt in `context` instead of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_need_context: Option<bool>,
    /// The same as `only_need_context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_need_prompt: Option<bool>,
    /// Maximum number of entities and of relations to find, 40 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Maximum number of chunks to keep, 20 by default; `null` for the value of `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_nullable")]
    #[schemars(with = "Option<u32>")]
    pub chunk_top_k: Option<Option<u32>>,
    /// Maximum tokens of all entities, 6,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_entity_tokens: Option<u32>,
    /// Maximum tokens of all relations, 8,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_relation_tokens: Option<u32>,
    /// Maximum tokens of the whole prompt, 30,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u32>,
    /// The form of the answer, `Multiple Paragraphs` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_type: Option<String>,
    /// Further instructions for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
    /// The language of keywords and answer. If it is absent, they use the language of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The conversation before the query, at most 128 messages. Only the model call for the answer contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_history: Option<Vec<HistoryMessage>>,
    /// Whether the configured reranker, if there is one, ranks the chunks again; `true` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_rerank: Option<bool>,
    /// Chunks below this score of the reranker are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rerank_score: Option<f64>,
    /// With mode `local`: whether relations are searched as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_relations: Option<bool>,
    /// With modes `global` and `hybrid`: whether the chunks of relations are used as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_chunks: Option<bool>,
    /// The order of entities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_order: Option<EntityOrder>,
    /// How chunks of entities are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_pick: Option<ChunkPick>,
    /// Whether the reply comes at once with `query_id`. `knowledge.subscribe` then sends the events.
    #[serde(default)]
    pub stream: bool,
}

/// Distinguishes `null` from an absent value.
fn deserialize_nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Reply of `knowledge.query`: the result, or the id of a streamed query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KnowledgeQueryReply {
    /// With `stream`: the id for `knowledge.subscribe` and `knowledge.cancel`.
    Started {
        /// Id of the query.
        query_id: String,
    },
    /// The result.
    Result(Box<types::knowledge::QueryResult>),
}
