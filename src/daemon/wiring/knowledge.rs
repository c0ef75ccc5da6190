//! Indexes of workspaces: their settings, and the models and files that they use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::models::check_model;
use crate::daemon::config::{Config, EmbedderKind, Knowledge};
use crate::daemon::error::DaemonError;
use crate::knowledge::embed::{HttpEmbedder, HttpReranker, HttpTarget};
use crate::knowledge::index::ChunkSettings;
use crate::knowledge::index::semantic::SemanticSettings;
use crate::knowledge::query::{FusionWeights, QueryParams};
use crate::knowledge::registry::{self, EmbedderChoice, Services};
use crate::knowledge::{
    CallPurpose, ChatRole, Completion, ErrorKind, FileSource, KnowledgeError, LanguageModel, Level,
    ModelCall, ModelUsage,
};
use crate::session::{IndexUsage, Registry};
use crate::sync::{lock, read, write};
use crate::types::ids::{Mint, Seeds};
use crate::types::knowledge::IndexLevel;
use crate::types::message::{Block, Message, Role};
use crate::types::model::{Delta, ModelFault, ModelRef, ModelReply, ModelRequest, ReplyBlock, StopReason};
use crate::types::sampling::Sampling;
use crate::types::thinking::Thinking;
use crate::types::time::Clock;
use crate::types::usage::Usage;

/// Attempts of one model call.
const MAX_ATTEMPTS: u32 = 4;
/// The first wait between two attempts; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Batches of deltas that wait for a slow reader.
const DELTA_CAPACITY: usize = 16;

/// The settings of `[knowledge]`. Reads keys from the environment.
///
/// # Errors
/// Values do not fit together. The error names file, line and key.
pub(super) fn settings(config: &Config) -> Result<registry::Settings, DaemonError> {
    let given = &config.knowledge;
    let wrong = |path: &[&str], why: String| -> DaemonError {
        let shown = path.join(".");
        config.wrong(path, format!("{shown}: {why}")).into()
    };
    if given.level == IndexLevel::Semantic {
        let why = "semantic costs money; name it with each job and a budget".to_owned();
        return Err(wrong(&["knowledge", "level"], why));
    }
    if let Some(model) = &given.model {
        check_knowledge_model(config, model)?;
    }
    if given.chunk_overlap >= given.chunk_tokens || given.chunk_tokens < 16 {
        let why = "expected at least 16, and more than chunk_overlap".to_owned();
        return Err(wrong(&["knowledge", "chunk_tokens"], why));
    }
    let query = QueryParams {
        mode: given.mode,
        top_k: given.top_k,
        chunk_top_k: Some(given.chunk_top_k),
        max_entity_tokens: given.max_entity_tokens,
        max_relation_tokens: given.max_relation_tokens,
        max_total_tokens: given.max_total_tokens,
        min_rerank_score: given.reranker.min_score,
        ..QueryParams::default()
    };
    QueryParams { query: "x".into(), ..query.clone() }
        .check()
        .map_err(|bad| wrong(&["knowledge", &bad.path], bad.why))?;
    let (embedder, default_weight) = embedder(config)?;
    let defaults = SemanticSettings::default();
    let types = &given.entity_types;
    Ok(registry::Settings {
        level: if given.level == IndexLevel::Lexical { Level::Lexical } else { Level::Structure },
        chunks: ChunkSettings {
            tokens: given.chunk_tokens,
            overlap: given.chunk_overlap,
            ..ChunkSettings::default()
        },
        model: model_name(config),
        semantic: SemanticSettings {
            max_gleaning: given.max_gleaning.min(1),
            concurrency: given.model_concurrency.clamp(1, 64),
            language: given.language.clone(),
            entity_types: if types.is_empty() { defaults.entity_types.clone() } else { types.clone() },
            ..defaults
        },
        model_timeout: given.model_timeout.0,
        embedder,
        reranker: reranker(config)?,
        weights: FusionWeights {
            lexical: 1.0,
            dense: given.embedder.weight.unwrap_or(default_weight),
            min_cosine: given.embedder.min_cosine,
        },
        query,
        idle_unload: given.idle_unload.0,
        max_jobs: given.max_jobs.max(1),
        max_queries: given.max_queries.max(1),
    })
}

fn model_name(config: &Config) -> Option<String> {
    let Knowledge { model, .. } = &config.knowledge;
    model.clone().or_else(|| config.models.quick.clone()).or_else(|| config.models.main.clone())
}

fn check_knowledge_model(config: &Config, model: &str) -> Result<(), DaemonError> {
    // The error names `[models]`, whose form the value has.
    check_model(config, "knowledge", model)
}

