//! Unified diffs as lines: with line numbers, and with the changed words of a line marked. Pure.

use similar::{ChangeTag, TextDiff};

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};

/// Lines longer than this have no marked words, because the time of the comparison grows with both lines.
const MAX_COMPARED_BYTES: usize = 500;

/// If less than this share of a line is equal, no words are marked, because nearly all would be.
const MIN_EQUAL_SHARE: f32 = 0.4;

pub(crate) struct Diff {
    /// The changed files, as the diff names them.
    files: Vec<String>,
    /// Numbers of added and removed lines.
    pub(crate) added: usize,
    pub(crate) removed: usize,
    rows: Vec<Row>,
}

enum Row {
    File(String),
    /// The gap between two parts of a file.
    Gap,
    Kept(usize, String),
    Removed(usize, String),
    Added(usize, String),
    /// Any other line of the diff, such as the note about a missing line end.
    Note(String),
}

/// Whether the name of a diff's only file is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    Shown,
    Hidden,
}

impl Diff {
    /// Parses a unified diff.
    pub(crate) fn parse(text: &str) -> Self {
        let mut diff = Self { files: Vec::new(), added: 0, removed: 0, rows: Vec::new() };
        let mut before = String::new();
        let (mut old, mut new) = (0, 0);
        // Remaining lines of the current hunk in both files. They are counted because a removed line may
        // begin with `--`.
        let (mut old_left, mut new_left) = (0_usize, 0_usize);
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let is_inside = old_left > 0 || new_left > 0;
            if let Some(hunk) = hunk(line).filter(|_| !is_inside) {
                if !matches!(diff.rows.last(), None | Some(Row::File(_))) {
                    diff.rows.push(Row::Gap);
                }
                ((old, old_left), (new, new_left)) = hunk;
            } else if let Some(path) = line.strip_prefix("--- ").filter(|_| !is_inside) {
                path.trim_end().clone_into(&mut before);
            } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| !is_inside) {
                let file = file_name(&before, path.trim_end());
                diff.files.push(file.clone());
                diff.rows.push(Row::File(file));
            } else if let Some(removed) = line.strip_prefix('-') {
                diff.removed += 1;
                diff.rows.push(Row::Removed(old, removed.to_owned()));
                (old, old_left) = (old + 1, old_left.saturating_sub(1));
            } else if let Some(added) = line.strip_prefix('+') {
                diff.added += 1;
                diff.rows.push(Row::Added(new, added.to_owned()));
                (new, new_left) = (new + 1, new_left.saturating_sub(1));
            } else if let Some(unchanged) =
                line.strip_prefix(' ').or((line.is_empty() && is_inside).then_some(""))
            {
                diff.rows.push(Row::Kept(new, unchanged.to_owned()));
                (old, old_left) = (old + 1, old_left.saturating_sub(1));
                (new, new_left) = (new + 1, new_left.saturating_sub(1));
            } else if !line.is_empty() {
                diff.rows.push(Row::Note(line.to_owned()));
            }
        }
        diff
    }

    /// The file, if the diff changes exactly one.
    pub(crate) fn file(&self) -> Option<&str> {
        match self.files.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The sums, as `+2 −1`.
    pub(crate) fn sums(&self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }

    /// The lines of the diff, exact: unusual characters are visible. `name` is for a diff of a single file.
    pub(crate) fn lines(&self, name: FileName) -> Vec<StyledLine> {
        let number = |row: &Row| match row {
            Row::Kept(number, _) | Row::Removed(number, _) | Row::Added(number, _) => *number,
            Row::File(_) | Row::Gap | Row::Note(_) => 0,
        };
        let digits = self.rows.iter().map(number).max().unwrap_or(0).to_string().len().max(3);
        let mut lines = Vec::new();
        let mut index = 0;
        while index < self.rows.len() {
            let removed = self.run(index, |row| matches!(row, Row::Removed(..)));
            let added = self.run(index + removed, |row| matches!(row, Row::Added(..)));
            if removed > 0 {
                let pairs: Vec<_> = (0..removed)
                    .map(|nth| {
                        if nth < added {
                            words(self.text(index + nth), self.text(index + removed + nth))
                        } else {
                            None
                        }
                    })
                    .collect();
                for (nth, pair) in pairs.iter().enumerate() {
                    let row = &self.rows[index + nth];
                    lines.push(marked_line(digits, number(row), '-', row, pair.as_ref().map(|(old, _)| old)));
                }
                for nth in 0..added {
                    let row = &self.rows[index + removed + nth];
                    let pair = pairs.get(nth).and_then(|pair| pair.as_ref()).map(|(_, new)| new);
                    lines.push(marked_line(digits, number(row), '+', row, pair));
                }
                index += removed + added;
                continue;
            }
            let row = &self.rows[index];
            index += 1;
            if matches!(row, Row::File(_)) && name == FileName::Hidden && self.files.len() == 1 {
                continue;
            }
            lines.push(match row {
                Row::File(name) => StyledLine::new(Tone::Bold, escape::line(name)),
                Row::Gap => StyledLine::new(Tone::Dim, format!("{} ⋯", " ".repeat(digits))),
                Row::Note(text) => {
                    StyledLine::new(Tone::Dim, format!("{} {}", " ".repeat(digits), escape::line(text)))
                }
                Row::Kept(number, text) => StyledLine::new(Tone::Dim, format!("{number:>digits$}  "))
                    .and(Tone::Plain, if text.is_empty() { String::new() } else { escape::exact_line(text) }),
                Row::Added(..) | Row::Removed(..) => marked_line(digits, number(row), '+', row, None),
            });
        }
        lines
    }

    /// Number of consecutive rows from `from` on for which `is` is true.
    fn run(&self, from: usize, is: impl Fn(&Row) -> bool) -> usize {
        self.rows.iter().skip(from).take_while(|row| is(row)).count()
    }

    fn text(&self, index: usize) -> &str {
        match &self.rows[index] {
            Row::Kept(_, text) | Row::Removed(_, text) | Row::Added(_, text) | Row::Note(text) => text,
            Row::File(_) | Row::Gap => "",
        }
    }
}

