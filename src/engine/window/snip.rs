//! Clears results that later calls made useless: a file's content that was read or written again, and a failed
//! attempt that succeeded later.

use crate::window::StageEdit;
use crate::window::history::{CLEARED, History, ResultEntry};
use types::compaction::{ReplacedResult, WindowEdit};

/// Minimum bytes of a result to clear. For a shorter one, an edit is not worthwhile.
const MIN_BYTES: usize = 200;

/// The edit, or `None` if no result is useless.
pub(crate) fn snip(history: &History<'_>) -> Option<StageEdit> {
    let old = history.results.iter().enumerate().filter(|(_, entry)| {
        entry.message < history.recent_from && entry.content.len() >= MIN_BYTES && !entry.is_cleared()
    });
    let replaced = old.filter_map(|(at, entry)| {
        let content = replacement(entry, &history.results[at + 1..])?;
        Some(ReplacedResult { call_id: entry.call.call_id, content })
    });
    let results: Vec<ReplacedResult> = replaced.collect();
    (!results.is_empty()).then(|| StageEdit { edit: WindowEdit::Results { results }, blobs: Vec::new() })
}

/// The text for a useless result, given the results after it.
fn replacement(entry: &ResultEntry<'_>, later: &[ResultEntry<'_>]) -> Option<String> {
    if entry.is_read() {
        let file = entry.file()?;
        let again = later.iter().find(|other| {
            let is_same_part = other.is_read() && other.call.input == entry.call.input;
            other.file() == Some(file) && !other.is_error && (is_same_part || other.covers_whole_file())
        })?;
        let how = if again.is_read() { "a later Read shows it" } else { "a later Write replaced it" };
        return Some(format!("{CLEARED}: {how}.]"));
    }
    if entry.is_error {
        let is_retry = |other: &&ResultEntry<'_>| {
            let is_same_file = entry.file().is_some() && other.file() == entry.file();
            !other.is_error
                && other.call.tool == entry.call.tool
                && (is_same_file || other.call.input == entry.call.input)
        };
        later.iter().find(is_retry)?;
        return Some(format!("{CLEARED}: this attempt failed, and a later one succeeded.]"));
    }
    None
}
