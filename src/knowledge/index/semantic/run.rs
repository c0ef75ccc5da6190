//! Reads all documents of a job with a model, within its budget, and summarises descriptions that became too long.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::Mutex;

use super::calls::SemanticRun;
use super::extract::extract;
use super::summarize::summarize;
use crate::index::progress::StageProgress;
use crate::index::scan::is_below;
use crate::store::UnreadDocument;
use crate::types::{DocId, ErrorKind, KnowledgeError};
use types::knowledge::{DocumentStatus, IndexStage};

/// Number of consecutive failed documents after which the job ends, because the model is not available.
const MAX_FAILURES_IN_A_ROW: u32 = 5;
/// Summaries that are loaded at once.
const SUMMARY_BATCH: u32 = 64;

/// Reads all documents that no model has read, then summarises. Returns the number of failed documents.
///
/// # Errors
/// The budget is used up, the model is not available, the store failed, or the job was cancelled. Documents that were
/// finished stay finished.
pub async fn run(run: &SemanticRun<'_>) -> Result<u64, KnowledgeError> {
    let identity = run.model.identity();
    let documents = run
        .store
        .write(move |writer| {
            writer.set_model(&identity)?;
            writer.unread_documents()
        })
        .await?;
    let documents: Vec<DocId> = documents
        .into_iter()
        .filter(|document| is_requested(document, &run.request.paths))
        .map(|document| document.id)
        .collect();
    let progress = StageProgress::begin(run.sink, run.spent, IndexStage::Extracting, documents.len() as u64);
    let progress = Mutex::new(progress);
    let (failed, failed_in_a_row) = (&AtomicU32::new(0), &AtomicU32::new(0));
    let (shared_progress, first_error) = (&progress, &Mutex::new(None));
    futures_util::stream::iter(documents)
        .for_each_concurrent(run.settings.parallel_documents.max(1), |id| async move {
            // After an error, the other documents finish the calls that are paid for, and start no new one.
            if first_error.lock().await.is_some() {
                return;
            }
            let result = match read_document(run, id.clone()).await {
                Err(error) if error.kind == ErrorKind::Model => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    let in_a_row = failed_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
                    let stored =
                        set_status(run, &id, DocumentStatus::Failed, Some(error.message.clone())).await;
                    if in_a_row >= MAX_FAILURES_IN_A_ROW { Err(error) } else { stored }
                }
                Ok(()) => {
                    failed_in_a_row.store(0, Ordering::Relaxed);
                    Ok(())
                }
                result => result,
            };
            match result {
                Ok(()) => shared_progress.lock().await.advance(1),
                Err(error) => {
                    first_error.lock().await.get_or_insert(error);
                }
            }
        })
        .await;
    if let Some(error) = first_error.lock().await.take() {
        return Err(error);
    }
    drop(progress);
    write_summaries(run).await?;
    Ok(u64::from(failed.load(Ordering::Relaxed)))
}

/// Whether a job over these paths must read a document. A document without a path is read by a job over everything.
pub(crate) fn is_requested(document: &UnreadDocument, paths: &[String]) -> bool {
    match document.path.as_deref() {
        Some(path) => is_below(path, paths),
        None => paths.is_empty(),
    }
}

async fn set_status(
    run: &SemanticRun<'_>,
    id: &DocId,
    status: DocumentStatus,
    error: Option<String>,
) -> Result<(), KnowledgeError> {
    let (id, now_ms) = (id.clone(), run.clock.now().0);
    run.store.write(move |writer| writer.set_status(&id, status, error.as_deref(), now_ms)).await
}

/// Reads one document. An unfinished document stays in the state processing, and the next job continues with the
/// cached answers.
async fn read_document(run: &SemanticRun<'_>, id: DocId) -> Result<(), KnowledgeError> {
    if run.cancel.is_cancelled() {
        return Err(KnowledgeError::cancelled());
    }
    set_status(run, &id, DocumentStatus::Processing, None).await?;
    let of = id.clone();
    let chunks = run.store.write(move |writer| writer.document_chunks(&of)).await?;
    let (entities, relations) = extract(run, &chunks).await?;
    if run.cancel.is_cancelled() {
        return Err(KnowledgeError::cancelled());
    }
    let now_ms = run.clock.now().0;
    let stored =
        run.store.write(move |writer| writer.store_extraction(&id, &entities, &relations, now_ms)).await;
    match stored {
        // The document was deleted or replaced meanwhile.
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Summarises until no summary is due. A failed summary stays due, and the joined descriptions are used meanwhile.
async fn write_summaries(run: &SemanticRun<'_>) -> Result<(), KnowledgeError> {
    let mut progress = StageProgress::begin(run.sink, run.spent, IndexStage::Summarizing, 0);
    let mut tried: HashSet<(bool, String)> = HashSet::new();
    loop {
        // Failed summaries stay due and are returned first again, so read that many more.
        let limit = SUMMARY_BATCH + u32::try_from(tried.len()).unwrap_or(u32::MAX / 2);
        let pending = run.store.write(move |writer| writer.pending_summaries(limit)).await?;
        let pending: Vec<_> = pending
            .into_iter()
            .filter(|summary| tried.insert((summary.is_relation, summary.name.clone())))
            .collect();
        if pending.is_empty() {
            return Ok(());
        }
        progress.set_total(tried.len() as u64);
        let done: u64 = futures_util::stream::iter(pending)
            .map(|summary| async move {
                if run.cancel.is_cancelled() {
                    return Err(KnowledgeError::cancelled());
                }
                match summarize(run, &summary.name, &summary.descriptions).await {
                    Ok(text) if !text.is_empty() => {
                        let identity = run.model.identity();
                        run.store.write(move |writer| writer.put_summary(&summary, &identity, &text)).await?;
                    }
                    Ok(_) => {}
                    Err(error) if error.kind == ErrorKind::Model => {
                        tracing::warn!(error = %error.message, "a summary failed");
                    }
                    Err(error) => return Err(error),
                }
                Ok(1)
            })
            .buffer_unordered(run.settings.concurrency.max(1))
            .try_fold(0, |sum, one: u64| async move { Ok(sum + one) })
            .await?;
        progress.advance(done);
    }
}
