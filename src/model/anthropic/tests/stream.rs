use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::settings::Api;
use crate::testing::{assert_any_split_reads_alike, assert_deltas_tell_the_reply, read, read_whole};
use types::model::{BlockKind, Delta, FaultKind, ModelReply, ReplyBlock, StopReason};
use types::usage::{ServiceTier, Usage};

fn sse(events: &[Value]) -> String {
    events.iter().fold(String::new(), |mut stream, event| {
        let kind = event["type"].as_str().unwrap();
        write!(stream, "event: {kind}\ndata: {event}\n\n").unwrap();
        stream
    })
}

fn start() -> Value {
    json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],
        "stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":3,
        "cache_read_input_tokens":7,"output_tokens":1}}})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type":"message_delta","delta":{"stop_reason":reason,"stop_sequence":null},
            "usage":{"output_tokens":15}}),
        json!({"type":"message_stop"}),
    ]
}

fn block(index: u32, block: Value, deltas: Vec<Value>) -> Vec<Value> {
    let mut events = vec![json!({"type":"content_block_start","index":index,"content_block":block})];
    for delta in deltas {
        events.push(json!({"type":"content_block_delta","index":index,"delta":delta}));
    }
    events.push(json!({"type":"content_block_stop","index":index}));
    events
}

fn text(index: u32, pieces: &[&str]) -> Vec<Value> {
    let deltas = pieces.iter().map(|piece| json!({"type":"text_delta","text":piece})).collect();
    block(index, json!({"type":"text","text":""}), deltas)
}

fn call(index: u32, id: &str, pieces: &[&str]) -> Vec<Value> {
    let deltas = pieces.iter().map(|piece| json!({"type":"input_json_delta","partial_json":piece})).collect();
    block(index, json!({"type":"tool_use","id":id,"name":"Read","input":{}}), deltas)
}

fn answer(blocks: &[Vec<Value>], reason: &str) -> String {
    let mut events = vec![start(), json!({"type":"ping"})];
    events.extend(blocks.iter().flatten().cloned());
    events.extend(end(reason));
    sse(&events)
}

#[test]
fn reply_with_all_block_kinds_is_parsed() {
    let thinking = block(
        0,
        json!({"type":"thinking","thinking":"","signature":""}),
        vec![
            json!({"type":"thinking_delta","thinking":"Let me "}),
            json!({"type":"thinking_delta","thinking":"see."}),
            json!({"type":"signature_delta","signature":"EqQB"}),
        ],
    );
    let redacted = block(1, json!({"type":"redacted_thinking","data":"opaque"}), vec![]);
    let stream = answer(
        &[
            thinking,
            redacted,
            text(2, &["Grü", "ße 🦀", ""]),
            text(3, &[]),
            call(4, "toolu_1", &["", "{\"file_path\":", " \"a\"}"]),
            call(5, "toolu_2", &[]),
        ],
        "tool_use",
    );
    let (deltas, reply) = read(Api::Anthropic, &stream);
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    let called = |id: &str, input: Value| ReplyBlock::ToolCall {
        provider_id: id.into(),
        tool: "Read".into(),
        input: Ok(input),
    };
    assert_eq!(
        reply,
        ModelReply {
            content: vec![
                ReplyBlock::Thinking { text: "Let me see.".into(), signature: Some("EqQB".into()) },
                ReplyBlock::RedactedThinking("opaque".into()),
                ReplyBlock::Text("Grüße 🦀".into()),
                called("toolu_1", json!({"file_path":"a"})),
                called("toolu_2", json!({})),
            ],
            stop_reason: StopReason::ToolUse,
            usage: Usage {
                input_tokens: 25,
                output_tokens: 15,
                cache_read_tokens: 7,
                cache_write_tokens: 3,
                ..Usage::default()
            },
            nested: vec![],
            is_restated: false,
            response_id: Some("msg_1".into()),
            notices: vec![],
            cache_hit: false,
            last: Vec::new(),
        }
    );
    let tool = BlockKind::ToolCall { tool: "Read".into() };
    assert!(deltas.contains(&Delta::BlockStarted { index: 3, kind: tool }));
}

