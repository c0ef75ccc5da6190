//! Connects the indexes of workspaces to the daemon: their settings, and the models and files that they use.

mod booking;
mod gate;
mod model;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::models::check_model;
use crate::config::{Config, EmbedderKind, Knowledge};
use crate::error::DaemonError;
use base::sync::{lock, read, write};
use booking::Bookings;
use gate::CallGate;
use knowledge::embed::{HttpEmbedder, HttpReranker, HttpTarget};
use knowledge::index::ChunkSettings;
use knowledge::index::semantic::SemanticSettings;
use knowledge::query::FusionWeights;
use knowledge::registry::{self, EmbedderChoice, Services};
use knowledge::{FileSource, LanguageModel};
use model::WorkspaceModel;
use session::Registry;
use types::ids::{Mint, Seeds};
use types::knowledge::{IndexLevel, QueryParams};
use types::model::ModelRef;
use types::time::Clock;

/// Time for the last bookings when the daemon stops.
const BOOKING_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of `[knowledge]`. Reads keys from the environment.
///
/// # Errors
/// Some values contradict each other. The error names file, line and key.
pub(super) fn settings(config: &Config) -> Result<registry::Settings, DaemonError> {
    let section = &config.knowledge;
    let wrong = |path: &[&str], why: String| -> DaemonError {
        let shown = path.join(".");
        config.key_error(path, format!("{shown}: {why}")).into()
    };
    if section.level == IndexLevel::Semantic {
        let why = "semantic costs money; name it with each job and a budget".to_owned();
        return Err(wrong(&["knowledge", "level"], why));
    }
    if let Some(model) = &section.model {
        check_knowledge_model(config, model)?;
    }
    if section.chunk_overlap >= section.chunk_tokens || section.chunk_tokens < 16 {
        let why = "expected at least 16, and more than chunk_overlap".to_owned();
        return Err(wrong(&["knowledge", "chunk_tokens"], why));
    }
    if section.split_by.as_deref() == Some("") {
        return Err(wrong(&["knowledge", "split_by"], "expected a separator, or leave it out".to_owned()));
    }
    if section.split_only && section.split_by.is_none() {
        return Err(wrong(&["knowledge", "split_only"], "goes with split_by only".to_owned()));
    }
    // A number that no query can have is refused by the check below.
    let limit = |number: usize| Some(u32::try_from(number).unwrap_or(u32::MAX));
    let query = QueryParams {
        mode: Some(section.mode),
        top_k: limit(section.top_k),
        chunk_top_k: Some(limit(section.chunk_top_k)),
        max_entity_tokens: limit(section.max_entity_tokens),
        max_relation_tokens: limit(section.max_relation_tokens),
        max_total_tokens: limit(section.max_total_tokens),
        min_rerank_score: Some(section.reranker.min_score),
        ..QueryParams::default()
    };
    QueryParams { query: "x".into(), ..query.clone() }
        .check()
        .map_err(|bad| wrong(&["knowledge", &bad.path], bad.why))?;
    let (embedder, default_weight) = embedder(config)?;
    let defaults = SemanticSettings::default();
    let types = &section.entity_types;
    Ok(registry::Settings {
        level: section.level,
        chunks: ChunkSettings {
            tokens: section.chunk_tokens,
            overlap: section.chunk_overlap,
            split_by: section.split_by.clone(),
            refuse_long_pieces: section.split_only,
        },
        model: model_name(config),
        semantic: SemanticSettings {
            max_gleaning: section.max_gleaning.min(1),
            concurrency: section.model_concurrency.clamp(1, 64),
            language: section.language.clone(),
            entity_types: if types.is_empty() { defaults.entity_types.clone() } else { types.clone() },
            ..defaults
        },
        model_timeout: section.model_timeout.0,
        embedder,
        reranker: reranker(config)?,
        weights: FusionWeights {
            lexical: 1.0,
            dense: section.embedder.weight.unwrap_or(default_weight),
            min_cosine: section.embedder.min_cosine,
        },
        query,
        watch: section.watch,
        idle_unload: section.idle_unload.0,
        max_jobs: section.max_jobs.max(1),
        max_queries: section.max_queries.max(1),
    })
}

fn model_name(config: &Config) -> Option<String> {
    let Knowledge { model, .. } = &config.knowledge;
    model.clone().or_else(|| config.models.quick.clone()).or_else(|| config.models.main.clone())
}

fn check_knowledge_model(config: &Config, model: &str) -> Result<(), DaemonError> {
    // The value has the form of an entry of `[models]`, so the error also names that table.
    check_model(config, "knowledge", model)
}

/// Reads a key from the environment.
fn key(config: &Config, table: &str, variable: Option<&String>) -> Result<Option<String>, DaemonError> {
    let Some(variable) = variable else { return Ok(None) };
    match std::env::var(variable).ok().filter(|key| !key.trim().is_empty()) {
        Some(key) => Ok(Some(key.trim().to_owned())),
        None => {
            let why = format!(
                "[knowledge.{table}] api_key_env: the variable is not set in the daemon's environment"
            );
            Err(config.key_error(&["knowledge", table, "api_key_env"], why).into())
        }
    }
}

