//! Breaks streamed text between words, because a terminal breaks it inside of them. Pure.

use crate::terminal::style::width;

/// Blanks at the beginning of a line of code.
const CODE_INDENT: usize = 4;

/// The state of a streamed Markdown text. A word is held back until its end is known.
#[derive(Debug, Default)]
pub(super) struct WordWrap {
    /// Columns of the current row that are printed.
    used: usize,
    /// Blanks that follow the printed part, unless the next word begins a row.
    gap: usize,
    word: String,
    /// Whether the line has no word yet.
    is_line_start: bool,
    /// Whether the line is not broken: it is code or part of a table.
    is_whole_line: bool,
    /// Whether the lines between two fences follow.
    is_code: bool,
}

impl WordWrap {
    pub(super) fn new() -> Self {
        Self { is_line_start: true, ..Self::default() }
    }

    /// Whether a part of the text is held back.
    pub(super) fn is_holding(&self) -> bool {
        !self.word.is_empty() || self.gap > 0
    }

    /// The next part of the text as it is printed, in rows of at most `columns`.
    pub(super) fn push(&mut self, text: &str, columns: usize) -> String {
        let mut printed = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_word(&mut printed, columns);
                    printed.push('\n');
                    *self = Self { is_code: self.is_code, ..Self::new() };
                }
                ' ' => {
                    self.end_word(&mut printed, columns);
                    self.gap += 1;
                    self.is_whole_line |= self.is_line_start && self.gap >= CODE_INDENT;
                }
                c => self.word.push(c),
            }
        }
        printed
    }

    /// The part that was held back.
    pub(super) fn finish(&mut self, columns: usize) -> String {
        let mut printed = String::new();
        self.end_word(&mut printed, columns);
        *self = Self { is_code: self.is_code, ..Self::new() };
        printed
    }

    fn end_word(&mut self, printed: &mut String, columns: usize) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.is_line_start) {
            let is_fence = word.starts_with("```") || word.starts_with("~~~");
            self.is_whole_line |= self.is_code || is_fence || word.starts_with('|');
            self.is_code ^= is_fence;
        }
        let wide = width(&word);
        let is_too_long = self.used > 0 && self.used + self.gap + wide > columns;
        if is_too_long && !self.is_whole_line {
            printed.push('\n');
            self.used = 0;
        } else {
            printed.extend(std::iter::repeat_n(' ', self.gap));
            self.used += self.gap;
        }
        printed.push_str(&word);
        (self.used, self.gap) = (self.used + wide, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrapped(parts: &[&str], columns: usize) -> String {
        let mut wrap = WordWrap::new();
        let mut text: String = parts.iter().map(|part| wrap.push(part, columns)).collect();
        text.push_str(&wrap.finish(columns));
        text
    }

    #[test]
    fn streamed_words_are_not_broken_at_the_edge() {
        let check = |parts: &[&str], expected: &str| assert_eq!(wrapped(parts, 10), expected, "{parts:?}");
        check(&["one two three"], "one two\nthree");
        check(&["one tw", "o th", "ree"], "one two\nthree");
        check(&["one two\n\ntree  four"], "one two\n\ntree  four");
        check(&["abcdefghijklmno x"], "abcdefghijklmno\nx");
        check(&["  - one two three"], "  - one\ntwo three");
        check(&["世界世界 世界"], "世界世界\n世界");
        check(
            &["```sh\nmake all the things\n```\none two three"],
            "```sh\nmake all the things\n```\none two\nthree",
        );
        check(&["    code that is long\n| a | b | c | d |"], "    code that is long\n| a | b | c | d |");
    }

    proptest! {
        #[test]
        fn wrapped_text_keeps_its_words_however_it_is_split(
            text in "[a-e世 \n]{0,80}", index in 0usize..80, columns in 4usize..20
        ) {
            let index = text.floor_char_boundary(index.min(text.len()));
            let whole = wrapped(&[&text], columns);
            prop_assert_eq!(&wrapped(&[&text[..index], &text[index..]], columns), &whole);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&whole), words(&text));
        }
    }
}
