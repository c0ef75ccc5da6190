//! Documents that are no files: stored twice before they are acknowledged, then split and merged like files.

use tokio_util::sync::CancellationToken;

use super::indexer::Indexer;
use super::prepare::prepare;
use super::progress::StageProgress;
use super::text::{self, SourceText};
use crate::store::{KeptDocument, NewDocument, WorkThread, Writer};
use crate::types::{DocId, ErrorKind, KnowledgeError, hash128};
use types::knowledge::{DocumentSource, DocumentStatus, IndexLevel, InsertOutcome, InsertedDocument};

/// Number of inserted documents that are loaded at once.
const INSERT_BATCH: u32 = 8;
/// Size of an inserted document.
const MAX_INSERT_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of a caller's document id or path.
const MAX_ID_BYTES: usize = 512;

/// Stores documents that are no files, then processes them without a model. If processing fails, the next job
/// or insert continues. A later job at level semantic has a model read them.
///
/// # Errors
/// A document is empty, too large or has a bad id; the store failed; or the call was cancelled.
pub async fn insert_documents(
    indexer: &Indexer,
    documents: Vec<InsertedDocument>,
    cancel: &CancellationToken,
) -> Result<Vec<InsertOutcome>, KnowledgeError> {
    for document in &documents {
        check_insert(document)?;
    }
    let mut outcomes = Vec::with_capacity(documents.len());
    for document in documents {
        let id = document.id.unwrap_or_else(|| format!("doc-{}", hash128(&[document.text.as_bytes()])));
        let inserted = KeptDocument { id: id.clone(), path: document.path, text: document.text };
        let (folder, now_ms) = (indexer.store.inserted_documents(), indexer.clock.now().0);
        let accept = move |writer: &mut Writer| {
            // Write the second copy first: an acknowledged document must survive damage of the index.
            folder.store_document(&inserted)?;
            base::crash::point("KN.kept");
            writer.accept_document(&inserted_document(&inserted), &inserted.text, now_ms)
        };
        let is_new = indexer.store.write(accept).await?;
        outcomes.push(InsertOutcome { id, unchanged: !is_new });
    }
    base::crash::point("KN.accepted");
    let worker = WorkThread::start("index-work", ())?;
    process_inserted(indexer, &worker, IndexLevel::Structure, cancel).await?;
    resolve_references(indexer, None, cancel).await?;
    Ok(outcomes)
}

/// The row of an inserted document.
pub(super) fn inserted_document(inserted: &KeptDocument) -> NewDocument {
    let language = inserted.path.as_deref().and_then(crate::graph::language_of_path);
    NewDocument {
        id: DocId(inserted.id.clone()),
        path: inserted.path.clone(),
        hash: hash128(&[inserted.text.as_bytes()]),
        source: DocumentSource::Inserted,
        language: language.map(str::to_owned),
        bytes: inserted.text.len() as u64,
        modified_ns: 0,
    }
}

fn check_insert(document: &InsertedDocument) -> Result<(), KnowledgeError> {
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
pub(super) async fn process_inserted(
    indexer: &Indexer,
    worker: &WorkThread<()>,
    level: IndexLevel,
    cancel: &CancellationToken,
) -> Result<(u64, u64), KnowledgeError> {
    let level = level.min(IndexLevel::Structure);
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
            let started_id = id.clone();
            indexer
                .store
                .write(move |writer| writer.set_status(&started_id, DocumentStatus::Processing, None, now_ms))
                .await?;
            let (settings, stop) = (indexer.chunks.clone(), cancel.clone());
            let text = SourceText::Plain(text);
            let prepared =
                worker.run_until(cancel, move |()| prepare(new, &text, level, &settings, &stop)).await;
            match prepared {
                Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
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

/// Resolves calls, imports and links.
pub(super) async fn resolve_references(
    indexer: &Indexer,
    mut progress: Option<&mut StageProgress>,
    cancel: &CancellationToken,
) -> Result<(), KnowledgeError> {
    let (mut total, mut left_before) = (0, 0);
    loop {
        if cancel.is_cancelled() {
            return Err(KnowledgeError::cancelled());
        }
        let left = indexer.store.write(|writer| writer.resolve_references()).await?;
        if let Some(progress) = progress.as_mut() {
            // The first call returns the number of all remaining names.
            total = total.max(left);
            progress.set_total(total);
            progress.advance(left_before.max(left) - left);
            left_before = left;
        }
        if left == 0 {
            return Ok(());
        }
    }
}
