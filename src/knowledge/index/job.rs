//! One index job from scan to end.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::prepare::{Prepared, file_document, prepare};
use super::progress::{Spent, StageProgress};
use super::request::{IndexRequest, Indexer};
use super::scan::{ReadFile, read_file, scan};
use super::semantic;
use super::{embed, text};
use crate::knowledge::store::{KnownFile, NewDocument, WorkThread};
use crate::knowledge::traits::{FileEntry, JobSink};
use crate::knowledge::types::{
    DocId, DocumentSource, DocumentStatus, ErrorKind, JobEvent, JobOutcome, JobStage, KnowledgeError, Level,
    hash128,
};

/// Bytes of files that are read before the writer takes them.
const BATCH_BYTES: u64 = 256 * 1024;
/// Files of one batch at most.
const BATCH_FILES: usize = 64;
/// Inserted documents that are loaded at once.
const INSERT_BATCH: u32 = 8;
/// Size of an inserted document.
const MAX_INSERT_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of a caller's document id or path.
const MAX_ID_BYTES: usize = 512;

/// Counters of a job's end.
#[derive(Debug, Default)]
struct Counts {
    indexed: u64,
    unchanged: u64,
    removed: u64,
    skipped: u64,
    failed: u64,
}

/// Runs a job to its end and reports it. A dropped future, for example at the end of the daemon, leaves the job
/// unfinished: [`crate::knowledge::store::Writer::unfinished_jobs`] lists it, and running its request again continues it.
/// The last event is [`JobEvent::Ended`].
pub async fn run_job(
    request: &IndexRequest,
    indexer: &Indexer,
    sink: &Arc<dyn JobSink>,
    cancel: &CancellationToken,
) -> JobOutcome {
    let outcome = match Job::new(request, indexer, sink, cancel).run().await {
        Ok(counts) => JobOutcome::Done {
            indexed: counts.indexed,
            unchanged: counts.unchanged,
            removed: counts.removed,
            skipped: counts.skipped,
            failed: counts.failed,
        },
        Err(error) if error.kind == ErrorKind::Cancelled => JobOutcome::Cancelled,
        Err(error) => JobOutcome::Failed { error: error.message },
    };
    let (state, error) = match &outcome {
        JobOutcome::Done { .. } => ("done", None),
        JobOutcome::Cancelled => ("cancelled", None),
        JobOutcome::Failed { error } => ("failed", Some(error.clone())),
    };
    let (id, now_ms) = (request.id.clone(), indexer.clock.now().0);
    let ended = indexer.store.write(move |writer| writer.end_job(&id, state, error.as_deref(), now_ms)).await;
    let outcome = match ended {
        Ok(()) => outcome,
        Err(error) => JobOutcome::Failed { error: error.message },
    };
    sink.emit(JobEvent::Ended(outcome.clone()));
    outcome
}

struct Job<'a> {
    request: &'a IndexRequest,
    indexer: &'a Indexer,
    sink: &'a Arc<dyn JobSink>,
    cancel: &'a CancellationToken,
    spent: Arc<Spent>,
    counts: Counts,
}

impl<'a> Job<'a> {
    fn new(
        request: &'a IndexRequest,
        indexer: &'a Indexer,
        sink: &'a Arc<dyn JobSink>,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { request, indexer, sink, cancel, spent: Arc::default(), counts: Counts::default() }
    }

    fn now_ms(&self) -> i64 {
        self.indexer.clock.now().0
    }

    fn check_cancelled(&self) -> Result<(), KnowledgeError> {
        if self.cancel.is_cancelled() { Err(KnowledgeError::cancelled()) } else { Ok(()) }
    }

