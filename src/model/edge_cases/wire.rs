//! Writes the same answer in the streams of all APIs.

use serde_json::{Value, json};

use crate::settings::Api;
use AnswerPart::{Call, CallTwice, End, Error, Refusal, Start, Text, Unknown};

#[derive(Clone)]
pub(super) enum AnswerPart {
    Start(&'static str),
    Text(&'static str),
    /// Id, and the arguments in fragments.
    Call(&'static str, Vec<&'static str>),
    /// The start of a call, sent twice.
    CallTwice(&'static str, &'static str),
    /// A part of an unknown type.
    Unknown,
    Error,
    Refusal(&'static str),
    End(Option<&'static str>),
}

/// The answer as the API writes it.
pub(super) fn wire(api: Api, parts: &[AnswerPart]) -> String {
    let mut events: Vec<Value> = Vec::new();
    let (mut index, mut calls) = (0, 0);
    for part in parts {
        let before = events.len();
        match api {
            Api::Anthropic => anthropic(part, index, calls > 0, &mut events),
            Api::OpenAiChat => chat(part, calls, &mut events),
            Api::OpenAiResponses => responses(part, index, &mut events),
        }
        let is_block = matches!(part, Text(_) | Call(..) | CallTwice(..) | Refusal(_));
        index += u64::from(is_block && events.len() > before);
        calls += u64::from(matches!(part, Call(..) | CallTwice(..)));
    }
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if api == Api::OpenAiChat && matches!(parts.last(), Some(End(_))) {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

fn anthropic(part: &AnswerPart, index: u64, calls: bool, events: &mut Vec<Value>) {
    let mut block = |start: Value, repeats: usize, deltas: Vec<Value>| {
        for _ in 0..repeats {
            events.push(json!({"type":"content_block_start","index":index,"content_block":start}));
        }
        for delta in deltas {
            events.push(json!({"type":"content_block_delta","index":index,"delta":delta}));
        }
        events.push(json!({"type":"content_block_stop","index":index}));
    };
    let pieces =
        |all: &[&str]| all.iter().map(|p| json!({"type":"input_json_delta","partial_json":p})).collect();
    let tool = |id: &str| json!({"type":"tool_use","id":id,"name":"Read","input":{}});
    match part {
        Text(text) => {
            block(json!({"type":"text","text":""}), 1, vec![json!({"type":"text_delta","text":text})]);
        }
        Call(id, arguments) => block(tool(id), 1, pieces(arguments)),
        CallTwice(id, arguments) => block(tool(id), 2, pieces(&[arguments])),
        Start(id) => {
            events.push(json!({"type":"message_start","message":{"id":id,"usage":{"input_tokens":3}}}))
        }
        Unknown => events.push(json!({"type":"invented_later","index":7,"delta":{"type":"new","text":"?"}})),
        Error => events.push(json!({"type":"error","error":{"type":"overloaded_error","message":"busy"}})),
        // Anthropic reports a refusal only as a stop reason.
        Refusal(_) => {}
        End(reason) => {
            let reason = reason.unwrap_or(if calls { "tool_use" } else { "end_turn" });
            events.push(
                json!({"type":"message_delta","delta":{"stop_reason":reason},"usage":{"output_tokens":4}}),
            );
            events.push(json!({"type":"message_stop"}));
        }
    }
}

fn chat(part: &AnswerPart, number: u64, events: &mut Vec<Value>) {
    let chunk = |delta: Value, finish: Value| json!({"id":"c","choices":[{"index":0,"delta":delta,"finish_reason":finish}]});
    let mut say = |delta: Value| events.push(chunk(delta, Value::Null));
    let begin = |id: &str| {
        let mut call = json!({"index":number,"type":"function","function":{"name":"Read","arguments":""}});
        if !id.is_empty() {
            call["id"] = json!(id);
        }
        json!({"tool_calls":[call]})
    };
    let more = |piece: &str| json!({"tool_calls":[{"index":number,"function":{"arguments":piece}}]});
    match part {
        Start(_) => say(json!({"role":"assistant","content":""})),
        Text(text) => say(json!({"content":text})),
        Call(id, pieces) => {
            say(begin(id));
            pieces.iter().for_each(|piece| say(more(piece)));
        }
        CallTwice(id, arguments) => {
            say(begin(id));
            say(begin(id));
            say(more(arguments));
        }
        Unknown => events.push(json!({"id":"c","object":"invented.later","new":{"a":[1]},"choices":[]})),
        Error => events.push(json!({"error":{"type":"overloaded_error","message":"busy"}})),
        Refusal(text) => say(json!({"refusal":text})),
        End(reason) => {
            let reason = reason.unwrap_or(if number > 0 { "tool_calls" } else { "stop" });
            events.push(chunk(json!({}), json!(reason)));
        }
    }
}

fn responses(part: &AnswerPart, index: u64, events: &mut Vec<Value>) {
    let mut item = |item: &Value, repeats: usize, kind: &str, pieces: &[&str]| {
        for _ in 0..repeats {
            events.push(json!({"type":"response.output_item.added","output_index":index,"item":item}));
        }
        for piece in pieces {
            events.push(json!({"type":kind,"output_index":index,"delta":piece}));
        }
        events.push(json!({"type":"response.output_item.done","output_index":index,"item":item}));
    };
    let call = |id: &str| json!({"type":"function_call","call_id":id,"name":"Read","arguments":""});
    const ARGUMENTS: &str = "response.function_call_arguments.delta";
    match part {
        Start(id) => {
            events.push(json!({"type":"response.created","response":{"id":id,"status":"in_progress"}}))
        }
        Text(text) => {
            item(&json!({"type":"message","content":[]}), 1, "response.output_text.delta", &[text]);
        }
        Call(id, pieces) => item(&call(id), 1, ARGUMENTS, pieces),
        CallTwice(id, arguments) => item(&call(id), 2, ARGUMENTS, &[arguments]),
        Unknown => events.push(json!({"type":"response.invented.later","output_index":9,"delta":"?"})),
        Error => events.push(json!({"type":"error","code":"overloaded_error","message":"busy"})),
        Refusal(text) => item(&json!({"type":"message","content":[]}), 1, "response.refusal.delta", &[text]),
        End(reason) => {
            let status = if reason.is_some() { "incomplete" } else { "completed" };
            let details = reason.map(|reason| json!({"reason":reason}));
            events.push(json!({"type":format!("response.{status}"),"response":{"id":"a","status":status,
                "incomplete_details":details,"output":[],"usage":{"input_tokens":3,"output_tokens":4}}}));
        }
    }
}
