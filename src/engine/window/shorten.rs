//! Shortens results that exceed the limit of the current model's window, for example after a switch to a model with a
//! smaller window. New results are limited when their call ends ([`super::result_budget`]).

use crate::engine::window::StageEdit;
use crate::engine::window::history::History;
use crate::engine::window::result_budget::excerpt;
use crate::engine::window::size::ResultLimits;
use crate::types::blob::{Blob, BlobRef};
use crate::types::compaction::{ReplacedResult, WindowEdit};

/// The edit, or `None` if no result is too long.
pub(in crate::engine) fn shorten(history: &History<'_>, limits: ResultLimits) -> Option<StageEdit> {
    let (mut results, mut blobs) = (Vec::new(), Vec::new());
    for entry in history.results.iter().filter(|entry| entry.content.len() > limits.one) {
        let blob = Blob::text(entry.content);
        let content = excerpt(entry.content, limits.one, &BlobRef::from(&blob));
        if content.len() < entry.content.len() {
            results.push(ReplacedResult { call_id: entry.call.call_id, content });
            blobs.push(blob);
        }
    }
    (!results.is_empty()).then_some(StageEdit { edit: WindowEdit::Results { results }, blobs })
}
