use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::settings::ModelSettings;
use super::super::testing::{assert_any_split_reads_alike, assert_deltas_tell_the_reply, read, read_whole};
use crate::api_row::RequestTarget;
use crate::settings::Api;
use types::ids::{Mint, Seed};
use types::message::{Block, Message, Role, ToolCall};
use types::model::{Delta, FaultKind, ModelRequest, ReplyBlock, StopReason};
use types::tool::ToolDefinition;
use types::usage::{ServiceTier, Usage};

fn sse(chunks: &[Value]) -> String {
    let mut stream = chunks.iter().fold(String::new(), |mut stream, chunk| {
        write!(stream, "data: {chunk}\n\n").unwrap();
        stream
    });
    stream.push_str("data: [DONE]\n\n");
    stream
}

fn delta(delta: Value) -> Value {
    json!({"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":delta,"finish_reason":null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":reason}]})
}

/// The calls of an answer: id, tool, arguments.
fn calls(chunks: &[Value]) -> Vec<(String, String, Value)> {
    let (deltas, reply) = read(Api::OpenAiChat, &sse(chunks));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    let mut calls = Vec::new();
    for block in reply.content {
        if let ReplyBlock::ToolCall { provider_id, tool, input } = block {
            calls.push((provider_id, tool, input.unwrap()));
        }
    }
    calls
}

fn part(index: Option<u64>, id: Option<&str>, name: Option<&str>, json: Option<&str>) -> Value {
    json!({"tool_calls":[{"index":index,"id":id,"type":"function","function":{"name":name,"arguments":json}}]})
}

fn generated_call_id(n: usize) -> String {
    format!("call_replay_0_{n}")
}

#[test]
fn reply_with_reasoning_text_and_calls_is_parsed() {
    let chunks = [
        delta(json!({"role":"assistant","content":"","reasoning_content":"Let me "})),
        delta(json!({"content":null,"reasoning_content":"see.","reasoning":"Let me see."})),
        delta(json!({"content":"Grü"})),
        delta(json!({"content":"ße 🦀"})),
        delta(part(Some(0), Some("c1"), Some("Read"), Some(""))),
        delta(part(Some(0), None, None, Some("{\"a\":"))),
        delta(part(Some(0), None, None, Some("1}"))),
        finish("tool_calls"),
        json!({"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,
            "total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},
            "completion_tokens_details":{"reasoning_tokens":8}}}),
    ];
    let (deltas, reply) = read(Api::OpenAiChat, &sse(&chunks));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(
        reply.content,
        [
            ReplyBlock::Thinking { text: "Let me see.".into(), signature: None },
            ReplyBlock::Text("Grüße 🦀".into()),
            ReplyBlock::ToolCall { provider_id: "c1".into(), tool: "Read".into(), input: Ok(json!({"a":1})) },
        ]
    );
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.response_id.as_deref(), Some("chatcmpl-1"));
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 36,
            output_tokens: 20,
            cache_read_tokens: 64,
            reasoning_tokens: 8,
            ..Usage::default()
        }
    );
}

#[test]
fn parallel_calls_are_assembled_from_fragments() {
    let one = ("a".to_owned(), "Read".to_owned(), json!({"x":1}));
    let two = ("b".to_owned(), "Grep".to_owned(), json!({"y":"}"}));
    let begin = |index: u64, id, name| delta(part(Some(index), Some(id), Some(name), None));
    let more = |index: u64, json| delta(part(Some(index), None, None, Some(json)));

    let in_order = [
        begin(0, "a", "Read"),
        more(0, "{\"x\":"),
        more(0, "1}"),
        begin(1, "b", "Grep"),
        more(1, "{\"y\":\"}\"}"),
        finish("tool_calls"),
    ];
    assert_eq!(calls(&in_order), [one.clone(), two.clone()]);

    let mixed = [
        begin(0, "a", "Read"),
        begin(1, "b", "Grep"),
        more(1, "{\"y\":"),
        more(0, "{\"x\":"),
        more(1, "\"}\""),
        more(0, "1}"),
        more(1, "}"),
        finish("tool_calls"),
    ];
    assert_eq!(calls(&mixed), [one.clone(), two.clone()]);

    let both_in_one_chunk = [
        delta(json!({"tool_calls":[
            {"index":0,"id":"a","function":{"name":"Read","arguments":"{\"x\":1}"}},
            {"index":1,"id":"b","function":{"name":"Grep","arguments":"{\"y\":\"}\"}"}},
        ]})),
        finish("stop"),
    ];
    assert_eq!(calls(&both_in_one_chunk), [one, two]);
}

