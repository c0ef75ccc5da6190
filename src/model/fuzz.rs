//! Properties for any bytes from a provider; the fuzz targets and their corpus check them.

use super::settings::Api;
use super::testing::{assert_deltas_tell_the_reply, read_pieces};
use crate::stream::sse::{Event, EventTooLong, Parser};

/// Events as name and data, and whether the parser gave up after them.
type ParsedEvents = (Vec<(Vec<u8>, Vec<u8>)>, bool);

/// Server-sent events: any bytes, cut anywhere, give the events that the standard defines, and the parser's
/// memory is bounded. The first byte is the limit on an event, the second selects how the rest is cut.
///
/// # Panics
/// If a property is violated.
pub fn sse(data: &[u8]) {
    let [limit, size, bytes @ ..] = data else { return };
    let limit = usize::from(*limit) + 1;
    let expected = reference_parse(bytes, limit);
    assert_eq!(parse_chunks(limit, [bytes]), expected, "in one piece");
    for size in [1, usize::from(*size) + 1] {
        assert_eq!(parse_chunks(limit, bytes.chunks(size)), expected, "cut into pieces of {size}");
    }
}

fn parse_chunks<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> ParsedEvents {
    let mut parser = Parser::with_limit(limit);
    let mut seen = Vec::new();
    let mut keep = |event: Event<'_>| {
        seen.push((event.name.to_vec(), event.data.to_vec()));
        Ok::<_, EventTooLong>(())
    };
    for chunk in chunks {
        if parser.feed(chunk, &mut keep).is_err() {
            return (seen, true);
        }
        assert!(parser.held_bytes() <= 3 * limit, "{} bytes are held", parser.held_bytes());
    }
    let gave_up = parser.finish(&mut keep).is_err();
    (seen, gave_up)
}

/// The standard (WHATWG HTML, 9.2.6 "Interpreting an event stream"), applied to the complete text. Two
/// additions: the limit, and the end of the stream also ends an event.
fn reference_parse(bytes: &[u8], limit: usize) -> ParsedEvents {
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut before = 0;
    for byte in bytes.iter().chain(b"\n\n") {
        match byte {
            b'\n' if before == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            byte => lines.last_mut().expect("one at least").push(*byte),
        }
        before = *byte;
    }
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), Vec::<u8>::new());
    for (at, line) in lines.iter().enumerate() {
        if line.len() > limit {
            return (events, true);
        }
        let line = if at == 0 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                events.push((name, data));
            }
            (name, data) = (Vec::new(), Vec::new());
            continue;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let field = halves.next().unwrap_or_default();
        let value = halves.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
                if data.len() > limit {
                    return (events, true);
                }
            }
            b"event" => name = value.to_vec(),
            _ => {}
        }
    }
    (events, false)
}

/// A provider's answer: any bytes, cut anywhere, give the same deltas and the same reply or fault, and the
/// deltas match the reply. The first byte selects the API, the second how the rest is cut.
///
/// # Panics
/// If a property is violated.
pub fn answer(data: &[u8]) {
    let [api, size, bytes @ ..] = data else { return };
    let api = match api & 3 {
        0 => Api::Anthropic,
        2 => Api::OpenAiResponses,
        _ => Api::OpenAiChat,
    };
    let (deltas, outcome) = read_pieces(api, &[bytes]);
    if let Ok(reply) = &outcome {
        assert_deltas_tell_the_reply(&deltas, reply);
    }
    for size in [1, usize::from(*size) + 1] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(read_pieces(api, &pieces), (deltas.clone(), outcome.clone()), "in pieces of {size}");
    }
}

/// Events of a stream and the bytes of their data, for benchmarks.
///
/// # Panics
/// If the stream is refused.
#[must_use]
pub fn count_events(chunks: &[&[u8]]) -> (usize, usize) {
    let mut parser = Parser::default();
    let mut seen = (0, 0);
    for chunk in chunks {
        let parsed = parser.feed(chunk, |event| {
            seen = (seen.0 + 1, seen.1 + event.data.len());
            Ok::<_, EventTooLong>(())
        });
        assert!(parsed.is_ok(), "a stream that is refused");
    }
    seen
}

/// Deltas of a complete answer of the API with this name, for benchmarks.
///
/// # Panics
/// If there is no such API, or the answer is incomplete.
#[must_use]
pub fn read_answer(api: &str, chunks: &[&[u8]]) -> usize {
    let api = Api::from_name(api).expect("an API");
    let (deltas, outcome) = read_pieces(api, chunks);
    assert!(outcome.is_ok(), "{outcome:?}");
    deltas.len()
}
