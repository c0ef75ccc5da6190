//! Parameters of the methods about the index of a workspace. Each parameter may also be written in camelCase.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::types::knowledge::{
    ChunkPick, EntityOrder, HistoryMessage, IndexLevel, IndexProgress, IndexState, IndexSummary, QueryMode,
};

/// What an index job may spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IndexBudget {
    /// Tokens of the model, input and output together.
    Tokens(u64),
    /// Limits by name; at least one.
    Limits {
        /// Tokens of the model, input and output together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
    },
}

/// `knowledge.index`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Files and folders below it, relative; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// How much is extracted; absent for that of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IndexLevel>,
    /// What the level `semantic` may spend. Without it, that level is refused with the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<IndexBudget>,
    /// Estimate only.
    #[serde(default)]
    pub dry_run: bool,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// What an index job will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexEstimate {
    /// Files to read.
    pub files: u64,
    /// Documents that are as they were.
    pub unchanged: u64,
    /// Documents whose file is gone.
    pub removed: u64,
    /// Size of the files to read.
    pub bytes: u64,
    /// Chunks that they will make, roughly.
    pub chunks: u64,
    /// Calls of the model at level `semantic`, without summaries.
    pub model_calls: u64,
    /// Tokens to the model.
    pub input_tokens: u64,
    /// Tokens from the model.
    pub output_tokens: u64,
    /// All these tokens.
    pub tokens: u64,
    /// Their cost in micro-dollars; `null` if the price is unknown.
    pub cost_usd_micros: Option<u64>,
}

/// Reply of `knowledge.index`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeIndexReply {
    /// The job; absent with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What it will do.
    pub estimate: IndexEstimate,
}

/// A text for the index that is not a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsertedDocument {
    /// An id of the caller; absent for one that is derived from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A name for references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The text.
    pub text: String,
}

/// `knowledge.insert`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertParams {
    /// The folder whose index takes the documents, absolute.
    pub workspace: String,
    /// The documents, at most 100.
    pub documents: Vec<InsertedDocument>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.insert`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeInsertReply {
    /// The documents in the given order.
    pub documents: Vec<InsertedView>,
}

/// What became of an inserted document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsertedView {
    /// Its id.
    pub id: String,
    /// The index had the same document already.
    pub unchanged: bool,
}

/// `knowledge.query`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeQueryParams {
    /// The folder whose index is asked, absolute.
    pub workspace: String,
    /// The question, at most 65,536 characters.
    pub query: String,
    /// Which parts of the index are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<QueryMode>,
    /// Keywords for themes. If this or `ll_keywords` is given, no model is asked for keywords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hl_keywords: Option<Vec<String>>,
    /// Keywords for names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ll_keywords: Option<Vec<String>>,
    /// Return the prompt in `context` and ask for no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_need_context: Option<bool>,
    /// The same as `only_need_context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_need_prompt: Option<bool>,
    /// Entities and relations to find, 40 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Chunks to keep, 20 by default; `null` for `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "even_null")]
    #[schemars(with = "Option<u32>")]
    pub chunk_top_k: Option<Option<u32>>,
    /// Tokens of all entities, 6,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_entity_tokens: Option<u32>,
    /// Tokens of all relations, 8,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_relation_tokens: Option<u32>,
    /// Tokens of the whole prompt, 30,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u32>,
    /// The form of the answer, `Multiple Paragraphs` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_type: Option<String>,
    /// Further instructions for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_prompt: Option<String>,
    /// The language of keywords and answer; absent for that of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The conversation before the query, at most 128 messages. It goes to the answer call only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_history: Option<Vec<HistoryMessage>>,
    /// Whether chunks are ranked again, if a reranker is configured; `true` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_rerank: Option<bool>,
    /// Chunks below this score of the reranker are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rerank_score: Option<f64>,
    /// With `local`: relations as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_relations: Option<bool>,
    /// With `global` and `hybrid`: the chunks of relations as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_chunks: Option<bool>,
    /// The order of entities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_order: Option<EntityOrder>,
    /// How chunks of entities are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_pick: Option<ChunkPick>,
    /// Reply at once with `query_id`; `knowledge.subscribe` sends the events.
    #[serde(default)]
    pub stream: bool,
}

/// Tells `null` from an absent value.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Reply of `knowledge.query`: the result, or the id of a streamed query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KnowledgeQueryReply {
    /// With `stream`: the id for `knowledge.subscribe` and `knowledge.cancel`.
    Started {
        /// The query.
        query_id: String,
    },
    /// The result.
    Result(Box<crate::types::knowledge::QueryResult>),
}