#[test]
fn calls_with_bad_index_or_id_are_separated() {
    let whole = |index, id, name, json| delta(part(index, id, Some(name), Some(json)));
    let expected = |first: &str, second: &str| {
        vec![
            (first.to_owned(), "Read".to_owned(), json!({"x":1})),
            (second.to_owned(), "Grep".to_owned(), json!({})),
        ]
    };
    let end = finish("tool_calls");
    // Every call has the number 0.
    let zeros = [
        whole(Some(0), Some("a"), "Read", "{\"x\":1}"),
        whole(Some(0), Some("b"), "Grep", "{}"),
        end.clone(),
    ];
    assert_eq!(calls(&zeros), expected("a", "b"));
    // Numbers only.
    let numbers = [whole(Some(0), None, "Read", "{\"x\":1}"), whole(Some(1), None, "Grep", ""), end.clone()];
    assert_eq!(calls(&numbers), expected(&generated_call_id(0), &generated_call_id(1)));
    // The number 0 and no ids.
    let zeros = [whole(Some(0), None, "Read", "{\"x\":1}"), whole(Some(0), None, "Grep", "{}"), end.clone()];
    assert_eq!(calls(&zeros), expected(&generated_call_id(0), &generated_call_id(1)));
    // Ids only.
    let ids =
        [whole(None, Some("a"), "Read", "{\"x\":1}"), whole(None, Some("b"), "Grep", "{}"), end.clone()];
    assert_eq!(calls(&ids), expected("a", "b"));
    // No numbers and no ids.
    let bare = [whole(None, None, "Read", "{\"x\":1}"), whole(None, None, "Grep", "{}"), end.clone()];
    assert_eq!(calls(&bare), expected(&generated_call_id(0), &generated_call_id(1)));
    // No numbers and no ids, in fragments.
    let bare = [
        delta(part(None, None, Some("Read"), None)),
        delta(part(None, None, None, Some("{\"x\""))),
        delta(part(None, None, None, Some(":1}"))),
        delta(part(None, None, Some("Grep"), None)),
        end.clone(),
    ];
    assert_eq!(calls(&bare), expected(&generated_call_id(0), &generated_call_id(1)));
    // The same id twice.
    let twice = [
        whole(Some(0), Some("a"), "Read", "{\"x\":1}"),
        whole(Some(1), Some("a"), "Grep", "{}"),
        end.clone(),
    ];
    assert_eq!(calls(&twice), expected("a", &generated_call_id(1)));
    // The name after the arguments, an id in every fragment, arguments as JSON and not as text.
    let late = [
        delta(part(Some(0), Some("a"), None, Some("{\"x\""))),
        delta(part(Some(0), Some("a"), Some("Read"), Some(":1}"))),
        delta(json!({"tool_calls":[{"index":1,"id":"b","function":{"name":"Grep","arguments":{}}}]})),
        end.clone(),
    ];
    assert_eq!(calls(&late), expected("a", "b"));
    // A call without a name.
    let nameless = [delta(part(Some(0), Some("a"), None, Some("{}"))), end];
    assert_eq!(calls(&nameless), [("a".into(), "unnamed".into(), json!({}))]);
}

#[test]
fn text_between_call_fragments_is_kept() {
    let chunks = [
        delta(part(Some(0), Some("a"), Some("Read"), Some("{\"x\""))),
        delta(json!({"content":"by the way"})),
        delta(part(Some(0), None, None, Some(":1}"))),
        finish("tool_calls"),
    ];
    let (deltas, reply) = read(Api::OpenAiChat, &sse(&chunks));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert!(
        matches!(&reply.content[0], ReplyBlock::ToolCall { input: Ok(input), .. } if input == &json!({"x":1}))
    );
    assert_eq!(reply.content[1], ReplyBlock::Text("by the way".into()));
}

