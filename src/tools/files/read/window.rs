//! Collects the requested lines of a file while it is read in pieces.

use crate::files::read::MAX_ANSWER_BYTES;

/// Characters of one line.
const MAX_LINE_CHARS: usize = 2_000;

/// Collects the requested lines from pieces of text, and counts all lines.
pub(super) struct LineWindow {
    /// The first requested line, from 1.
    pub(super) first: u64,
    /// The last requested line.
    last_requested: u64,
    /// The character that ends a line: `\n` or `\r`.
    line_end: char,
    /// The current line, from 1.
    line: u64,
    /// Number of characters to skip at the start of each line.
    skip_columns: u64,
    current: CurrentLine,
    text: String,
    /// The last line that was added to `text`; 0 if none was.
    last_shown: u64,
    /// Whether part of a line is not shown.
    cut_a_line: bool,
    /// Whether `text` reached its limit before the last requested line.
    is_text_full: bool,
    /// Whether a shown line has a character behind the skipped columns.
    has_shown_chars: bool,
}

/// Character counts of the line that is being read.
#[derive(Default)]
struct CurrentLine {
    skipped: u64,
    shown: usize,
    /// Characters beyond [`MAX_LINE_CHARS`].
    left_out: usize,
    /// Whether the line has at least one byte, shown or not.
    has_chars: bool,
    /// A `\r` was read that may belong to the line ending.
    pending_return: bool,
}

/// Result of a [`LineWindow`].
pub(super) struct WindowText {
    /// The requested lines with their numbers.
    pub(super) text: String,
    /// Number of lines of the file.
    pub(super) total: u64,
    /// The last line that is shown; 0 if none is.
    pub(super) last: u64,
    pub(super) cut_a_line: bool,
    /// The requested column, if all lines are shorter.
    missing_column: Option<u64>,
}

impl LineWindow {
    /// A window of `limit` lines, the first one `first`, of a text whose lines end with `line_end`.
    pub(super) fn new(first: u64, limit: u64, line_end: char) -> Self {
        Self {
            first,
            last_requested: first.saturating_add(limit - 1),
            line_end,
            line: 1,
            skip_columns: 0,
            current: CurrentLine::default(),
            text: String::new(),
            last_shown: 0,
            cut_a_line: false,
            is_text_full: false,
            has_shown_chars: false,
        }
    }

    /// Shows lines from this character on, from 1.
    pub(super) fn beginning_at(mut self, column: u64) -> Self {
        self.skip_columns = column.saturating_sub(1);
        self.cut_a_line = self.skip_columns > 0;
        self
    }

    /// Whether the current line is shown.
    fn is_wanted(&self) -> bool {
        !self.is_text_full && (self.first..=self.last_requested).contains(&self.line)
    }

    /// Whether nothing more will be shown, at the beginning of a line or within one.
    pub(super) fn is_full(&self) -> bool {
        self.is_text_full || self.line > self.last_requested
    }

    /// Counts the lines of bytes that are not shown. Only for a window that is full, and for an encoding in which
    /// the byte of a line end is no part of another character.
    pub(super) fn count_only(&mut self, bytes: &[u8]) {
        // `\n` and `\r`, the two possible line ends, are ASCII.
        let line_end = self.line_end as u8;
        self.line += bytes.iter().filter(|byte| **byte == line_end).count() as u64;
        if let Some(byte) = bytes.last() {
            self.current.has_chars = *byte != line_end;
        }
    }

    /// Reads the next piece of the text, which may begin and end anywhere in a line.
    pub(super) fn add_piece(&mut self, piece: &str) {
        for part in piece.split_inclusive(self.line_end) {
            let (line, is_complete) = match part.strip_suffix(self.line_end) {
                Some(line) => (line, true),
                None => (part, false),
            };
            if self.is_wanted() {
                self.push_part(line);
            }
            if is_complete {
                self.end_line();
            } else {
                self.current.has_chars = true;
            }
        }
    }

    /// Adds part of the current line, except a `\r` at its end.
    fn push_part(&mut self, part: &str) {
        for c in part.chars() {
            if self.current.pending_return {
                self.current.pending_return = false;
                self.push_char('\r');
            }
            if c == '\r' { self.current.pending_return = true } else { self.push_char(c) }
        }
    }

    /// Skips, shows or leaves out one character of the current line.
    fn push_char(&mut self, c: char) {
        let CurrentLine { skipped, shown, left_out, .. } = self.current;
        if shown == 0 && left_out == 0 && skipped == 0 {
            self.push_line_number();
        }
        if skipped < self.skip_columns {
            self.current.skipped += 1;
        } else if shown < MAX_LINE_CHARS {
            self.text.push(c);
            self.current.shown += 1;
        } else {
            self.current.left_out += 1;
        }
    }

