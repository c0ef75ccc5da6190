//! Collects the output of a command: valid UTF-8 from arbitrary pieces, bounded, shortened to its head and tail
//! for the model.

use std::collections::VecDeque;

use crate::terminal_text::shown_text;

/// Bytes kept of the head, and of the tail: more than the model receives. The spool has the full output.
const CAPTURE_END_BYTES: usize = 128 << 10;

/// Decodes bytes that arrive in pieces. An incomplete character is kept for the next piece.
#[derive(Default)]
pub(crate) struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Returns the text of all bytes that were not returned before.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let cut = incomplete_tail(&self.held);
        let whole = self.held.len() - cut;
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        text
    }

    /// Returns the rest at the end of the output.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// Number of bytes at the end that may be the beginning of one character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    for at in (from..bytes.len()).rev() {
        let wanted = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        let have = bytes.len() - at;
        let is_cut =
            have < wanted && std::str::from_utf8(&bytes[at..]).is_err_and(|e| e.error_len().is_none());
        return if is_cut { have } else { 0 };
    }
    0
}

/// A part of an output, possibly with a gap.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputPart {
    pub(crate) before: String,
    /// Bytes missing in the gap.
    pub(crate) gap_bytes: u64,
    pub(crate) rest: String,
}

impl OutputPart {
    /// The part as a terminal shows it, and whether visible text was drawn over.
    pub(crate) fn shown(self) -> (Self, bool) {
        let (before, rest) = (shown_text(&self.before), shown_text(&self.rest));
        let is_redrawn = before.is_redrawn || rest.is_redrawn;
        let (before, rest) = (before.text.into_owned(), rest.text.into_owned());
        (Self { before, gap_bytes: self.gap_bytes, rest }, is_redrawn)
    }

    /// At most `cap` characters of output. The flag says whether output is missing.
    pub(crate) fn shorten(self, cap: usize) -> (String, bool) {
        let Self { before, gap_bytes, rest } = self;
        if gap_bytes == 0 {
            return cut_middle(&(before + &rest), cap);
        }
        let head = &before[..boundary(&before, cap / 2)];
        let tail = last_chars(&rest, cap - cap / 2);
        let missing = gap_bytes + (before.len() - head.len() + rest.len() - tail.len()) as u64;
        (format!("{head}\n[… {missing} bytes were left out here …]\n{tail}"), true)
    }
}

/// Both streams in the order of arrival: the head, and the tail of the rest.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: String,
    tail: VecDeque<u8>,
    /// Bytes dropped between head and tail.
    dropped: u64,
}

impl Capture {
    pub(crate) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.head.len() < CAPTURE_END_BYTES {
            let mut fits = text.len().min(CAPTURE_END_BYTES - self.head.len());
            while !text.is_char_boundary(fits) {
                fits -= 1;
            }
            self.head.push_str(&text[..fits]);
            text = &text[fits..];
        }
        self.tail.extend(text.as_bytes());
        if self.tail.len() > CAPTURE_END_BYTES {
            let excess = self.tail.len() - CAPTURE_END_BYTES;
            self.tail.drain(..excess);
            self.dropped += excess as u64;
        }
    }

    /// Total number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.dropped + self.tail.len() as u64
    }

    /// The kept output after the first `from` bytes, with the number of missing bytes and the start of the part
    /// after the gap.
    pub(crate) fn output_since(&self, from: u64) -> OutputPart {
        let (head_end, tail_start) = (self.head.len() as u64, self.head.len() as u64 + self.dropped);
        let at = usize::try_from(from.min(head_end)).unwrap_or(0);
        let mut before = self.head.get(at..).unwrap_or_default().to_owned();
        let skip = usize::try_from(from.saturating_sub(tail_start)).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.tail.iter().skip(skip).copied().collect();
        // After a gap or a wrong count, the text may begin inside a character.
        let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        let rest = String::from_utf8_lossy(&bytes[cut..]);
        let gap_bytes = tail_start.saturating_sub(from.max(head_end));
        if gap_bytes == 0 {
            before.push_str(&rest);
            return OutputPart { before, gap_bytes, rest: String::new() };
        }
        OutputPart { before, gap_bytes, rest: rest.into_owned() }
    }
}

