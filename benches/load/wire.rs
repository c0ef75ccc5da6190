//! The bytes of Anthropic's stream, made before anybody asks for them.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Every delta says its number with so many digits: its text is its identity.
pub const DIGITS: usize = 5;
/// Deltas are numbered up to here, then from 0 again.
const NUMBERS: usize = 100_000;
/// A stamped delta says with so many digits when it was sent.
pub const STAMP: usize = 12;

/// How a stream is cut into HTTP chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// 16 KiB, as a fast server or a proxy sends them.
    Large,
    /// One event each, as a server that flushes sends them.
    Single,
}

pub const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const LARGE: usize = 16 << 10;
/// Events of an answer that carry no text.
pub const OTHER_EVENTS: usize = 5;

/// A whole answer of so many deltas.
pub fn answer(deltas: usize, chunks: Chunks) -> Arc<[u8]> {
    let mut bytes = HEAD.to_vec();
    chunk(&mut bytes, &opening());
    let mut waiting = Vec::new();
    for number in 0..deltas {
        waiting.extend_from_slice(delta(number).as_bytes());
        if chunks == Chunks::Single || waiting.len() >= LARGE {
            chunk(&mut bytes, &waiting);
            waiting.clear();
        }
    }
    waiting.extend_from_slice(ending().as_bytes());
    chunk(&mut bytes, &waiting);
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer of so many blocks of one delta each: nothing in it can be joined.
pub fn blocks(blocks: usize) -> Arc<[u8]> {
    let mut bytes = HEAD.to_vec();
    let mut waiting = opening();
    waiting.extend_from_slice(delta(0).as_bytes());
    for index in 1..blocks {
        waiting.extend_from_slice(block_stop(index - 1).as_bytes());
        waiting.extend_from_slice(block_start(index, "{\"type\":\"text\",\"text\":\"\"}").as_bytes());
        waiting.extend_from_slice(text_delta(index, &word(index)).as_bytes());
        if waiting.len() >= LARGE {
            chunk(&mut bytes, &waiting);
            waiting.clear();
        }
    }
    waiting.extend_from_slice(block_stop(blocks - 1).as_bytes());
    waiting.extend_from_slice(message_end("end_turn").as_bytes());
    chunk(&mut bytes, &waiting);
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer that calls Bash with this command.
pub fn bash(command: &str) -> Arc<[u8]> {
    call("Bash", &serde_json::json!({"command": command, "timeout_ms": 600_000}))
}

/// A whole answer that calls a tool.
pub fn call(tool: &str, input: &serde_json::Value) -> Arc<[u8]> {
    let mut events = message_start();
    events.push_str(&call_block(0, tool, input));
    events.push_str(&message_end("tool_use"));
    let mut bytes = HEAD.to_vec();
    chunk(&mut bytes, events.as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer with several calls, in pieces: each ends with the last event of a block. The last block is text.
pub fn calls_in_pieces(calls: &[(&str, serde_json::Value)]) -> Vec<Arc<[u8]>> {
    let mut events: Vec<String> =
        calls.iter().enumerate().map(|(index, (tool, input))| call_block(index, tool, input)).collect();
    if let Some(first) = events.first_mut() {
        first.insert_str(0, &message_start());
    }
    let text = calls.len();
    events.push(
        block_start(text, "{\"type\":\"text\",\"text\":\"\"}")
            + &text_delta(text, "Now I wait.")
            + &block_stop(text)
            + &message_end("tool_use"),
    );
    let last = events.len() - 1;
    let piece = |(number, events): (usize, String)| {
        let mut bytes = if number == 0 { HEAD.to_vec() } else { Vec::new() };
        chunk(&mut bytes, events.as_bytes());
        if number == last {
            bytes.extend_from_slice(LAST_CHUNK);
        }
        Arc::from(bytes)
    };
    events.into_iter().enumerate().map(piece).collect()
}

/// The events of a block that calls a tool.
fn call_block(index: usize, tool: &str, input: &serde_json::Value) -> String {
    let call = format!("{{\"type\":\"tool_use\",\"id\":\"toolu_{index}\",\"name\":{tool:?},\"input\":{{}}}}");
    let input = input.to_string();
    let piece = serde_json::json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": input}});
    block_start(index, &call) + &format!("event: content_block_delta\ndata: {piece}\n\n") + &block_stop(index)
}

/// The text of an answer of [`answer`].
pub fn text(deltas: usize) -> String {
    (0..deltas).map(word).collect()
}

/// The text of one delta.
fn word(number: usize) -> String {
    format!("{:0DIGITS$}", number % NUMBERS)
}

pub fn delta(number: usize) -> String {
    text_delta(0, &word(number))
}

/// A delta that says when it was sent, and so many bytes more.
pub fn stamped(padding: usize) -> String {
    text_delta(0, &format!("{:0STAMP$}{:x<padding$}", micros(), ""))
}

/// Microseconds on the clock that stamps are taken from.
pub fn micros() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn text_delta(index: usize, text: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
         \"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

fn message_start() -> String {
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
     \"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\
     \"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
        .to_owned()
}

fn block_start(index: usize, block: &str) -> String {
    format!(
        "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":{index},\
         \"content_block\":{block}}}\n\n"
    )
}

fn block_stop(index: usize) -> String {
    format!("event: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n")
}

fn message_end(reason: &str) -> String {
    format!(
        "event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\
         \"stop_sequence\":null}},\"usage\":{{\"output_tokens\":5}}}}\n\n\
         event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
    )
}

/// The events before the first delta.
pub fn opening() -> Vec<u8> {
    let block = block_start(0, "{\"type\":\"text\",\"text\":\"\"}");
    (message_start() + &block).into_bytes()
}

/// The events after the last.
pub fn ending() -> String {
    block_stop(0) + &message_end("end_turn")
}

pub fn chunk(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}
