//! What a model is shown of a long tool result (Q14): its beginning and its end, and where the whole is.
//!
//! Decided once, when the call ends, and written into `tool.completed`: a replay shows the model the same
//! bytes, also under other settings.

use crate::engine::decide::plan::PlanBuilder;
use crate::engine::state::Stage;
use crate::types::blob::{Blob, BlobRef};

/// What is shown at least, however full the message is already; less if it has more calls than that could be kept free for.
const LEAST: usize = 2 * 1024;
/// Bytes of the note in a preview.
const NOTE: usize = 300;

/// A result as the model gets it.
pub(in crate::engine) struct Bounded {
    pub output: String,
    pub whole: Option<BlobRef>,
    /// The output is less than what the tool said.
    pub is_cut: bool,
}

impl PlanBuilder<'_> {
    /// Bounds a result by its own cap and by what the other results of the message left. `whole` is what
    /// the tool itself has kept of more than `output`.
    pub fn bound(&mut self, output: String, whole: Option<BlobRef>) -> Bounded {
        self.bound_sparing(output, whole, 0)
    }

    /// The same, with so many bytes left for what may be said beside it later.
    pub fn bound_sparing(&mut self, output: String, whole: Option<BlobRef>, spare: usize) -> Bounded {
        let settings = &self.engine.settings;
        let others: usize = self
            .state
            .calls()
            .iter()
            .map(|call| match &call.stage {
                Stage::Done { output, .. } => output.len(),
                _ => 0,
            })
            .sum();
        let calls = self.state.calls();
        let least = LEAST.min((settings.results_bytes / calls.len().max(1)).saturating_sub(NOTE));
        // Those that are still to come are shown something as well.
        let to_come = calls.iter().filter(|call| !call.is_done()).count().saturating_sub(1);
        let taken = others + to_come * (least + NOTE);
        let room = settings.result_bytes.min(settings.results_bytes.saturating_sub(taken));
        let room = room.saturating_sub(spare).max(least);
        if output.len() <= room {
            return Bounded { output, whole, is_cut: false };
        }
        let whole = whole.unwrap_or_else(|| {
            let blob = Blob::text(&output);
            let reference = BlobRef::from(&blob);
            self.plan.blobs.push(blob);
            reference
        });
        Bounded {
            output: preview(&output, room.saturating_sub(NOTE).max(least), &whole),
            whole: Some(whole),
            is_cut: true,
        }
    }
}

/// The beginning and the end of a text in at most about `room` bytes, with a note between them.
fn preview(text: &str, room: usize, whole: &BlobRef) -> String {
    // More of the beginning: it says what this is.
    let (head, tail) = (room / 3 * 2, room / 3);
    let head = text.floor_char_boundary(head);
    let tail = text.ceil_char_boundary(text.len() - tail.min(text.len() - head));
    // Whole lines, where there are any.
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
    use crate::engine::window::result_budget::*;

    #[test]
    fn result_preview_has_both_ends_within_limit() {
        let lines: String = (0..9_000).map(|n| format!("line {n} é\n")).collect();
        let one_line = "é".repeat(60_000);
        for text in [&lines, &one_line] {
            for room in [LEAST, 10_000, 50_001] {
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
