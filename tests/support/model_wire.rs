//! Converts a step of the script into the bytes of any of the APIs.

use serde_json::{Value, json};

use super::model_responses;
use super::model_server::{Request, Step};

/// Bytes that are written together.
pub struct Event {
    pub bytes: Vec<u8>,
    /// Whether the event carries content.
    pub is_delta: bool,
}

/// Status, content type and body of the answer to the request with this number.
pub fn render(request: &Request, step: &Step, number: usize) -> (u16, String, Vec<Event>) {
    let one = |bytes: Vec<u8>| vec![Event { bytes, is_delta: false }];
    if let Some((status, content_type, body)) = &step.raw {
        return (*status, content_type.clone(), one(body.clone()));
    }
    if let Some((status, kind, message)) = &step.error {
        let body = json!({"type":"error","error":{"type":kind,"code":kind,"message":message}});
        return (*status, "application/json".into(), one(body.to_string().into_bytes()));
    }
    let is_anthropic = request.is_anthropic();
    if request.body["stream"] != true {
        let body = match request.is_responses() {
            true => model_responses::body(step, number, &request.body),
            false if is_anthropic => anthropic_body(step, number),
            false => openai_body(step, number),
        };
        return (200, "application/json".into(), one(body.to_string().into_bytes()));
    }
    let events = match request.is_responses() {
        true => model_responses::stream(step, number, &request.body),
        false if is_anthropic => anthropic(step, number),
        false => openai(step, number),
    };
    (200, "text/event-stream".into(), events)
}

pub fn usage(step: &Step) -> (u64, u64) {
    step.usage.unwrap_or((10, 5))
}

pub fn call_id(number: usize, n: usize) -> String {
    format!("call_{number}_{n}")
}

/// The arguments of a call, up to the length that the step sends.
pub fn arguments(step: &Step, n: usize) -> String {
    let mut text = step.calls[n].1.to_string();
    if let Some(bytes) = step.cut_call.filter(|_| n + 1 == step.calls.len()) {
        text.truncate(text.floor_char_boundary(bytes));
    }
    text
}

/// The arguments in two parts, as providers send them.
pub fn halves(text: &str) -> Vec<String> {
    let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [head, tail].into_iter().filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

fn anthropic_stop(step: &Step) -> String {
    let by_content = if step.calls.is_empty() { "end_turn" } else { "tool_use" };
    step.stop.clone().unwrap_or_else(|| by_content.into())
}

fn openai_stop(step: &Step) -> String {
    let by_content = if step.calls.is_empty() { "stop" } else { "tool_calls" };
    step.stop.clone().unwrap_or_else(|| by_content.into())
}

fn anthropic(step: &Step, number: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut send = |event: Value| {
        let bytes = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
        let is_delta = event["type"] == "content_block_delta" && event["delta"]["type"] != "signature_delta";
        events.push(Event { bytes: bytes.into_bytes(), is_delta });
    };
    let (input, output) = usage(step);
    send(json!({"type":"message_start","message":{"id":format!("msg_{number}"),"type":"message",
        "role":"assistant","model":"scripted","content":[],"stop_reason":null,
        "usage":{"input_tokens":input,"output_tokens":1,"cache_read_input_tokens":step.cache_read}}}));
    send(json!({"type":"ping"}));
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        send(json!({"type":"content_block_start","index":index,"content_block":start}));
        for delta in deltas {
            send(json!({"type":"content_block_delta","index":index,"delta":delta}));
        }
        send(json!({"type":"content_block_stop","index":index}));
        index += 1;
    };
    if !step.thinking.is_empty() {
        let mut deltas: Vec<Value> =
            step.thinking.iter().map(|piece| json!({"type":"thinking_delta","thinking":piece})).collect();
        deltas.push(json!({"type":"signature_delta","signature":format!("signed_{number}")}));
        block(json!({"type":"thinking","thinking":"","signature":""}), deltas);
    }
    if !step.text.is_empty() {
        let deltas = step.text.iter().map(|piece| json!({"type":"text_delta","text":piece})).collect();
        block(json!({"type":"text","text":""}), deltas);
    }
    for (n, (tool, _)) in step.calls.iter().enumerate() {
        let start = json!({"type":"tool_use","id":call_id(number, n),"name":tool,"input":{}});
        let pieces = halves(&arguments(step, n)).into_iter();
        block(start, pieces.map(|piece| json!({"type":"input_json_delta","partial_json":piece})).collect());
    }
    if let Some((kind, message)) = &step.break_off {
        send(json!({"type":"error","error":{"type":kind,"message":message}}));
        return events;
    }
    send(json!({"type":"message_delta","delta":{"stop_reason":anthropic_stop(step),"stop_sequence":null},
        "usage":{"output_tokens":output}}));
    send(json!({"type":"message_stop"}));
    events
}