/// A key from the environment.
fn key(config: &Config, table: &str, variable: Option<&String>) -> Result<Option<String>, DaemonError> {
    let Some(variable) = variable else { return Ok(None) };
    match std::env::var(variable).ok().filter(|key| !key.trim().is_empty()) {
        Some(key) => Ok(Some(key.trim().to_owned())),
        None => {
            let why = format!(
                "[knowledge.{table}] api_key_env: the variable is not set in the daemon's environment"
            );
            Err(config.wrong(&["knowledge", table, "api_key_env"], why).into())
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
        config.wrong(&["knowledge", table, name], format!("[knowledge.{table}] {name}: {why}")).into()
    })
}

fn embedder(config: &Config) -> Result<(EmbedderChoice, f64), DaemonError> {
    let given = &config.knowledge.embedder;
    let missing = |name: &str| -> DaemonError {
        let why = format!("[knowledge.embedder] {name}: this kind needs it");
        config.wrong(&["knowledge", "embedder", name], why).into()
    };
    match given.kind {
        EmbedderKind::None => Ok((EmbedderChoice::None, 0.0)),
        EmbedderKind::Static => {
            let path = given.path.clone().ok_or_else(|| missing("path"))?;
            // The quality of an unknown table is unknown: it is not mixed in until a user says so.
            Ok((EmbedderChoice::Static(path), 0.0))
        }
        EmbedderKind::Http => {
            let base_url = given.base_url.as_ref().ok_or_else(|| missing("base_url"))?;
            let key = key(config, "embedder", given.api_key_env.as_ref())?;
            let (model, timeout) = (given.model.as_ref(), given.timeout.0);
            let target = target(config, "embedder", base_url, model, key.as_deref(), timeout)?;
            let embedder = HttpEmbedder::new(target, given.batch_size, given.concurrency);
            Ok((EmbedderChoice::Http(Arc::new(embedder)), 1.0))
        }
    }
}

fn reranker(config: &Config) -> Result<Option<Arc<HttpReranker>>, DaemonError> {
    let given = &config.knowledge.reranker;
    let Some(base_url) = &given.base_url else { return Ok(None) };
    let key = key(config, "reranker", given.api_key_env.as_ref())?;
    let target = target(config, "reranker", base_url, given.model.as_ref(), key.as_deref(), given.timeout.0)?;
    Ok(Some(Arc::new(HttpReranker::new(target))))
}

/// The services of the daemon for indexes.
pub(in crate::daemon) struct IndexServices {
    registry: Registry,
    settings: std::sync::RwLock<Arc<registry::Settings>>,
    seeds: Mutex<Seeds>,
}

impl IndexServices {
    pub(in crate::daemon) fn new(registry: Registry, config: &Config) -> Result<Arc<Self>, DaemonError> {
        let settings = std::sync::RwLock::new(Arc::new(settings(config)?));
        Ok(Arc::new(Self { registry, settings, seeds: Mutex::new(Seeds::random()) }))
    }

    /// Uses the settings of a reloaded configuration for all later work.
    pub(in crate::daemon) fn reload(&self, config: &Config) -> Result<(), DaemonError> {
        *write(&self.settings) = Arc::new(settings(config)?);
        Ok(())
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

/// The model for calls about one workspace. Its usage goes to the workspace's hidden session.
struct WorkspaceModel {
    registry: Registry,
    workspace: PathBuf,
    model: ModelRef,
    timeout: Duration,
}

impl WorkspaceModel {
    fn request(&self, call: &ModelCall, is_repeated: bool) -> ModelRequest {
        let message = |role: ChatRole, text: &str| {
            let role = match role {
                ChatRole::User => Role::User,
                ChatRole::Assistant => Role::Assistant,
            };
            Arc::new(Message { role, content: vec![Block::Text { text: text.to_owned() }], model: None })
        };
        ModelRequest {
            model: self.model.clone(),
            system: call.system.as_str().into(),
            messages: call.messages.iter().map(|it| message(it.role, &it.content)).collect(),
            tools: [].into(),
            max_output_tokens: None,
            thinking: (call.purpose != CallPurpose::Answer).then_some(Thinking::Off),
            sampling: Sampling::default(),
            media: Default::default(),
            previous_response_id: None,
            fresh_connection: is_repeated,
            aside: true,
            stop: Vec::new(),
            metadata: Default::default(),
            no_interleaving: false,
            is_repeated,
        }
    }

    /// Calls the model; repeats it after a passing fault, unless a part of the answer was delivered.
    async fn call(
        &self,
        call: &ModelCall,
        deltas: Option<&mpsc::Sender<String>>,
        cancel: &CancellationToken,
    ) -> Result<Completion, KnowledgeError> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let mut has_begun = false;
            let tried = self.attempt(call, attempt > 1, deltas, &mut has_begun);
            let outcome = tokio::select! {
                outcome = tokio::time::timeout(self.timeout, tried) => outcome,
                () = cancel.cancelled() => {
                    // The request was sent, so the provider may charge for it; how much is unknown.
                    return Err(KnowledgeError::cancelled());
                }
            };
            let fault = match outcome {
                Ok(Ok(reply)) => return Ok(self.completion(reply).await),
                Ok(Err(CallError::Cancelled)) => return Err(KnowledgeError::cancelled()),
                Ok(Err(CallError::Fault(fault))) => fault,
                Err(_) => {
                    let seconds = self.timeout.as_secs();
                    let text = format!("could not call the model: no answer within {seconds} s; try again");
                    return Err(KnowledgeError::new(ErrorKind::Model, text));
                }
            };
            self.book_lost(&fault).await;
            if !fault.kind.is_retryable() || has_begun || attempt >= MAX_ATTEMPTS {
                let text =
                    format!("could not call the model {}: {}; try again later", self.model, fault.message);
                return Err(KnowledgeError::new(ErrorKind::Model, text));
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Err(KnowledgeError::cancelled()),
            }
            wait *= 2;
        }
        Err(KnowledgeError::cancelled())
    }

