//! The parts that a job uses.

use std::sync::Arc;

use super::chunk::ChunkSettings;
use super::semantic::SemanticSettings;
use crate::store::KnowledgeStore;
use crate::traits::{Embedder, FileSource, LanguageModel};
use types::time::Clock;

/// The parts that a job uses.
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
    /// Failures before the job began, for its result.
    pub warning: Option<String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Settings for splitting texts.
    pub chunks: ChunkSettings,
    /// Settings for the use of the model.
    pub settings: SemanticSettings,
}