fn anthropic_body(step: &Step, number: usize) -> Value {
    let mut content = Vec::new();
    if !step.thinking.is_empty() {
        let signature = format!("signed_{number}");
        content.push(json!({"type":"thinking","thinking":step.thinking.concat(),"signature":signature}));
    }
    if !step.text.is_empty() {
        content.push(json!({"type":"text","text":step.text.concat()}));
    }
    for (n, (tool, input)) in step.calls.iter().enumerate() {
        content.push(json!({"type":"tool_use","id":call_id(number, n),"name":tool,"input":input}));
    }
    let (input, output) = usage(step);
    json!({"id":format!("msg_{number}"),"type":"message","role":"assistant","model":"scripted",
        "content":content,"stop_reason":anthropic_stop(step),
        "usage":{"input_tokens":input,"output_tokens":output}})
}

fn openai(step: &Step, number: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut send = |data: String, is_delta| {
        events.push(Event { bytes: format!("data: {data}\n\n").into_bytes(), is_delta });
    };
    let chunk = |delta: Value, finish: Option<String>| {
        json!({"id":format!("chatcmpl-{number}"),"object":"chat.completion.chunk","model":"scripted",
            "choices":[{"index":0,"delta":delta,"finish_reason":finish}]})
        .to_string()
    };
    send(chunk(json!({"role":"assistant","content":""}), None), false);
    for piece in &step.thinking {
        send(chunk(json!({"reasoning_content":piece}), None), true);
    }
    for piece in &step.text {
        send(chunk(json!({"content":piece}), None), true);
    }
    for (n, (tool, _)) in step.calls.iter().enumerate() {
        let start = json!({"index":n,"id":call_id(number, n),"type":"function",
            "function":{"name":tool,"arguments":""}});
        send(chunk(json!({"tool_calls":[start]}), None), false);
        for piece in halves(&arguments(step, n)) {
            let part = json!({"index":n,"function":{"arguments":piece}});
            send(chunk(json!({"tool_calls":[part]}), None), true);
        }
    }
    if let Some((kind, message)) = &step.break_off {
        send(json!({"error":{"type":kind,"message":message}}).to_string(), false);
        return events;
    }
    send(chunk(json!({}), Some(openai_stop(step))), false);
    let (input, output) = usage(step);
    let counts = json!({"prompt_tokens":input,"completion_tokens":output,"total_tokens":input + output});
    send(json!({"id":format!("chatcmpl-{number}"),"choices":[],"usage":counts}).to_string(), false);
    send("[DONE]".into(), false);
    events
}

fn openai_body(step: &Step, number: usize) -> Value {
    let calls: Vec<Value> = step
        .calls
        .iter()
        .enumerate()
        .map(|(n, (tool, input))| {
            json!({"id":call_id(number, n),"type":"function",
                "function":{"name":tool,"arguments":input.to_string()}})
        })
        .collect();
    let text = (!step.text.is_empty()).then(|| step.text.concat());
    let (input, output) = usage(step);
    json!({"id":format!("chatcmpl-{number}"),"object":"chat.completion","model":"scripted",
        "choices":[{"index":0,"finish_reason":openai_stop(step),
            "message":{"role":"assistant","content":text,"reasoning_content":step.thinking.concat(),
                "tool_calls":calls}}],
        "usage":{"prompt_tokens":input,"completion_tokens":output}})
}
