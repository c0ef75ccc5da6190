use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::testing::{assert_any_split_reads_alike, assert_deltas_tell_the_reply, read, read_whole};
use crate::catalog::capabilities::{SealedReasoning, seal};
use crate::settings::Api;
use types::model::{FaultKind, ReplyBlock, StopReason};
use types::usage::Usage;

const API: Api = Api::OpenAiResponses;

fn sse(events: &[Value]) -> String {
    events.iter().fold(String::new(), |mut stream, event| {
        let kind = event["type"].as_str().expect("a type");
        write!(stream, "event: {kind}\ndata: {event}\n\n").unwrap();
        stream
    })
}

fn created() -> Value {
    json!({"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}})
}

fn completed(output: Value) -> Value {
    json!({"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed",
        "error":null,"incomplete_details":null,"output":output,
        "usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":20,
            "output_tokens_details":{"reasoning_tokens":8},"total_tokens":120}}})
}

fn text_delta(index: u64, text: &str) -> Value {
    json!({"type":"response.output_text.delta","item_id":"msg_1","output_index":index,"content_index":0,"delta":text})
}

fn added(index: u64, item: Value) -> Value {
    json!({"type":"response.output_item.added","output_index":index,"item":item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type":"response.output_item.done","output_index":index,"item":item})
}

fn message(text: &str) -> Value {
    json!({"type":"message","id":"msg_1","status":"completed","role":"assistant",
        "content":[{"type":"output_text","text":text,"annotations":[]}]})
}

fn call(id: &str, tool: &str, arguments: &str) -> Value {
    json!({"type":"function_call","id":"fc_1","call_id":id,"name":tool,"arguments":arguments,"status":"completed"})
}

fn arguments(index: u64, json: &str) -> Value {
    json!({"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":index,"delta":json})
}

fn reasoning() -> Value {
    json!({"type":"reasoning","id":"rs_1","encrypted_content":"gAAA",
        "summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}]})
}

fn full_stream() -> Vec<Value> {
    vec![
        created(),
        json!({"type":"response.in_progress","response":{"id":"resp_1"}}),
        added(0, json!({"type":"reasoning","id":"rs_1","summary":[]})),
        json!({"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}),
        json!({"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"First."}),
        json!({"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}),
        json!({"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Then."}),
        done(0, reasoning()),
        added(1, json!({"type":"message","id":"msg_1","role":"assistant","content":[]})),
        text_delta(1, "Grü"),
        text_delta(1, "ße 🦀"),
        json!({"type":"response.output_text.done","output_index":1,"text":"Grüße 🦀"}),
        done(1, message("Grüße 🦀")),
        added(2, call("call_a", "Read", "")),
        arguments(2, "{\"a\":"),
        arguments(2, "1}"),
        done(2, call("call_a", "Read", "{\"a\":1}")),
        json!({"type":"response.invented.later","output_index":9,"delta":"?"}),
        completed(json!([reasoning(), message("Grüße 🦀"), call("call_a", "Read", "{\"a\":1}")])),
    ]
}

fn whole_reply() -> Vec<ReplyBlock> {
    let sealed = SealedReasoning { id: "rs_1".into(), encrypted_content: "gAAA".into() };
    vec![
        ReplyBlock::Thinking { text: "First.\n\nThen.".into(), signature: Some(seal(&sealed)) },
        ReplyBlock::Text("Grüße 🦀".into()),
        ReplyBlock::ToolCall { provider_id: "call_a".into(), tool: "Read".into(), input: Ok(json!({"a":1})) },
    ]
}

#[test]
fn response_with_all_item_kinds_is_parsed() {
    let (deltas, reply) = read(API, &sse(&full_stream()));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(reply.content, whole_reply());
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.response_id.as_deref(), Some("resp_1"));
    let usage = Usage {
        input_tokens: 36,
        output_tokens: 20,
        cache_read_tokens: 64,
        reasoning_tokens: 8,
        ..Usage::default()
    };
    assert_eq!(reply.usage, usage);
}

#[test]
fn items_without_deltas_are_read_from_completed_response() {
    let output = json!([reasoning(), message("Grüße 🦀"), call("call_a", "Read", "{\"a\":1}")]);
    // A stream with only the end event, and the same answer in one body.
    let (deltas, reply) = read(API, &sse(&[created(), completed(output.clone())]));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(reply.content, whole_reply());
    let body = completed(output)["response"].to_string();
    let (deltas, whole) = read_whole(API, &body);
    assert_eq!(whole.unwrap(), reply);
    assert_deltas_tell_the_reply(&deltas, &reply);
}

#[test]
fn interleaved_items_are_emitted_sequentially() {
    let events = [
        created(),
        added(0, call("a", "Read", "")),
        added(1, call("b", "Grep", "")),
        arguments(1, "{\"y\":"),
        arguments(0, "{\"x\":"),
        arguments(1, "2}"),
        done(1, call("b", "Grep", "{\"y\":2}")),
        arguments(0, "1}"),
        done(0, call("a", "Read", "{\"x\":1}")),
        completed(json!([])),
    ];
    let (deltas, reply) = read(API, &sse(&events));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    let call = |id: &str, tool: &str, input| ReplyBlock::ToolCall {
        provider_id: id.into(),
        tool: tool.into(),
        input: Ok(input),
    };
    assert_eq!(reply.content, [call("a", "Read", json!({"x":1})), call("b", "Grep", json!({"y":2}))]);
}

#[test]
fn response_status_maps_to_stop_reason() {
    let end = |kind: &str, response: Value| {
        let event = json!({"type":kind,"response":response});
        read(API, &sse(&[created(), text_delta(0, "half"), event])).1
    };
    let incomplete = |reason: &str| {
        let response = json!({"id":"resp_1","object":"response","status":"incomplete",
            "incomplete_details":{"reason":reason},"output":[]});
        end("response.incomplete", response).unwrap()
    };
    assert_eq!(incomplete("max_output_tokens").stop_reason, StopReason::MaxTokens);
    assert_eq!(incomplete("content_filter").stop_reason, StopReason::Refusal);
    let odd = incomplete("the moon");
    assert_eq!(odd.stop_reason, StopReason::EndTurn);
    assert!(odd.notices[0].contains("the moon"), "{:?}", odd.notices);

    let failed = json!({"id":"resp_1","object":"response","status":"failed",
        "error":{"code":"rate_limit_exceeded","message":"slow down"}});
    assert_eq!(end("response.failed", failed).unwrap_err().kind, FaultKind::RateLimited);
    assert_eq!(end("response.failed", json!({"status":"failed"})).unwrap_err().kind, FaultKind::Server);
    let refusal = [
        created(),
        json!({"type":"response.refusal.delta","output_index":0,"delta":"I will not."}),
        completed(json!([])),
    ];
    let reply = read(API, &sse(&refusal)).1.unwrap();
    assert_eq!(
        (reply.stop_reason, reply.content),
        (StopReason::Refusal, vec![ReplyBlock::Text("I will not.".into())])
    );
}

#[test]
fn error_event_inside_stream_becomes_fault() {
    for (error, kind) in [
        (json!({"type":"error","code":"server_error","message":"oops","param":null}), FaultKind::Server),
        (json!({"type":"error","error":{"type":"overloaded_error","message":"busy"}}), FaultKind::Overloaded),
        (json!({"type":"error"}), FaultKind::Server),
    ] {
        let fault = read(API, &sse(&[created(), text_delta(0, "half"), error])).1.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault:?}");
    }
}

#[test]
fn stream_without_completed_event_is_interrupted() {
    let stream = sse(&full_stream());
    let end = stream.find("event: response.completed").unwrap();
    for at in (0..end).step_by(7) {
        if let Some(head) = stream.get(..at) {
            let fault = read(API, head).1.unwrap_err();
            assert!(matches!(fault.kind, FaultKind::Interrupted | FaultKind::Garbage), "{at}: {fault:?}");
        }
    }
}

#[test]
fn non_response_body_is_garbage() {
    for body in ["{}", "[]", "nonsense", r#"{"object":"list"}"#] {
        assert_eq!(read_whole(API, body).1.unwrap_err().kind, FaultKind::Garbage, "{body}");
    }
}

/// The content of the answer for these events of the stream and this output at the end.
fn content(events: &[Value], output: Value) -> Vec<ReplyBlock> {
    let all: Vec<Value> =
        [created()].into_iter().chain(events.iter().cloned()).chain([completed(output)]).collect();
    let (deltas, reply) = read(API, &sse(&all));
    let reply = reply.unwrap();
    assert_deltas_tell_the_reply(&deltas, &reply);
    reply.content
}

fn text_block(text: &str) -> ReplyBlock {
    ReplyBlock::Text(text.into())
}

fn tool_call_block(id: &str, tool: &str, input: Value) -> ReplyBlock {
    ReplyBlock::ToolCall { provider_id: id.into(), tool: tool.into(), input: Ok(input) }
}

/// A message and a call as they are streamed, under these numbers.
fn streamed_items(first: u64, second: u64) -> Vec<Value> {
    vec![
        added(first, json!({"type":"message","id":"msg_1","role":"assistant","content":[]})),
        text_delta(first, "Hi."),
        done(first, message("Hi.")),
        added(second, call("call_a", "Bash", "")),
        arguments(second, "{\"command\":\"date\"}"),
        done(second, call("call_a", "Bash", "{\"command\":\"date\"}")),
    ]
}

#[test]
fn items_are_read_once_with_any_numbering() {
    let output = || json!([message("Hi."), call("call_a", "Bash", "{\"command\":\"date\"}")]);
    let expected = [text_block("Hi."), tool_call_block("call_a", "Bash", json!({"command":"date"}))];
    // As documented, counted from 1, with a gap, and descending.
    for (first, second) in [(0, 1), (1, 2), (0, 2), (3, 7), (1, 0)] {
        assert_eq!(content(&streamed_items(first, second), output()), expected, "{first}, {second}");
    }
    // All items have the same number, or none has one.
    assert_eq!(content(&streamed_items(0, 0), output()), expected);
    let mut bare = streamed_items(0, 1);
    for event in &mut bare {
        event.as_object_mut().unwrap().remove("output_index");
    }
    assert_eq!(content(&bare, output()), expected);
    // The end has items of the provider's own tools between them, or repeats no item.
    let search = json!({"type":"web_search_call","id":"ws_1","status":"completed"});
    let output = json!([search, message("Hi."), search, call("call_a", "Bash", "{\"command\":\"date\"}")]);
    assert_eq!(content(&streamed_items(0, 1), output), expected);
    assert_eq!(content(&streamed_items(0, 1), json!([])), expected);
}

#[test]
fn item_only_in_completed_response_is_added() {
    let other = json!({"type":"function_call","id":"fc_2","call_id":"call_b","name":"Bash","arguments":"{\"command\":\"date\"}"});
    let note = json!({"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Hi."}]});
    let output = json!([note, message("Hi."), other, call("call_a", "Bash", "{\"command\":\"date\"}")]);
    let date = || json!({"command":"date"});
    assert_eq!(
        content(&streamed_items(0, 1), output),
        [
            text_block("Hi."),
            tool_call_block("call_a", "Bash", date()),
            text_block("Hi."),
            tool_call_block("call_b", "Bash", date())
        ]
    );
}

#[test]
fn items_without_ids_are_matched_by_content() {
    let bare = |mut item: Value| {
        let fields = item.as_object_mut().unwrap();
        fields.remove("id");
        fields.remove("call_id");
        item
    };
    let arguments_of = "{\"command\":\"date\"}";
    for index in [0, 1] {
        let mut events = streamed_items(index, index + 1);
        for event in &mut events {
            event.as_object_mut().unwrap().remove("item_id");
            if event["item"].is_object() {
                event["item"] = bare(event["item"].take());
            }
        }
        let output = json!([bare(message("Hi.")), bare(call("", "Bash", arguments_of))]);
        let made_up = tool_call_block("call_replay_0_1", "Bash", json!({"command":"date"}));
        assert_eq!(content(&events, output.clone()), [text_block("Hi."), made_up.clone()], "{index}");
        // Incomplete in the stream: the end completes them.
        let halves: Vec<Value> =
            events.iter().filter(|event| event["type"] != "response.output_item.done").cloned().collect();
        assert_eq!(content(&halves, output), [text_block("Hi."), made_up], "{index}");
    }
}

fn without_number(item: Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

fn without_ids(mut item: Value) -> Value {
    let fields = item.as_object_mut().unwrap();
    fields.remove("id");
    fields.remove("call_id");
    item
}

#[test]
fn reformatted_arguments_of_unnamed_call_are_one_call() {
    for (streamed, end) in [
        ("{\"command\":\"date\"}", "{ \"command\": \"date\" }"),
        ("", "{}"),
        ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"),
    ] {
        let events = [without_number(without_ids(call("", "Bash", streamed)))];
        let mut renamed = call("other", "Bash", end);
        renamed.as_object_mut().unwrap().remove("call_id");
        for end in [without_ids(call("", "Bash", end)), renamed] {
            let blocks = content(&events, json!([end]));
            assert_eq!(blocks.len(), 1, "{streamed:?}: {blocks:?}");
        }
    }
}

#[test]
fn distinct_unnamed_calls_are_all_kept() {
    let item = |command: &str| without_ids(call("", "Bash", &json!({"command": command}).to_string()));
    for index in [None, Some(0)] {
        let events: Vec<Value> = ["a", "b", "a"]
            .iter()
            .map(|command| {
                let mut event = without_number(item(command));
                if let Some(index) = index {
                    event["output_index"] = json!(index);
                }
                event
            })
            .collect();
        let blocks = content(&events, json!([]));
        assert_eq!(blocks.len(), 2, "the third repeats the first: {blocks:?}");
    }
}

#[test]
fn item_ids_separate_calls_that_share_a_number() {
    let added = |id: &str| {
        let mut item = call(id, "Bash", "");
        item["id"] = json!(format!("fc_{id}"));
        json!({"type": "response.output_item.added", "output_index": 0, "item": item})
    };
    let piece = |id: &str, json: &str| {
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": format!("fc_{id}"),
            "delta": json})
    };
    let last = |id: &str, command: &str| {
        let mut item = call(id, "Bash", &json!({"command": command}).to_string());
        item["id"] = json!(format!("fc_{id}"));
        let mut event = without_number(item);
        event["output_index"] = json!(0);
        event
    };
    let events = [
        added("a"),
        piece("a", "{\"command\":"),
        piece("a", "\"one\"}"),
        last("a", "one"),
        added("b"),
        piece("b", "{\"command\":\"two\"}"),
        last("b", "two"),
    ];
    let expected = [
        tool_call_block("a", "Bash", json!({"command": "one"})),
        tool_call_block("b", "Bash", json!({"command": "two"})),
    ];
    assert_eq!(content(&events, json!([])), expected);
}

#[test]
fn item_ids_changing_between_events_are_accepted() {
    let mut events = streamed_items(0, 1);
    for (n, event) in events.iter_mut().enumerate() {
        let id = json!(format!("changed_{n}"));
        match event["item"].is_object() {
            true => event["item"]["id"] = id,
            false => event["item_id"] = id,
        }
    }
    let mut said_last = message("Hi.");
    said_last["id"] = json!("changed_again");
    let output = json!([said_last, call("call_a", "Bash", "{\"command\":\"date\"}")]);
    assert_eq!(
        content(&events, output),
        [text_block("Hi."), tool_call_block("call_a", "Bash", json!({"command":"date"}))]
    );
}

#[test]
fn changing_response_id_is_one_reply() {
    let mut events = full_stream();
    for (n, event) in events.iter_mut().enumerate() {
        if event["response"].is_object() {
            event["response"]["id"] = json!(format!("copilot_{n}"));
        }
    }
    let last = events.len() - 1;
    let reply = read(API, &sse(&events)).1.unwrap();
    assert_eq!(reply.content, whole_reply());
    assert_eq!(reply.response_id, Some(format!("copilot_{last}")));
    // A second beginning after output began is another answer.
    events.insert(last, created());
    assert_eq!(read(API, &sse(&events)).1.unwrap_err().kind, FaultKind::Interrupted);
}

proptest! {
    #[test]
    fn responses_reply_is_independent_of_chunk_boundaries(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        assert_any_split_reads_alike(API, &sse(&full_stream()), &cuts);
    }
}
