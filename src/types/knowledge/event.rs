//! Events of an index job or a query, for subscriptions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::index::{IndexProgress, IndexSummary};
use super::query::QueryStage;
use super::result::{QueryError, QueryResult, RawData};

/// An event of an index job or a query, for a subscription. The last event is `done`, `failed` or `cancelled`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnowledgeEvent {
    /// An index job made progress.
    Progress {
        /// The progress of the job.
        #[serde(flatten)]
        progress: IndexProgress,
    },
    /// The daemon asks the model for keywords.
    ExtractingKeywords {},
    /// The query searches entities.
    RetrievingEntities {},
    /// The query searches relations.
    RetrievingRelations {},
    /// The query searches chunks.
    RetrievingChunks {},
    /// The reranker ranks the chunks again.
    Reranking {},
    /// The daemon writes the prompt.
    BuildingContext {},
    /// The model writes the answer.
    GeneratingResponse {},
    /// The data that the query found. This event comes before the first `delta`.
    RawData {
        /// All data that the query found.
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
        result: Option<Box<QueryResult>>,
        /// The result of a job.
        summary: Option<IndexSummary>,
    },
    /// The job or query failed.
    Failed {
        /// The reason.
        error: QueryError,
        /// The result of a query up to the failure.
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