    async fn run(mut self) -> Result<Counts, KnowledgeError> {
        let indexer = self.indexer;
        let store = &indexer.store;
        let is_semantic = self.request.level == Level::Semantic;
        if is_semantic && !self.request.budget.is_set() {
            return Err(KnowledgeError::new(
                ErrorKind::BudgetRequired,
                "could not start: level semantic needs a budget; estimate it with dry_run and pass budget",
            ));
        }
        let (id, level, now_ms) = (self.request.id.clone(), self.request.level, self.now_ms());
        let request = serde_json::to_string(self.request).map_err(|error| {
            KnowledgeError::new(ErrorKind::Invalid, format!("could not store the job: {error}; report it"))
        })?;
        store
            .write(move |writer| {
                writer.begin_job(&id, &request, now_ms)?;
                writer.set_level(level)
            })
            .await?;
        crate::crash::point("KN.job");
        let worker = WorkThread::start("index-work", ())?;
        self.files(&worker).await?;
        self.inserted(&worker).await?;
        self.resolve().await?;
        if is_semantic {
            let model = self.indexer.model.as_ref().ok_or_else(|| {
                KnowledgeError::new(
                    ErrorKind::Model,
                    "could not start: level semantic needs a model; configure one for knowledge, or use level structure",
                )
            })?;
            let failed = semantic::run(&semantic::Run {
                store,
                model,
                settings: &self.indexer.settings,
                paths: &self.request.paths,
                budget: self.request.budget,
                clock: &self.indexer.clock,
                sink: self.sink,
                spent: &self.spent,
                cancel: self.cancel,
                calls: tokio::sync::Semaphore::new(self.indexer.settings.concurrency.max(1)),
            })
            .await?;
            self.counts.failed += failed;
        }
        if let Some(embedder) = &self.indexer.embedder {
            match embed::embed(store, embedder, self.sink, &self.spent, self.cancel).await {
                // Lexical search serves without vectors: the next job tries again.
                Err(error) if error.kind == ErrorKind::Embedder => {
                    tracing::warn!(error = %error.message, "an index has no vectors");
                }
                result => drop(result?),
            }
        }
        Ok(self.counts)
    }

    /// Brings all files of the request into the index.
    async fn files(&mut self, worker: &WorkThread<()>) -> Result<(), KnowledgeError> {
        let indexer = self.indexer;
        let store = &indexer.store;
        let known = store.write(|writer| writer.known_files()).await?;
        let scanning = StageProgress::begin(self.sink, &self.spent, JobStage::Scanning, 0);
        let known = Arc::new(known);
        let found = {
            let (files, paths) = (self.indexer.files.clone(), self.request.paths.clone());
            let (level, known, cancel) = (self.request.level, known.clone(), self.cancel.clone());
            worker.run(move |()| scan(files.as_ref(), &paths, &known, level, &cancel)).await?
        };
        drop(scanning);
        self.counts.unchanged += found.unchanged;
        self.counts.skipped += found.skipped;
        let total = (found.to_read.len() + found.gone.len()) as u64;
        let mut progress = StageProgress::begin(self.sink, &self.spent, JobStage::Chunking, total);
        let by_path: Arc<HashMap<String, KnownFile>> =
            Arc::new(known.iter().map(|file| (file.path.clone(), file.clone())).collect());
        // The worker reads and parses one batch while the writer stores the one before.
        let mut writing: Option<Batch> = None;
        for batch in batches(found.to_read) {
            self.check_cancelled()?;
            let reading = self.read_batch(worker, batch, &by_path);
            let (read, written) = tokio::join!(reading, self.write_batch(writing.take()));
            self.count(written?, &mut progress);
            writing = Some(read?);
        }
        let written = self.write_batch(writing).await?;
        self.count(written, &mut progress);
        for id in found.gone {
            self.check_cancelled()?;
            store.write(move |writer| writer.delete_document(id.as_str(), false)).await?;
            self.counts.removed += 1;
            progress.advance(1);
        }
        Ok(())
    }

    async fn read_batch(
        &self,
        worker: &WorkThread<()>,
        entries: Vec<FileEntry>,
        known: &Arc<HashMap<String, KnownFile>>,
    ) -> Result<Batch, KnowledgeError> {
        let (files, level) = (self.indexer.files.clone(), self.request.level.min(Level::Structure));
        let (settings, known) = (self.indexer.chunks.clone(), known.clone());
        worker
            .run(move |()| {
                let mut batch = Batch::default();
                for entry in entries {
                    batch.files += 1;
                    match read_file(files.as_ref(), &entry, known.get(&entry.path), level) {
                        ReadFile::Text { text, hash } => {
                            let new = file_document(&entry.path, text.len() as u64, entry.modified_ns, hash);
                            // The size of the file, which the next scan compares.
                            let new = NewDocument { bytes: entry.bytes, ..new };
                            batch.changes.push(Change::Store(prepare(new, &text, level, &settings)?));
                        }
                        ReadFile::Unchanged(id) => {
                            batch.unchanged += 1;
                            batch.touched.push((id, entry.modified_ns));
                        }
                        ReadFile::Skipped => {
                            batch.skipped += 1;
                            // A file that became binary or secret leaves the index.
                            if let Some(file) = known.get(&entry.path) {
                                batch.changes.push(Change::Remove(file.id.clone()));
                            }
                        }
                        ReadFile::Failed(reason) => {
                            let hash = hash128(&[entry.path.as_bytes()]);
                            let new = file_document(&entry.path, entry.bytes, entry.modified_ns, hash);
                            batch.changes.push(Change::Fail(new, reason));
                        }
                    }
                }
                Ok(batch)
            })
            .await
    }

