//! Creates the bytes of Anthropic's stream.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Number of digits in a delta's text, which is the number of the delta.
pub const DELTA_DIGITS: usize = 5;
/// After this many deltas the numbers start at 0 again.
const DELTA_NUMBERS: usize = 100_000;
/// Number of digits of the time in a stamped delta.
pub const STAMP_DIGITS: usize = 12;

/// How a stream is cut into HTTP chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// 16 KiB, as a fast server or a proxy sends them.
    Large,
    /// One event each, as a server that flushes sends them.
    Single,
}

pub const RESPONSE_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const LARGE_CHUNK_BYTES: usize = 16 << 10;
/// Events of an answer that carry no text.
pub const OTHER_EVENTS: usize = 5;

/// A whole answer with this number of deltas.
pub fn create_answer(deltas: usize, chunks: Chunks) -> Arc<[u8]> {
    let mut bytes = RESPONSE_HEAD.to_vec();
    push_chunk(&mut bytes, &opening_events());
    let mut waiting = Vec::new();
    for number in 0..deltas {
        waiting.extend_from_slice(delta_event(number).as_bytes());
        if chunks == Chunks::Single || waiting.len() >= LARGE_CHUNK_BYTES {
            push_chunk(&mut bytes, &waiting);
            waiting.clear();
        }
    }
    waiting.extend_from_slice(closing_events().as_bytes());
    push_chunk(&mut bytes, &waiting);
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer with this number of blocks, of one delta each. The daemon cannot merge these deltas.
pub fn create_block_answer(blocks: usize) -> Arc<[u8]> {
    let mut bytes = RESPONSE_HEAD.to_vec();
    let mut waiting = opening_events();
    waiting.extend_from_slice(delta_event(0).as_bytes());
    for index in 1..blocks {
        waiting.extend_from_slice(block_stop(index - 1).as_bytes());
        waiting.extend_from_slice(block_start(index, "{\"type\":\"text\",\"text\":\"\"}").as_bytes());
        waiting.extend_from_slice(text_delta(index, &delta_text(index)).as_bytes());
        if waiting.len() >= LARGE_CHUNK_BYTES {
            push_chunk(&mut bytes, &waiting);
            waiting.clear();
        }
    }
    waiting.extend_from_slice(block_stop(blocks - 1).as_bytes());
    waiting.extend_from_slice(message_end("end_turn").as_bytes());
    push_chunk(&mut bytes, &waiting);
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer that calls Bash with this command.
pub fn create_bash_call(command: &str) -> Arc<[u8]> {
    create_tool_call("Bash", &serde_json::json!({"command": command, "timeout_ms": 600_000}))
}

/// A whole answer that calls a tool.
pub fn create_tool_call(tool: &str, input: &serde_json::Value) -> Arc<[u8]> {
    let mut events = message_start();
    events.push_str(&tool_use_block(0, tool, input));
    events.push_str(&message_end("tool_use"));
    let mut bytes = RESPONSE_HEAD.to_vec();
    push_chunk(&mut bytes, events.as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    bytes.into()
}

/// A whole answer with several calls, in pieces. Each ends with the last event of a block. The last block is text.
pub fn create_calls_in_pieces(calls: &[(&str, serde_json::Value)]) -> Vec<Arc<[u8]>> {
    let mut events: Vec<String> =
        calls.iter().enumerate().map(|(index, (tool, input))| tool_use_block(index, tool, input)).collect();
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
        let mut bytes = if number == 0 { RESPONSE_HEAD.to_vec() } else { Vec::new() };
        push_chunk(&mut bytes, events.as_bytes());
        if number == last {
            bytes.extend_from_slice(LAST_CHUNK);
        }
        Arc::from(bytes)
    };
    events.into_iter().enumerate().map(piece).collect()
}

/// The events of a block that calls a tool.
fn tool_use_block(index: usize, tool: &str, input: &serde_json::Value) -> String {
    let call = format!("{{\"type\":\"tool_use\",\"id\":\"toolu_{index}\",\"name\":{tool:?},\"input\":{{}}}}");
    let input = input.to_string();
    let piece = serde_json::json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": input}});
    block_start(index, &call) + &format!("event: content_block_delta\ndata: {piece}\n\n") + &block_stop(index)
}

/// The text of an answer of [`create_answer`].
pub fn answer_text(deltas: usize) -> String {
    (0..deltas).map(delta_text).collect()
}

/// The text of one delta.
fn delta_text(number: usize) -> String {
    format!("{:0DELTA_DIGITS$}", number % DELTA_NUMBERS)
}

pub fn delta_event(number: usize) -> String {
    text_delta(0, &delta_text(number))
}

/// A delta with the time at which it is sent, and padding of this size.
pub fn stamped_delta_event(padding: usize) -> String {
    text_delta(0, &format!("{:0STAMP_DIGITS$}{:x<padding$}", now_micros(), ""))
}

/// Microseconds on the clock that stamps are taken from.
pub fn now_micros() -> u64 {
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
pub fn opening_events() -> Vec<u8> {
    let block = block_start(0, "{\"type\":\"text\",\"text\":\"\"}");
    (message_start() + &block).into_bytes()
}

/// The events after the last delta.
pub fn closing_events() -> String {
    block_stop(0) + &message_end("end_turn")
}

pub fn push_chunk(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    into.extend_from_slice(bytes);
    into.extend_from_slice(b"\r\n");
}
