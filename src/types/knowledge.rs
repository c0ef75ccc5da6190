//! Questions about the index of a workspace, and their results.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which parts of the index a query reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    /// Entities, relations, and chunks from both sides.
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Global => "global",
            Self::Hybrid => "hybrid",
            Self::Naive => "naive",
            Self::Mix => "mix",
            Self::Bypass => "bypass",
        }
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
    /// As the search found them.
    Similarity,
}

/// How the chunks of entities are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkPick {
    /// The chunks most like the query; without vectors, by weight.
    #[default]
    Vector,
    /// More chunks for the first entities than for the last ones.
    Weight,
}

/// Who said something in the conversation before the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl HistoryRole {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of the conversation before the query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryMessage {
    /// Who wrote it.
    pub role: HistoryRole,
    /// Its text.
    pub content: String,
}

/// The keywords of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keywords {
    /// Themes and intentions.
    pub high_level: Vec<String>,
    /// Names and concrete things.
    pub low_level: Vec<String>,
}

/// What a query does at the moment.
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

/// How much of a workspace an index holds. Each level includes the ones before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IndexLevel {
    /// Chunks with full-text search. No model.
    Lexical,
    /// Also a graph from syntax trees and headings. No model.
    #[default]
    Structure,
    /// Also entities and relations that a model extracts. It costs money and needs a budget.
    Semantic,
}

/// The state of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// The workspace has no index.
    None,
    /// A job works on it. Queries are answered from what is there.
    Indexing,
    /// It can be queried.
    Ready,
    /// The last job failed. Queries are answered from what is there.
    Failed,
}

/// What an index job does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexStage {
    /// Lists files.
    Scanning,
    /// Splits texts into chunks and stores them with their graph.
    Chunking,
    /// Computes vectors.
    Embedding,
    /// Asks the model for entities and relations.
    Extracting,
    /// Merges entities and relations into the graph.
    Merging,
    /// Asks the model for summaries of descriptions.
    Summarizing,
}

/// Progress of an index job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexProgress {
    /// The stage.
    pub stage: IndexStage,
    /// Finished units of the stage.
    pub done: u64,
    /// All units of the stage; 0 while unknown.
    pub total: u64,
    /// Tokens that the job has used.
    pub tokens: u64,
    /// What they cost in micro-dollars.
    pub cost_usd_micros: u64,
}

/// What an index job did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexSummary {
    /// Documents that were read.
    pub indexed: u64,
    /// Documents that had not changed.
    pub unchanged: u64,
    /// Documents that were removed, because their file is gone or not allowed any more.
    pub removed: u64,
    /// Files that were left out: binary, too large, or secret.
    pub skipped: u64,
    /// Documents that failed.
    pub failed: u64,
}

/// What a subscription to an index job or a query receives. The last event is `done`, `failed` or `cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnowledgeEvent {
    /// A job goes on.
    Progress {
        /// How far it is.
        #[serde(flatten)]
        progress: IndexProgress,
    },
    /// The model is asked for keywords.
    ExtractingKeywords {},
    /// Entities are searched.
    RetrievingEntities {},
    /// Relations are searched.
    RetrievingRelations {},
    /// Chunks are searched.
    RetrievingChunks {},
    /// Chunks are ranked again.
    Reranking {},
    /// The prompt is written.
    BuildingContext {},
    /// The model writes the answer.
    GeneratingResponse {},
    /// What the query found. It comes before the first `delta`.
    RawData {
        /// Everything that was found.
        raw_data: Box<RawData>,
    },
    /// A part of the answer.
    Delta {
        /// The text.
        text: String,
    },
    /// The job or query is done.
    Done {
        /// The result of a query.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<QueryResult>>,
        /// What a job did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<IndexSummary>,
    },
    /// The job or query failed.
    Failed {
        /// Why.
        error: QueryError,
        /// What a query found until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<QueryResult>>,
    },
    /// The job or query was cancelled.
    Cancelled {},
}

impl KnowledgeEvent {
    /// Whether no other event follows.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed { .. } | Self::Cancelled {})
    }
}

impl From<QueryStage> for KnowledgeEvent {
    fn from(stage: QueryStage) -> Self {
        match stage {
            QueryStage::ExtractingKeywords => Self::ExtractingKeywords {},
            QueryStage::RetrievingEntities => Self::RetrievingEntities {},
            QueryStage::RetrievingRelations => Self::RetrievingRelations {},
            QueryStage::RetrievingChunks => Self::RetrievingChunks {},
            QueryStage::Reranking => Self::Reranking {},
            QueryStage::BuildingContext => Self::BuildingContext {},
            QueryStage::GeneratingResponse => Self::GeneratingResponse {},
        }
    }
}
