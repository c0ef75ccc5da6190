//! Unified diffs as the old and the new text of each changed part. Pure.

use std::path::Path;

use crate::acp::schema::{CallContent, Location};

/// The changes of a unified diff.
#[derive(Debug, Default, PartialEq)]
pub(in crate::acp) struct DiffParts {
    /// A diff for each part, and a text for what the diff does not show.
    pub(in crate::acp) content: Vec<CallContent>,
    /// The beginning of each part.
    pub(in crate::acp) locations: Vec<Location>,
}

#[derive(Default)]
struct Part {
    line: u32,
    old: String,
    new: String,
    /// Lines of the part that are still missing in each text. They are counted, because a removed line may begin with
    /// `--`.
    old_left: u32,
    new_left: u32,
}

/// Parses a diff. `path` is the file; without it, or for several files, the names in the diff are used, relative to
/// `cwd`.
pub(in crate::acp) fn diff_parts(diff: &str, path: Option<&Path>, cwd: &str) -> DiffParts {
    let mut parts = DiffParts::default();
    let (mut from, mut file) = ("", String::new());
    let mut open: Option<Part> = None;
    let mut last = ' ';
    let finish = |parts: &mut DiffParts, part: Option<Part>, file: &str, is_new: bool| {
        let Some(part) = part else { return };
        let old_text = (!is_new).then_some(part.old);
        parts.content.push(CallContent::Diff { path: file.to_owned(), old_text, new_text: part.new });
        parts.locations.push(Location { path: file.to_owned(), line: Some(part.line.max(1)) });
    };
    for line in diff.strip_suffix('\n').unwrap_or(diff).split('\n') {
        let is_inside = open.as_ref().is_some_and(|part| part.old_left > 0 || part.new_left > 0)
            && (line.is_empty() || line.starts_with([' ', '+', '-']));
        if let (true, Some(part)) = (is_inside, open.as_mut()) {
            last = line.chars().next().unwrap_or(' ');
            let text = line.get(last.len_utf8()..).unwrap_or_default();
            if last != '+' {
                push_line(&mut part.old, text);
                part.old_left = part.old_left.saturating_sub(1);
            }
            if last != '-' {
                push_line(&mut part.new, text);
                part.new_left = part.new_left.saturating_sub(1);
            }
            continue;
        }
        if line.starts_with("\\ No newline") {
            if let Some(part) = open.as_mut() {
                let without_end = |text: &mut String| _ = text.pop();
                if last != '+' {
                    without_end(&mut part.old);
                }
                if last != '-' {
                    without_end(&mut part.new);
                }
            }
            continue;
        }
        let hunk = hunk(line);
        let is_head = line.starts_with("--- ");
        if hunk.is_some() || is_head {
            finish(&mut parts, open.take(), &file, from == "/dev/null");
        }
        if let Some((line, old_left, new_left)) = hunk {
            open = Some(Part { line, old_left, new_left, ..Part::default() });
        } else if let Some(name) = line.strip_prefix("--- ") {
            from = name;
        } else if let Some(to) = line.strip_prefix("+++ ") {
            let name = if to == "/dev/null" { from } else { to };
            let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
            let named = Path::new(cwd).join(name);
            file = path.unwrap_or(&named).display().to_string();
        } else if line.starts_with('[') {
            // The note of a diff that is too large.
            finish(&mut parts, open.take(), &file, from == "/dev/null");
            parts.content.push(CallContent::text(format!("{file}: {line}")));
        }
    }
    finish(&mut parts, open, &file, from == "/dev/null");
    parts
}

/// The first line in the new text, and the numbers of lines in both texts.
fn hunk(line: &str) -> Option<(u32, u32, u32)> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((_, old_count), (start, new_count)) = (range(old)?, range(new)?);
    Some((start, old_count, new_count))
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use similar::TextDiff;

    /// Applies the parts to a file, as an editor does.
    fn applied(old: &str, parts: &DiffParts) -> String {
        parts.content.iter().fold(old.to_owned(), |text, part| match part {
            CallContent::Diff { old_text: Some(old), new_text, .. } => {
                text.replacen(old.as_str(), new_text, 1)
            }
            CallContent::Diff { old_text: None, new_text, .. } => new_text.clone(),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn diff_parts_turn_old_text_into_new_text() {
        let many: String = (1..60).map(|n| format!("line {n}\n")).collect();
        let changed = many.replace("line 3\n", "line three\n").replace("line 40\n", "-- 40\n++ 40\n");
        let cases = [
            ("a\nb\nc\n", "a\nB\nc\n"),
            ("a\nb", "a\nc"),
            ("a\nb\n", "a\nb"),
            ("a\nb", "a\nb\n"),
            ("-- x\n", "++ y\n"),
            ("\n\n", "\n"),
            (&many, &changed),
            (&changed, &many),
        ];
        for (old, new) in cases {
            let diff = TextDiff::from_lines(old, new);
            let text = diff.unified_diff().header("a/f.txt", "b/f.txt").to_string();
            let parts = diff_parts(&text, None, "/w");
            assert_eq!(applied(old, &parts), new, "{text}");
            assert!(parts.locations.iter().all(|location| location.path == "/w/f.txt"));
        }
    }

    #[test]
    fn new_removed_and_truncated_files_are_distinguished() {
        let diff = "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/r.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                    --- a//abs/l.txt\n+++ b//abs/l.txt\n[the change is too large to show: 9 lines become 8]\n";
        let parts = diff_parts(diff, None, "/w");
        let part = |path: &str, old: Option<&str>, new: &str| CallContent::Diff {
            path: path.into(),
            old_text: old.map(str::to_owned),
            new_text: new.into(),
        };
        assert_eq!(
            parts.content,
            [
                part("/w/n.txt", None, "a\nb\n"),
                part("/w/r.txt", Some("x\n"), ""),
                CallContent::text("/abs/l.txt: [the change is too large to show: 9 lines become 8]"),
            ]
        );
        let cut = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n[cut: 40 more lines of this diff]\n";
        let parts = diff_parts(cut, Some(Path::new("/w/f")), "/w");
        assert!(format!("{:?}", parts.content).contains("cut: 40 more"), "{parts:?}");
    }
}
