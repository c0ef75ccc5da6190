//! Embeds rows that have no vector of the current model.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::progress::{StageProgress, UsedBudget};
use crate::store::KnowledgeStore;
use crate::traits::{Embedder, JobSink};
use crate::types::{ErrorKind, KnowledgeError, VectorKind};
use types::knowledge::IndexStage;

/// Batches that are embedded at the same time.
const MAX_CONCURRENT_BATCHES: usize = 8;
/// Maximum number of texts in one batch, also if the embedder accepts more.
const MAX_BATCH: usize = 256;

/// A text whose vector shows the dimension.
const PROBE_TEXT: &str = "dimension";

/// Embeds chunks, entities and relations without a vector of this embedder's model. Meanwhile queries use lexical
/// search, and vectors of another model are replaced. Returns the number of embedded texts.
///
/// # Errors
/// The embedder or the store failed, or the call was cancelled. Stored vectors are kept.
pub async fn embed_pending(
    store: &KnowledgeStore,
    embedder: &Arc<dyn Embedder>,
    sink: &Arc<dyn JobSink>,
    cancel: &CancellationToken,
) -> Result<u64, KnowledgeError> {
    let spent = Arc::new(UsedBudget::default());
    embed(store, embedder, sink, &spent, cancel).await
}

pub(super) async fn embed(
    store: &KnowledgeStore,
    embedder: &Arc<dyn Embedder>,
    sink: &Arc<dyn JobSink>,
    spent: &Arc<UsedBudget>,
    cancel: &CancellationToken,
) -> Result<u64, KnowledgeError> {
    let model = embedder.model_id();
    let batch = embedder.batch_size().clamp(1, MAX_BATCH);
    let mut progress = StageProgress::begin(sink, spent, IndexStage::Embedding, 0);
    let mut embedded = 0;
    let mut dimension = embedder.dimension();
    let known = model.clone();
    if dimension.is_none() && store.read_rows(move |reader| reader.has_vectors(&known, None)).await? {
        // The model may return vectors of another length than those in the index. If so, all of them are stale.
        let probe = tokio::select! {
            probe = embedder.embed(vec![PROBE_TEXT.into()]) => probe?,
            () = cancel.cancelled() => return Err(KnowledgeError::cancelled()),
        };
        dimension = probe.first().map(Vec::len);
    }
    let mut has_answered = false;
    for kind in [VectorKind::Chunk, VectorKind::Entity, VectorKind::Relation] {
        loop {
            if cancel.is_cancelled() {
                return Err(KnowledgeError::cancelled());
            }
            let limit = u32::try_from(batch * MAX_CONCURRENT_BATCHES).unwrap_or(u32::MAX);
            let pending = {
                let model = model.clone();
                store.write(move |writer| writer.pending_vectors(kind, &model, dimension, limit)).await?
            };
            if pending.is_empty() {
                // Copies of equal texts count as progress of the next round.
                let model = model.clone();
                if store.read(move |reader| reader.has_stale_vectors(kind, &model, dimension)).await? {
                    continue;
                }
                break;
            }
            let texts: Vec<Vec<String>> = pending
                .chunks(batch)
                .map(|part| part.iter().map(|text| text.text.clone()).collect())
                .collect();
            let calls =
                futures_util::future::try_join_all(texts.into_iter().map(|texts| embedder.embed(texts)));
            let vectors = tokio::select! {
                vectors = calls => vectors?,
                () = cancel.cancelled() => return Err(KnowledgeError::cancelled()),
            };
            let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
            let length = vectors.first().map(Vec::len);
            if has_answered && length != dimension {
                // Otherwise, a server that alternates between lengths would keep the loop running forever.
                return Err(KnowledgeError::new(
                    ErrorKind::Embedder,
                    "could not embed: the length of the vectors changed during the job; check the embedding model",
                ));
            }
            (dimension, has_answered) = (length, true);
            let count = pending.len() as u64;
            let model = model.clone();
            store.write(move |writer| writer.put_vectors(&model, &pending, &vectors)).await?;
            embedded += count;
            progress.advance(count);
        }
    }
    Ok(embedded)
}