#[test]
fn stop_reasons_of_provider_are_mapped() {
    for (reason, expected, notices) in [
        ("end_turn", StopReason::EndTurn, 0),
        ("tool_use", StopReason::ToolUse, 0),
        ("max_tokens", StopReason::MaxTokens, 0),
        ("stop_sequence", StopReason::StopSequence, 0),
        ("refusal", StopReason::Refusal, 0),
        ("pause_turn", StopReason::Pause, 0),
        ("boredom", StopReason::EndTurn, 1),
    ] {
        let reply = read(Api::Anthropic, &answer(&[text(0, &["x"])], reason)).1.unwrap();
        assert_eq!((reply.stop_reason, reply.notices.len()), (expected, notices), "{reason}");
    }
}

#[test]
fn unknown_blocks_and_events_are_ignored() {
    let strange =
        block(0, json!({"type":"hologram","beam":1}), vec![json!({"type":"text_delta","text":"not ours"})]);
    let stream = format!(
        "event: news\ndata: {{\"type\":\"news\"}}\n\n{}",
        answer(&[strange, text(1, &["x"])], "end_turn")
    );
    let reply = read(Api::Anthropic, &stream).1.unwrap();
    assert_eq!(reply.content, [ReplyBlock::Text("x".into())]);
    assert!(reply.notices[0].contains("hologram"));
}

#[test]
fn invalid_json_arguments_are_kept_as_text() {
    let reply = read(Api::Anthropic, &answer(&[call(0, "t", &["{\"a\":"])], "max_tokens")).1.unwrap();
    match &reply.content[0] {
        ReplyBlock::ToolCall { input: Err((raw, why)), .. } => {
            assert_eq!(raw, "{\"a\":");
            assert!(why.contains("EOF"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn call_input_in_start_event_is_used() {
    let at_once = block(0, json!({"type":"tool_use","id":"t","name":"Read","input":{"a":1}}), vec![]);
    let (deltas, reply) = read(Api::Anthropic, &answer(&[at_once], "tool_use"));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert!(
        matches!(&reply.content[0], ReplyBlock::ToolCall { input: Ok(input), .. } if input == &json!({"a":1}))
    );
}

#[test]
fn stream_without_stop_event_is_interrupted() {
    let whole = answer(&[text(0, &["one ", "two"])], "end_turn");
    let stop = whole.find("event: message_stop").unwrap();
    for cut in [1, whole.find("two").unwrap() + 1, stop, stop + 30] {
        let (_, outcome) = read(Api::Anthropic, &whole[..cut]);
        assert_eq!(outcome.unwrap_err().kind, FaultKind::Interrupted, "cut at {cut}");
    }
    // Without the last blank line the answer is still complete.
    assert!(read(Api::Anthropic, whole.trim_end()).1.is_ok());
}

#[test]
fn error_events_inside_stream_end_reply() {
    for (word, expected) in [
        ("overloaded_error", FaultKind::Overloaded),
        ("rate_limit_error", FaultKind::RateLimited),
        ("api_error", FaultKind::Server),
        ("something_new", FaultKind::Server),
    ] {
        let mut events = vec![start()];
        events.extend(text(0, &["partial"]));
        events.push(json!({"type":"error","error":{"type":word,"message":"why not"}}));
        let (deltas, outcome) = read(Api::Anthropic, &sse(&events));
        let fault = outcome.unwrap_err();
        assert_eq!(fault.kind, expected);
        assert!(fault.message.contains("why not"));
        assert!(deltas.contains(&Delta::Text { index: 0, text: "partial".into() }));
    }
}

#[test]
fn non_event_stream_body_is_garbage() {
    for body in ["<html>hello</html>", "data: {nope\n\n", "data: [1]\n\n", "just words"] {
        let fault = read(Api::Anthropic, body).1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Garbage, "{body}: {fault:?}");
    }
    assert_eq!(read(Api::Anthropic, "").1.unwrap_err().kind, FaultKind::Interrupted);
}

#[test]
fn service_tier_and_nested_usage_are_read() {
    let message = json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",
        "content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1,"service_tier":"priority"}}});
    let last = json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":40,
    "iterations":[
        {"type":"message","input_tokens":5,"output_tokens":20},
        {"type":"advisor_message","model":"claude-opus-5-5","input_tokens":800,"output_tokens":100,
            "cache_read_input_tokens":7},
        {"type":"compaction","input_tokens":900,"output_tokens":50},
        {"type":"message","input_tokens":0,"output_tokens":20},
    ]}});
    let mut events = vec![message];
    events.extend(text(0, &["Found."]));
    events.extend([last, json!({"type":"message_stop"})]);
    let reply = read(Api::Anthropic, &sse(&events)).1.expect("a reply");
    let usage = Usage { input_tokens: 5, output_tokens: 40, ..Usage::default() };
    assert_eq!(reply.usage, Usage { service_tier: Some(ServiceTier::Priority), ..usage });
    let nested: Vec<_> = reply.nested.into_iter().map(|nested| (nested.model, nested.usage)).collect();
    assert_eq!(
        nested,
        [
            (
                "claude-opus-5-5".to_owned(),
                Usage { input_tokens: 800, output_tokens: 100, cache_read_tokens: 7, ..Usage::default() }
            ),
            // Without a name it is the called model.
            (String::new(), Usage { input_tokens: 900, output_tokens: 50, ..Usage::default() }),
        ]
    );
}

#[test]
fn usage_counts_are_read_from_all_events() {
    let message = json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",
        "content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_read_input_tokens":0,"output_tokens":1,
        "cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":12}}}});
    let last = json!({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},
        "usage":{"output_tokens":40,"output_tokens_details":{"thinking_tokens":33},
        "server_tool_use":{"web_search_requests":2}}});
    let mut events = vec![message];
    events.extend(text(0, &["Found."]));
    events.extend([last, json!({"type":"message_stop"})]);
    let usage = read(Api::Anthropic, &sse(&events)).1.expect("a reply").usage;
    assert_eq!(
        usage,
        Usage {
            input_tokens: 5,
            output_tokens: 40,
            cache_write_tokens: 42,
            cache_write_1h_tokens: 12,
            reasoning_tokens: 33,
            web_search_requests: 2,
            ..Usage::default()
        }
    );
}