#[test]
fn finish_reasons_of_provider_are_mapped() {
    for (reason, expected, notices) in [
        ("stop", StopReason::EndTurn, 0),
        ("tool_calls", StopReason::ToolUse, 0),
        ("function_call", StopReason::ToolUse, 0),
        ("length", StopReason::MaxTokens, 0),
        ("content_filter", StopReason::Refusal, 0),
        ("boredom", StopReason::EndTurn, 1),
    ] {
        let chunks = [delta(json!({"content":"x"})), finish(reason)];
        let reply = read(Api::OpenAiChat, &sse(&chunks)).1.unwrap();
        assert_eq!((reply.stop_reason, reply.notices.len()), (expected, notices), "{reason}");
    }
    let refusal = [delta(json!({"refusal":"I would rather not."})), finish("stop")];
    let reply = read(Api::OpenAiChat, &sse(&refusal)).1.unwrap();
    assert_eq!(reply.stop_reason, StopReason::Refusal);
    assert_eq!(reply.content, [ReplyBlock::Text("I would rather not.".into())]);
}

#[test]
fn stream_ends_with_done_or_finish_reason() {
    let outcome = |stream: &str| read(Api::OpenAiChat, stream).1.map_err(|fault| fault.kind);
    let first_event = format!("data: {}\n\n", delta(json!({"content":"x"})));
    assert!(outcome(&format!("{first_event}data: [DONE]\n\n")).is_ok());
    assert!(outcome(&format!("{first_event}data: [DONE]")).is_ok());
    assert!(outcome(&format!("{first_event}data: {}\n\n", finish("stop"))).is_ok());
    assert_eq!(outcome(&first_event), Err(FaultKind::Interrupted));
    assert_eq!(outcome(&first_event[..first_event.len() / 2]), Err(FaultKind::Interrupted));
    assert_eq!(outcome(""), Err(FaultKind::Interrupted));
    assert_eq!(outcome("<html>"), Err(FaultKind::Garbage));
    assert_eq!(outcome("data: oops\n\n"), Err(FaultKind::Garbage));
}

#[test]
fn error_chunks_inside_stream_end_reply() {
    for (error, expected) in [
        (json!({"message":"m","type":"server_error"}), FaultKind::Server),
        (json!({"message":"m","code":429}), FaultKind::RateLimited),
        (json!({"message":"m","code":"rate_limit_exceeded"}), FaultKind::RateLimited),
        (json!("m"), FaultKind::Server),
    ] {
        let chunks = [delta(json!({"content":"partial"})), json!({"error":error})];
        let (deltas, outcome) = read(Api::OpenAiChat, &sse(&chunks));
        assert_eq!(outcome.unwrap_err().kind, expected, "{error}");
        assert!(deltas.contains(&Delta::Text { index: 0, text: "partial".into() }));
    }
}

#[test]
fn unstreamed_completion_gives_same_reply_as_stream() {
    let chunks = [
        delta(json!({"reasoning":"Hm."})),
        delta(json!({"content":"Hello"})),
        delta(part(Some(0), Some("a"), Some("Read"), Some("{\"x\":1}"))),
        delta(part(Some(1), Some("b"), Some("Grep"), Some("{}"))),
        finish("tool_calls"),
    ];
    let body = json!({"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls",
        "message":{"role":"assistant","content":"Hello","reasoning":"Hm.","tool_calls":[
            {"id":"a","type":"function","function":{"name":"Read","arguments":"{\"x\":1}"}},
            {"id":"b","type":"function","function":{"name":"Grep","arguments":"{}"}}]}}],
        "usage":{"prompt_tokens":0,"completion_tokens":0}});
    let (deltas, reply) = read_whole(Api::OpenAiChat, &body.to_string());
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(reply, read(Api::OpenAiChat, &sse(&chunks)).1.unwrap());

    let error = json!({"error":{"message":"m","code":503}});
    assert_eq!(read_whole(Api::OpenAiChat, &error.to_string()).1.unwrap_err().kind, FaultKind::Server);
    assert_eq!(read_whole(Api::OpenAiChat, "{\"models\":[]}").1.unwrap_err().kind, FaultKind::Garbage);
}

