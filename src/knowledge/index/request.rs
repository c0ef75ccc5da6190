//! What a job shall do, and what it works with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::ChunkSettings;
use super::progress::Budget;
use super::semantic::SemanticSettings;
use crate::knowledge::store::KnowledgeStore;
use crate::knowledge::traits::{Embedder, FileSource, LanguageModel};
use crate::knowledge::types::Level;
use crate::types::time::Clock;

/// What a job shall do. Stored with the job, so that a restart can continue it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRequest {
    /// The job's id.
    pub id: String,
    /// Files and folders relative to the workspace; all if empty.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How much is extracted.
    #[serde(default)]
    pub level: Level,
    /// Limit of a job at level semantic, which is refused without one.
    #[serde(default)]
    pub budget: Budget,
}

/// What a job works with.
#[derive(Clone)]
pub struct Indexer {
    /// The index.
    pub store: KnowledgeStore,
    /// The files of the workspace.
    pub files: Arc<dyn FileSource>,
    /// The model for level semantic.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// The embedder, if one is configured.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// What did not work before the job began, for its result.
    pub warning: Option<String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How texts are split.
    pub chunks: ChunkSettings,
    /// How the model is used.
    pub settings: SemanticSettings,
}
