//! Changes text files without loss: line endings. [`base::charset`] knows the encodings.
//!
//! The model sees `\n` and UTF-8. An edit is made in the original text, so that bytes outside the edited range
//! stay the same.

use std::borrow::Cow;
use std::ops::Range;

pub(crate) use base::charset::{Charset, DETECTION_BYTES, Extent, binary_kind, detect, text_of};

/// The line endings of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEndings {
    None,
    Lf,
    CrLf,
    /// Only carriage returns, and at least one.
    Cr,
    Mixed,
}

impl LineEndings {
    pub(crate) fn detect(text: &str) -> Self {
        let bytes = text.as_bytes();
        let has_feed = memchr::memchr(b'\n', bytes).is_some();
        if memchr::memchr(b'\r', bytes).is_none() {
            return if has_feed { Self::Lf } else { Self::None };
        }
        let all = memchr::memchr_iter(b'\n', bytes).count();
        let crlf = memchr::memchr_iter(b'\r', bytes).filter(|at| bytes.get(at + 1) == Some(&b'\n')).count();
        match (all, crlf) {
            (0, _) => Self::Cr,
            (_, 0) => Self::Lf,
            (all, crlf) if all == crlf => Self::CrLf,
            _ => Self::Mixed,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "no line endings",
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
            Self::Cr => "CR",
            Self::Mixed => "mixed line endings",
        }
    }
}

/// A text as the model sees it (`\n` only), with data to restore the original.
pub(crate) struct ShownText<'t> {
    original: &'t str,
    pub(crate) text: Cow<'t, str>,
    /// Positions in `text` of the line feeds that are `\r\n` in the original, ascending.
    crlf: Vec<usize>,
    /// Whether every line feed of `text` is a `\r` in the original.
    cr: bool,
}

impl<'t> ShownText<'t> {
    pub(crate) fn new(original: &'t str) -> Self {
        match LineEndings::detect(original) {
            LineEndings::Lf | LineEndings::None => {
                return Self { original, text: Cow::Borrowed(original), crlf: Vec::new(), cr: false };
            }
            LineEndings::Cr => {
                let text = Cow::Owned(original.replace('\r', "\n"));
                return Self { original, text, crlf: Vec::new(), cr: true };
            }
            LineEndings::CrLf | LineEndings::Mixed => {}
        }
        let mut text = String::with_capacity(original.len());
        let mut crlf = Vec::new();
        let mut done = 0;
        for at in memchr::memmem::find_iter(original.as_bytes(), b"\r\n") {
            text.push_str(&original[done..at]);
            crlf.push(text.len());
            text.push('\n');
            done = at + 2;
        }
        text.push_str(&original[done..]);
        Self { original, text: Cow::Owned(text), crlf, cr: false }
    }

    /// The position in the original of the character at `at` of `text`.
    fn original_position(&self, at: usize) -> usize {
        at + self.crlf.partition_point(|feed| *feed < at)
    }

    fn is_crlf(&self, feed: usize) -> bool {
        self.crlf.binary_search(&feed).is_ok()
    }

    /// A text of the model with `\n` line endings, for comparison.
    pub(crate) fn unify(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n");
        if self.cr { text.replace('\r', "\n") } else { text }
    }

    /// The original with each range of `ranges` (ascending, disjoint, in `text`) replaced by `new`. Line feeds
    /// of `new` take the form of the replaced ones, otherwise of their neighbours.
    pub(crate) fn replace(&self, ranges: &[Range<usize>], new: &str) -> String {
        self.replace_each(ranges.iter().map(|range| (range.clone(), new)))
    }

    /// Like [`Self::replace`], with a separate text for each range.
    pub(crate) fn replace_each<'n>(
        &self,
        parts: impl IntoIterator<Item = (Range<usize>, &'n str)>,
    ) -> String {
        let mut out = String::with_capacity(self.original.len() + 1024);
        let mut done = 0;
        for (range, new) in parts {
            out.push_str(&self.original[done..self.original_position(range.start)]);
            let mut old_feeds = self.text[range.clone()].match_indices('\n').map(|(at, _)| range.start + at);
            let mut form = self.is_crlf_near(range.start);
            for piece in new.split_inclusive('\n') {
                match piece.strip_suffix('\n') {
                    None => out.push_str(piece),
                    Some(line) => {
                        if let Some(feed) = old_feeds.next() {
                            form = self.is_crlf(feed);
                        }
                        out.push_str(line);
                        out.push_str(match (self.cr, form) {
                            (true, _) => "\r",
                            (false, true) => "\r\n",
                            (false, false) => "\n",
                        });
                    }
                }
            }
            done = self.original_position(range.end);
        }
        out.push_str(&self.original[done..]);
        out
    }

    /// Whether the line ending nearest to `at` is `\r\n`.
    fn is_crlf_near(&self, at: usize) -> bool {
        let before = self.text[..at].rfind('\n');
        let near = before.or_else(|| self.text[at..].find('\n').map(|offset| at + offset));
        near.is_some_and(|feed| self.is_crlf(feed))
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::text::*;

    fn check(original: &str, old: &str, new: &str, expected: &str) {
        let shown = ShownText::new(original);
        let ranges: Vec<_> = shown.text.match_indices(old).map(|(at, m)| at..at + m.len()).collect();
        assert!(!ranges.is_empty(), "{original:?} lacks {old:?}");
        assert_eq!(shown.replace(&ranges, new), expected, "{original:?}: {old:?} -> {new:?}");
    }

    #[test]
    fn edit_keeps_outer_line_endings_and_adapts_inner() {
        for (original, old, new, expected) in [
            ("a\nb\nc\n", "b", "x\ny", "a\nx\ny\nc\n"),
            ("a\r\nb\r\nc\r\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "a\nb\n", "z\n", "z\r\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC", "A\r\nB\nC\r\n"),
            ("a\r\nb\nc\r\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\r\n"),
            ("a\r\nb\nc\r\n", "\nb", "\nB", "a\r\nB\nc\r\n"),
            ("x\ny\r\nx\r\n", "x", "1\n2", "1\n2\ny\r\n1\r\n2\r\n"),
            ("lone\rcr\n", "cr", "CR", "lone\rCR\n"),
            ("a\rb\rc", "b\n", "x\ny\n", "a\rx\ry\rc"),
            ("a\r", "a", "b", "b\r"),
            ("one", "one", "1\n2", "1\n2"),
        ] {
            check(original, old, new, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn replacement_keeps_bytes_outside_edited_range(original in "[ab\r\n]{0,40}", at in 0usize..40, len in 0usize..8) {
            let shown = ShownText::new(&original);
            let start = at.min(shown.text.len());
            let end = (start + len).min(shown.text.len());
            let range = start..end;
            let out = shown.replace(std::slice::from_ref(&range), "Z");
            let (head, tail) = (&original[..shown.original_position(start)], &original[shown.original_position(end)..]);
            proptest::prop_assert_eq!(out, format!("{head}Z{tail}"));
            // Replacing a range by its own text changes nothing.
            let same = shown.replace(std::slice::from_ref(&range), &shown.text[range.clone()]);
            proptest::prop_assert_eq!(same, original);
        }
    }
}
