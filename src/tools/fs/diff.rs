//! Unified diffs for users: bounded, and equal for equal texts.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Bytes of a diff; a longer one is truncated at a line with a note. A diff that is too long for an event is
/// truncated on the wire, and complete in a blob.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// Bytes of the changed part of a text; longer parts are not compared line by line.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Bytes of a changed part that is always compared quickly.
const MAX_QUICK_BYTES: usize = 8 << 10;

/// The difference between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) text: String,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// Unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 3;

/// Compares two texts with `\n` line endings. `old` is `None` for a new file, `new` for a removed one.
pub(crate) fn unified(path: &str, old: Option<&str>, new: Option<&str>) -> Diff {
    unified_or_known(path, old, new, || None)
}

/// Like [`unified`]. If the changed part is long, `known` may return the diff instead: the comparison has a time
/// limit, so computing it again may be slow and may give another result.
pub(crate) fn unified_or_known(
    path: &str,
    old: Option<&str>,
    new: Option<&str>,
    known: impl FnOnce() -> Option<Diff>,
) -> Diff {
    let from = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let to = if new.is_some() { format!("b/{path}") } else { "/dev/null".to_owned() };
    let (old, new) = (old.unwrap_or(""), new.unwrap_or(""));
    let (head, tail) = common_lines(old, new);
    let changed = (old.len().max(new.len())).saturating_sub(head.bytes + tail);
    if changed > MAX_COMPARED_BYTES {
        let (added, removed) = (line_count(new), line_count(old));
        let text = format!(
            "--- {from}\n+++ {to}\n[the change is too large to show: {removed} lines become {added}]\n"
        );
        return Diff { text, added, removed };
    }
    if changed > MAX_QUICK_BYTES
        && let Some(diff) = known()
    {
        return diff;
    }
    // Compare only the differing part, so that a small change of a large file is cheap.
    let (old, new) = (&old[head.bytes..old.len() - tail], &new[head.bytes..new.len() - tail]);
    let diff = lines(old, new);
    let (mut added, mut removed) = (0, 0);
    let mut full = String::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if full.is_empty() {
            full = format!("--- {from}\n+++ {to}\n");
        }
        let range = |start: usize, end: usize| match end - start {
            1 => format!("{}", head.lines + start + 1),
            0 => format!("{},0", head.lines + start),
            n => format!("{},{n}", head.lines + start + 1),
        };
        let old_range = range(first.old_range().start, last.old_range().end);
        let new_range = range(first.new_range().start, last.new_range().end);
        full.push_str(&format!("@@ -{old_range} +{new_range} @@\n"));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            match change.tag() {
                ChangeTag::Insert => added += 1,
                ChangeTag::Delete => removed += 1,
                ChangeTag::Equal => {}
            }
            full.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                full.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Diff { text: truncate_diff(full), added, removed }
}

/// Time limit of the thorough comparison; afterwards, the rest is shown in larger replaced blocks.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// Compares two texts line by line. A line ends with `\n` only, as for `diff` and `patch`: a single carriage
/// return is a character of its line.
pub fn lines<'t>(old: &'t str, new: &'t str) -> TextDiff<'t, 't, str> {
    let of = |text: &'t str| text.split_inclusive('\n').collect::<Vec<_>>();
    TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&of(old), &of(new))
}

/// A common beginning of two texts.
struct CommonStart {
    bytes: usize,
    lines: usize,
}

/// Common whole lines at the beginning and, in bytes, at the end of two texts, except for those that are shown
/// around the change.
fn common_lines(old: &str, new: &str) -> (CommonStart, usize) {
    let same =
        count_common(old.as_bytes().chunks(CHUNK_BYTES), new.as_bytes().chunks(CHUNK_BYTES), |a, b| {
            a.iter().zip(b).take_while(|(a, b)| a == b).count()
        });
    let mut bytes = memchr::memrchr(b'\n', &old.as_bytes()[..same]).map_or(0, |at| at + 1);
    let most = old.len().min(new.len()) - bytes;
    let same =
        count_common(old.as_bytes().rchunks(CHUNK_BYTES), new.as_bytes().rchunks(CHUNK_BYTES), |a, b| {
            a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
        })
        .min(most);
    // The common end begins after a line feed in both texts.
    let mut tail = same;
    let is_border =
        |text: &str, tail: usize| text.len() == tail || text.as_bytes()[text.len() - tail - 1] == b'\n';
    while tail > 0 && !(is_border(old, tail) && is_border(new, tail)) {
        let shared = &old.as_bytes()[old.len() - tail..];
        tail = shared.iter().position(|b| *b == b'\n').map_or(0, |at| tail - at - 1);
    }
    for _ in 0..CONTEXT_LINES {
        bytes = old.as_bytes()[..bytes.saturating_sub(1)]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let shared = &old.as_bytes()[old.len() - tail..];
        tail = shared.iter().position(|b| *b == b'\n').map_or(0, |at| tail - at - 1);
    }
    (CommonStart { bytes, lines: memchr::memchr_iter(b'\n', &old.as_bytes()[..bytes]).count() }, tail)
}

