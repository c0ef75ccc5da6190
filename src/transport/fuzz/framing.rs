//! Checks that any bytes, split anywhere, give the same messages, and that the memory for them is bounded.

use bytes::{Bytes, BytesMut};

use super::super::framing::{
    Decoder, Frame, Framing, Opening, content_length, detect_opening, http, ndjson, websocket,
};
use super::slow::{self, FramingResult};

/// Upper bound for a block of header lines or a request head before it is refused.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum header of a WebSocket frame, and maximum control frame.
const MAX_FRAME_BYTES: usize = 14 + 125;

/// The first byte of `data` selects the decoder and the limit. The second byte selects how the rest is split.
///
/// # Panics
/// If a property is violated.
pub fn framing(data: &[u8]) {
    let [settings, size, bytes @ ..] = data else { return };
    let (way, max_bytes) = (settings & 3, usize::from(settings >> 2));
    let whole = read_messages(way, max_bytes, [bytes]);
    for size in [1, usize::from(*size) + 1] {
        assert_eq!(read_messages(way, max_bytes, bytes.chunks(size)), whole, "cut into pieces of {size}");
    }
    match way {
        1 => assert_eq!(whole, slow::lines(bytes, max_bytes)),
        2 => assert_eq!(whole, slow::blocks(bytes, max_bytes)),
        3 => assert_eq!(whole, slow::frames(bytes, max_bytes)),
        _ => {}
    }
    for results in &whole {
        match results {
            FramingResult::Frame(Frame::Message(message)) | FramingResult::Post(message) => {
                assert!(message.len() <= max_bytes, "{} bytes over a limit of {max_bytes}", message.len());
                check_round_trip(message);
            }
            FramingResult::Answer(answer) => {
                assert!(answer.starts_with(b"HTTP/1.1 ") && answer.ends_with(b"\n"), "{answer:?}");
            }
            FramingResult::Frame(_) | FramingResult::Broken | FramingResult::Upgrade(_) => {}
        }
        // A request from a web page is refused, even if its other parts are valid.
        if matches!(results, FramingResult::Upgrade(_) | FramingResult::Post(_)) {
            assert!(!has_origin_header(bytes), "a request with an Origin was let in");
        }
    }
}

fn read_messages<'a>(
    way: u8,
    max_bytes: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<FramingResult> {
    let state = match way {
        1 => State::Open(Decoder::Ndjson(ndjson::LineDecoder::new(max_bytes))),
        2 => State::Open(Decoder::ContentLength(content_length::BlockDecoder::new(max_bytes))),
        3 => State::Open(Decoder::WebSocket(websocket::FrameDecoder::new(max_bytes))),
        _ => State::Unknown,
    };
    let mut peer = SimulatedConnection { max_bytes, state, buffer: BytesMut::new(), results: Vec::new() };
    for chunk in chunks {
        peer.buffer.extend_from_slice(chunk);
        peer.read();
        let held = peer.buffer.len();
        assert!(held <= max_bytes + MAX_HEAD_BYTES.max(MAX_FRAME_BYTES), "{held} bytes are held of a peer");
    }
    peer.end();
    peer.results
}

/// A connection without its socket: the steps of `ConnectionReader` between two reads.
struct SimulatedConnection {
    max_bytes: usize,
    state: State,
    buffer: BytesMut,
    results: Vec<FramingResult>,
}

enum State {
    /// The framing is not known yet.
    Unknown,
    /// A request head is expected.
    RequestHead,
    /// The body of a POST.
    Body(usize),
    Open(Decoder),
    Closed,
}

impl SimulatedConnection {
    fn read(&mut self) {
        loop {
            match &mut self.state {
                State::Unknown => match detect_opening(&self.buffer) {
                    Opening::Unclear => return,
                    Opening::Http => self.state = State::RequestHead,
                    Opening::Ndjson => self.open_lines(),
                    Opening::ContentLength => {
                        let blocks = content_length::BlockDecoder::new(self.max_bytes);
                        self.state = State::Open(Decoder::ContentLength(blocks));
                    }
                },
                State::RequestHead => {
                    let Some(request) = http::head(&mut self.buffer, self.max_bytes) else { return };
                    self.state = match request {
                        http::HttpRequest::Answer(answer) => {
                            self.results.push(FramingResult::Answer(answer));
                            State::Closed
                        }
                        http::HttpRequest::Metrics => {
                            self.results.push(FramingResult::Answer(http::metrics(None)));
                            State::Closed
                        }
                        http::HttpRequest::WebSocket(accepted) => {
                            self.results.push(FramingResult::Upgrade(accepted));
                            State::Open(Decoder::WebSocket(websocket::FrameDecoder::new(self.max_bytes)))
                        }
                        http::HttpRequest::Post { length, .. } => State::Body(length),
                    };
                }
                State::Body(length) => {
                    if self.buffer.len() < *length {
                        return;
                    }
                    let body = self.buffer.split_to(*length).freeze();
                    self.results.push(FramingResult::Post(body));
                    self.state = State::Closed;
                }
                State::Open(decoder) => match decoder.next(&mut self.buffer) {
                    Ok(None) => return,
                    Ok(Some(frame)) => {
                        let is_last = matches!(frame, Frame::Goodbye(_));
                        self.results.push(FramingResult::Frame(frame));
                        if is_last {
                            self.state = State::Closed;
                        }
                    }
                    Err(_) => {
                        self.results.push(FramingResult::Broken);
                        self.state = State::Closed;
                    }
                },
                State::Closed => {
                    self.buffer.clear();
                    return;
                }
            }
        }
    }

    fn open_lines(&mut self) {
        self.state = State::Open(Decoder::Ndjson(ndjson::LineDecoder::new(self.max_bytes)));
    }

    /// The peer sends nothing more.
    fn end(&mut self) {
        if matches!(self.state, State::Unknown) && !self.buffer.is_empty() {
            self.open_lines();
            self.read();
        }
        if let State::Open(decoder) = &mut self.state {
            self.results.extend(decoder.last(&mut self.buffer).map(FramingResult::Frame));
        }
    }
}

/// In framings that the daemon also reads, an encoded message decodes to the same message.
fn check_round_trip(message: &Bytes) {
    let sent = |framing: Framing| {
        let mut out = Vec::new();
        framing.write_head(message.len(), &mut out);
        out.extend_from_slice(message);
        framing.write_tail(&mut out);
        out
    };
    let expected = [FramingResult::Frame(Frame::Message(message.clone()))];
    assert_eq!(read_messages(2, message.len(), [&sent(Framing::ContentLength)[..]]), expected);
    // A reply is JSON text: never blank, without line ends.
    if !message.contains(&b'\n') && !message.ends_with(b"\r") && !message.trim_ascii().is_empty() {
        assert_eq!(read_messages(1, message.len(), [&sent(Framing::Ndjson)[..]]), expected);
    }
}

/// Whether a header line of the request is an `Origin`. Parses lines as simply as possible.
fn has_origin_header(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    lines.skip(1).any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or(line);
        name.len() < line.len() && name.trim_ascii().eq_ignore_ascii_case(b"origin")
    })
}
