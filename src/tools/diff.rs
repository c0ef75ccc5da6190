//! Unified diffs for people: bounded, and the same for the same texts.

use similar::{ChangeTag, TextDiff};

/// A diff longer than this is cut at a line, with a note.
const LONGEST: usize = 48 << 10;

/// Texts of which the changed part is longer than this are not compared line by line.
const LARGEST: usize = 1 << 20;

/// What changed from one text to another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diff {
    pub(super) text: String,
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// Compares two texts with `\n` line endings. `old` is `None` for a new file.
pub(super) fn unified(path: &str, old: Option<&str>, new: &str) -> Diff {
    let from = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let to = format!("b/{path}");
    let old = old.unwrap_or("");
    if changed_part(old, new) > LARGEST {
        let (added, removed) = (line_count(new), line_count(old));
        let text = format!(
            "--- {from}\n+++ {to}\n[the change is too large to show: {removed} lines become {added}]\n"
        );
        return Diff { text, added, removed };
    }
    let diff = TextDiff::from_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let full = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    Diff { text: cut(full), added, removed }
}

fn cut(mut text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let mut end = LONGEST;
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

/// Bytes between the common beginning and the common end.
fn changed_part(old: &str, new: &str) -> usize {
    let head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    old.len().max(new.len()).saturating_sub(head + tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_its_lines_and_counts_them() {
        let diff = unified("x.txt", Some("a\nb\nc\n"), "a\nB\nc\nd\n");
        assert_eq!(diff.text, "--- a/x.txt\n+++ b/x.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        let new = unified("x.txt", None, "a\n");
        assert_eq!(new.text, "--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn long_diffs_are_cut_with_a_note_and_huge_ones_only_counted() {
        let long = unified("x", None, &"a line that repeats\n".repeat(5_000));
        assert!(long.text.len() < LONGEST + 100 && long.text.ends_with("more lines of this diff]\n"));
        assert_eq!(long.added, 5_000);
        let huge = unified("x", Some("y\n"), &"0123456789\n".repeat(200_000));
        assert!(huge.text.contains("too large") && huge.text.len() < 200);
        assert_eq!((huge.added, huge.removed), (200_000, 1));
    }
}
