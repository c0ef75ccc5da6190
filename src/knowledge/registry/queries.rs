//! Queries: those that wait for their result, and those that are streamed to subscriptions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::event_log::{EventLog, LogFollower};
use super::{Indexes, Settings};
use crate::query::{
    AnswerCache, Progress, QueryEnv, QueryEvent, ReadIndex, find_context, run_query, tool_text,
};
use crate::store::{CachedAnswer, KnowledgeStore};
use crate::tokens;
use crate::traits::{Embedder, IndexReader};
use crate::types::{ErrorKind, KnowledgeError};
use base::sync::lock;
use types::knowledge::{
    CacheKind, KnowledgeEvent, QueryError, QueryMode, QueryParams, QueryResult, QueryStatus,
};

/// How long to keep the events of a finished query.
const FINISHED_QUERY_TTL: Duration = Duration::from_secs(300);
/// Time between two attempts to embed an index again, because the last one may have failed.
const EMBED_PAUSE: Duration = Duration::from_secs(600);
/// Finished queries that are kept.
const MAX_FINISHED_QUERIES: usize = 64;
/// Maximum number of stored events of one query: more than the deltas of the longest answers.
const MAX_EVENTS: usize = 65_536;
/// Capacity of the queue of events for the log.
const EVENT_CAPACITY: usize = 64;

/// Running and finished queries.
#[derive(Default)]
pub(super) struct Queries {
    running: Arc<AtomicUsize>,
    streamed: Mutex<HashMap<String, StreamedQuery>>,
    tasks: Mutex<JoinSet<()>>,
    /// Time at which queries last began to embed an index again.
    embedded: Mutex<HashMap<PathBuf, Instant>>,
}

struct StreamedQuery {
    workspace: PathBuf,
    log: Arc<EventLog>,
    cancel: CancellationToken,
    started_at: Instant,
}

/// The result of a search for a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSearch {
    /// Fenced text, or `None` if nothing was found.
    pub text: Option<String>,
    /// Warnings about parts that failed or are old.
    pub notes: Vec<String>,
}

/// Counts a running query.
struct RunningQuery(Arc<AtomicUsize>);

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queries {
    pub(super) fn cancel_all(&self) {
        lock(&self.streamed).values().for_each(|query| query.cancel.cancel());
    }

    pub(super) fn drop_old_queries(&self, now: Instant) {
        let is_kept = |query: &StreamedQuery| {
            !query.log.is_ended() || now.duration_since(query.started_at) < FINISHED_QUERY_TTL
        };
        lock(&self.streamed).retain(|_, query| is_kept(query));
        while lock(&self.tasks).try_join_next().is_some() {}
    }

    /// Whether a query may begin to embed an index again. If so, records that it does.
    fn may_embed(&self, workspace: &Path) -> bool {
        let (mut embedded, now) = (lock(&self.embedded), Instant::now());
        embedded.retain(|_, last| now.duration_since(*last) < EMBED_PAUSE);
        match embedded.contains_key(workspace) {
            true => false,
            false => embedded.insert(workspace.to_owned(), now).is_none(),
        }
    }

    fn begin_query(&self, settings: &Settings) -> Result<RunningQuery, KnowledgeError> {
        let running = RunningQuery(Arc::clone(&self.running));
        if self.running.fetch_add(1, Ordering::Relaxed) >= settings.max_queries {
            let text = format!(
                "could not start the query: {} run already; try again when one has ended",
                settings.max_queries
            );
            return Err(KnowledgeError::new(ErrorKind::Busy, text));
        }
        Ok(running)
    }
}

impl ReadIndex for KnowledgeStore {
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn IndexReader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, KnowledgeError>> {
        Self::read(self, work).boxed()
    }
}

/// Caches answers in the index file.
struct StoredCache {
    store: KnowledgeStore,
    now_ms: i64,
}

impl AnswerCache for StoredCache {
    fn put(&self, kind: CacheKind, key: String, value: String) -> BoxFuture<'_, Result<(), KnowledgeError>> {
        let now_ms = self.now_ms;
        let answer = CachedAnswer { kind, key, value, chunk: None };
        self.store.write(move |writer| writer.put_answers(&[answer], now_ms)).boxed()
    }
}

