//! `[knowledge]`: the indexes of workspaces.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use types::config_values::ConfigDuration;
use types::knowledge::{IndexLevel, QueryMode};

/// `[knowledge]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knowledge {
    /// How much index jobs extract that name no level. `semantic` is named with each job only.
    pub level: IndexLevel,
    /// Model for keywords, answers and extraction; absent for `[models] quick`, then `main`.
    pub model: Option<String>,
    /// Mode of queries that name none.
    pub mode: QueryMode,
    /// Tokens of a chunk of text without symbols.
    pub chunk_tokens: usize,
    /// Tokens that two of these chunks share.
    pub chunk_overlap: usize,
    /// Separator at which every text is split before its tokens are counted; absent for symbols and token windows.
    pub split_by: Option<String>,
    /// With `split_by`: whether a piece of more than `chunk_tokens` is an error instead of being split.
    pub split_only: bool,
    /// Entities and relations that a query finds.
    pub top_k: usize,
    /// Chunks that a query keeps.
    pub chunk_top_k: usize,
    /// Tokens of all entities of a prompt.
    pub max_entity_tokens: usize,
    /// Tokens of all relations of a prompt.
    pub max_relation_tokens: usize,
    /// Tokens of a whole prompt.
    pub max_total_tokens: usize,
    /// Further extraction calls per chunk, 0 or 1.
    pub max_gleaning: u32,
    /// Model calls about all indexes at the same time; those of questions go first.
    pub model_concurrency: usize,
    /// Time limit of a model call.
    pub model_timeout: ConfigDuration,
    /// Language of extracted descriptions.
    pub language: String,
    /// Types of extracted entities; empty for the built-in ones.
    pub entity_types: Vec<String>,
    /// Whether the files of indexes in use are watched, so that changes start a job.
    pub watch: bool,
    /// An index is closed after this time without use.
    pub idle_unload: ConfigDuration,
    /// Jobs of all workspaces at the same time.
    pub max_jobs: usize,
    /// Queries at the same time.
    pub max_queries: usize,
    /// The source of vectors.
    pub embedder: Embedder,
    /// Ranks chunks again.
    pub reranker: Reranker,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            level: IndexLevel::default(),
            model: None,
            mode: QueryMode::default(),
            chunk_tokens: 1_200,
            chunk_overlap: 100,
            split_by: None,
            split_only: false,
            top_k: 40,
            chunk_top_k: 20,
            max_entity_tokens: 6_000,
            max_relation_tokens: 8_000,
            max_total_tokens: 30_000,
            max_gleaning: 1,
            model_concurrency: 4,
            model_timeout: ConfigDuration(Duration::from_secs(240)),
            language: "English".into(),
            entity_types: Vec::new(),
            watch: false,
            idle_unload: ConfigDuration(Duration::from_secs(300)),
            max_jobs: 2,
            max_queries: 8,
            embedder: Embedder::default(),
            reranker: Reranker::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedderKind {
    /// Full-text search alone.
    #[default]
    None,
    /// A server with `POST BASE/embeddings`.
    Http,
    /// A folder with static vectors.
    Static,
}

/// `[knowledge.embedder]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Embedder {
    pub kind: EmbedderKind,
    /// For `http`: the address without `/embeddings`.
    pub base_url: Option<String>,
    /// For `http`: the model.
    pub model: Option<String>,
    /// For `http`: environment variable with the key.
    pub api_key_env: Option<String>,
    /// For `http`: texts of one request.
    pub batch_size: usize,
    /// For `http`: requests at the same time.
    pub concurrency: usize,
    /// For `http`: time limit of a request.
    pub timeout: ConfigDuration,
    /// For `static`: the folder with `model.safetensors` and `tokenizer.json`.
    pub path: Option<PathBuf>,
    /// How much vector search counts against full-text search; absent for 1 with `http` and 0 with `static`.
    pub weight: Option<f64>,
    /// Vectors below this cosine similarity are no results.
    pub min_cosine: f32,
}

impl Default for Embedder {
    fn default() -> Self {
        Self {
            kind: EmbedderKind::default(),
            base_url: None,
            model: None,
            api_key_env: None,
            batch_size: 64,
            concurrency: 8,
            timeout: ConfigDuration(Duration::from_secs(30)),
            path: None,
            weight: None,
            min_cosine: 0.2,
        }
    }
}

/// `[knowledge.reranker]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reranker {
    /// The address without `/rerank`; absent for no reranker.
    pub base_url: Option<String>,
    pub model: Option<String>,
    /// Environment variable with the key.
    pub api_key_env: Option<String>,
    /// Time limit of a request.
    pub timeout: ConfigDuration,
    /// Chunks below this score are dropped.
    pub min_score: f64,
}

impl Default for Reranker {
    fn default() -> Self {
        Self {
            base_url: None,
            model: None,
            api_key_env: None,
            timeout: ConfigDuration(Duration::from_secs(30)),
            min_score: 0.0,
        }
    }
}
