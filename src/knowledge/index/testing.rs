//! Files, models, embedders and sinks for tests.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::chunk::ChunkSettings;
use super::indexer::Indexer;
use super::job::run_job;
use super::request::IndexRequest;
use super::semantic::SemanticSettings;
use crate::store::KnowledgeStore;
use crate::traits::{
    Completion, Embedder, FileEntry, FileSource, FileVisit, JobSink, LanguageModel, ModelCall,
};
use crate::types::{ErrorKind, FileRefusal, JobEvent, JobOutcome, KnowledgeError, ModelUsage};
use base::sync::lock;
use types::knowledge::IndexLevel;
use types::time::{Clock, Timestamp};

/// Waits until the condition is true, at most ten seconds.
pub(crate) async fn wait_until(is_true: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(Instant::now() < end, "the fact did not come true");
        tokio::task::yield_now().await;
    }
}

/// Files in memory: content and time of change.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    files: Mutex<BTreeMap<String, (Vec<u8>, i64)>>,
    /// Paths that were read.
    pub reads: Mutex<Vec<String>>,
}

impl MemoryFiles {
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let mut files = lock(&self.files);
        let modified = files.get(path).map_or(1, |(_, modified)| modified + 1);
        files.insert(path.into(), (content.as_ref().to_vec(), modified));
    }

    pub fn remove(&self, path: &str) {
        lock(&self.files).remove(path);
    }

    /// The paths that were read since the last call.
    pub fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.reads))
    }
}

impl FileSource for MemoryFiles {
    fn walk(
        &self,
        paths: &[String],
        is_stopped: &dyn Fn() -> bool,
        visit: &mut FileVisit<'_>,
    ) -> Result<Vec<String>, KnowledgeError> {
        let files: Vec<FileEntry> = lock(&self.files)
            .iter()
            .filter(|(path, _)| {
                paths.is_empty() || paths.iter().any(|above| path.starts_with(above.as_str()))
            })
            .map(|(path, (content, modified))| FileEntry {
                path: path.clone(),
                bytes: content.len() as u64,
                modified_ns: *modified,
            })
            .collect();
        for file in files {
            if is_stopped() || visit(file) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(Vec::new())
    }

    fn find(&self, path: &str) -> Option<FileEntry> {
        let files = lock(&self.files);
        let (content, modified) = files.get(path)?;
        Some(FileEntry { path: path.into(), bytes: content.len() as u64, modified_ns: *modified })
    }

    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileRefusal> {
        lock(&self.reads).push(path.into());
        let files = lock(&self.files);
        let (content, _) = files.get(path).ok_or(FileRefusal::Gone)?;
        if content.starts_with(b"unreadable") {
            return Err(FileRefusal::Unreadable("permission denied".into()));
        }
        if content.len() as u64 > max_bytes { Err(FileRefusal::TooLarge) } else { Ok(content.clone()) }
    }
}

type AnswerFn = dyn Fn(&ModelCall) -> Result<Completion, KnowledgeError> + Send + Sync;

/// A model that answers by a function.
pub(crate) struct ScriptedModel {
    script: Box<AnswerFn>,
    /// All calls so far.
    pub calls: Mutex<Vec<ModelCall>>,
    running: AtomicUsize,
    /// Maximum number of calls at the same time.
    pub most_running: AtomicUsize,
}

impl ScriptedModel {
    pub fn new(
        script: impl Fn(&ModelCall) -> Result<Completion, KnowledgeError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            calls: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        })
    }

    /// A model that always gives this answer.
    pub fn with_answer(text: &str) -> Arc<Self> {
        let text = text.to_owned();
        Self::new(move |_| Ok(answer(&text)))
    }

    pub fn count(&self) -> usize {
        lock(&self.calls).len()
    }
}

/// A complete answer that used 100 tokens.
pub(crate) fn answer(text: &str) -> Completion {
    let usage = ModelUsage { input_tokens: 90, output_tokens: 10, cost_usd_micros: 5 };
    Completion { text: text.into(), usage, truncated: false }
}

/// The error of a model that is not available.
pub(crate) fn model_error() -> KnowledgeError {
    KnowledgeError::new(ErrorKind::Model, "could not call the model: it is down; try again")
}

