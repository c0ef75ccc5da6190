//! Bytes ↔ messages. The first byte decides which framing a connection uses.
//!
//! Decoders are plain state machines over a buffer, without I/O or clock, so that any split of the
//! bytes gives the same messages. [`Framing`] is the other direction.

pub mod content_length;
pub mod http;
pub mod ndjson;
pub mod websocket;

use bytes::{Bytes, BytesMut};

/// Result of a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// One whole message.
    Message(Bytes),
    /// A message over the limit; it is skipped and not kept in memory.
    TooLong,
    /// Bytes to send back unchanged (a pong).
    Answer(Bytes),
    /// The peer closes the connection; send these bytes back.
    Goodbye(Bytes),
}

impl From<ndjson::DecodedLine> for Frame {
    fn from(line: ndjson::DecodedLine) -> Self {
        match line {
            ndjson::DecodedLine::Whole(line) => Self::Message(line),
            ndjson::DecodedLine::TooLong => Self::TooLong,
        }
    }
}

/// The framing cannot be followed any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramingError {
    /// The error in the received bytes.
    pub why: &'static str,
}

/// One of the decoders of a connection that stays open.
#[derive(Debug)]
pub(super) enum Decoder {
    Ndjson(ndjson::LineDecoder),
    ContentLength(content_length::BlockDecoder),
    WebSocket(websocket::FrameDecoder),
}

impl Decoder {
    /// Takes the next frame off the front of `buffer`; `None` means that more bytes are needed.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FramingError> {
        match self {
            Self::Ndjson(lines) => Ok(lines.next(buffer).map(Frame::from)),
            Self::ContentLength(blocks) => blocks.next(buffer),
            Self::WebSocket(frames) => frames.next(buffer),
        }
    }

    /// The rest after the peer's last byte: the last line may lack its newline.
    pub(super) fn last(&mut self, buffer: &mut BytesMut) -> Option<Frame> {
        match self {
            Self::Ndjson(lines) => lines.last(buffer).map(Frame::from),
            Self::ContentLength(_) | Self::WebSocket(_) => None,
        }
    }
}

/// The framing of outgoing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Ndjson,
    ContentLength,
    WebSocket,
    /// One reply, as the body of an HTTP response.
    Http,
}

impl Framing {
    /// Writes the bytes before a message of `length` bytes.
    pub(super) fn write_head(self, length: usize, out: &mut Vec<u8>) {
        use std::io::Write;
        // Writing into a Vec cannot fail.
        let _ = match self {
            Self::Ndjson => Ok(()),
            Self::ContentLength => write!(out, "Content-Length: {length}\r\n\r\n"),
            Self::WebSocket => {
                websocket::text_head(length, out);
                Ok(())
            }
            Self::Http => {
                http::reply_head(length, out);
                Ok(())
            }
        };
    }

    /// Writes the bytes after a message.
    pub(super) fn write_tail(self, out: &mut Vec<u8>) {
        if self == Self::Ndjson {
            out.push(b'\n');
        }
    }
}

/// The protocol that the first bytes of a connection show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Ndjson,
    ContentLength,
    Http,
    /// More bytes are needed.
    Unclear,
}

/// Recognises the framing. The first byte selects the candidate. A few more bytes make sure that an
/// invalid line beginning with `G` is not taken for HTTP.
pub(super) fn detect_opening(bytes: &[u8]) -> Opening {
    const VERBS: [&[u8]; 8] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"PATCH ", b"DELETE ", b"OPTIONS ", b"TRACE "];
    const HEADER: &[u8] = b"content-";
    if bytes.is_empty() {
        return Opening::Unclear;
    }
    let begins = |word: &[u8], found: Opening| {
        let length = word.len().min(bytes.len());
        if !bytes[..length].eq_ignore_ascii_case(&word[..length]) {
            return None;
        }
        Some(if length == word.len() { found } else { Opening::Unclear })
    };
    if let Some(opening) = begins(HEADER, Opening::ContentLength) {
        return opening;
    }
    // Verbs are upper case.
    if bytes[0].is_ascii_uppercase()
        && let Some(opening) = VERBS.iter().find_map(|verb| begins(verb, Opening::Http))
    {
        return opening;
    }
    Opening::Ndjson
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_is_detected_from_first_bytes() {
        let check = |bytes: &[u8], expected| assert_eq!(detect_opening(bytes), expected, "{bytes:?}");
        check(b"", Opening::Unclear);
        check(b"{", Opening::Ndjson);
        check(b"[", Opening::Ndjson);
        check(b" ", Opening::Ndjson);
        check(b"\n", Opening::Ndjson);
        check(b"\0\xff", Opening::Ndjson);
        check(b"hello", Opening::Ndjson);
        check(b"get / HTTP/1.1", Opening::Ndjson);
        check(b"G", Opening::Unclear);
        check(b"Garbage", Opening::Ndjson);
        check(b"P", Opening::Unclear);
        check(b"PING", Opening::Ndjson);
        check(b"PUT", Opening::Unclear);
        check(b"GET / HTTP/1.1", Opening::Http);
        check(b"POST / HTTP/1.1", Opening::Http);
        check(b"C", Opening::Unclear);
        check(b"Content-", Opening::ContentLength);
        check(b"content-length: 5", Opening::ContentLength);
        check(b"Cookie", Opening::Ndjson);
    }
}
