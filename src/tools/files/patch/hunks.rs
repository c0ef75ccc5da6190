//! Finds the places of the hunks in a file and computes their changes. Lines are compared exactly first.
//! Further attempts ignore blanks and the kinds of dashes and quotation marks.

use serde_json::json;
use std::ops::Range;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::did_you_mean::find_nearest;
use crate::files::patch::parse::{Hunk, HunkLine};
use crate::fs::pinned::PinnedPath;

/// A hunk that was not found.
pub(super) struct LostHunk {
    pub(super) number: usize,
    pub(super) wanted: String,
    pub(super) is_anchor: bool,
}

impl LostHunk {
    pub(super) fn into_error(self, context: &ToolContext, path: &PinnedPath, text: &str) -> ToolError {
        let shown = context.show(&path.path);
        let what = if self.is_anchor { "the line after @@ is" } else { "the kept and removed lines are" };
        let mut message = format!("the hunk at line {} of the patch: {what} not in {shown}", self.number);
        let near = find_nearest(text, &self.wanted);
        match &near {
            Some(near) => message.push_str(&format!(
                " (in this order, below the hunks before it). The nearest text begins at line {}:\n{}\n",
                near.line, near.text
            )),
            None => message.push_str(". Read the file again and copy the lines exactly. "),
        }
        message.push_str("Nothing was changed.");
        ToolError::new("context_not_found", message).with(json!({
            "path": path.path,
            "line": self.number,
            "wanted": self.wanted,
            "nearest": near.map(|near| json!({ "line": near.line, "text": near.text })),
        }))
    }
}

/// The changes of the hunks, as ranges of `text` (`\n` line endings) with their replacements: ascending and
/// disjoint. Kept lines keep their bytes, also if they matched only approximately.
pub(super) fn place_hunks(text: &str, hunks: &[Hunk<'_>]) -> Result<Vec<(Range<usize>, String)>, LostHunk> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // The text after the last line feed is a line only if it is not empty.
    let is_ended = text.is_empty() || text.ends_with('\n');
    if is_ended {
        lines.pop();
    }
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some(start)
        })
        .chain([text.len()])
        .collect();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        // Hunks are usually in file order. If one is not found, search above as well.
        let found = match find_hunk(&lines, hunk, from) {
            Err(lost) if from > 0 => find_hunk(&lines, hunk, 0).map_err(|_| lost)?,
            found => found?,
        };
        let first = edits.len();
        let mut at = found;
        let mut open: Option<(Range<usize>, Vec<&str>)> = None;
        for line in hunk.lines.iter().chain([&HunkLine::Keep("")]).take(hunk.lines.len() + 1) {
            match line {
                HunkLine::Remove(_) => {
                    let (range, _) = open.get_or_insert_with(|| (at..at, Vec::new()));
                    range.end += 1;
                    at += 1;
                }
                HunkLine::Add(new) => open.get_or_insert_with(|| (at..at, Vec::new())).1.push(new),
                HunkLine::Keep(_) => {
                    if let Some((range, new)) = open.take() {
                        edits.push(splice(&starts, lines.len(), is_ended, range, &new));
                    }
                    at += 1;
                }
            }
        }
        from = at.saturating_sub(1).min(lines.len());
        let (before, own) = edits.split_at(first);
        let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end || a == b;
        if own.iter().any(|(own, _)| before.iter().any(|(other, _)| overlaps(own, other))) {
            let wanted = hunk.lines.iter().map(|line| line.text()).collect::<Vec<_>>().join("\n");
            return Err(LostHunk { number: hunk.number, wanted, is_anchor: false });
        }
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    // Text added after a last line without an ending starts a new line. If that last line is removed, the text
    // starts at its position.
    if let [.., (removed, nothing), (below, added)] = edits.as_mut_slice()
        && !is_ended
        && nothing.is_empty()
        && removed.end == text.len()
        && below.start == text.len()
        && let Some(rest) = added.strip_prefix('\n')
    {
        *added = rest.to_owned();
    }
    Ok(edits)
}

/// Converts lines to a range of the text.
fn splice(
    starts: &[usize],
    count: usize,
    is_ended: bool,
    lines: Range<usize>,
    new: &[&str],
) -> (Range<usize>, String) {
    let (start, end) = (starts[lines.start.min(count)], starts[lines.end.min(count)]);
    let mut text: String = new.iter().flat_map(|line| [line, "\n"]).collect();
    if is_ended || lines.end < count {
        return (start..end, text);
    }
    // The last line has no ending. It gets one if text is added after it, and its replacement has none.
    if lines.start >= count {
        return (start..end, format!("\n{}", text.strip_suffix('\n').unwrap_or(&text)));
    }
    if text.ends_with('\n') {
        text.pop();
    }
    (start..end, text)
}

/// The line at which the hunk begins.
fn find_hunk(lines: &[&str], hunk: &Hunk<'_>, from: usize) -> Result<usize, LostHunk> {
    let mut from = from;
    for anchor in &hunk.anchors {
        match find_lines(lines, &[anchor], from, false) {
            Some(at) => from = at + 1,
            None => {
                return Err(LostHunk { number: hunk.number, wanted: (*anchor).to_owned(), is_anchor: true });
            }
        }
    }
    let wanted: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            HunkLine::Keep(text) | HunkLine::Remove(text) => Some(*text),
            HunkLine::Add(_) => None,
        })
        .collect();
    if wanted.is_empty() {
        // A hunk with only added lines goes below the anchor, or to the end of the file.
        return Ok(if hunk.anchors.is_empty() || hunk.at_end { lines.len() } else { from });
    }
    find_lines(lines, &wanted, from, hunk.at_end)
        // The anchor may itself be the first of the kept lines.
        .or_else(|| {
            (!hunk.anchors.is_empty()).then(|| find_lines(lines, &wanted, from - 1, hunk.at_end)).flatten()
        })
        .ok_or_else(|| LostHunk { number: hunk.number, wanted: wanted.join("\n"), is_anchor: false })
}

/// Comparisons of two lines, strictest first.
const LINE_COMPARISONS: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| a.trim().chars().map(to_ascii).eq(b.trim().chars().map(to_ascii)),
];

/// Maps typographic characters to ASCII.
fn to_ascii(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// Maximal number of compared lines, because a hunk that almost matches everywhere would take too long.
const MAX_COMPARED_LINES: usize = 50_000_000;

/// The first index at or after `from` where `wanted` occurs in `lines`. With `at_end`, the end of the file is
/// tried first.
fn find_lines(lines: &[&str], wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    if wanted.is_empty() {
        return Some(from.min(lines.len()));
    }
    let mut work = MAX_COMPARED_LINES;
    for way in LINE_COMPARISONS {
        let mut fits = |at: usize| {
            lines[at..].iter().zip(wanted).all(|(a, b)| {
                work = work.saturating_sub(1 + a.len() / 64);
                work > 0 && way(a, b)
            })
        };
        if at_end && last >= from && fits(last) {
            return Some(last);
        }
        if let Some(found) = (from..=last).find(|at| fits(*at)) {
            return Some(found);
        }
    }
    None
}