/// Bytes of pieces that are compared as a whole before their single bytes.
const CHUNK_BYTES: usize = 4 << 10;

/// Number of equal bytes, from the beginning of the pieces.
fn count_common<'a>(
    old: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
    count: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut same = 0;
    for (a, b) in old.zip(new) {
        if a != b {
            return same + count(a, b);
        }
        same += a.len();
    }
    same
}

fn truncate_diff(mut text: String) -> String {
    if text.len() <= MAX_DIFF_BYTES {
        return text;
    }
    let mut end = MAX_DIFF_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    let lines = line_count(&text[end..]);
    text.truncate(end);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[cut: {lines} more lines of this diff]\n"));
    text
}

fn line_count(text: &str) -> u64 {
    text.lines().count() as u64
}

#[cfg(test)]
mod tests {
    use crate::fs::diff::*;

    #[test]
    fn unified_diff_shows_and_counts_changed_lines() {
        let diff = unified("x.txt", Some("a\nb\nc\n"), Some("a\nB\nc\nd\n"));
        assert_eq!(diff.text, "--- a/x.txt\n+++ b/x.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        let new = unified("x.txt", None, Some("a\n"));
        assert_eq!(new.text, "--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+a\n");
        let deletion = unified("x.txt", Some("a\n"), None);
        assert_eq!(deletion.text, "--- a/x.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!((deletion.added, deletion.removed), (0, 1));
    }

    #[test]
    fn long_diff_is_truncated_and_huge_diff_only_counted() {
        let long = unified("x", None, Some(&"0123456789\n".repeat(95_000)));
        assert!(long.text.len() < MAX_DIFF_BYTES + 100 && long.text.ends_with("more lines of this diff]\n"));
        assert_eq!(long.added, 95_000);
        let whole = unified("x", None, Some(&"a line that repeats\n".repeat(5_000)));
        assert_eq!(whole.text.lines().count(), 5_003, "past the size of an event, and whole");
        let huge = unified("x", Some("y\n"), Some(&"0123456789\n".repeat(200_000)));
        assert!(huge.text.contains("too large") && huge.text.len() < 200);
        assert_eq!((huge.added, huge.removed), (200_000, 1));
    }

    proptest::proptest! {
        #[test]
        fn trimming_common_ends_does_not_change_diff(
            old in "([ab\r]{0,2}\n){0,12}[ab\r]{0,2}",
            new in "([ab\r]{0,2}\n){0,12}[ab\r]{0,2}",
            head in 0usize..9,
            tail in 0usize..9,
        ) {
            let frame = |text: &str| format!("{}{text}{}", "h\n".repeat(head), "\nt".repeat(tail));
            let (old, new) = (frame(&old), frame(&new));
            let got = unified("x", Some(&old), Some(&new));
            // Applied to the old text, the diff gives the new one.
            proptest::prop_assert_eq!(apply_patch(&old, &got.text), new);
        }
    }

    /// Applies a unified diff, strictly.
    fn apply_patch(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        let mut diff = diff.split_terminator('\n').skip(2).peekable();
        while let Some(line) = diff.next() {
            if let Some(range) = line.strip_prefix("@@ -") {
                let (range, _) = range.split_once(' ').unwrap();
                let (start, len) = range.split_once(',').unwrap_or((range, "1"));
                let start = start.parse::<usize>().unwrap() - usize::from(len != "0");
                out.extend(lines[at..start].iter().copied());
                at = start;
                continue;
            }
            let ends = if diff.peek().is_some_and(|next| next.starts_with('\\')) { "" } else { "\n" };
            let text = format!("{}{ends}", &line[1..]);
            match line.as_bytes()[0] {
                b'+' => out.push_str(&text),
                b'\\' => {}
                sign => {
                    assert_eq!(lines[at], text, "{diff:?}");
                    at += 1;
                    if sign == b' ' {
                        out.push_str(&text);
                    }
                }
            }
        }
        out.extend(lines[at..].iter().copied());
        out
    }
}