    async fn write_batch(&self, batch: Option<Batch>) -> Result<Batch, KnowledgeError> {
        let Some(mut batch) = batch else { return Ok(Batch::default()) };
        let (now_ms, level) = (self.now_ms(), self.request.level.min(Level::Structure));
        self.indexer
            .store
            .write(move |writer| {
                for change in std::mem::take(&mut batch.changes) {
                    match change {
                        Change::Store(prepared) => {
                            writer.store_document(&prepared.new, &prepared.content, level, now_ms)?;
                            batch.indexed += 1;
                        }
                        Change::Remove(id) => {
                            writer.delete_document(id.as_str(), false)?;
                            batch.removed += 1;
                        }
                        Change::Fail(new, reason) => {
                            let error = format!("could not read the file: {reason}; check its permissions");
                            writer.fail_document(&new, &error, now_ms)?;
                            batch.failed += 1;
                        }
                    }
                }
                if !batch.touched.is_empty() {
                    writer.touch_files(&batch.touched)?;
                }
                Ok(batch)
            })
            .await
    }

    fn count(&mut self, batch: Batch, progress: &mut StageProgress) {
        self.counts.indexed += batch.indexed;
        self.counts.unchanged += batch.unchanged;
        self.counts.removed += batch.removed;
        self.counts.skipped += batch.skipped;
        self.counts.failed += batch.failed;
        progress.advance(batch.files);
    }

    /// Processes inserted documents that are not processed yet, also those that an earlier run left.
    async fn inserted(&mut self, worker: &WorkThread<()>) -> Result<(), KnowledgeError> {
        let level = self.request.level;
        let (processed, failed) = process_inserted(self.indexer, worker, level, self.cancel).await?;
        self.counts.indexed += processed;
        self.counts.failed += failed;
        Ok(())
    }

    /// Resolves calls, imports and links.
    async fn resolve(&mut self) -> Result<(), KnowledgeError> {
        let mut progress = StageProgress::begin(self.sink, &self.spent, JobStage::Merging, 0);
        resolve_references(self.indexer, Some(&mut progress), self.cancel).await
    }
}

/// Files that were read together.
#[derive(Debug, Default)]
struct Batch {
    changes: Vec<Change>,
    touched: Vec<(DocId, i64)>,
    files: u64,
    indexed: u64,
    unchanged: u64,
    removed: u64,
    skipped: u64,
    failed: u64,
}

#[derive(Debug)]
enum Change {
    Store(Prepared),
    Remove(DocId),
    Fail(NewDocument, String),
}

fn batches(entries: Vec<FileEntry>) -> Vec<Vec<FileEntry>> {
    let mut batches = Vec::new();
    let mut batch: Vec<FileEntry> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        bytes += entry.bytes;
        batch.push(entry);
        if bytes >= BATCH_BYTES || batch.len() >= BATCH_FILES {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

async fn resolve_references(
    indexer: &Indexer,
    mut progress: Option<&mut StageProgress>,
    cancel: &CancellationToken,
) -> Result<(), KnowledgeError> {
    let mut total = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(KnowledgeError::cancelled());
        }
        let left = indexer.store.write(|writer| writer.resolve_references()).await?;
        if let Some(progress) = progress.as_mut() {
            total = total.max(left);
            progress.set_total(total);
            progress.advance(u64::from(left < total));
        }
        if left == 0 {
            return Ok(());
        }
    }
}

/// A document that a client inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertDocument {
    /// Its id; a hash of its text if it has none.
    pub id: Option<String>,
    /// A path for references. It need not exist, but replaces the document that has it.
    pub path: Option<String>,
    /// The text.
    pub text: String,
}

/// What became of one inserted document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertOutcome {
    /// Its id.
    pub id: DocId,
    /// The same document was in the index already.
    pub unchanged: bool,
}

