//! One index job from scan to end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::indexer::Indexer;
use super::prepare::{PreparedDocument, file_document, prepare};
use super::progress::{StageProgress, UsedBudget};
use super::request::IndexRequest;
use super::scan::{KnownFiles, ReadFile, read_file, scan};
use super::{embed, inserts, restore, semantic};
use crate::store::{KnownFile, NewDocument, SkippedFile, WorkThread};
use crate::traits::{FileEntry, JobSink};
use crate::types::{DocId, ErrorKind, JobEvent, JobOutcome, KnowledgeError, hash128};
use types::knowledge::{IndexLevel, IndexStage, IndexSummary};

/// Bytes of files that are read before the writer stores them.
const BATCH_BYTES: u64 = 256 * 1024;
/// Maximum number of files in one batch.
const BATCH_FILES: usize = 64;

/// Runs a job to its end and reports its events; the last one is [`JobEvent::Ended`]. A dropped future, for
/// example at the end of the daemon, leaves the job unfinished.
/// [`crate::store::Writer::unfinished_jobs`] lists such a job, and running its request again
/// continues it.
pub async fn run_job(
    request: &IndexRequest,
    indexer: &Indexer,
    sink: &Arc<dyn JobSink>,
    cancel: &CancellationToken,
) -> JobOutcome {
    let outcome = match JobRun::new(request, indexer, sink, cancel).run().await {
        Ok(summary) => JobOutcome::Done(summary),
        Err(error) if error.kind == ErrorKind::Cancelled => JobOutcome::Cancelled,
        Err(error) => JobOutcome::Failed { error: error.message },
    };
    let (state, error) = match &outcome {
        JobOutcome::Done(_) => ("done", None),
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

struct JobRun<'a> {
    request: &'a IndexRequest,
    indexer: &'a Indexer,
    sink: &'a Arc<dyn JobSink>,
    cancel: &'a CancellationToken,
    spent: Arc<UsedBudget>,
    counts: IndexSummary,
    /// The file that took the longest to read and parse.
    slowest: Option<(Duration, String)>,
}

impl<'a> JobRun<'a> {
    fn new(
        request: &'a IndexRequest,
        indexer: &'a Indexer,
        sink: &'a Arc<dyn JobSink>,
        cancel: &'a CancellationToken,
    ) -> Self {
        let (spent, counts) = (Arc::default(), IndexSummary::default());
        Self { request, indexer, sink, cancel, spent, counts, slowest: None }
    }

    fn now_ms(&self) -> i64 {
        self.indexer.clock.now().0
    }

    fn check_cancelled(&self) -> Result<(), KnowledgeError> {
        if self.cancel.is_cancelled() { Err(KnowledgeError::cancelled()) } else { Ok(()) }
    }

    async fn run(mut self) -> Result<IndexSummary, KnowledgeError> {
        let indexer = self.indexer;
        let store = &indexer.store;
        let is_semantic = self.request.level == IndexLevel::Semantic;
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
                writer.raise_level(level)
            })
            .await?;
        base::crash::point("KN.job");
        restore::restore(indexer).await?;
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
            let failed = semantic::run(&semantic::SemanticRun {
                store,
                model,
                settings: &self.indexer.settings,
                request: self.request,
                clock: &self.indexer.clock,
                sink: self.sink,
                spent: &self.spent,
                cancel: self.cancel,
                calls: tokio::sync::Semaphore::new(self.indexer.settings.concurrency.max(1)),
            })
            .await?;
            self.counts.failed += failed;
        }
        self.counts.warning.clone_from(&self.indexer.warning);
        if let Some(embedder) = &self.indexer.embedder {
            match embed::embed(store, embedder, self.sink, &self.spent, self.cancel).await {
                // Lexical search works without vectors, and the next job tries again.
                Err(error) if error.kind == ErrorKind::Embedder => {
                    tracing::warn!(error = %error.message, "an index has no vectors");
                    self.counts.warning =
                        Some(format!("{}; full-text search serves meanwhile", error.message));
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
        let known = store.write(|writer| KnownFiles::load(writer)).await?;
        let scanning = StageProgress::begin(self.sink, &self.spent, IndexStage::Scanning, 0);
        let known = Arc::new(known);
        let found = {
            let (files, paths) = (self.indexer.files.clone(), self.request.paths.clone());
            let (level, known, cancel) = (self.request.level, known.clone(), self.cancel.clone());
            let scanned = move |(): &mut ()| scan(files.as_ref(), &paths, &known, level, &cancel);
            worker.run_until(self.cancel, scanned).await?
        };
        drop(scanning);
        if self.request.paths.is_empty() {
            let left_out = found.left_out;
            store.write(move |writer| writer.set_left_out(&left_out)).await?;
        }
        self.counts.unchanged += found.unchanged;
        self.counts.skipped += found.skipped;
        let total = (found.to_read.len() + found.removed_documents.len()) as u64;
        let mut progress = StageProgress::begin(self.sink, &self.spent, IndexStage::Chunking, total);
        let by_path: Arc<HashMap<String, KnownFile>> =
            Arc::new(known.documents.iter().map(|file| (file.path.clone(), file.clone())).collect());
        // The worker reads and parses one batch while the writer stores the one before.
        let mut writing: Option<Batch> = None;
        for batch in batches(found.to_read) {
            self.check_cancelled()?;
            let reading = self.read_batch(worker, batch, &by_path);
            let (read, written) = tokio::join!(reading, self.write_batch(writing.take()));
            self.count_batch(written?, &mut progress);
            writing = Some(read?);
        }
        let written = self.write_batch(writing).await?;
        self.count_batch(written, &mut progress);
        if let Some((time, file)) = &self.slowest {
            tracing::debug!(file, ms = time.as_millis(), "the slowest file of an index job");
        }
        let forgotten = found.gone_skipped;
        store.write(move |writer| writer.note_skipped(&[], &forgotten)).await?;
        for id in found.removed_documents {
            self.check_cancelled()?;
            store.write(move |writer| writer.remove_file(&id)).await?;
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
        let (files, level) = (self.indexer.files.clone(), self.request.level.min(IndexLevel::Structure));
        let (settings, known, cancel) = (self.indexer.chunks.clone(), known.clone(), self.cancel.clone());
        worker
            .run_until(self.cancel, move |()| {
                let mut batch = Batch::default();
                for entry in entries {
                    if cancel.is_cancelled() {
                        return Err(KnowledgeError::cancelled());
                    }
                    batch.files += 1;
                    let (start, path) = (Instant::now(), entry.path.clone());
                    match read_file(files.as_ref(), &entry, known.get(&entry.path), level) {
                        ReadFile::Text { text, hash } => {
                            // The next scan compares the size of the file, not that of its text.
                            let new = file_document(&entry.path, entry.bytes, entry.modified_ns, hash);
                            batch.suitable.push(entry.path);
                            let prepared = prepare(new, &text, level, &settings, &cancel)?;
                            batch.plain += u64::from(prepared.lacks_structure);
                            batch.changes.push(Change::Store(prepared));
                        }
                        ReadFile::Unchanged(id) => {
                            batch.unchanged += 1;
                            batch.touched.push((id, entry.modified_ns));
                        }
                        read @ (ReadFile::Skipped | ReadFile::Unsuitable) => {
                            batch.skipped += 1;
                            if matches!(read, ReadFile::Unsuitable) {
                                let (path, bytes) = (entry.path.clone(), entry.bytes);
                                batch.unsuitable.push(SkippedFile {
                                    path,
                                    bytes,
                                    modified_ns: entry.modified_ns,
                                });
                            }
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
                    batch.slowest = batch.slowest.take().max(Some((start.elapsed(), path)));
                }
                Ok(batch)
            })
            .await
    }

    async fn write_batch(&self, batch: Option<Batch>) -> Result<Batch, KnowledgeError> {
        let Some(mut batch) = batch else { return Ok(Batch::default()) };
        let (now_ms, level) = (self.now_ms(), self.request.level.min(IndexLevel::Structure));
        let cancel = self.cancel.clone();
        self.indexer
            .store
            .write(move |writer| {
                for change in std::mem::take(&mut batch.changes) {
                    // Each change is one transaction, so the next job continues with the others.
                    if cancel.is_cancelled() {
                        return Err(KnowledgeError::cancelled());
                    }
                    match change {
                        Change::Store(prepared) => {
                            writer.store_document(&prepared.new, &prepared.content, level, now_ms)?;
                            batch.indexed += 1;
                        }
                        Change::Remove(id) => {
                            writer.remove_file(&id)?;
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
                writer.note_skipped(&std::mem::take(&mut batch.unsuitable), &batch.suitable)?;
                Ok(batch)
            })
            .await
    }

    fn count_batch(&mut self, batch: Batch, progress: &mut StageProgress) {
        self.counts.indexed += batch.indexed;
        self.counts.unchanged += batch.unchanged;
        self.counts.removed += batch.removed;
        self.counts.skipped += batch.skipped;
        self.counts.failed += batch.failed;
        self.counts.plain += batch.plain;
        self.slowest = self.slowest.take().max(batch.slowest);
        progress.advance(batch.files);
    }

    /// Processes inserted documents that are not processed yet, also those that an earlier run left.
    async fn inserted(&mut self, worker: &WorkThread<()>) -> Result<(), KnowledgeError> {
        let level = self.request.level;
        let (processed, failed) = inserts::process_inserted(self.indexer, worker, level, self.cancel).await?;
        self.counts.indexed += processed;
        self.counts.failed += failed;
        Ok(())
    }

    /// Resolves calls, imports and links.
    async fn resolve(&mut self) -> Result<(), KnowledgeError> {
        let mut progress = StageProgress::begin(self.sink, &self.spent, IndexStage::Merging, 0);
        inserts::resolve_references(self.indexer, Some(&mut progress), self.cancel).await
    }
}

/// Files that were read together.
#[derive(Debug, Default)]
struct Batch {
    changes: Vec<Change>,
    touched: Vec<(DocId, i64)>,
    /// Files that are omitted because of their content, and paths whose files are no longer omitted.
    unsuitable: Vec<SkippedFile>,
    suitable: Vec<String>,
    files: u64,
    indexed: u64,
    unchanged: u64,
    removed: u64,
    skipped: u64,
    failed: u64,
    plain: u64,
    slowest: Option<(Duration, String)>,
}

#[derive(Debug)]
enum Change {
    Store(PreparedDocument),
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
