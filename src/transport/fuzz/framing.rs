//! Any bytes, split anywhere, give the same messages; the memory for them is bounded.

use bytes::{Bytes, BytesMut};

use super::super::framing::{
    Decoder, Frame, Framing, Opening, content_length, http, ndjson, recognise, websocket,
};
use super::slow::{self, FramingResult};

/// Upper bound for a block of header lines or a request head before it is refused.
const HEAD: usize = 16 << 10;
/// Maximum header of a WebSocket frame, and maximum control frame.
const FRAME: usize = 14 + 125;

/// The first byte selects the decoder and the limit, the second one how the rest is split.
///
/// # Panics
/// If a property is violated.
pub fn framing(data: &[u8]) {
    let [settings, size, bytes @ ..] = data else { return };
    let (way, longest) = (settings & 3, usize::from(settings >> 2));
    let whole = read_messages(way, longest, [bytes]);
    for size in [1, usize::from(*size) + 1] {
        assert_eq!(read_messages(way, longest, bytes.chunks(size)), whole, "cut into pieces of {size}");
    }
    match way {
        1 => assert_eq!(whole, slow::lines(bytes, longest)),
        2 => assert_eq!(whole, slow::blocks(bytes, longest)),
        3 => assert_eq!(whole, slow::frames(bytes, longest)),
        _ => {}
    }
    for told in &whole {
        match told {
            FramingResult::Frame(Frame::Message(message)) | FramingResult::Post(message) => {
                assert!(message.len() <= longest, "{} bytes over a limit of {longest}", message.len());
                comes_back(message);
            }
            FramingResult::Answer(answer) => {
                assert!(answer.starts_with(b"HTTP/1.1 ") && answer.ends_with(b"\n"), "{answer:?}");
            }
            FramingResult::Frame(_) | FramingResult::Broken | FramingResult::Upgrade(_) => {}
        }
        // A request from a web page is refused, whatever else it asks for.
        if matches!(told, FramingResult::Upgrade(_) | FramingResult::Post(_)) {
            assert!(!names_an_origin(bytes), "a request with an Origin was let in");
        }
    }
}

fn read_messages<'a>(
    way: u8,
    longest: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<FramingResult> {
    let state = match way {
        1 => State::Open(Decoder::Ndjson(ndjson::Lines::new(longest))),
        2 => State::Open(Decoder::ContentLength(content_length::Blocks::new(longest))),
        3 => State::Open(Decoder::WebSocket(websocket::Frames::new(longest))),
        _ => State::Door,
    };
    let mut peer = Peer { longest, state, buffer: BytesMut::new(), told: Vec::new() };
    for chunk in chunks {
        peer.buffer.extend_from_slice(chunk);
        peer.read();
        let held = peer.buffer.len();
        assert!(held <= longest + HEAD.max(FRAME), "{held} bytes are held of a peer");
    }
    peer.end();
    peer.told
}

/// A connection without its socket: the steps of `exchange` between two reads.
struct Peer {
    longest: usize,
    state: State,
    buffer: BytesMut,
    told: Vec<FramingResult>,
}

enum State {
    /// The framing is not known yet.
    Door,
    /// A request head is expected.
    Knock,
    /// The body of a POST.
    Body(usize),
    Open(Decoder),
    Over,
}

impl Peer {
    fn read(&mut self) {
        loop {
            match &mut self.state {
                State::Door => match recognise(&self.buffer) {
                    Opening::Unclear => return,
                    Opening::Http => self.state = State::Knock,
                    Opening::Ndjson => self.open_lines(),
                    Opening::ContentLength => {
                        let blocks = content_length::Blocks::new(self.longest);
                        self.state = State::Open(Decoder::ContentLength(blocks));
                    }
                },
                State::Knock => {
                    let Some(request) = http::head(&mut self.buffer, self.longest) else { return };
                    self.state = match request {
                        http::Request::Answer(answer) => {
                            self.told.push(FramingResult::Answer(answer));
                            State::Over
                        }
                        http::Request::Metrics => {
                            self.told.push(FramingResult::Answer(http::metrics(None)));
                            State::Over
                        }
                        http::Request::WebSocket(accepted) => {
                            self.told.push(FramingResult::Upgrade(accepted));
                            State::Open(Decoder::WebSocket(websocket::Frames::new(self.longest)))
                        }
                        http::Request::Post { length, .. } => State::Body(length),
                    };
                }
                State::Body(length) => {
                    if self.buffer.len() < *length {
                        return;
                    }
                    let body = self.buffer.split_to(*length).freeze();
                    self.told.push(FramingResult::Post(body));
                    self.state = State::Over;
                }
                State::Open(decoder) => match decoder.next(&mut self.buffer) {
                    Ok(None) => return,
                    Ok(Some(frame)) => {
                        let is_last = matches!(frame, Frame::Goodbye(_));
                        self.told.push(FramingResult::Frame(frame));
                        if is_last {
                            self.state = State::Over;
                        }
                    }
                    Err(_) => {
                        self.told.push(FramingResult::Broken);
                        self.state = State::Over;
                    }
                },
                State::Over => {
                    self.buffer.clear();
                    return;
                }
            }
        }
    }

    fn open_lines(&mut self) {
        self.state = State::Open(Decoder::Ndjson(ndjson::Lines::new(self.longest)));
    }

    /// The peer sends nothing more.
    fn end(&mut self) {
        if matches!(self.state, State::Door) && !self.buffer.is_empty() {
            self.open_lines();
            self.read();
        }
        if let State::Open(decoder) = &mut self.state {
            self.told.extend(decoder.last(&mut self.buffer).map(FramingResult::Frame));
        }
    }
}

/// In framings that the daemon also reads, an encoded message decodes to the same message.
fn comes_back(message: &Bytes) {
    let sent = |framing: Framing| {
        let mut out = Vec::new();
        framing.head(message.len(), &mut out);
        out.extend_from_slice(message);
        framing.tail(&mut out);
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
fn names_an_origin(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    lines.skip(1).any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or(line);
        name.len() < line.len() && name.trim_ascii().eq_ignore_ascii_case(b"origin")
    })
}
