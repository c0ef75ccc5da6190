//! What a subscription to an index job or a query receives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::index::{IndexProgress, IndexSummary};
use super::query::QueryStage;
use super::result::{QueryError, QueryResult, RawData};

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