/// The name of a file from its names before and after.
fn file_name(before: &str, after: &str) -> String {
    let before = before.strip_prefix("a/").unwrap_or(before);
    let after = after.strip_prefix("b/").unwrap_or(after);
    match (before, after) {
        ("/dev/null", after) => after.to_owned(),
        (before, "/dev/null") => format!("{before} (removed)"),
        (before, after) if before == after => after.to_owned(),
        (before, after) => format!("{before} → {after}"),
    }
}

/// Pieces of a line.
type LineWords = Vec<(WordChange, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordChange {
    Same,
    Changed,
}

fn marked_line(digits: usize, number: usize, sign: char, row: &Row, words: Option<&LineWords>) -> StyledLine {
    let (tone, changed) = match sign {
        '+' => (Tone::Good, Tone::AddedWords),
        _ => (Tone::Bad, Tone::RemovedWords),
    };
    // A diff without positions has no line numbers.
    let number = if number == 0 { String::new() } else { number.to_string() };
    let line = StyledLine::new(Tone::Dim, format!("{number:>digits$} "));
    match (words, row) {
        (Some(words), _) => words.iter().fold(line.and(tone, sign.to_string()), |line, (change, text)| {
            line.and(if *change == WordChange::Changed { changed } else { tone }, text.as_str())
        }),
        (None, Row::Removed(_, text) | Row::Added(_, text)) => {
            line.and(tone, format!("{sign}{}", escape::exact_line(text)))
        }
        (None, _) => line,
    }
}

/// The words of two lines. `None` unless so many of them are equal that the changed words stand out.
fn words(old: &str, new: &str) -> Option<(LineWords, LineWords)> {
    if old.len().max(new.len()) > MAX_COMPARED_BYTES {
        return None;
    }
    // Compare the escaped text, so that no escape is cut into two parts.
    let (old, new) = (escape::exact_line(old), escape::exact_line(new));
    let (old, new) = (tokens(&old), tokens(&new));
    let diff = TextDiff::from_slices(&old, &new);
    if diff.ratio() < MIN_EQUAL_SHARE {
        return None;
    }
    let (mut before, mut after) = (LineWords::new(), LineWords::new());
    let add = |words: &mut LineWords, change: WordChange, text: &str| match words.last_mut() {
        Some((last, piece)) if *last == change => piece.push_str(text),
        _ => words.push((change, text.to_owned())),
    };
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                add(&mut before, WordChange::Same, text);
                add(&mut after, WordChange::Same, text);
            }
            ChangeTag::Delete => add(&mut before, WordChange::Changed, text),
            ChangeTag::Insert => add(&mut after, WordChange::Changed, text),
        }
    }
    Some((before, after))
}