proptest! {
    #[test]
    fn chat_reply_is_independent_of_chunk_boundaries(
        pieces in prop::collection::vec(
            prop_oneof![
                "[a-zäß🦀\\n\" ]{0,6}".prop_map(|text| json!({"content":text})),
                "[a-zäß]{1,6}".prop_map(|text| json!({"reasoning_content":text})),
                (0..3u64, "[a-z]{0,2}", "[{}\"a]{0,4}")
                    .prop_map(|(index, id, json)| part(Some(index), Some(&id), Some("Read"), Some(&json))),
            ],
            0..12,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..16),
        is_cut in any::<bool>(),
    ) {
        let mut chunks: Vec<Value> = pieces.into_iter().map(delta).collect();
        chunks.push(finish("stop"));
        let mut stream = sse(&chunks);
        if is_cut {
            stream.truncate(stream.floor_char_boundary(stream.len() * 2 / 3));
        }
        assert_any_split_reads_alike(Api::OpenAiChat, &stream, &cuts);
    }
}

#[test]
fn think_tags_become_thinking_blocks() {
    let thinking = |text: &str| ReplyBlock::Thinking { text: text.into(), signature: None };
    let text = |text: &str| ReplyBlock::Text(text.into());
    for (pieces, expected) in [
        (vec!["<think>hm</think>{\"n\":1}"], vec![thinking("hm"), text("{\"n\":1}")]),
        (vec!["<th", "ink>h", "m</thi", "nk>\n\n", "yes"], vec![thinking("hm"), text("yes")]),
        (vec!["h", "m</th", "ink>", "yes"], vec![thinking("hm"), text("yes")]),
        (vec!["yes, `</think>`", " ends it"], vec![text("yes, `</think>` ends it")]),
    ] {
        let mut chunks: Vec<Value> = pieces.iter().map(|piece| delta(json!({"content":piece}))).collect();
        chunks.push(finish("stop"));
        let (deltas, reply) = read(Api::OpenAiChat, &sse(&chunks));
        let reply = reply.unwrap();
        assert_deltas_tell_the_reply(&deltas, &reply);
        assert_eq!(reply.content, expected);
        let body = json!({"id":"a","choices":[{"index":0,"finish_reason":"stop",
            "message":{"role":"assistant","content":pieces.concat()}}]});
        assert_eq!(read_whole(Api::OpenAiChat, &body.to_string()).1.unwrap().content, expected);
    }
    // Calls follow the reasoning.
    let chunks = [
        delta(json!({"content":"<think>hm</think>\n"})),
        delta(part(Some(0), Some("a"), Some("Read"), Some("{\"x\":1}"))),
        finish("tool_calls"),
    ];
    let reply = read(Api::OpenAiChat, &sse(&chunks)).1.unwrap();
    assert_eq!(reply.content[0], thinking("hm"));
    assert_eq!(reply.content.len(), 2);
}

#[test]
fn service_tier_and_searches_are_read() {
    for (tier, expected) in
        [("default", Some(ServiceTier::Standard)), ("flex", Some(ServiceTier::Flex)), ("odd", None)]
    {
        let usage = json!({"id":"a","choices":[],"service_tier":tier,"usage":{"prompt_tokens":3,
            "completion_tokens":4,"server_tool_use":{"web_search_requests":2}}});
        let chunks = [delta(json!({"content":"x"})), finish("stop"), usage];
        let usage = read(Api::OpenAiChat, &sse(&chunks)).1.unwrap().usage;
        assert_eq!((usage.service_tier, usage.web_search_requests), (expected, 2), "{tier}");
    }
}

#[test]
fn full_window_in_stream_is_overflow() {
    let word = |chunks: &[Value]| read(Api::OpenAiChat, &sse(chunks)).1.map_err(|fault| fault.word);
    let overflow = Err(Some("context_length_exceeded".to_owned()));
    assert_eq!(word(&[finish("model_context_window_exceeded")]).map(|_| ()), overflow.clone());
    let error = json!({"object":"error","message":"no","code":"context_length_exceeded"});
    assert_eq!(word(&[error]).map(|_| ()), overflow.clone());
    let error = json!({"error":{"message":{"detail":"prompt is too long"}}});
    assert_eq!(word(&[error]).map(|_| ()), overflow);
    let cut = word(&[delta(json!({"content":"x"})), finish("model_context_window_exceeded")]).unwrap();
    assert_eq!(cut.stop_reason, StopReason::MaxTokens);
}

