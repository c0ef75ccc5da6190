//! One query from its parameters to its result: keywords → search → context → answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::allowed::retain_allowed;
use super::answer::generate_answer;
use super::budget::CountTokens;
use super::cache_key::{answer_key, keywords_key};
use super::context::{Selection, build_context, select};
use super::keywords::{ExtractedKeywords, extract_keywords, given_keywords, without_model};
use super::progress::{Progress, QueryEvent};
use super::rerank::{Reranker, rerank};
use super::result::{NoContextReason, failed_result, no_context_result};
use super::search::{FusionWeights, QueryVectors, search};
use super::stale::{StaleFiles, remove_gone};
use crate::traits::{Embedder, FileSource, IndexReader, LanguageModel, QueryVector};
use crate::types::{ErrorKind, KnowledgeError};
use types::knowledge::{
    CacheKind, FoundCounts, Keywords, Metadata, QueryMode, QueryParams, QueryResult, QueryStage, QueryStatus,
    RawData,
};

/// Stores answers of models. Reads use the index reader.
pub trait AnswerCache: Send + Sync {
    /// Stores a value. After an error, a later query calls the model again.
    fn put(&self, kind: CacheKind, key: String, value: String) -> BoxFuture<'_, Result<(), KnowledgeError>>;
}

/// Access to an index: runs a read on one snapshot of it, on a thread that may block.
pub trait ReadIndex: Sync {
    /// Runs `work`. A dropped future does not stop work that has begun.
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn IndexReader) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, KnowledgeError>>;
}

/// The services that a query uses.
#[derive(Clone)]
pub struct QueryEnv {
    /// Asks for keywords and answers.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Embeds the query.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Ranks chunks again.
    pub reranker: Option<Arc<dyn Reranker>>,
    /// Keeps keywords and answers.
    pub cache: Option<Arc<dyn AnswerCache>>,
    /// Weights for joining results.
    pub weights: FusionWeights,
    /// Counts o200k tokens.
    pub count: Arc<CountTokens>,
    /// The files of the workspace, so that results of files that are gone are left out.
    pub files: Option<Arc<dyn FileSource>>,
}

impl QueryEnv {
    /// Full-text search alone, without any model.
    #[must_use]
    pub fn lexical(count: Arc<CountTokens>) -> Self {
        Self {
            model: None,
            embedder: None,
            reranker: None,
            cache: None,
            weights: FusionWeights::default(),
            count,
            files: None,
        }
    }
}

/// Runs a query. Every path has a result; `params` were checked before.
pub async fn run_query(
    env: &QueryEnv,
    index: &impl ReadIndex,
    params: QueryParams,
    progress: &Progress,
    cancel: CancellationToken,
) -> QueryResult {
    let metadata = Metadata { query_mode: params.mode(), ..Metadata::default() };
    if params.mode() == QueryMode::Bypass {
        let result = no_context_result(metadata, NoContextReason::Bypass);
        progress.send(QueryEvent::RawData(Box::new(result.raw_data.clone()))).await;
        return result;
    }
    let mut run =
        QueryRun { env, params: Arc::new(params), progress, cancel, metadata, has_gone_files: false };
    match run.run_stages(index).await {
        Ok(result) => result,
        Err((error, raw_data)) => failed_result(error.kind.as_str(), &error.message, *raw_data),
    }
}

/// Says which paths a caller may see.
pub type AllowedPaths = dyn Fn(&str) -> bool + Send + Sync;

/// What a search found, with warnings about parts that failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundContext {
    /// Entities, relations and chunks.
    pub selection: Selection,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

/// Searches for a tool: the same search as [`run_query`] with vectors and reranker, without any model call for keywords
/// or an answer. The texts of paths that are not allowed reach no reranker.
///
/// # Errors
/// The index could not be read, or the query was cancelled.
pub async fn find_context(
    env: &QueryEnv,
    index: &impl ReadIndex,
    params: QueryParams,
    is_allowed: Arc<AllowedPaths>,
    cancel: CancellationToken,
) -> Result<FoundContext, KnowledgeError> {
    let metadata = Metadata { query_mode: params.mode(), ..Metadata::default() };
    let keywords = given_keywords(&params).unwrap_or_else(|| without_model(&params.query).keywords);
    let progress = Progress::disabled();
    let mut run = QueryRun {
        env,
        params: Arc::new(params),
        progress: &progress,
        cancel,
        metadata,
        has_gone_files: false,
    };
    let found = run.find(index, keywords, Some(is_allowed)).await;
    let mut selection = found.map_err(|(error, _)| error)?;
    selection.keep_best_chunks(&run.params);
    Ok(FoundContext { selection, warnings: run.metadata.warnings })
}

/// An error with the results until then.
type QueryFailure = (KnowledgeError, Box<RawData>);

struct QueryRun<'a> {
    env: &'a QueryEnv,
    params: Arc<QueryParams>,
    progress: &'a Progress,
    cancel: CancellationToken,
    metadata: Metadata,
    /// Whether results were left out because their files are gone.
    has_gone_files: bool,
}

