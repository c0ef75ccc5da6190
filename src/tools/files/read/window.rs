//! Collects the requested lines of a file while it is read in pieces.

use crate::files::read::MAX_ANSWER_BYTES;

/// Characters of one line.
const MAX_LINE_CHARS: usize = 2_000;

/// Collects the requested lines from pieces of text, and counts all lines.
pub(super) struct LineWindow {
    pub(super) first: u64,
    /// The last requested line.
    until: u64,
    /// The character that ends a line.
    feed: char,
    /// The current line, from 1.
    line: u64,
    text: String,
    /// Characters of each line before the first one that is shown.
    before: u64,
    /// Character counts of the current line: skipped before the first shown one, shown, and left out.
    passed: u64,
    shown_chars: usize,
    left_out: usize,
    /// Whether the current line has at least one character.
    line_has_chars: bool,
    /// A `\r` that may belong to the line ending.
    pending_return: bool,
    last: u64,
    cut_a_line: bool,
    stopped_early: bool,
    /// Whether any character of a line is shown.
    reached: bool,
}

/// Result of a [`LineWindow`].
pub(super) struct WindowText {
    pub(super) text: String,
    pub(super) total: u64,
    /// The last line that is shown; 0 if none is.
    pub(super) last: u64,
    pub(super) cut_a_line: bool,
    /// The requested column, if all lines are shorter.
    beyond: Option<u64>,
}

impl LineWindow {
    pub(super) fn new(first: u64, limit: u64, feed: char) -> Self {
        Self {
            first,
            until: first.saturating_add(limit - 1),
            feed,
            line: 1,
            text: String::new(),
            before: 0,
            passed: 0,
            shown_chars: 0,
            left_out: 0,
            line_has_chars: false,
            pending_return: false,
            last: 0,
            cut_a_line: false,
            stopped_early: false,
            reached: false,
        }
    }

    /// Shows lines from this character on, from 1.
    pub(super) fn beginning_at(mut self, column: u64) -> Self {
        self.before = column.saturating_sub(1);
        self.cut_a_line = self.before > 0;
        self
    }

    fn is_wanted(&self) -> bool {
        !self.stopped_early && (self.first..=self.until).contains(&self.line)
    }

    /// Whether nothing more will be shown, at the beginning of a line or within one.
    pub(super) fn is_full(&self) -> bool {
        self.stopped_early || self.line > self.until
    }

    /// Continues with bytes of which only the line feeds count.
    pub(super) fn count_only(&mut self, bytes: &[u8]) {
        // Both characters are ASCII.
        let feed = self.feed as u8;
        self.line += bytes.iter().filter(|byte| **byte == feed).count() as u64;
        if let Some(byte) = bytes.last() {
            self.line_has_chars = *byte != feed;
        }
    }

    pub(super) fn add_piece(&mut self, piece: &str) {
        for part in piece.split_inclusive(self.feed) {
            let (line, ends) = match part.strip_suffix(self.feed) {
                Some(line) => (line, true),
                None => (part, false),
            };
            if self.is_wanted() {
                self.append_part(line);
            }
            if ends {
                self.end_line();
            } else {
                self.line_has_chars = true;
            }
        }
    }

    fn append_part(&mut self, part: &str) {
        for c in part.chars() {
            if self.pending_return {
                self.pending_return = false;
                self.push('\r');
            }
            if c == '\r' { self.pending_return = true } else { self.push(c) }
        }
    }

    fn push(&mut self, c: char) {
        if self.shown_chars == 0 && self.left_out == 0 && self.passed == 0 {
            self.number();
        }
        if self.passed < self.before {
            self.passed += 1;
            return;
        }
        if self.shown_chars < MAX_LINE_CHARS {
            self.text.push(c);
            self.shown_chars += 1;
        } else {
            self.left_out += 1;
        }
    }

    fn number(&mut self) {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{:>6}\t", self.line);
    }

    fn end_line(&mut self) {
        use std::fmt::Write as _;
        if self.is_wanted() {
            if self.shown_chars == 0 && self.passed == 0 {
                self.number();
            }
            self.reached |= self.shown_chars > 0;
            if self.left_out > 0 {
                self.cut_a_line = true;
                let next = self.before + self.shown_chars as u64 + 1;
                let _ =
                    write!(self.text, " [line cut: {} more characters, from column {next}]", self.left_out);
            }
            self.text.push('\n');
            self.last = self.line;
            self.stopped_early = self.text.len() >= MAX_ANSWER_BYTES;
        }
        self.line += 1;
        (self.passed, self.shown_chars, self.left_out) = (0, 0, 0);
        (self.line_has_chars, self.pending_return) = (false, false);
    }

    pub(super) fn finish(mut self) -> WindowText {
        let total = if self.line_has_chars { self.line } else { self.line - 1 };
        if self.line_has_chars {
            if self.pending_return && self.is_wanted() {
                self.push('\r');
            }
            self.end_line();
        }
        let beyond = (self.before > 0 && !self.reached && self.last > 0).then_some(self.before + 1);
        WindowText { text: self.text, total, last: self.last, cut_a_line: self.cut_a_line, beyond }
    }
}

impl WindowText {
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
        if let Some(column) = self.beyond {
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
