//! Estimates the cost of a job.

use std::collections::HashSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::chunk::WINDOW_TOKENS;
use super::indexer::Indexer;
use super::request::IndexRequest;
use super::scan::{KnownFiles, is_probably_text, scan};
use super::semantic;
use crate::traits::LanguageModel;
use crate::types::{ErrorKind, KnowledgeError};
use types::knowledge::{IndexEstimate, IndexLevel};

/// Bytes of a token in source code and prose, measured on 16 MB.
const BYTES_PER_TOKEN: f64 = 4.1;
/// Average number of tokens in a model's answer to one chunk.
const ANSWER_TOKENS: u64 = 600;

/// Scans the workspace and estimates the job. Reads no file and calls no model.
///
/// # Errors
/// The files could not be listed, or the index could not be read.
pub async fn estimate(
    request: &IndexRequest,
    indexer: &Indexer,
    cancel: &CancellationToken,
) -> Result<IndexEstimate, KnowledgeError> {
    let known = indexer.store.write(|writer| KnownFiles::load(writer)).await?;
    let (files, paths, level) = (indexer.files.clone(), request.paths.clone(), request.level);
    let stop = cancel.clone();
    let (scan, bytes) = tokio::task::spawn_blocking(move || {
        let scan = scan(files.as_ref(), &paths, &known, level, &stop)?;
        let bytes: u64 =
            scan.to_read.iter().filter(|entry| is_probably_text(&entry.path)).map(|entry| entry.bytes).sum();
        Ok::<_, KnowledgeError>((scan, bytes))
    })
    .await
    .map_err(|error| {
        KnowledgeError::new(ErrorKind::Files, format!("could not scan the workspace: {error}; try again"))
    })??;
    let mut estimate = IndexEstimate {
        files: scan.to_read.len() as u64,
        unchanged: scan.unchanged,
        removed: scan.removed_documents.len() as u64,
        bytes,
        chunks: (bytes as f64 / BYTES_PER_TOKEN / 450.0).ceil() as u64,
        // A job without a model costs nothing.
        cost_usd_micros: Some(0),
        ..IndexEstimate::default()
    };
    if request.level == IndexLevel::Semantic {
        // Documents that are in the index and were not read by a model count too.
        let unread = indexer.store.write(|writer| writer.unread_documents()).await?;
        let is_read_again: HashSet<&str> = scan.to_read.iter().map(|entry| entry.path.as_str()).collect();
        let stored: u64 = unread
            .iter()
            .filter(|document| semantic::is_requested(document, &request.paths))
            .filter(|document| document.path.as_deref().is_none_or(|path| !is_read_again.contains(path)))
            .map(|document| document.tokens)
            .sum();
        let tokens = stored + (bytes as f64 / BYTES_PER_TOKEN) as u64;
        let units = tokens.div_ceil(WINDOW_TOKENS as u64);
        let calls_per_unit = 1 + u64::from(indexer.settings.max_gleaning.min(1));
        let prompt = semantic::prompt_tokens();
        estimate.model_calls = units * calls_per_unit;
        // Gleaning sends the first exchange again.
        let first = tokens + units * prompt;
        estimate.input_tokens = if calls_per_unit > 1 { 2 * first + units * ANSWER_TOKENS } else { first };
        estimate.output_tokens = units * (ANSWER_TOKENS + (calls_per_unit - 1) * ANSWER_TOKENS / 3);
        estimate.tokens = estimate.input_tokens + estimate.output_tokens;
        if estimate.model_calls > 0 {
            let price =
                |model: &Arc<dyn LanguageModel>| model.price(estimate.input_tokens, estimate.output_tokens);
            estimate.cost_usd_micros = indexer.model.as_ref().and_then(price);
        }
    }
    Ok(estimate)
}