    /// Begins the current line in the text with its number.
    fn push_line_number(&mut self) {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{:>6}\t", self.line);
    }

    /// Ends the current line, in the text too if the line is shown.
    fn end_line(&mut self) {
        use std::fmt::Write as _;
        if self.is_wanted() {
            let CurrentLine { skipped, shown, left_out, .. } = self.current;
            if shown == 0 && skipped == 0 {
                self.push_line_number();
            }
            self.has_shown_chars |= shown > 0;
            if left_out > 0 {
                self.cut_a_line = true;
                let next = self.skip_columns + shown as u64 + 1;
                let _ = write!(self.text, " [line cut: {left_out} more characters, from column {next}]");
            }
            self.text.push('\n');
            self.last_shown = self.line;
            self.is_text_full = self.text.len() >= MAX_ANSWER_BYTES;
        }
        self.line += 1;
        self.current = CurrentLine::default();
    }

    /// Ends the text, and with it a last line without a line end.
    pub(super) fn finish(mut self) -> WindowText {
        let has_open_line = self.current.has_chars;
        let total = if has_open_line { self.line } else { self.line - 1 };
        if has_open_line {
            if self.current.pending_return && self.is_wanted() {
                self.push_char('\r');
            }
            self.end_line();
        }
        let is_column_missing = self.skip_columns > 0 && !self.has_shown_chars && self.last_shown > 0;
        WindowText {
            text: self.text,
            total,
            last: self.last_shown,
            cut_a_line: self.cut_a_line,
            missing_column: is_column_missing.then_some(self.skip_columns + 1),
        }
    }
}

impl WindowText {
    /// The text for the model, with a last line that says which lines it shows. `first` is the first requested line.
    pub(super) fn into_answer(mut self, first: u64) -> String {
        if self.total == 0 {
            return "(the file is empty)".into();
        }
        if first == 1 && self.last == self.total {
            self.text.push_str(&format!("({} lines in total)", self.total));
        } else {
            self.text.push_str(&format!("(lines {first} to {} of {})", self.last, self.total));
            if self.last < self.total {
                self.text.push_str(&format!(" Go on with offset {}.", self.last + 1));
            }
        }
        if let Some(column) = self.missing_column {
            self.text.push_str(&format!(" None of them has {column} characters."));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use crate::files::read::window::*;

    fn window(first: u64, limit: u64, pieces: &[&str]) -> (String, u64, u64) {
        let mut window = LineWindow::new(first, limit, '\n');
        pieces.iter().for_each(|piece| window.add_piece(piece));
        let shown = window.finish();
        (shown.text, shown.last, shown.total)
    }

    #[test]
    fn line_numbers_are_independent_of_chunk_boundaries() {
        for (first, limit, pieces, expected) in [
            (1, 9, &["a\nb\n"][..], ("     1\ta\n     2\tb\n", 2, 2)),
            (1, 9, &["a", "\r", "\nb", "b"], ("     1\ta\n     2\tbb\n", 2, 2)),
            (2, 1, &["a\nb\nc\n"], ("     2\tb\n", 2, 3)),
            (1, 9, &["\n\nx"], ("     1\t\n     2\t\n     3\tx\n", 3, 3)),
            (1, 9, &["a\rb\r\n"], ("     1\ta\rb\n", 1, 1)),
            (1, 9, &["a\r"], ("     1\ta\r\n", 1, 1)),
            (5, 9, &["a\n"], ("", 0, 1)),
            (1, 9, &[], ("", 0, 0)),
        ] {
            let (text, last, total) = window(first, limit, pieces);
            assert_eq!((text.as_str(), last, total), expected, "{first} {limit} {pieces:?}");
        }
    }

    #[test]
    fn long_lines_are_truncated_with_note() {
        let (text, ..) = window(1, 1, &[&"é".repeat(2_500)]);
        assert!(text.ends_with("é [line cut: 500 more characters, from column 2001]\n"), "{text}");
    }

    #[test]
    fn column_beyond_all_lines_is_reported() {
        let answer_from = |column: u64| {
            let mut window = LineWindow::new(1, 9, '\n').beginning_at(column);
            window.add_piece("abcd\nab\n\nabc\r\n");
            window.finish().into_answer(1)
        };
        let numbers = ["     1\td", "     2\t", "     3\t", "     4\t", "(4 lines in total)"];
        assert_eq!(answer_from(4), numbers.join("\n"));
        assert!(
            answer_from(5).ends_with("(4 lines in total) None of them has 5 characters."),
            "{}",
            answer_from(5)
        );
    }
}