impl LanguageModel for ScriptedModel {
    fn identity(&self) -> String {
        "scripted".into()
    }

    fn complete(
        &self,
        call: ModelCall,
        _: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            let result = (self.script)(&call);
            lock(&self.calls).push(call);
            tokio::task::yield_now().await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            result
        }
        .boxed()
    }

    fn stream(
        &self,
        call: ModelCall,
        deltas: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move {
            let completion = self.complete(call, cancel).await?;
            deltas.send(completion.text.clone()).await.map_err(|_| KnowledgeError::cancelled())?;
            Ok(completion)
        }
        .boxed()
    }
}

/// An embedder whose vectors count the words of a text by their hash.
#[derive(Debug)]
pub(crate) struct HashEmbedder {
    pub model: String,
    pub dimension: usize,
    pub texts: AtomicUsize,
}

impl HashEmbedder {
    pub fn new(model: &str, dimension: usize) -> Arc<Self> {
        Arc::new(Self { model: model.into(), dimension, texts: AtomicUsize::new(0) })
    }

    pub async fn vector(&self, text: &str) -> Vec<f32> {
        self.embed(vec![text.into()]).await.expect("a vector").remove(0)
    }
}

impl Embedder for HashEmbedder {
    fn model_id(&self) -> String {
        self.model.clone()
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.dimension)
    }

    fn batch_size(&self) -> usize {
        3
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, KnowledgeError>> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let vectors = texts
            .iter()
            .map(|text| {
                let mut vector = vec![0.0_f32; self.dimension];
                for word in
                    text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
                {
                    let hash = blake3::hash(word.as_bytes());
                    vector[usize::from(hash.as_bytes()[0]) % self.dimension] += 1.0;
                }
                vector
            })
            .collect();
        async move { Ok(vectors) }.boxed()
    }
}

/// A clock that advances one millisecond at each read.
#[derive(Debug)]
pub(crate) struct CountingClock {
    now: AtomicI64,
    step: i64,
}

impl Default for CountingClock {
    fn default() -> Self {
        Self { now: AtomicI64::new(1000), step: 1 }
    }
}

impl CountingClock {
    /// A clock that always shows the same time.
    pub fn with_fixed_time() -> Self {
        Self { step: 0, ..Self::default() }
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.fetch_add(self.step, Ordering::Relaxed))
    }
}

/// Records all events.
#[derive(Debug, Default)]
pub(crate) struct EventRecorder(pub Mutex<Vec<JobEvent>>);

impl JobSink for EventRecorder {
    fn emit(&self, event: JobEvent) {
        lock(&self.0).push(event);
    }
}

/// An index in a folder of its own, with everything that a job needs.
pub(crate) struct IndexFixture {
    pub files: Arc<MemoryFiles>,
    pub indexer: Indexer,
    pub events: Arc<EventRecorder>,
    pub cancel: CancellationToken,
    pub folder: tempfile::TempDir,
}

impl IndexFixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = KnowledgeStore::open(&folder.path().join("index.db")).expect("a store");
        let files = Arc::new(MemoryFiles::default());
        let indexer = Indexer {
            store,
            files: files.clone(),
            model: None,
            embedder: None,
            warning: None,
            clock: Arc::new(CountingClock::default()),
            chunks: ChunkSettings::default(),
            settings: SemanticSettings::default(),
        };
        Self { files, indexer, events: Arc::default(), cancel: CancellationToken::new(), folder }
    }

    pub fn with_model(model: &Arc<ScriptedModel>) -> Self {
        let mut workspace = Self::new();
        workspace.indexer.model = Some(model.clone());
        workspace
    }

    pub async fn index(&self, level: IndexLevel) -> JobOutcome {
        let mut request = request(level);
        request.budget.tokens = (level == IndexLevel::Semantic).then_some(1_000_000);
        self.run(&request).await
    }

    pub async fn run(&self, request: &IndexRequest) -> JobOutcome {
        let sink: Arc<dyn JobSink> = self.events.clone();
        run_job(request, &self.indexer, &sink, &self.cancel).await
    }
}

pub(crate) fn request(level: IndexLevel) -> IndexRequest {
    IndexRequest { id: "job_1".into(), paths: Vec::new(), level, budget: super::Budget::default() }
}