#[test]
fn unstreamed_message_gives_same_reply_as_stream() {
    let stream = answer(&[text(0, &["Hello"]), call(1, "t1", &["{\"a\":", "1}"])], "tool_use");
    let body = json!({"id":"msg_1","type":"message","role":"assistant","model":"m",
        "content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"t1","name":"Read","input":{"a":1}}],
        "stop_reason":"tool_use","stop_sequence":null,
        "usage":{"input_tokens":25,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":15}});
    let (deltas, reply) = read_whole(Api::Anthropic, &body.to_string());
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(reply, read(Api::Anthropic, &stream).1.unwrap());

    let error = json!({"type":"error","error":{"type":"overloaded_error","message":"m"}});
    assert_eq!(read_whole(Api::Anthropic, &error.to_string()).1.unwrap_err().kind, FaultKind::Overloaded);
    assert_eq!(read_whole(Api::Anthropic, "{}").1.unwrap_err().kind, FaultKind::Garbage);
}

proptest! {
    #[test]
    fn messages_reply_is_independent_of_chunk_boundaries(
        pieces in prop::collection::vec("[a-zäß🦀\\n\" ]{0,6}", 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..16),
        is_cut in any::<bool>(),
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let quoted = serde_json::to_string(&pieces.concat()).unwrap();
        let (head, tail) = quoted.split_at(1);
        let blocks = [text(0, &pieces), call(1, "t", &["{\"s\":", head, tail, "}"]), text(2, &pieces)];
        let mut stream = answer(&blocks, "tool_use");
        if is_cut {
            stream.truncate(stream.floor_char_boundary(stream.len() * 2 / 3));
        }
        assert_any_split_reads_alike(Api::Anthropic, &stream, &cuts);
    }
}

proptest! {
    /// A recognised text event gives the same result as a parsed one: a `ping` before it makes the decoder drop the
    /// template.
    #[test]
    fn repeated_text_events_read_as_parsed(
        events in prop::collection::vec((0..7usize, 0..2u32, "[ab\\\\\"]{0,3}"), 0..16),
    ) {
        let event = |(kind, index, text): &(usize, u32, String)| {
            let delta =
                |delta: &str| format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
            let block = |kind: &str| {
                let block = format!(r#"{{"type":"{kind}"}}"#);
                format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
            };
            match kind {
                0..=2 => delta(&format!(r#"{{"type":"text_delta","text":"{text}"}}"#)),
                3 => delta(&format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#)),
                4 => block("text"),
                5 => block("unknown"),
                _ => format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
            }
        };
        let stream = |before: &str| {
            let middle = events.iter().map(event).fold(String::new(), |mut stream, event| {
                write!(stream, "{before}data: {event}\n\n").unwrap();
                stream
            });
            sse(&[start()]) + &middle + &sse(&end("end_turn"))
        };
        let ping = "data: {\"type\":\"ping\"}\n\n";
        prop_assert_eq!(read(Api::Anthropic, &stream("")), read(Api::Anthropic, &stream(ping)));
    }
}
