//! Unified diffs as the old and the new text of each changed part. Pure.

use std::path::Path;

use crate::acp::schema::{CallContent, FileChange, Location};

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
    /// The lines of the diff.
    text: String,
}

/// The file that the following parts belong to.
#[derive(Default)]
struct DiffFile {
    path: String,
    operation: &'static str,
    /// The place of its first part among the contents.
    first: Option<usize>,
}

impl DiffParts {
    fn add(&mut self, part: Part, file: &mut DiffFile) {
        let is_complete = part.old_left == 0 && part.new_left == 0;
        let first = *file.first.get_or_insert(self.content.len());
        let change = (first == self.content.len())
            .then(|| FileChange { operation: file.operation, patch: Some(git_header(file)) });
        self.content.push(CallContent::Diff {
            path: file.path.clone(),
            old_text: (file.operation != ADD).then_some(part.old),
            new_text: part.new,
            change,
        });
        if let CallContent::Diff { change: Some(change), .. } = &mut self.content[first] {
            change.patch = change.patch.take().filter(|_| is_complete).map(|patch| patch + &part.text);
        }
        self.locations.push(Location { path: file.path.clone(), line: Some(part.line.max(1)) });
    }
}

const ADD: &str = "add";
const DELETE: &str = "delete";

/// The beginning of a patch in git's form, with absolute paths and without prefixes.
fn git_header(file: &DiffFile) -> String {
    let path = git_path(&file.path);
    // As git does: without a tabulator, the end of a name with blanks is not known.
    let named = if path.contains(' ') { format!("{path}\t") } else { path.clone() };
    let (kind, old, new) = match file.operation {
        ADD => ("new file mode 100644\n", "/dev/null", named.as_str()),
        DELETE => ("deleted file mode 100644\n", named.as_str(), "/dev/null"),
        _ => ("", named.as_str(), named.as_str()),
    };
    format!("diff --git {path} {path}\n{kind}--- {old}\n+++ {new}\n")
}

/// A path as git writes it: in quotes if a character of it is unusual.
fn git_path(path: &str) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if path.bytes().all(is_plain) {
        return path.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            byte if is_plain(byte) => quoted.push(char::from(byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "\""
}

/// Parses a diff. `path` is the file; without it, or for several files, the names in the diff are used, relative to
/// `cwd`.
pub(in crate::acp) fn diff_parts(diff: &str, path: Option<&Path>, cwd: &str) -> DiffParts {
    let mut parts = DiffParts::default();
    let (mut from, mut file) = ("", DiffFile::default());
    let mut open: Option<Part> = None;
    let mut last = ' ';
    for line in diff.strip_suffix('\n').unwrap_or(diff).split('\n') {
        let is_inside = open.as_ref().is_some_and(|part| part.old_left > 0 || part.new_left > 0)
            && (line.is_empty() || line.starts_with([' ', '+', '-']));
        if let (true, Some(part)) = (is_inside, open.as_mut()) {
            last = line.chars().next().unwrap_or(' ');
            push_line(&mut part.text, if line.is_empty() { " " } else { line });
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
                push_line(&mut part.text, line);
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
        if (hunk.is_some() || is_head)
            && let Some(part) = open.take()
        {
            parts.add(part, &mut file);
        }
        if let Some((first, old_left, new_left)) = hunk {
            let text = format!("{line}\n");
            open = Some(Part { line: first, old_left, new_left, text, ..Part::default() });
        } else if let Some(name) = line.strip_prefix("--- ") {
            from = name;
        } else if let Some(to) = line.strip_prefix("+++ ") {
            let (name, operation) = match (from, to) {
                (from, "/dev/null") => (from, DELETE),
                ("/dev/null", to) => (to, ADD),
                (_, to) => (to, "modify"),
            };
            let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
            let named = Path::new(cwd).join(name);
            let path = path.unwrap_or(&named).display().to_string();
            file = DiffFile { path, operation, first: None };
        } else if line.starts_with('[') {
            // The note of a diff that is too large.
            if let Some(part) = open.take() {
                parts.add(part, &mut file);
            }
            parts.content.push(CallContent::text(format!("{}: {line}", file.path)));
        }
    }
    if let Some(part) = open {
        parts.add(part, &mut file);
    }
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
        let part = |path: &str, old: Option<&str>, new: &str, operation, patch: &str| CallContent::Diff {
            path: path.into(),
            old_text: old.map(str::to_owned),
            new_text: new.into(),
            change: Some(FileChange { operation, patch: Some(patch.into()) }),
        };
        assert_eq!(
            parts.content,
            [
                part(
                    "/w/n.txt",
                    None,
                    "a\nb\n",
                    "add",
                    "diff --git /w/n.txt /w/n.txt\nnew file mode 100644\n--- /dev/null\n+++ /w/n.txt\n\
                     @@ -0,0 +1,2 @@\n+a\n+b\n",
                ),
                part(
                    "/w/r.txt",
                    Some("x\n"),
                    "",
                    "delete",
                    "diff --git /w/r.txt /w/r.txt\ndeleted file mode 100644\n--- /w/r.txt\n+++ /dev/null\n\
                     @@ -1 +0,0 @@\n-x\n",
                ),
                CallContent::text("/abs/l.txt: [the change is too large to show: 9 lines become 8]"),
            ]
        );
        let cut = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n[cut: 40 more lines of this diff]\n";
        let parts = diff_parts(cut, Some(Path::new("/w/f")), "/w");
        assert!(format!("{:?}", parts.content).contains("cut: 40 more"), "{parts:?}");
        let CallContent::Diff { change: Some(change), .. } = &parts.content[0] else { panic!("{parts:?}") };
        assert_eq!(change.patch, None, "a part that is cut is no patch");
    }

    #[test]
    fn patch_of_file_has_all_parts_and_quotes_unusual_names() {
        let diff =
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n@@ -9 +9 @@ fn x\n-c\n+d\n";
        let parts = diff_parts(diff, Some(Path::new("/w/a b")), "/w");
        let patches: Vec<Option<&str>> = parts
            .content
            .iter()
            .map(|part| match part {
                CallContent::Diff { change, .. } => change.as_ref()?.patch.as_deref(),
                other => panic!("{other:?}"),
            })
            .collect();
        let hunks = diff.split_once("@@").expect("a hunk").1;
        let whole = format!("diff --git /w/a b /w/a b\n--- /w/a b\t\n+++ /w/a b\t\n@@{hunks}");
        assert_eq!(patches, [Some(whole.as_str()), None]);
        assert_eq!(git_path("/w/\u{e9} \"\\\n\t\u{1}"), r#""/w/\303\251 \"\\\n\t\001""#);
    }
}
