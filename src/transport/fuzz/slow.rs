//! A second implementation of the framings, which is simple instead of fast and reads a whole text at a time.
//! The real decoders are compared with it.

use bytes::Bytes;

use super::super::framing::{Frame, websocket};

/// Result for a peer's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FramingResult {
    Frame(Frame),
    /// The framing could not be followed any further.
    Broken,
    /// An HTTP answer that ends the connection.
    Answer(Bytes),
    Upgrade(Bytes),
    Post(Bytes),
}

fn message(bytes: &[u8]) -> FramingResult {
    FramingResult::Frame(Frame::Message(Bytes::copy_from_slice(bytes)))
}

const TOO_LONG: FramingResult = FramingResult::Frame(Frame::TooLong);

/// Newline-delimited JSON.
pub(super) fn lines(bytes: &[u8], max_bytes: usize) -> Vec<FramingResult> {
    let pieces: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let is_blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let has_end = at + 1 < pieces.len();
        let bare = piece.strip_suffix(b"\r").unwrap_or(piece);
        let line = if has_end { bare } else { piece };
        // At the end of the bytes, a carriage return may have been the first half of a line end.
        if bare.len() > max_bytes || (line.len() > max_bytes && !is_blank(line)) {
            found.push(TOO_LONG);
        } else if !is_blank(line) {
            found.push(message(line));
        }
    }
    found
}

/// `Content-Length` blocks.
pub(super) fn blocks(bytes: &[u8], max_bytes: usize) -> Vec<FramingResult> {
    let mut found = Vec::new();
    let mut rest = bytes;
    'blocks: loop {
        let mut length: Option<u128> = None;
        let mut header = 0;
        loop {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                if header + rest.len() > 8 << 10 {
                    found.push(FramingResult::Broken);
                }
                return found;
            };
            header += end + 1;
            let line = rest[..end].trim_ascii();
            rest = &rest[end + 1..];
            if header > 8 << 10 {
                found.push(FramingResult::Broken);
                return found;
            }
            if line.is_empty() {
                match length {
                    None if header <= 2 => continue 'blocks,
                    None => {
                        found.push(FramingResult::Broken);
                        return found;
                    }
                    Some(_) => break,
                }
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                found.push(FramingResult::Broken);
                return found;
            };
            if line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-length") {
                let digits = line[colon + 1..].trim_ascii();
                let number = digits.iter().try_fold(0u128, |sum, digit| match digit {
                    b'0'..=b'9' => Some(sum * 10 + u128::from(digit - b'0')).filter(|sum| *sum < 1 << 64),
                    _ => None,
                });
                match number.filter(|_| !digits.is_empty()) {
                    Some(number) => length = Some(number),
                    None => {
                        found.push(FramingResult::Broken);
                        return found;
                    }
                }
            }
        }
        let length = length.unwrap_or_default();
        if length > max_bytes as u128 {
            found.push(TOO_LONG);
            if length >= rest.len() as u128 {
                return found;
            }
            rest = &rest[length as usize..];
            continue;
        }
        let length = length as usize;
        if rest.len() < length {
            return found;
        }
        found.push(message(&rest[..length]));
        rest = &rest[length..];
    }
}

/// A client's WebSocket frames, as defined in RFC 6455 section 5.2.
pub(super) fn frames(bytes: &[u8], max_bytes: usize) -> Vec<FramingResult> {
    let mut found = Vec::new();
    let mut at = 0;
    // The message so far, and whether it has already exceeded the limit.
    let mut sofar: Option<(Vec<u8>, bool)> = None;
    loop {
        let [first, second, ..] = bytes[at..] else { return found };
        let (fin, reserved, opcode) = (first & 0x80 != 0, first & 0x70, first & 0x0f);
        let is_control = opcode & 8 != 0;
        if reserved != 0 || !matches!(opcode, 0..=2 | 8..=10) || (is_control && !fin) {
            found.push(FramingResult::Broken);
            return found;
        }
        let (extended, masked) = (second & 0x7f, second & 0x80 != 0);
        let size = match extended {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some(number) = bytes.get(at + 2..at + 2 + size) else { return found };
        let length = match size {
            0 => u64::from(extended),
            _ => number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        if is_control && length > 125 {
            found.push(FramingResult::Broken);
            return found;
        }
        at += 2 + size;
        let mask = if masked {
            let Some(mask) = bytes.get(at..at + 4) else { return found };
            at += 4;
            mask
        } else {
            &[]
        };
        if !masked || (!is_control && (opcode == 0) != sofar.is_some()) {
            found.push(FramingResult::Broken);
            return found;
        }
        let available = (bytes.len() - at) as u64;
        if !is_control {
            let (before, was_too_long) = sofar.take().unwrap_or_default();
            let is_too_long = was_too_long || length > (max_bytes - before.len()) as u64;
            if is_too_long && !was_too_long {
                found.push(TOO_LONG);
            }
            if length > available {
                return found;
            }
            let mut whole = before;
            if !is_too_long {
                whole.extend(unmasked(&bytes[at..at + length as usize], mask));
            }
            at += length as usize;
            match (fin, is_too_long) {
                (true, false) => found.push(message(&whole)),
                (true, true) => {}
                (false, _) => sofar = Some((whole, is_too_long)),
            }
            continue;
        }
        if length > available {
            return found;
        }
        let payload: Vec<u8> = unmasked(&bytes[at..at + length as usize], mask).collect();
        at += length as usize;
        match opcode {
            8 => {
                found.push(FramingResult::Frame(Frame::Goodbye(goodbye(&payload))));
                return found;
            }
            9 => {
                let mut pong = vec![0x8a, payload.len() as u8];
                pong.extend(payload);
                found.push(FramingResult::Frame(Frame::Answer(pong.into())));
            }
            _ => {}
        }
    }
}

fn unmasked<'a>(payload: &'a [u8], mask: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask)
}

/// The answer to a close frame with this payload (RFC 6455 sections 5.5.1 and 7.4).
fn goodbye(payload: &[u8]) -> Bytes {
    let [high, low, reason @ ..] = payload else {
        return if payload.is_empty() { Bytes::from_static(&[0x88, 0]) } else { websocket::protocol_error() };
    };
    // Codes that must not be sent, or that are unassigned.
    let is_free = matches!(u16::from_be_bytes([*high, *low]), ..1000 | 1004..=1006 | 1015..3000 | 5000..);
    if is_free || std::str::from_utf8(reason).is_err() {
        return websocket::protocol_error();
    }
    Bytes::copy_from_slice(&[0x88, 2, *high, *low])
}