impl Indexes {
    /// Runs a query and waits for its result. Dropping the future cancels it.
    ///
    /// # Errors
    /// The workspace has no index, or too many queries run.
    pub async fn query(
        &self,
        workspace: &Path,
        params: QueryParams,
        progress: &Progress,
        cancel: CancellationToken,
    ) -> Result<QueryResult, KnowledgeError> {
        let settings = self.settings()?;
        let _running = self.0.queries.begin_query(&settings)?;
        if params.mode() == QueryMode::Bypass {
            // This mode reads no index, so none is opened.
            let env = QueryEnv::lexical(Arc::new(tokens::count));
            return Ok(run_query(&env, &EmptyIndex, params, progress, cancel).await);
        }
        let store = self.store(workspace).await?;
        let services = self.services()?;
        let (env, mut warnings) = self.search_env(workspace).await?;
        let env = QueryEnv {
            model: services.model(workspace),
            cache: Some(Arc::new(StoredCache { store: store.clone(), now_ms: services.clock().now().0 })),
            ..env
        };
        let mut result = run_query(&env, &store, params, progress, cancel).await;
        warnings.extend(self.missing_vectors(workspace, &store, &env).await?);
        result.raw_data.metadata.warnings.extend(warnings);
        Ok(result)
    }

    /// The services of every search of a workspace, without a model for keywords and answers, and warnings about those
    /// that failed.
    async fn search_env(&self, workspace: &Path) -> Result<(QueryEnv, Vec<String>), KnowledgeError> {
        let (services, settings) = (self.services()?, self.settings()?);
        let mut warnings = Vec::new();
        let embedder = match self.embedder().await {
            Ok(embedder) => embedder,
            Err(error) => {
                warnings.push(format!("the embedder failed, full-text search is used: {error}"));
                None
            }
        };
        let env = QueryEnv {
            embedder,
            reranker: settings.reranker(),
            weights: settings.weights,
            files: Some(services.files(workspace)),
            ..QueryEnv::lexical(Arc::new(tokens::count))
        };
        Ok((env, warnings))
    }

    /// A warning if the index has no vectors of the current embedder. Then a job makes them.
    async fn missing_vectors(
        &self,
        workspace: &Path,
        store: &KnowledgeStore,
        env: &QueryEnv,
    ) -> Result<Option<String>, KnowledgeError> {
        let Some(embedder) = env.embedder.as_ref().filter(|_| env.weights.dense > 0.0) else {
            return Ok(None);
        };
        let is_missing = self.start_embedding_if_stale(workspace, store, &**embedder).await?;
        let text = "the index has no vectors of this embedding model; they are being made, and full-text search is used";
        Ok(is_missing.then(|| text.to_owned()))
    }

    /// Starts a job that embeds the index again if all of its vectors are of another model or dimension. Meanwhile
    /// queries use lexical search. Returns whether the vectors are missing.
    async fn start_embedding_if_stale(
        &self,
        workspace: &Path,
        store: &KnowledgeStore,
        embedder: &dyn Embedder,
    ) -> Result<bool, KnowledgeError> {
        // Without an answer of the embedder, the dimensions cannot be compared, and a job would fail as well.
        let Some(dimension) = embedder.dimension() else { return Ok(false) };
        let model = embedder.model_id();
        let read = move |reader: &crate::store::Reader| {
            let has_chunks = reader.counts()?.chunks > 0;
            Ok(has_chunks && !reader.has_vectors(&model, Some(dimension))?)
        };
        let is_missing = store.read_rows(read).await?;
        if is_missing && self.0.queries.may_embed(workspace) {
            match self.start_update(workspace, self.settings()?.max_jobs).await {
                Ok(job) => tracing::info!(job, "the vectors of an index are made again"),
                Err(error) => tracing::info!(%error, "the vectors of an index are not made again now"),
            }
        }
        Ok(is_missing)
    }