impl QueryRun<'_> {
    async fn run_stages(&mut self, index: &impl ReadIndex) -> Result<QueryResult, QueryFailure> {
        let keywords = self.keywords(index).await.map_err(|error| self.failure(error))?;
        self.metadata.keywords = keywords.clone();
        self.check_cancelled()?;
        let selection = self.find(index, keywords, None).await?;
        if selection.is_empty() {
            let reason = match selection.found == FoundCounts::default() {
                true => NoContextReason::NothingFound,
                false if self.has_gone_files => NoContextReason::FilesGone,
                false => NoContextReason::TokenLimit,
            };
            self.metadata.missing_chunks = selection.missing_chunks;
            return Ok(self.no_context(reason).await);
        }
        self.progress.report_stage(QueryStage::BuildingContext);
        let (params, metadata, count) =
            (Arc::clone(&self.params), self.metadata.clone(), Arc::clone(&self.env.count));
        let built = tokio::task::spawn_blocking(move || build_context(selection, &params, metadata, &*count));
        let context = built.await.map_err(|_| self.failure(panic_error()))?;
        if let Some(reason) = context.no_context {
            self.metadata = context.raw_data.metadata;
            return Ok(self.no_context(reason).await);
        }
        if self.params.wants_context() {
            self.progress.send(QueryEvent::RawData(Box::new(context.raw_data.clone()))).await;
            let text = context.full_prompt(&self.params);
            return Ok(success(String::new(), Some(text), context.raw_data));
        }
        self.answer(index, context).await
    }

    /// The result if a model cannot be asked about anything.
    async fn no_context(&self, reason: NoContextReason) -> QueryResult {
        let result = no_context_result(self.metadata.clone(), reason);
        self.progress.send(QueryEvent::RawData(Box::new(result.raw_data.clone()))).await;
        result
    }

    /// Searches the index, leaves out files that are gone or not allowed, and ranks the chunks again.
    async fn find(
        &mut self,
        index: &impl ReadIndex,
        keywords: Keywords,
        is_allowed: Option<Arc<AllowedPaths>>,
    ) -> Result<Selection, QueryFailure> {
        let vectors = self.vectors(&keywords).await;
        self.check_cancelled()?;
        let (params, weights, count) =
            (Arc::clone(&self.params), self.env.weights, Arc::clone(&self.env.count));
        let (progress, files) = (self.progress.clone(), self.env.files.clone());
        let searched = index.read(move |reader| {
            let on_stage = |stage| progress.report_stage(stage);
            let found = search(reader, &params, &keywords, &vectors, weights, &on_stage)?;
            let mut selection = select(reader, found, &params, &vectors, &*count, &on_stage)?;
            if let Some(is_allowed) = is_allowed {
                retain_allowed(reader, &mut selection, &*is_allowed)?;
            }
            let stale = match files {
                Some(files) => remove_gone(reader, &mut selection, &*files)?,
                None => StaleFiles::default(),
            };
            Ok((reader.generation()?, selection, stale))
        });
        let (generation, mut selection, stale) = searched.await.map_err(|error| self.failure(error))?;
        self.metadata.generation = generation;
        self.metadata.warnings.extend(stale.warnings());
        self.has_gone_files = !stale.gone.is_empty();
        self.check_cancelled()?;
        self.rerank(&mut selection).await;
        self.check_cancelled()?;
        Ok(selection)
    }

    async fn answer(
        &self,
        index: &impl ReadIndex,
        mut context: super::context::QueryContext,
    ) -> Result<QueryResult, QueryFailure> {
        let Some(model) = &self.env.model else {
            let text = "could not answer: no model is configured; set [knowledge] model or [models] main, or ask for \
                        the context alone (only_need_context, --context)";
            self.progress.send(QueryEvent::RawData(Box::new(context.raw_data.clone()))).await;
            return Err((KnowledgeError::new(ErrorKind::Model, text), Box::new(context.raw_data)));
        };
        // Do not cache an answer that depends on a conversation, because no other conversation can use it.
        let key = self.params.history().is_empty().then(|| {
            answer_key(&context.system, &self.params.query, &model.identity(), self.metadata.generation)
        });
        let prompt = self.params.includes_context().then(|| context.full_prompt(&self.params));
        if let Some(text) = self.cached_answer(index, CacheKind::Query, key.as_deref()).await {
            context.raw_data.metadata.cached = true;
            self.progress.send(QueryEvent::RawData(Box::new(context.raw_data.clone()))).await;
            self.progress.send(QueryEvent::Delta(text.clone())).await;
            return Ok(success(text, prompt, context.raw_data));
        }
        self.progress.report_stage(QueryStage::GeneratingResponse);
        if !self.progress.send(QueryEvent::RawData(Box::new(context.raw_data.clone()))).await {
            return Err((KnowledgeError::cancelled(), Box::new(context.raw_data)));
        }
        let answered = generate_answer(&context, &self.params, &**model, self.progress, self.cancel.clone());
        match answered.await {
            Ok(answer) => {
                // Do not cache an answer that was cut, or whose query was cancelled, because no other caller
                // can use it.
                if let Some(key) = key.filter(|_| !answer.truncated && !self.cancel.is_cancelled()) {
                    self.store_answer(CacheKind::Query, key, answer.text.clone()).await;
                }
                Ok(success(answer.text, prompt, context.raw_data))
            }
            Err(error) => Err((error, Box::new(context.raw_data))),
        }
    }

    async fn keywords(&mut self, index: &impl ReadIndex) -> Result<Keywords, KnowledgeError> {
        if let Some(keywords) = given_keywords(&self.params) {
            return Ok(keywords);
        }
        self.progress.report_stage(QueryStage::ExtractingKeywords);
        let query = self.params.query.clone();
        let Some(model) = &self.env.model else {
            self.metadata.warnings.push("no model is configured; the query itself is searched".into());
            self.metadata.keywords_failed = true;
            return Ok(without_model(&query).keywords);
        };
        let language = self.params.language.as_deref();
        let key = keywords_key(&query, language, &model.identity());
        let cached = self.cached_answer(index, CacheKind::Keywords, Some(&key)).await;
        if let Some(keywords) = cached.and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok(keywords);
        }
        let extracted = extract_keywords(&query, &**model, language, self.cancel.clone()).await?;
        let ExtractedKeywords { keywords, failed, truncated, .. } = extracted;
        self.metadata.keywords_failed = failed;
        if !failed && !truncated {
            self.store_answer(CacheKind::Keywords, key, serde_json::to_string(&keywords).unwrap_or_default())
                .await;
        }
        Ok(keywords)
    }

    /// Embeds all texts of the query in one call. Without vectors, the query uses full-text search.
    async fn vectors(&mut self, keywords: &Keywords) -> QueryVectors {
        let Some(embedder) = &self.env.embedder else { return QueryVectors::default() };
        if self.env.weights.dense <= 0.0 {
            return QueryVectors::default();
        }
        let mode = self.params.mode();
        let mut texts = vec![self.params.query.clone()];
        if mode.has_entities() {
            texts.push(keywords.search_text(&self.params.query));
            texts.push(keywords.relation_text(&self.params.query));
        }
        let wanted = texts.len();
        match embedder.embed(texts).await {
            Ok(vectors) if vectors.len() == wanted => {
                let model = embedder.model_id();
                let mut vectors =
                    vectors.into_iter().map(|values| QueryVector { model: model.clone(), values });
                QueryVectors { query: vectors.next(), entities: vectors.next(), relations: vectors.next() }
            }
            Ok(vectors) => {
                let got = vectors.len();
                self.add_warning(format!(
                    "the embedder gave {got} vectors for {wanted} texts; full-text search is used"
                ));
                QueryVectors::default()
            }
            Err(error) => {
                self.add_warning(format!("the embedder failed, full-text search is used: {error}"));
                QueryVectors::default()
            }
        }
    }

    async fn rerank(&mut self, selection: &mut Selection) {
        let Some(reranker) = self.env.reranker.as_ref().filter(|_| self.params.enable_rerank()) else {
            return;
        };
        if selection.chunks.is_empty() {
            return;
        }
        self.progress.report_stage(QueryStage::Reranking);
        if let Err(error) = rerank(selection, &self.params.query, &**reranker).await {
            self.add_warning(format!("the reranker failed, the order is unchanged: {error}"));
        }
    }

    async fn cached_answer(
        &self,
        index: &impl ReadIndex,
        kind: CacheKind,
        key: Option<&str>,
    ) -> Option<String> {
        let key = key?.to_owned();
        self.env.cache.as_ref()?;
        index.read(move |reader| reader.cached(kind, &key)).await.ok().flatten()
    }

    async fn store_answer(&self, kind: CacheKind, key: String, value: String) {
        if let Some(cache) = &self.env.cache
            && let Err(error) = cache.put(kind, key, value).await
        {
            tracing::warn!(%error, "an answer of a model was not cached");
        }
    }

    fn add_warning(&mut self, warning: String) {
        tracing::warn!(warning, "a query goes on without a part");
        self.metadata.warnings.push(warning);
    }

    fn failure(&self, error: KnowledgeError) -> QueryFailure {
        (error, Box::new(RawData { metadata: self.metadata.clone(), ..RawData::default() }))
    }

    fn check_cancelled(&self) -> Result<(), QueryFailure> {
        if self.cancel.is_cancelled() { Err(self.failure(KnowledgeError::cancelled())) } else { Ok(()) }
    }
}

fn success(response: String, context: Option<String>, raw_data: RawData) -> QueryResult {
    QueryResult { status: QueryStatus::Success, response, context, raw_data, error: None }
}

fn panic_error() -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::Storage,
        "could not read the index: the query failed in an unforeseen way; index again",
    )
}
