//! WebSocket frames (RFC 6455), the server's side. soketto parses headers and masks. The payload is
//! split here, so that a frame header with a large length reserves no memory, and a message over the
//! limit gets an error instead of ending the connection.

use bytes::{Buf, Bytes, BytesMut};
use soketto::Parsing;
use soketto::base::{Codec, Header, OpCode};

use super::{Frame, FramingError};

/// Maximum payload bytes of a control frame.
const MAX_CONTROL_BYTES: usize = 125;

/// Close codes of the protocol.
const PROTOCOL_ERROR: u16 = 1002;
const GOING_AWAY: u16 = 1001;

/// Splits bytes into messages; joins fragments.
#[derive(Debug)]
pub struct FrameDecoder {
    max_bytes: usize,
    codec: Codec,
    header: Option<Header>,
    message: Fragments,
    /// Payload bytes that are still to be skipped.
    skip: usize,
}

/// The received part of a fragmented message.
#[derive(Debug)]
enum Fragments {
    None,
    Some(BytesMut),
    /// Already over the limit: the rest is skipped.
    TooLong,
}

impl FrameDecoder {
    /// Accepts messages of at most `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        let mut codec = Codec::new();
        codec.set_max_data_size(usize::MAX);
        Self { max_bytes, codec, header: None, message: Fragments::None, skip: 0 }
    }

    /// Takes the next message or control frame off the front of `buffer`; `None` means that more bytes
    /// are needed.
    ///
    /// # Errors
    /// The bytes are not a client's frame: the connection has to end with [`protocol_error`].
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FramingError> {
        loop {
            if self.skip > 0 {
                let passed = self.skip.min(buffer.len());
                buffer.advance(passed);
                self.skip -= passed;
                if self.skip > 0 {
                    return Ok(None);
                }
            }
            let header = match self.header.take() {
                Some(header) => header,
                None => match self.read_header(buffer)? {
                    Some(header) => header,
                    None => return Ok(None),
                },
            };
            if !header.opcode().is_control() && self.exceeds_limit(&header) {
                self.skip = header.payload_len();
                let first = !matches!(self.message, Fragments::TooLong);
                self.message = if header.is_fin() { Fragments::None } else { Fragments::TooLong };
                if first {
                    return Ok(Some(Frame::TooLong));
                }
                continue;
            }
            if buffer.len() < header.payload_len() {
                self.header = Some(header);
                return Ok(None);
            }
            let mut payload = buffer.split_to(header.payload_len());
            Codec::apply_mask(&header, &mut payload);
            match header.opcode() {
                OpCode::Ping => return Ok(Some(Frame::Answer(control(OpCode::Pong, &payload)))),
                OpCode::Pong => {}
                OpCode::Close => return Ok(Some(Frame::Goodbye(close_answer(&payload)))),
                _ => {
                    if let Some(message) = self.join_fragment(payload, header.is_fin()) {
                        return Ok(Some(Frame::Message(message)));
                    }
                }
            }
        }
    }

    fn read_header(&mut self, buffer: &mut BytesMut) -> Result<Option<Header>, FramingError> {
        let header = match self.codec.decode_header(buffer) {
            Ok(Parsing::Done { value, offset }) => {
                buffer.advance(offset);
                value
            }
            Ok(Parsing::NeedMore(_)) => return Ok(None),
            Err(_) => return Err(FramingError { why: "bytes that are not a WebSocket frame" }),
        };
        if !header.is_masked() {
            return Err(FramingError { why: "a WebSocket frame from a client must be masked" });
        }
        if header.opcode().is_control() {
            if header.payload_len() > MAX_CONTROL_BYTES {
                return Err(FramingError { why: "a WebSocket control frame is too long" });
            }
            return Ok(Some(header));
        }
        let inside = !matches!(self.message, Fragments::None);
        if inside != (header.opcode() == OpCode::Continue) {
            return Err(FramingError { why: "WebSocket fragments out of order" });
        }
        Ok(Some(header))
    }

    fn exceeds_limit(&self, header: &Header) -> bool {
        match &self.message {
            Fragments::None => header.payload_len() > self.max_bytes,
            Fragments::Some(sofar) => header.payload_len() > self.max_bytes - sofar.len(),
            Fragments::TooLong => true,
        }
    }

    fn join_fragment(&mut self, payload: BytesMut, last: bool) -> Option<Bytes> {
        let message = match std::mem::replace(&mut self.message, Fragments::None) {
            Fragments::Some(mut sofar) => {
                sofar.extend_from_slice(&payload);
                sofar
            }
            Fragments::None | Fragments::TooLong => payload,
        };
        if last {
            return Some(message.freeze());
        }
        self.message = Fragments::Some(message);
        None
    }
}

/// The header of a text frame with a whole message.
pub(super) fn text_head(length: usize, out: &mut Vec<u8>) {
    let mut header = Header::new(OpCode::Text);
    header.set_payload_len(length);
    out.extend_from_slice(Codec::new().encode_header(&header));
}

/// The close frame for bytes that violate the protocol.
pub fn protocol_error() -> Bytes {
    control(OpCode::Close, &PROTOCOL_ERROR.to_be_bytes())
}