/// Stores documents that are no files, then processes them without a model. When it returns an error after storing, the next
/// job or insert continues. A later job at level semantic has a model read them.
///
/// # Errors
/// A document is empty, too large or has a bad id; the store failed; or the call was cancelled.
pub async fn insert_documents(
    indexer: &Indexer,
    documents: Vec<InsertDocument>,
    cancel: &CancellationToken,
) -> Result<Vec<InsertOutcome>, KnowledgeError> {
    for document in &documents {
        check_insert(document)?;
    }
    let mut outcomes = Vec::with_capacity(documents.len());
    for document in documents {
        let hash = hash128(&[document.text.as_bytes()]);
        let id = document.id.map_or_else(|| DocId::from_content(document.text.as_bytes()), DocId);
        let language = document.path.as_deref().and_then(crate::knowledge::graph::language_of_path);
        let new = NewDocument {
            id: id.clone(),
            path: document.path,
            hash,
            source: DocumentSource::Inserted,
            language: language.map(str::to_owned),
            bytes: document.text.len() as u64,
            modified_ns: 0,
        };
        let now_ms = indexer.clock.now().0;
        let is_new =
            indexer.store.write(move |writer| writer.accept_document(&new, &document.text, now_ms)).await?;
        outcomes.push(InsertOutcome { id, unchanged: !is_new });
    }
    crate::crash::point("KN.accepted");
    let worker = WorkThread::start("index-work", ())?;
    process_inserted(indexer, &worker, Level::Structure, cancel).await?;
    resolve_references(indexer, None, cancel).await?;
    Ok(outcomes)
}

fn check_insert(document: &InsertDocument) -> Result<(), KnowledgeError> {
    let refuse = |what: &str| {
        Err(KnowledgeError::new(ErrorKind::Invalid, format!("could not insert the document: {what}")))
    };
    if document.text.trim().is_empty() {
        return refuse("its text is empty; pass some text");
    }
    if document.text.len() > MAX_INSERT_BYTES {
        return refuse("its text has more than 8 MiB; split it into several documents");
    }
    let is_bad =
        |name: &str| name.is_empty() || name.len() > MAX_ID_BYTES || name.chars().any(char::is_control);
    if document.id.as_deref().is_some_and(|id| is_bad(id) || id.starts_with('-')) {
        return refuse(
            "its id is empty, longer than 512 bytes, begins with a hyphen or has control characters; change it",
        );
    }
    if document.path.as_deref().is_some_and(|path| is_bad(path) || text::is_secret_path(path)) {
        return refuse(
            "its path is empty, longer than 512 bytes, has control characters or names a secret; change it",
        );
    }
    Ok(())
}

/// Processes stored inserted documents. Returns how many were processed and how many failed.
async fn process_inserted(
    indexer: &Indexer,
    worker: &WorkThread<()>,
    level: Level,
    cancel: &CancellationToken,
) -> Result<(u64, u64), KnowledgeError> {
    let level = level.min(Level::Structure);
    let (mut processed, mut failed) = (0, 0);
    let mut after = String::new();
    loop {
        if cancel.is_cancelled() {
            return Err(KnowledgeError::cancelled());
        }
        let page_after = after.clone();
        let pending =
            indexer.store.write(move |writer| writer.unprocessed_inserts(&page_after, INSERT_BATCH)).await?;
        let Some((last, _)) = pending.last() else { return Ok((processed, failed)) };
        after.clone_from(&last.id.0);
        for (new, text) in pending {
            let (id, now_ms) = (new.id.clone(), indexer.clock.now().0);
            let begun = id.clone();
            indexer
                .store
                .write(move |writer| writer.set_status(&begun, DocumentStatus::Processing, None, now_ms))
                .await?;
            let settings = indexer.chunks.clone();
            let prepared = worker.run(move |()| prepare(new, &text, level, &settings)).await;
            match prepared {
                Ok(prepared) => {
                    indexer
                        .store
                        .write(move |writer| {
                            writer.store_document(&prepared.new, &prepared.content, level, now_ms)
                        })
                        .await?;
                    processed += 1;
                }
                Err(error) => {
                    indexer
                        .store
                        .write(move |writer| {
                            writer.set_status(&id, DocumentStatus::Failed, Some(&error.message), now_ms)
                        })
                        .await?;
                    failed += 1;
                }
            }
        }
    }
}