/// The byte position after the first `chars` characters.
fn boundary(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

fn last_chars(text: &str, chars: usize) -> &str {
    match chars.checked_sub(1).and_then(|n| text.char_indices().rev().nth(n)) {
        Some((at, _)) => &text[at..],
        None if chars == 0 => "",
        None => text,
    }
}

/// Head and tail of a text of more than `cap` characters, with a note about the missing part.
pub(crate) fn cut_middle(text: &str, cap: usize) -> (String, bool) {
    let total = text.chars().count();
    if total <= cap {
        return (text.to_owned(), false);
    }
    let head = &text[..boundary(text, cap / 2)];
    let tail = last_chars(text, cap - cap / 2);
    (format!("{head}\n[… {} characters were left out here …]\n{tail}", total - cap), true)
}

#[cfg(test)]
mod tests {
    use crate::capture::*;

    #[test]
    fn long_output_keeps_head_and_tail() {
        let mut short = Capture::default();
        short.push("a\n");
        short.push("b\n");
        assert_eq!(short.output_since(0).shorten(10), ("a\nb\n".into(), false));

        let mut long = Capture::default();
        long.push("12345é67890");
        assert_eq!(
            long.output_since(0).shorten(4),
            ("12\n[… 7 characters were left out here …]\n90".into(), true)
        );

        let mut huge = Capture::default();
        huge.push("BEGIN");
        for _ in 0..200 {
            huge.push(&"é".repeat(10_000));
            assert!(huge.head.len() + huge.tail.len() <= 2 * CAPTURE_END_BYTES);
        }
        huge.push("END");
        let (text, cut) = huge.output_since(0).shorten(100);
        assert!(cut && text.starts_with("BEGIN") && text.ends_with("END"), "{text}");
        assert!(text.chars().count() < 160);
    }

    #[test]
    fn capture_returns_new_output_from_any_offset() {
        let mut small = Capture::default();
        small.push("aé\nb");
        for (from, expected) in [(0, "aé\nb"), (3, "\nb"), (5, ""), (9, "")] {
            let piece = OutputPart { before: expected.into(), gap_bytes: 0, rest: String::new() };
            assert_eq!(small.output_since(from), piece, "{from}");
        }
        let mut flood = Capture::default();
        for _ in 0..100_000 {
            flood.push("123456789\n");
        }
        flood.push("end");
        assert_eq!(flood.bytes(), 1_000_003);
        let (half, all) = (CAPTURE_END_BYTES as u64, flood.bytes());
        let whole = flood.output_since(0);
        assert_eq!(
            (whole.before.len(), whole.gap_bytes, whole.rest.len()),
            (CAPTURE_END_BYTES, all - 2 * half, CAPTURE_END_BYTES)
        );
        let later = flood.output_since(500_000);
        assert_eq!((later.before.as_str(), later.gap_bytes), ("", all - half - 500_000));
        assert_eq!(
            flood.output_since(all - 5),
            OutputPart { before: "9\nend".into(), gap_bytes: 0, rest: String::new() }
        );
    }

    proptest::proptest! {
        #[test]
        fn utf8_decoding_is_independent_of_chunks(
            text in "[aé€😀\n]{0,30}", cuts in proptest::collection::vec(0usize..8, 0..20),
        ) {
            let mut utf8 = Utf8Decoder::default();
            let mut rest = text.as_bytes();
            let mut out = String::new();
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                let fresh = utf8.push(piece);
                let has_replacement = fresh.contains(char::REPLACEMENT_CHARACTER);
                proptest::prop_assert!(!has_replacement);
                out.push_str(&fresh);
                rest = later;
            }
            out.push_str(&utf8.push(rest));
            out.push_str(&utf8.finish());
            proptest::prop_assert_eq!(out, text);
        }

        #[test]
        fn utf8_decoding_keeps_all_valid_text(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
        ) {
            let mut utf8 = Utf8Decoder::default();
            let mut out = String::new();
            for byte in &bytes {
                out.push_str(&utf8.push(&[*byte]));
            }
            out.push_str(&utf8.finish());
            proptest::prop_assert_eq!(out, String::from_utf8_lossy(&bytes));
        }
    }
}
