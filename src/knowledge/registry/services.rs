//! The services that the registry needs from the daemon.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::embed::{HttpReranker, StaticEmbedder};
use crate::index::ChunkSettings;
use crate::index::semantic::SemanticSettings;
use crate::query::{FusionWeights, Reranker};
use crate::traits::{Embedder, FileSource, LanguageModel};
use crate::types::KnowledgeError;
use types::knowledge::{IndexLevel, QueryParams};
use types::time::Clock;

/// The source of vectors.
#[derive(Clone, Debug, Default)]
pub enum EmbedderChoice {
    /// Full-text search alone.
    #[default]
    None,
    /// An embedder that is ready.
    Http(Arc<crate::embed::HttpEmbedder>),
    /// A folder with static vectors, read at the first use.
    Static(std::path::PathBuf),
}

/// Settings of all indexes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Level of jobs that name none.
    pub level: IndexLevel,
    /// Settings for splitting texts.
    pub chunks: ChunkSettings,
    /// Model for keywords, answers and extraction, as `PROVIDER/MODEL`; absent for none.
    pub model: Option<String>,
    /// Settings for the use of the model at level semantic.
    pub semantic: SemanticSettings,
    /// Time limit of one model call.
    pub model_timeout: Duration,
    /// The source of vectors.
    pub embedder: EmbedderChoice,
    /// Ranks chunks again.
    pub reranker: Option<Arc<HttpReranker>>,
    /// Weights for joining results.
    pub weights: FusionWeights,
    /// Defaults of queries.
    pub query: QueryParams,
    /// Whether to watch the files of used indexes, so that changes start a job.
    pub watch: bool,
    /// Indexes are closed after this time without use.
    pub idle_unload: Duration,
    /// Maximum number of parallel jobs.
    pub max_jobs: usize,
    /// Maximum number of parallel queries.
    pub max_queries: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            level: IndexLevel::default(),
            chunks: ChunkSettings::default(),
            model: None,
            semantic: SemanticSettings::default(),
            model_timeout: Duration::from_secs(240),
            embedder: EmbedderChoice::None,
            reranker: None,
            weights: FusionWeights::default(),
            query: QueryParams::default(),
            watch: false,
            idle_unload: Duration::from_secs(300),
            max_jobs: 2,
            max_queries: 8,
        }
    }
}

impl Settings {
    /// The embedder; a static one is read from its folder. Blocks on the disk.
    pub(super) fn load_embedder(&self) -> Result<Option<Arc<dyn Embedder>>, KnowledgeError> {
        Ok(match &self.embedder {
            EmbedderChoice::None => None,
            EmbedderChoice::Http(embedder) => Some(embedder.clone()),
            EmbedderChoice::Static(folder) => Some(Arc::new(StaticEmbedder::load(folder)?)),
        })
    }

    pub(super) fn reranker(&self) -> Option<Arc<dyn Reranker>> {
        self.reranker.clone().map(|it| it as Arc<dyn Reranker>)
    }
}

/// The services that the daemon provides.
pub trait Services: Send + Sync {
    /// The current settings.
    fn settings(&self) -> Arc<Settings>;

    fn files(&self, workspace: &Path) -> Arc<dyn FileSource>;

    /// The model for calls about a workspace; `None` if none is configured.
    fn model(&self, workspace: &Path) -> Option<Arc<dyn LanguageModel>>;

    /// The time.
    fn clock(&self) -> Arc<dyn Clock>;

    /// A new id with this prefix, for example `job_…`.
    fn new_id(&self, prefix: &str) -> String;
}