/// Splits a line of code into names, runs of blanks and single signs.
fn tokens(line: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut from = 0;
    let mut last = None;
    for (at, c) in line.char_indices() {
        if last.is_some_and(|last| last != kind(c) || last == 2) {
            tokens.push(&line[from..at]);
            from = at;
        }
        last = Some(kind(c));
    }
    tokens.push(&line[from..]);
    tokens
}

/// First line and number of lines of a hunk in one file.
type Span = (usize, usize);

/// Parses `@@ -1,2 +3,4 @@`: the part of the old file and the part of the new file.
fn hunk(line: &str) -> Option<(Span, Span)> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let span = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((span(old)?, span(new)?))
}

#[cfg(test)]
mod tests {
    use crate::ui::diff::*;

    const EDIT: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,4 +2,4 @@\n \n-fn load(path: &str) -> String {\n-    \
                        read(path).unwrap()\n+fn load(path: &str) -> Result<String> {\n+    read(path)\n }\n@@ -90 +90 @@\n-x\n+y \n";

    #[test]
    fn diff_has_numbers_of_old_and_new_lines() {
        let diff = Diff::parse(EDIT);
        assert_eq!((diff.file(), diff.sums().as_str()), (Some("src/lib.rs"), "+3 −3"));
        assert_eq!(
            diff.lines(FileName::Hidden).iter().map(StyledLine::plain).collect::<Vec<_>>(),
            [
                "  2  ",
                "  3 -fn load(path: &str) -> String {",
                "  4 -    read(path).unwrap()",
                "  3 +fn load(path: &str) -> Result<String> {",
                "  4 +    read(path)",
                "  5  }",
                "    ⋯",
                " 90 -x",
                " 90 +y⟦SP⟧",
            ]
        );
    }

    #[test]
    fn changed_words_of_similar_lines_are_marked() {
        let lines = Diff::parse(EDIT).lines(FileName::Hidden);
        let marked = |line: &StyledLine, tone| {
            line.0.iter().filter(|(t, _)| *t == tone).map(|(_, text)| text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(marked(&lines[3], Tone::AddedWords), ["Result<", ">"]);
        assert_eq!(marked(&lines[2], Tone::RemovedWords), [".unwrap()"]);
        assert!(marked(&lines[7], Tone::RemovedWords).is_empty(), "nothing is equal");
    }

    #[test]
    fn removed_line_that_looks_like_a_header_stays_a_line() {
        let diff = Diff::parse("--- a\n+++ a\n@@ -1,2 +1 @@\n--- x\n y\n");
        assert_eq!(diff.removed, 1);
        assert_eq!(diff.lines(FileName::Hidden)[0].plain(), "  1 --- x");
        assert_eq!(diff.file(), Some("a"));
    }

    #[test]
    fn diff_of_several_files_names_each_of_them() {
        let diff = Diff::parse(
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n",
        );
        let lines: Vec<String> = diff.lines(FileName::Hidden).iter().map(StyledLine::plain).collect();
        assert_eq!(lines, ["x", "  1 +x", "y (removed)", "  1 -y"]);
        assert_eq!(diff.file(), None);
    }
}
