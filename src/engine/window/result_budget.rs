//! The excerpt of a long tool result that a model receives: its beginning, its end, and a reference to the blob
//! with the full text.
//!
//! The excerpt is computed once, when the call ends, and written into `tool.completed`. So a replay shows the
//! model the same bytes, even with other settings.

use crate::state::{CallStage, CallState, State};
use crate::window::size::ResultLimits;
use types::blob::{Blob, BlobRef};

/// Minimum bytes of an excerpt, even if the message is already full. An excerpt is shorter only if the
/// message has too many calls for this minimum.
const MIN_EXCERPT_BYTES: usize = 2 * 1024;
/// Bytes reserved for the note in an excerpt.
const NOTE_BYTES: usize = 300;

/// A result as the model receives it.
pub(crate) struct BoundedResult {
    pub output: String,
    pub whole: Option<BlobRef>,
    /// Whether the output is shorter than the tool's output.
    pub is_cut: bool,
}

/// Limits a result by its own maximum and by the bytes that the other results of the message leave. `whole`
/// is the blob with the tool's full output, if the tool kept more than `output`. `spare` bytes are reserved
/// for text that may be added later. Returns the blob to store, if no blob contains the full output yet.
pub(crate) fn bound_result(
    state: &State,
    limits: ResultLimits,
    output: String,
    whole: Option<BlobRef>,
    spare: usize,
) -> (BoundedResult, Option<Blob>) {
    let calls = state.calls();
    let bytes = |call: &CallState| match &call.stage {
        CallStage::Done { output, .. } => output.len(),
        _ => 0,
    };
    let others: usize = calls.iter().map(bytes).sum();
    let least = MIN_EXCERPT_BYTES.min((limits.all / calls.len().max(1)).saturating_sub(NOTE_BYTES));
    // Reserve bytes for the calls that have no result yet.
    let to_come = calls.iter().filter(|call| !call.is_done()).count().saturating_sub(1);
    let taken = others + to_come * (least + NOTE_BYTES);
    let room = limits.one.min(limits.all.saturating_sub(taken));
    let room = room.saturating_sub(spare).max(least);
    if output.len() <= room {
        return (BoundedResult { output, whole, is_cut: false }, None);
    }
    let blob = whole.is_none().then(|| Blob::text(&output));
    let whole = whole.or_else(|| blob.as_ref().map(BlobRef::from));
    let output = match &whole {
        Some(whole) => preview(&output, room.saturating_sub(NOTE_BYTES).max(least), whole),
        None => output,
    };
    (BoundedResult { output, whole, is_cut: true }, blob)
}

/// The beginning and the end of a text with a note between them. The result has at most `limit` bytes,
/// unless the note alone needs more.
pub(crate) fn excerpt(text: &str, limit: usize, whole: &BlobRef) -> String {
    preview(text, limit.saturating_sub(NOTE_BYTES), whole)
}

/// The beginning and the end of a text in at most about `room` bytes, with a note between them.
fn preview(text: &str, room: usize, whole: &BlobRef) -> String {
    // The beginning gets more bytes, because it identifies the content.
    let (head, tail) = (room / 3 * 2, room / 3);
    let head = text.floor_char_boundary(head);
    let tail = text.ceil_char_boundary(text.len() - tail.min(text.len() - head));
    // Prefer to cut at line ends.
    let head = text[..head].rfind('\n').filter(|end| *end > head / 2).map_or(head, |end| end + 1);
    let tail = text[tail..]
        .find('\n')
        .filter(|end| *end < (text.len() - tail) / 2)
        .map_or(tail, |end| tail + end + 1);
    format!(
        "{}\n[… {} bytes left out. The whole result ({} bytes) is kept: read any part of it with Read, \
         file_path \"{}\", offset and limit …]\n{}",
        &text[..head],
        tail - head,
        whole.bytes,
        whole.blob_id,
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use crate::window::result_budget::*;

    #[test]
    fn result_preview_has_both_ends_within_limit() {
        let lines: String = (0..9_000).map(|n| format!("line {n} é\n")).collect();
        let one_line = "é".repeat(60_000);
        for text in [&lines, &one_line] {
            for room in [MIN_EXCERPT_BYTES, 10_000, 50_001] {
                let shown = preview(text, room, &BlobRef::from(&Blob::text(text)));
                assert!(shown.len() <= room + 300, "{} of {room}", shown.len());
                let (head, rest) = shown.split_once("\n[… ").expect("a note");
                let (note, tail) = rest.split_once(" …]\n").expect("its end");
                assert!(text.starts_with(head) && text.ends_with(tail), "{room}: {note}");
                let left: usize = note.split(' ').next().unwrap().parse().unwrap();
                assert_eq!(head.len() + left + tail.len(), text.len(), "{room}");
                assert!(tail.len() > room / 10 && head.len() > room / 4, "{room}");
            }
        }
    }
}