/// The close frame of a daemon that stops.
pub fn going_away() -> Bytes {
    control(OpCode::Close, &GOING_AWAY.to_be_bytes())
}

/// The answer to a close frame: the same code, or a protocol error if the frame was invalid.
fn close_answer(payload: &[u8]) -> Bytes {
    match payload {
        [] => control(OpCode::Close, &[]),
        [a, b, reason @ ..] => {
            let code = u16::from_be_bytes([*a, *b]);
            let sound = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
                && std::str::from_utf8(reason).is_ok();
            control(OpCode::Close, &if sound { code } else { PROTOCOL_ERROR }.to_be_bytes())
        }
        [_] => protocol_error(),
    }
}

fn control(opcode: OpCode, payload: &[u8]) -> Bytes {
    let mut header = Header::new(opcode);
    header.set_payload_len(payload.len());
    let mut frame = Codec::new().encode_header(&header).to_vec();
    frame.extend_from_slice(payload);
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A client's frame.
    fn frame(opcode: OpCode, fin: bool, payload: &[u8]) -> Vec<u8> {
        let mut header = Header::new(opcode);
        header.set_fin(fin).set_masked(true).set_mask(0x1234_abcd).set_payload_len(payload.len());
        let mut bytes = Codec::new().encode_header(&header).to_vec();
        let mut payload = payload.to_vec();
        Codec::apply_mask(&header, &mut payload);
        bytes.extend(payload);
        bytes
    }

    fn read(max_bytes: usize, chunks: &[&[u8]]) -> Vec<Result<Frame, FramingError>> {
        let (mut frames, mut buffer, mut found) = (FrameDecoder::new(max_bytes), BytesMut::new(), vec![]);
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            loop {
                match frames.next(&mut buffer) {
                    Ok(Some(frame)) => found.push(Ok(frame)),
                    Ok(None) => break,
                    Err(broken) => {
                        found.push(Err(broken));
                        return found;
                    }
                }
            }
        }
        found
    }

    fn message(text: &str) -> Result<Frame, FramingError> {
        Ok(Frame::Message(Bytes::copy_from_slice(text.as_bytes())))
    }

    #[test]
    fn websocket_messages_and_control_frames_are_parsed() {
        let check = |frames: &[Vec<u8>], expected: &[Result<Frame, FramingError>]| {
            let bytes = frames.concat();
            assert_eq!(read(8, &[&bytes]), expected);
            let one_by_one: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(read(8, &one_by_one), expected);
        };
        let text = |fin, payload: &str| frame(OpCode::Text, fin, payload.as_bytes());
        let more = |fin, payload: &str| frame(OpCode::Continue, fin, payload.as_bytes());
        let pong = Ok(Frame::Answer(control(OpCode::Pong, b"hi")));

        check(&[text(true, "one"), frame(OpCode::Binary, true, b"two")], &[message("one"), message("two")]);
        check(
            &[text(false, "on"), frame(OpCode::Ping, true, b"hi"), more(false, "e"), more(true, "!")],
            &[pong, message("one!")],
        );
        check(&[frame(OpCode::Pong, true, b"x"), text(true, "")], &[message("")]);
        check(&[text(true, "123456789"), text(true, "ok")], &[Ok(Frame::TooLong), message("ok")]);
        check(
            &[text(false, "12345"), more(false, "6789"), more(false, "x"), more(true, "y"), text(true, "ok")],
            &[Ok(Frame::TooLong), message("ok")],
        );
        check(
            &[frame(OpCode::Close, true, &1000u16.to_be_bytes())],
            &[Ok(Frame::Goodbye(control(OpCode::Close, &1000u16.to_be_bytes())))],
        );
        check(&[frame(OpCode::Close, true, &[7])], &[Ok(Frame::Goodbye(protocol_error()))]);
    }

    #[test]
    fn websocket_protocol_violations_are_refused() {
        let check = |bytes: &[u8], says: &str| match read(8, &[bytes]).pop() {
            Some(Err(broken)) => assert!(broken.why.contains(says), "{broken:?}"),
            other => panic!("{other:?}"),
        };
        check(&[0x81, 0x01, b'x'], "masked");
        check(&[0x83, 0x80], "not a WebSocket frame");
        check(&[0xf1, 0x80], "not a WebSocket frame");
        check(&frame(OpCode::Continue, true, b"x"), "order");
        check(&[frame(OpCode::Text, false, b"x"), frame(OpCode::Text, true, b"y")].concat(), "order");
        check(&[0x09, 0x80], "not a WebSocket frame");
    }

    #[test]
    fn frame_header_with_large_length_allocates_nothing() {
        let (mut frames, mut buffer) = (FrameDecoder::new(16 << 20), BytesMut::new());
        let mut claim = vec![];
        let mut header = Header::new(OpCode::Text);
        header.set_masked(true).set_payload_len(16 << 20);
        claim.extend(Codec::new().encode_header(&header));
        buffer.extend_from_slice(&claim);
        assert_eq!(frames.next(&mut buffer), Ok(None));
        assert!(buffer.capacity() < 1024);
    }

    proptest! {
        #[test]
        fn websocket_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(8, &[&bytes]);
        }
    }
}