    /// Starts a query whose events go to subscriptions. Returns its id.
    ///
    /// # Errors
    /// The workspace has no index.
    pub async fn start_query(&self, workspace: &Path, params: QueryParams) -> Result<String, KnowledgeError> {
        // A missing index is an error of the call, not of the stream.
        if params.mode() != QueryMode::Bypass {
            self.store(workspace).await?;
        }
        let id = self.services()?.new_id("query");
        let (log, cancel) = (EventLog::new(MAX_EVENTS), CancellationToken::new());
        {
            let mut streamed = lock(&self.0.queries.streamed);
            if streamed.len() >= MAX_FINISHED_QUERIES {
                let oldest = streamed.iter().filter(|(_, query)| query.log.is_ended());
                let oldest = oldest.min_by_key(|(_, query)| query.started_at).map(|(id, _)| id.clone());
                match oldest {
                    Some(oldest) => drop(streamed.remove(&oldest)),
                    None => {
                        let text =
                            "could not start the query: too many run already; try again when one has ended";
                        return Err(KnowledgeError::new(ErrorKind::Busy, text));
                    }
                }
            }
            let query = StreamedQuery {
                workspace: workspace.to_owned(),
                log: Arc::clone(&log),
                cancel: cancel.clone(),
                started_at: Instant::now(),
            };
            streamed.insert(id.clone(), query);
        }
        let (indexes, workspace) = (self.clone(), workspace.to_owned());
        let run = async move {
            let (sender, mut events) = mpsc::channel(EVENT_CAPACITY);
            let copy = async {
                while let Some(event) = events.recv().await {
                    log.push(&match event {
                        QueryEvent::Stage(stage) => stage.into(),
                        QueryEvent::RawData(raw_data) => KnowledgeEvent::RawData { raw_data },
                        QueryEvent::Delta(text) => KnowledgeEvent::Delta { text },
                    });
                }
            };
            let work = async {
                let progress = Progress::to_channel(sender);
                indexes.query(&workspace, params, &progress, cancel.clone()).await
            };
            let (result, ()) = tokio::join!(work, copy);
            log.push(&terminal_event(result));
        };
        lock(&self.0.queries.tasks).spawn(run);
        Ok(id)
    }

    /// Follows a streamed query.
    pub fn follow_query(&self, workspace: &Path, id: &str) -> Result<LogFollower, KnowledgeError> {
        let streamed = lock(&self.0.queries.streamed);
        let query = streamed.get(id).filter(|query| query.workspace == workspace);
        query.map(|query| query.log.follow()).ok_or_else(|| unknown_query_error(id))
    }

    /// Cancels a streamed query. Returns whether it ran.
    pub fn cancel_query(&self, workspace: &Path, id: &str) -> Result<bool, KnowledgeError> {
        let streamed = lock(&self.0.queries.streamed);
        let query = streamed
            .get(id)
            .filter(|query| query.workspace == workspace)
            .ok_or_else(|| unknown_query_error(id))?;
        query.cancel.cancel();
        Ok(!query.log.is_ended())
    }

    /// Searches for a tool as [`Self::query`] does, without a model for keywords or an answer. `is_allowed` says which
    /// paths the session may read.
    ///
    /// # Errors
    /// The workspace has no index, or it could not be read.
    pub async fn search_for_tool(
        &self,
        workspace: &Path,
        params: QueryParams,
        is_allowed: impl Fn(&str) -> bool + Send + Sync + 'static,
        cancel: CancellationToken,
    ) -> Result<ToolSearch, KnowledgeError> {
        let store = self.store(workspace).await?;
        let params = params.with_defaults(&self.settings()?.query);
        let max_tokens = params.max_total_tokens();
        let (env, mut notes) = self.search_env(workspace).await?;
        let found = find_context(&env, &store, params, Arc::new(is_allowed), cancel).await?;
        notes.extend(found.warnings);
        notes.extend(self.missing_vectors(workspace, &store, &env).await?);
        let written =
            tokio::task::spawn_blocking(move || tool_text(&found.selection, max_tokens, &tokens::count))
                .await;
        let text = written.map_err(|_| {
            let text = "could not show what was found: an unforeseen error; try again";
            KnowledgeError::new(ErrorKind::Storage, text)
        })?;
        Ok(ToolSearch { text, notes })
    }
}

fn terminal_event(result: Result<QueryResult, KnowledgeError>) -> KnowledgeEvent {
    match result {
        Ok(result) => match (&result.status, &result.error) {
            (QueryStatus::Failed, Some(error)) if error.kind == ErrorKind::Cancelled.as_str() => {
                KnowledgeEvent::Cancelled {}
            }
            (QueryStatus::Failed, Some(error)) => {
                KnowledgeEvent::Failed { error: error.clone(), result: Some(Box::new(result)) }
            }
            _ => KnowledgeEvent::Done { result: Some(Box::new(result)), summary: None },
        },
        Err(error) => KnowledgeEvent::Failed {
            error: QueryError { kind: error.kind.as_str().into(), message: error.message },
            result: None,
        },
    }
}

fn unknown_query_error(id: &str) -> KnowledgeError {
    let text = format!("could not find the query {id}: it never existed, or it ended long ago; ask again");
    KnowledgeError::new(ErrorKind::NotFound, text)
}

/// For queries that read nothing.
struct EmptyIndex;

impl ReadIndex for EmptyIndex {
    fn read<T: Send + 'static>(
        &self,
        _: impl FnOnce(&dyn IndexReader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, KnowledgeError>> {
        let text = "could not read the index: there is none; make one first";
        async move { Err(KnowledgeError::new(ErrorKind::Storage, text)) }.boxed()
    }
}
