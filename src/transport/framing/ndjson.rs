//! One JSON text per line. The daemon and its clients share this code.
//!
//! A line ends with `\n` or `\r\n`. Lines of only white space are ignored. A line over the limit is
//! reported once and skipped without being kept.

use std::io::{self, BufRead};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Result at the front of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedLine {
    /// A line without its end.
    Whole(Bytes),
    /// A line longer than the limit. The rest of it will be skipped.
    TooLong,
}

/// Splits bytes into lines. Holds no bytes itself.
#[derive(Debug)]
pub struct LineDecoder {
    max_bytes: usize,
    /// Number of bytes at the front of the buffer without a newline.
    searched: usize,
    skipping: bool,
}

impl LineDecoder {
    /// Accepts lines of at most `max_bytes` bytes, not counting their end.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, searched: 0, skipping: false }
    }

    /// Takes the next line off the front of `buffer`; `None` means that more bytes are needed. Between
    /// two calls the caller may only append bytes.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Option<DecodedLine> {
        loop {
            let Some(end) = newline(&buffer[self.searched..]).map(|at| self.searched + at) else {
                return self.unfinished(buffer);
            };
            self.searched = 0;
            let mut line = buffer.split_to(end);
            buffer.advance(1);
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if line.len() > self.max_bytes {
                return Some(DecodedLine::TooLong);
            }
            if !is_blank(&line) {
                return Some(DecodedLine::Whole(line.freeze()));
            }
        }
    }

    /// The rest of `buffer` after the last byte: a last line may lack its newline.
    pub fn last(&mut self, buffer: &mut BytesMut) -> Option<DecodedLine> {
        self.searched = 0;
        let line = buffer.split().freeze();
        if std::mem::take(&mut self.skipping) || is_blank(&line) {
            return None;
        }
        Some(if line.len() > self.max_bytes { DecodedLine::TooLong } else { DecodedLine::Whole(line) })
    }

    /// No newline yet: keep the bytes while they may become a line, otherwise drop them.
    fn unfinished(&mut self, buffer: &mut BytesMut) -> Option<DecodedLine> {
        if self.skipping {
            buffer.clear();
            self.searched = 0;
            return None;
        }
        // One extra byte may be the first half of the line's end.
        let half_ended = buffer.len() == self.max_bytes + 1 && buffer.last() == Some(&b'\r');
        if buffer.len() <= self.max_bytes || half_ended {
            self.searched = buffer.len();
            return None;
        }
        buffer.clear();
        self.searched = 0;
        self.skipping = true;
        Some(DecodedLine::TooLong)
    }
}

/// Position of the first newline. The standard library's byte search is vectorised and is accessible
/// only through this call.
fn newline(mut bytes: &[u8]) -> Option<usize> {
    let all = bytes;
    let passed = bytes.skip_until(b'\n').unwrap_or(0);
    (passed > 0 && all[passed - 1] == b'\n').then(|| passed - 1)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Reads lines from a stream, for clients.
#[derive(Debug)]
pub struct LineReader<R> {
    stream: R,
    buffer: BytesMut,
    lines: LineDecoder,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `max_bytes` bytes from `stream`.
    pub fn new(stream: R, max_bytes: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), lines: LineDecoder::new(max_bytes), ended: false }
    }

    /// The next line; `None` at the end of the stream. Cancel-safe: no byte is lost.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn next(&mut self) -> io::Result<Option<DecodedLine>> {
        loop {
            if let Some(line) = self.lines.next(&mut self.buffer) {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.lines.last(&mut self.buffer));
            }
            self.buffer.reserve(8 << 10);
            self.ended = self.stream.read_buf(&mut self.buffer).await? == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `chunks` one after the other; `-` marks a line that was too long.
    fn lines(max_bytes: usize, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let show = |line| match line {
            DecodedLine::Whole(line) => line.to_vec(),
            DecodedLine::TooLong => b"-".to_vec(),
        };
        let (mut lines, mut buffer, mut found) = (LineDecoder::new(max_bytes), BytesMut::new(), vec![]);
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            while let Some(line) = lines.next(&mut buffer) {
                found.push(show(line));
            }
            assert!(buffer.len() <= max_bytes + 1, "kept {} bytes", buffer.len());
        }
        found.extend(lines.last(&mut buffer).map(show));
        found
    }

    #[test]
    fn ndjson_lines_are_split_within_limit() {
        let check = |bytes: &[u8], expected: &[&str]| {
            let found = lines(8, &[bytes]);
            let found: Vec<_> = found.iter().map(|line| String::from_utf8_lossy(line)).collect();
            assert_eq!(found, expected);
        };
        check(b"", &[]);
        check(b"one\ntwo\r\n", &["one", "two"]);
        check(b"\n\r\n \t \none\n", &["one"]);
        check(b"no end", &["no end"]);
        check(b"12345678\n", &["12345678"]);
        check(b"12345678\r\n", &["12345678"]);
        check(b"123456789\nnext\n", &["-", "next"]);
        check(b"1234567890123456\nnext\n", &["-", "next"]);
        check(b"1234567890123456", &["-"]);
        check(b"123456789", &["-"]);
        check(b"\xff\n", &["\u{fffd}"]);
    }

    proptest! {
        #[test]
        fn ndjson_lines_are_independent_of_chunk_boundaries(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>(), Just(b'x')], 0..80),
            cuts in proptest::collection::vec(0usize..80, 0..8),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut chunks, mut from) = (vec![], 0);
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let one_by_one: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(lines(8, &chunks), lines(8, &one_by_one));
        }
    }

    #[tokio::test]
    async fn line_reader_returns_lines_and_end() {
        let mut reader = LineReader::new(&b"one\ntwo"[..], 100);
        assert_eq!(reader.next().await.unwrap(), Some(DecodedLine::Whole("one".into())));
        assert_eq!(reader.next().await.unwrap(), Some(DecodedLine::Whole("two".into())));
        assert_eq!(reader.next().await.unwrap(), None);
        assert_eq!(reader.next().await.unwrap(), None);
    }
}
