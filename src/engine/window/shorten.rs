//! Shortens results that exceed the limit of the current model's window, for example after a switch to a model with a
//! smaller window. New results are limited when their call ends ([`super::result_budget`]).

use crate::window::StageEdit;
use crate::window::history::History;
use crate::window::result_budget::excerpt;
use crate::window::size::ResultLimits;
use types::blob::{Blob, BlobRef};
use types::compaction::{ReplacedResult, WindowEdit};

/// The edit, or `None` if no result is too long.
pub(crate) fn shorten(history: &History<'_>, limits: ResultLimits) -> Option<StageEdit> {
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