/// `knowledge.documents.list`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Only documents in this state: `pending`, `processing`, `processed` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Documents per page, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A document of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentView {
    /// Its id.
    pub id: String,
    /// Its path; absent for an inserted document without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `pending`, `processing`, `processed` or `failed`.
    pub status: String,
    /// The level that it was processed at.
    pub level: String,
    /// `file` or `inserted`.
    pub source: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its language, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Size of its text.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// When its state last changed.
    pub updated_at_ms: i64,
}

/// Reply of `knowledge.documents.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentsReply {
    /// The documents of this page.
    pub documents: Vec<DocumentView>,
    /// For the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `knowledge.documents.get`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Id or path of the document.
    pub id: String,
}

/// A chunk of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkView {
    /// Its id.
    pub chunk_id: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line.
    pub end_line: u32,
    /// Its symbol or heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Number of its tokens.
    pub tokens: u32,
    /// Its text.
    pub content: String,
}

/// Reply of `knowledge.documents.get`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentReply {
    /// The document.
    pub document: DocumentView,
    /// Its chunks in order, at most 500.
    pub chunks: Vec<ChunkView>,
}

/// `knowledge.documents.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentDeleteParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Id or path of the document.
    pub id: String,
    /// Also forget the answers of the model about it.
    #[serde(default)]
    pub delete_cache: bool,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.documents.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDocumentDeleteReply {
    /// `success`, `not_found`, `not_allowed` (a job works on the index) or `fail`.
    pub status: String,
    /// Why it was not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The form of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphFormatParam {
    /// Nodes and edges in the reply.
    #[default]
    Json,
    /// A Mermaid diagram in `data`.
    Mermaid,
    /// Graphviz in `data`.
    Dot,
    /// GraphML in `data`.
    Graphml,
    /// One HTML page that needs nothing else, in `data`.
    Html,
}

/// `knowledge.graph`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The entity in the middle; absent for the entities with the most relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Steps from it, 1 to 8; 2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Entities at most, 1 to 1,000; 200 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// The form.
    #[serde(default)]
    pub format: GraphFormatParam,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub entity_type: String,
    /// Its description.
    pub description: String,
    /// Number of its relations in the whole graph.
    pub degree: u32,
}

/// An edge of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphEdge {
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
}

/// Reply of `knowledge.graph`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphReply {
    /// The nodes; empty in another form than `json`.
    pub nodes: Vec<GraphNode>,
    /// The edges between them.
    pub edges: Vec<GraphEdge>,
    /// Whether `max_nodes` cut the graph.
    pub truncated: bool,
    /// The graph as text, in another form than `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// `knowledge.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusParams {
    /// The folder, absolute.
    pub workspace: String,
}

/// The newest job of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexJobView {
    /// Its id.
    pub job_id: String,
    /// `running`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<IndexProgress>,
    /// What it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<IndexSummary>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reply of `knowledge.status`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeStatusReply {
    /// The state.
    pub state: IndexState,
    /// The level of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IndexLevel>,
    /// Number of documents.
    pub documents: u64,
    /// Documents that failed.
    pub failed_documents: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of entities.
    pub entities: u64,
    /// Number of relations.
    pub relations: u64,
    /// Rises with each change of the index.
    pub generation: u64,
    /// The newest job since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<IndexJobView>,
}

/// `knowledge.cancel` and `knowledge.subscribe`: a job or a query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeWorkParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_id: Option<String>,
}

/// Reply of `knowledge.cancel`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCancelReply {
    /// Whether it was running.
    pub cancelled: bool,
}

/// The answers of models that an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheKindParam {
    /// Entities and relations of chunks.
    Extract,
    /// Summaries of descriptions.
    Summary,
    /// Keywords of queries.
    Keywords,
    /// Answers to queries.
    Query,
}

/// `knowledge.cache.clear`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Which answers; absent for those to queries and their keywords, which cost least to get again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<CacheKindParam>>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.cache.clear`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeCacheClearReply {
    /// Answers that were removed.
    pub removed: u64,
}

/// `knowledge.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeleteReply {
    /// Whether there was an index.
    pub deleted: bool,
}

/// `knowledge.entity.create`, `.update`, `.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Name of the entity.
    pub name: String,
    /// With `update`: its new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// Its type; needed with `create`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub entity_type: Option<String>,
    /// Its description; needed with `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `knowledge.entity.merge`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityMergeParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Names of the entities that disappear.
    pub sources: Vec<String>,
    /// The entity that takes over their descriptions, chunks and relations.
    pub target: String,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.entity.create`, `.update`, `.merge` and `.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityReply {
    /// The entity; absent after `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<GraphNode>,
}

/// `knowledge.relation.create`, `.update`, `.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationParams {
    /// The folder, absolute.
    pub workspace: String,
    /// One end.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Its keywords, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keywords: Option<String>,
    /// Its description; needed with `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its strength, 1.0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.relation.create`, `.update` and `.delete`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationReply {
    /// The relation; absent after `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<GraphEdge>,
}
