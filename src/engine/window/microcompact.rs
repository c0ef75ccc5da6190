//! Clears old tool results, oldest first, in one batch. The full text becomes a blob that the model can read.

use std::collections::HashSet;

use crate::request::tokens::text_tokens;
use crate::window::StageEdit;
use crate::window::history::{CLEARED, History};
use types::blob::Blob;
use types::compaction::{ReplacedResult, WindowEdit};
use types::ids::CallId;

/// Minimum bytes of a result to clear. For a shorter one, an edit is not worthwhile.
const MIN_BYTES: usize = 400;
/// Number of most recently read files whose content stays.
const MAX_KEPT_FILES: usize = 5;

/// Returns the edit that saves about `excess` uncalibrated tokens, or less if there are not enough old results.
/// `None` if there are no old results. The most recently read files stay, up to `file_room` uncalibrated tokens.
pub(crate) fn microcompact(history: &History<'_>, excess: u64, file_room: u64) -> Option<StageEdit> {
    let recent_reads = newest_reads(history, file_room);
    let old = history.results.iter().filter(|entry| {
        entry.message < history.recent_from
            && entry.content.len() >= MIN_BYTES
            && !entry.is_cleared()
            && !recent_reads.contains(&entry.call.call_id)
    });
    let (mut results, mut blobs, mut saved) = (Vec::new(), Vec::new(), 0);
    for entry in old {
        if saved >= excess {
            break;
        }
        let whole = whole_result(entry.content).map(str::to_owned).unwrap_or_else(|| {
            let blob = Blob::text(entry.content);
            let id = blob.blob_id.to_string();
            blobs.push(blob);
            id
        });
        let content = format!(
            "{CLEARED} to save context: {} bytes of {}. Read with file_path \"{whole}\" shows them.]",
            entry.content.len(),
            entry.call.tool
        );
        saved += text_tokens(entry.content).saturating_sub(text_tokens(&content));
        results.push(ReplacedResult { call_id: entry.call.call_id, content });
    }
    (!results.is_empty()).then_some(StageEdit { edit: WindowEdit::Results { results }, blobs })
}

/// The newest read of each of the most recently read files.
fn newest_reads(history: &History<'_>, mut room: u64) -> HashSet<CallId> {
    let mut files = HashSet::new();
    let reads = history.results.iter().rev().filter(|entry| entry.is_read());
    let newest = reads.filter(|entry| entry.file().is_some_and(|file| files.insert(file)));
    let fits = newest.take(MAX_KEPT_FILES).take_while(|entry| {
        let size = text_tokens(entry.content);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    fits.map(|entry| entry.call.call_id).collect()
}

/// The blob with the whole result, if the content is only an excerpt of it.
fn whole_result(content: &str) -> Option<&str> {
    let (_, note) = content.split_once("\n[… ")?;
    let (_, id) = note.split_once("file_path \"")?;
    let (id, _) = id.split_once('"')?;
    id.starts_with("blob_").then_some(id)
}
