//! `Content-Length: N`, an empty line, N bytes: the framing of language servers, for the RPC clients of
//! editors. Other header lines are ignored; a bare `\n` ends a header line as well.

use bytes::{Buf, BytesMut};

use super::{Frame, FramingError};

/// Maximum bytes of a block of header lines.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Splits bytes into blocks. Holds no bytes itself.
#[derive(Debug)]
pub struct BlockDecoder {
    max_bytes: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// In the header lines: the length if it was given, and the bytes of header read so far.
    Header { length: Option<u64>, read: usize },
    /// Waiting for a body of this many bytes.
    Body(usize),
    /// Skipping the rest of a body that is too long, in bytes.
    Skip(u64),
}

const START: State = State::Header { length: None, read: 0 };

impl BlockDecoder {
    /// Accepts bodies of at most `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: START }
    }

    /// Takes the next body off the front of `buffer`; `None` means that more bytes are needed.
    ///
    /// # Errors
    /// A header without a readable length: the start of the next block is then unknown.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FramingError> {
        loop {
            match &mut self.state {
                State::Header { length, read } => {
                    let Some(end) = buffer.iter().position(|&byte| byte == b'\n') else {
                        if *read + buffer.len() > MAX_HEADER_BYTES {
                            return Err(FramingError { why: "the header before the message is too long" });
                        }
                        return Ok(None);
                    };
                    let line = buffer.split_to(end + 1);
                    *read += line.len();
                    if *read > MAX_HEADER_BYTES {
                        return Err(FramingError { why: "the header before the message is too long" });
                    }
                    let line = line.trim_ascii();
                    if !line.is_empty() {
                        if let Some(named) = named_length(line)? {
                            *length = Some(named);
                        }
                        continue;
                    }
                    match *length {
                        // Empty lines between two blocks are harmless.
                        None if *read <= 2 => self.state = START,
                        None => return Err(FramingError { why: "the header names no Content-Length" }),
                        Some(length) => match usize::try_from(length) {
                            Ok(length) if length <= self.max_bytes => self.state = State::Body(length),
                            _ => {
                                self.state = State::Skip(length);
                                return Ok(Some(Frame::TooLong));
                            }
                        },
                    }
                }
                State::Body(length) => {
                    if buffer.len() < *length {
                        return Ok(None);
                    }
                    let body = buffer.split_to(*length).freeze();
                    self.state = START;
                    return Ok(Some(Frame::Message(body)));
                }
                State::Skip(left) => {
                    let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                    buffer.advance(passed);
                    *left -= passed as u64;
                    if *left > 0 {
                        return Ok(None);
                    }
                    self.state = START;
                }
            }
        }
    }
}

/// The length, if this header line gives one.
fn named_length(line: &[u8]) -> Result<Option<u64>, FramingError> {
    let colon = line.iter().position(|&byte| byte == b':');
    let Some(colon) = colon else { return Err(FramingError { why: "a header line without a colon" }) };
    if !line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-length") {
        return Ok(None);
    }
    let digits = line[colon + 1..].trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(FramingError { why: "Content-Length is not a number" });
    }
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.map(Some).ok_or(FramingError { why: "Content-Length is not a number" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `chunks`. `-` marks a body that was too long, `!` marks broken bytes.
    fn blocks(max_bytes: usize, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut blocks, mut buffer, mut found) = (BlockDecoder::new(max_bytes), BytesMut::new(), vec![]);
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            loop {
                match blocks.next(&mut buffer) {
                    Ok(Some(Frame::Message(body))) => found.push(body.to_vec()),
                    Ok(Some(_)) => found.push(b"-".to_vec()),
                    Ok(None) => break,
                    Err(_) => {
                        found.push(b"!".to_vec());
                        return found;
                    }
                }
            }
        }
        found
    }

    #[test]
    fn content_length_blocks_are_split() {
        let check = |bytes: &str, expected: &[&str]| {
            let found = blocks(8, &[bytes.as_bytes()]);
            let found: Vec<_> = found.iter().map(|body| String::from_utf8_lossy(body)).collect();
            assert_eq!(found, expected, "{bytes:?}");
        };
        check("Content-Length: 2\r\n\r\n{}", &["{}"]);
        check("content-length:2\n\n{}\r\nContent-Length: 0\r\n\r\n", &["{}", ""]);
        check("Content-Type: x; charset=utf-8\r\nContent-Length: 3\r\n\r\na\nb", &["a\nb"]);
        check("Content-Length: 9\r\n\r\n123456789Content-Length: 1\r\n\r\n1", &["-", "1"]);
        check("Content-Length: 18446744073709551615\r\n\r\n12", &["-"]);
        check("Content-Length: 5\r\n\r\n12", &[]);
        check("Content-Length: 99999999999999999999\r\n\r\n", &["!"]);
        check("Content-Length: -1\r\n\r\n", &["!"]);
        check("Content-Length: +1\r\n\r\n", &["!"]);
        check("Content-Type: x\r\n\r\n", &["!"]);
        check("what is this\r\n", &["!"]);
        check(&"x".repeat(9000), &["!"]);
        check(&"a: b\r\n".repeat(2000), &["!"]);
    }

    proptest! {
        #[test]
        fn blocks_are_independent_of_chunk_boundaries(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 0..6),
            cuts in proptest::collection::vec(0usize..300, 0..10),
        ) {
            let mut bytes = vec![];
            let mut expected = vec![];
            for body in &bodies {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
                bytes.extend(body);
                expected.push(if body.len() > 8 { b"-".to_vec() } else { body.clone() });
            }
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut chunks, mut from) = (vec![], 0);
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let one_by_one: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(blocks(8, &chunks), expected.clone());
            prop_assert_eq!(blocks(8, &one_by_one), expected);
        }

        #[test]
        fn content_length_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            blocks(8, &[&bytes]);
        }
    }
}