fn target(
    config: &Config,
    table: &str,
    base_url: &str,
    model: Option<&String>,
    key: Option<&str>,
    timeout: Duration,
) -> Result<HttpTarget, DaemonError> {
    let model = model.map(String::as_str).unwrap_or_default();
    HttpTarget::new(base_url, model, key, timeout).map_err(|why| {
        let name = if model.is_empty() { "model" } else { "base_url" };
        config.key_error(&["knowledge", table, name], format!("[knowledge.{table}] {name}: {why}")).into()
    })
}

fn embedder(config: &Config) -> Result<(EmbedderChoice, f64), DaemonError> {
    let section = &config.knowledge.embedder;
    let missing = |name: &str| -> DaemonError {
        let why = format!("[knowledge.embedder] {name}: this kind needs it");
        config.key_error(&["knowledge", "embedder", name], why).into()
    };
    match section.kind {
        EmbedderKind::None => Ok((EmbedderChoice::None, 0.0)),
        EmbedderKind::Static => {
            let path = section.path.clone().ok_or_else(|| missing("path"))?;
            // The quality of an unknown vector table is unknown, so its results have no weight unless a
            // user configures one.
            Ok((EmbedderChoice::Static(path), 0.0))
        }
        EmbedderKind::Http => {
            let base_url = section.base_url.as_ref().ok_or_else(|| missing("base_url"))?;
            let key = key(config, "embedder", section.api_key_env.as_ref())?;
            let (model, timeout) = (section.model.as_ref(), section.timeout.0);
            let target = target(config, "embedder", base_url, model, key.as_deref(), timeout)?;
            let embedder = HttpEmbedder::new(target, section.batch_size, section.concurrency);
            Ok((EmbedderChoice::Http(Arc::new(embedder)), 1.0))
        }
    }
}

fn reranker(config: &Config) -> Result<Option<Arc<HttpReranker>>, DaemonError> {
    let section = &config.knowledge.reranker;
    let Some(base_url) = &section.base_url else { return Ok(None) };
    let key = key(config, "reranker", section.api_key_env.as_ref())?;
    let target =
        target(config, "reranker", base_url, section.model.as_ref(), key.as_deref(), section.timeout.0)?;
    Ok(Some(Arc::new(HttpReranker::new(target))))
}

/// The services of the daemon for indexes.
pub(crate) struct IndexServices {
    registry: Registry,
    settings: std::sync::RwLock<Arc<registry::Settings>>,
    seeds: Mutex<Seeds>,
    bookings: Arc<Bookings>,
    gate: Arc<CallGate>,
}

impl IndexServices {
    pub(crate) fn new(registry: Registry, config: &Config) -> Result<Arc<Self>, DaemonError> {
        let settings = std::sync::RwLock::new(Arc::new(settings(config)?));
        let bookings = Arc::new(Bookings::new(registry.clone()));
        Ok(Arc::new(Self {
            registry,
            settings,
            seeds: Mutex::new(Seeds::random()),
            bookings,
            gate: Arc::default(),
        }))
    }

    /// Uses the settings of a reloaded configuration for all later work.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), DaemonError> {
        *write(&self.settings) = Arc::new(settings(config)?);
        Ok(())
    }

    /// Waits until the usage of all calls is recorded. The sessions must still be open.
    pub(crate) async fn finish_bookings(&self) {
        if tokio::time::timeout(BOOKING_TIMEOUT, self.bookings.finish()).await.is_err() {
            tracing::warn!("the usage of the last model calls about indexes was not recorded in time");
        }
    }
}

impl Services for IndexServices {
    fn settings(&self) -> Arc<registry::Settings> {
        Arc::clone(&read(&self.settings))
    }

    fn files(&self, workspace: &Path) -> Arc<dyn FileSource> {
        Arc::new(self.registry.shared().components().tools.workspace_files(workspace))
    }

    fn model(&self, workspace: &Path) -> Option<Arc<dyn LanguageModel>> {
        let settings = self.settings();
        let model: ModelRef = settings.model.as_ref()?.parse().ok()?;
        Some(Arc::new(WorkspaceModel {
            registry: self.registry.clone(),
            workspace: workspace.to_owned(),
            model,
            timeout: settings.model_timeout,
            bookings: Arc::clone(&self.bookings),
            gate: Arc::clone(&self.gate),
            max_calls: settings.semantic.concurrency,
        }))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.registry.shared().clock)
    }

    fn new_id(&self, prefix: &str) -> String {
        let now = self.registry.shared().clock.now();
        let mut mint = Mint::new(now.0, lock(&self.seeds).next_seed());
        let id = mint.session().to_string();
        let uuid = id.split_once('_').map_or(id.as_str(), |(_, uuid)| uuid);
        format!("{prefix}_{uuid}")
    }
}