    async fn attempt(
        &self,
        call: &ModelCall,
        is_repeated: bool,
        deltas: Option<&mpsc::Sender<String>>,
        has_begun: &mut bool,
    ) -> Result<ModelReply, CallError> {
        let request = self.request(call, is_repeated);
        let models = self.registry.shared().components().models.clone();
        let (sender, mut arriving) = mpsc::channel::<Vec<Delta>>(DELTA_CAPACITY);
        let deliver = async move {
            while let Some(batch) = arriving.recv().await {
                if !send_text(&batch, deltas, has_begun).await {
                    // Dropping the receiver ends the call.
                    return false;
                }
            }
            true
        };
        let (reply, was_read) = tokio::join!(
            async {
                let sender = sender;
                models.call(&request, &sender).await
            },
            deliver
        );
        if !was_read {
            return Err(CallError::Cancelled);
        }
        let reply = reply.map_err(CallError::Fault)?;
        let last = reply.last.clone();
        let mut ignored = false;
        if send_text(&last, deltas, &mut ignored).await { Ok(reply) } else { Err(CallError::Cancelled) }
    }

    async fn completion(&self, reply: ModelReply) -> Completion {
        let texts = reply.content.iter().filter_map(|block| match block {
            ReplyBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        let snapshot = self.registry.shared().components().models.model_snapshot(&self.model);
        let cost = if reply.cache_hit { Some(0) } else { snapshot.cost_usd_micros(&reply.usage) };
        self.book(reply.usage, cost, false).await;
        Completion {
            text,
            usage: ModelUsage {
                input_tokens: reply.usage.all_tokens() - reply.usage.output_tokens,
                output_tokens: reply.usage.output_tokens,
                cost_usd_micros: cost.unwrap_or(0),
            },
            truncated: reply.stop_reason == StopReason::MaxTokens,
        }
    }

    async fn book_lost(&self, fault: &ModelFault) {
        if let Some(usage) = fault.usage.as_deref() {
            let snapshot = self.registry.shared().components().models.model_snapshot(&self.model);
            self.book(*usage, snapshot.cost_usd_micros(usage), true).await;
        }
    }

    async fn book(&self, usage: Usage, cost_usd_micros: Option<u64>, is_lost: bool) {
        let model_snapshot = self.registry.shared().components().models.model_snapshot(&self.model);
        let usage =
            IndexUsage { model: self.model.to_string(), usage, cost_usd_micros, model_snapshot, is_lost };
        if let Err(error) = self.registry.book_index_usage(&self.workspace, usage).await {
            tracing::warn!(%error, "the usage of a model call about an index was not recorded");
        }
    }
}

/// Why an attempt gave no answer.
enum CallError {
    Fault(ModelFault),
    Cancelled,
}

/// Sends the text of deltas; `false` if the reader is gone.
async fn send_text(batch: &[Delta], deltas: Option<&mpsc::Sender<String>>, has_begun: &mut bool) -> bool {
    let Some(deltas) = deltas else { return true };
    let texts = batch.iter().filter_map(|delta| match delta {
        Delta::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    if text.is_empty() {
        return !deltas.is_closed();
    }
    *has_begun = true;
    deltas.send(text).await.is_ok()
}

impl LanguageModel for WorkspaceModel {
    fn identity(&self) -> String {
        self.model.to_string()
    }

    fn price(&self, input_tokens: u64, output_tokens: u64) -> Option<u64> {
        let snapshot = self.registry.shared().components().models.model_snapshot(&self.model);
        snapshot.cost_usd_micros(&Usage { input_tokens, output_tokens, ..Usage::default() })
    }

    fn complete(
        &self,
        call: ModelCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move { self.call(&call, None, &cancel).await }.boxed()
    }

    fn stream(
        &self,
        call: ModelCall,
        deltas: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move { self.call(&call, Some(&deltas), &cancel).await }.boxed()
    }
}
