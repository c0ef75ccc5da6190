//! Properties of patches for any text. The fuzz target and its corpus check them.

use crate::files::patch::hunks::place_hunks;
use crate::files::patch::parse::{FilePatch, HunkLine, parse, unify_line_endings};

/// The bytes are a patch and, after the first byte 0x1F, the text of the file that it updates. Parsing never
/// panics. Applied hunks keep every line that they do not remove, and removed lines existed before.
///
/// # Panics
/// If a property does not hold.
pub(crate) fn patch(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0x1f);
    let patch = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let file = String::from_utf8_lossy(parts.next().unwrap_or_default()).replace("\r\n", "\n");
    let patch = unify_line_endings(&patch);
    let Ok(sections) = parse(&patch) else { return };
    assert!(!sections.is_empty());
    for section in &sections {
        let FilePatch::Update { hunks, .. } = section else { continue };
        let Ok(edits) = place_hunks(&file, hunks) else { continue };
        let mut done = 0;
        for (range, _) in &edits {
            assert!(done <= range.start && range.start <= range.end && range.end <= file.len());
            assert!(file.is_char_boundary(range.start) && file.is_char_boundary(range.end));
            done = range.end;
        }
        let lines = |text: &str| text.lines().count();
        let removed: usize = edits.iter().map(|(range, _)| lines(&file[range.clone()])).sum();
        let wanted = hunks.iter().flat_map(|hunk| &hunk.lines);
        let (minus, plus) = wanted.fold((0, 0), |(minus, plus), line| match line {
            HunkLine::Remove(_) => (minus + 1, plus),
            HunkLine::Add(_) => (minus, plus + 1),
            HunkLine::Keep(_) => (minus, plus),
        });
        assert_eq!(removed, minus, "as many lines go as the patch removes: {edits:?}");
        let mut new = file.clone();
        for (range, text) in edits.iter().rev() {
            new.replace_range(range.clone(), text);
        }
        // An empty line at the very end may not count as a line.
        let (old, new) = (lines(&file), lines(&new));
        assert!(
            new + minus == old + plus || new + minus + 1 == old + plus,
            "{old} - {minus} + {plus} != {new}"
        );
    }
}