fn request() -> ModelRequest {
    let call_id = Mint::new(1, Seed(1)).call();
    let call = |provider_id: &str, input: Value| {
        Block::ToolCall(ToolCall {
            call_id,
            provider_id: provider_id.into(),
            tool: "Read".into(),
            input,
            input_error: None,
        })
    };
    let result = |provider_id: &str, content: &str| Block::ToolResult {
        call_id,
        provider_id: provider_id.into(),
        content: content.into(),
        is_error: false,
        attachments: Vec::new(),
    };
    let text = |text: &str| Block::Text { text: text.into() };
    let assistant_message = |content| Arc::new(Message::new(Role::Assistant, content));
    let user_message = |content| Arc::new(Message::new(Role::User, content));
    ModelRequest {
        system: "Be brief.".into(),
        messages: vec![
            user_message(vec![text("hi"), text("there")]),
            assistant_message(vec![
                Block::Thinking { text: "hm".into(), signature: None },
                call("c1", json!({"a":1})),
                call("c2", json!("{\"cut")),
            ]),
            user_message(vec![result("c1", "one"), result("c2", ""), text("go on")]),
            assistant_message(vec![text("fine "), text("so far")]),
            user_message(vec![text("thanks")]),
        ],
        tools: [ToolDefinition {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type":"object"}),
            read_only: true,
        }]
        .into(),
        max_output_tokens: Some(50),
        ..ModelRequest::new("local/qwen/3".parse().unwrap())
    }
}

fn target(is_vendor: bool) -> RequestTarget<'static> {
    RequestTarget { is_vendor, ..RequestTarget::default() }
}

fn body(settings: &ModelSettings, vendor: bool) -> Value {
    serde_json::from_slice(&super::request::body(&request(), settings, target(vendor)).unwrap()).unwrap()
}

#[test]
fn request_body_matches_chat_completions_api() {
    assert_eq!(
        body(&ModelSettings::default(), false),
        json!({
            "model": "qwen/3",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 50,
            "tools": [{"type":"function","function":{"name":"Read","description":"Reads a file.",
                "parameters":{"type":"object","properties":{}}}}],
            "messages": [
                {"role":"system","content":"Be brief."},
                {"role":"user","content":"hi\n\nthere"},
                {"role":"assistant","content":null,"tool_calls":[
                    {"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"a\":1}"}},
                    {"id":"c2","type":"function","function":{"name":"Read",
                        "arguments":"{\"unreadable_input\":\"{\\\"cut\"}"}},
                ]},
                {"role":"tool","tool_call_id":"c1","content":"one"},
                {"role":"tool","tool_call_id":"c2","content":"(no output)"},
                {"role":"user","content":"go on"},
                {"role":"assistant","content":"fine so far"},
                {"role":"user","content":"thanks"},
            ],
        })
    );
}

#[test]
fn model_capabilities_shape_request_body() {
    let settings =
        ModelSettings { tools: false, streaming: false, system_role: false, ..ModelSettings::default() };
    let written = body(&settings, true);
    assert_eq!(written["messages"][0], json!({"role":"user","content":"Be brief.\n\nhi\n\nthere"}));
    assert_eq!(written["stream"], false);
    assert_eq!(written["max_completion_tokens"], 50);
    for absent in ["tools", "stream_options", "max_tokens"] {
        assert_eq!(written.get(absent), None, "{absent}");
    }
}

#[test]
fn long_call_ids_are_shortened_for_vendor_only() {
    let long = "call_".repeat(20);
    let mut model_request = request();
    for message in &mut model_request.messages {
        for block in &mut Arc::make_mut(message).content {
            match block {
                Block::ToolCall(call) => call.provider_id.clone_from(&long),
                Block::ToolResult { provider_id, .. } => provider_id.clone_from(&long),
                _ => {}
            }
        }
    }
    for (vendor, is_kept) in [(true, false), (false, true)] {
        let body =
            super::request::body(&model_request, &ModelSettings::default(), target(vendor)).expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let messages = body["messages"].as_array().expect("a list");
        let calls =
            messages.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
        let mut called: Vec<&str> = calls.map(|call| call["id"].as_str().expect("an id")).collect();
        let mut answered: Vec<&str> =
            messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        called.sort_unstable();
        answered.sort_unstable();
        assert!(!called.is_empty());
        assert_eq!(called, answered, "{vendor}");
        for id in called {
            assert_eq!(id == long, is_kept, "{vendor}: {id}");
            assert!(is_kept || id.len() <= 40, "{id}");
        }
    }
}
