//! Ranks chunks again with a reranking model.

use futures_util::future::BoxFuture;

use super::context::Selection;
use crate::types::{Chunk, KnowledgeError};

/// A model that judges how well texts answer a query.
pub trait Reranker: Send + Sync {
    /// Positions in `documents` with their scores, in any order. Positions that do not exist are ignored.
    fn rerank(
        &self,
        query: String,
        documents: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<(usize, f64)>, KnowledgeError>>;
}

/// Orders the chunks by the reranker's scores. Chunks without a score follow in their order.
///
/// # Errors
/// The reranker failed; the order is unchanged.
pub async fn rerank(
    selection: &mut Selection,
    query: &str,
    reranker: &dyn Reranker,
) -> Result<(), KnowledgeError> {
    if selection.chunks.is_empty() {
        return Ok(());
    }
    let documents = selection.chunks.iter().map(|chunk| chunk.text.clone()).collect();
    let ranked = reranker.rerank(query.to_owned(), documents).await?;
    let mut slots: Vec<Option<Chunk>> = std::mem::take(&mut selection.chunks).into_iter().map(Some).collect();
    let mut ranked: Vec<(usize, f64)> =
        ranked.into_iter().filter(|(index, score)| *index < slots.len() && score.is_finite()).collect();
    ranked.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then(a.cmp(b)));
    for (index, score) in ranked {
        if let Some(chunk) = slots[index].take() {
            selection.rerank_scores.insert(chunk.id.clone(), score);
            selection.chunks.push(chunk);
        }
    }
    selection.chunks.extend(slots.into_iter().flatten());
    Ok(())
}
