//! OpenAI Responses in the test's model server: the rules for a request, and the bytes of an answer.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::model_media;
use super::model_rules::{Verdict, check_effort, check_keys, check_sampling, list, object, rule, text_field};
use super::model_script::Step;
use super::model_wire::{Event, arguments, call_id, halves, usage};

/// The stored answers by id. Each value lists the calls of the answer that still need a result.
pub type StoredAnswers = HashMap<String, Vec<String>>;

/// Error code for an answer that the server does not store, or no longer stores.
pub const UNKNOWN_RESPONSE: &str = "previous_response_not_found";

/// Rules of Responses. A missing stored answer has its own error code.
pub fn check(body: &Value, kept: &StoredAnswers) -> Result<(), (&'static str, String)> {
    check_fields(body).map_err(|text| ("invalid_request_error", text))?;
    let owed = match body.get("previous_response_id").and_then(Value::as_str) {
        None => Vec::new(),
        Some(id) => match kept.get(id) {
            Some(calls) => calls.clone(),
            None => {
                let text = format!("Previous response with id '{id}' not found.");
                return Err((UNKNOWN_RESPONSE, text));
            }
        },
    };
    check_input(body, owed).map_err(|text| ("invalid_request_error", text))
}

fn check_fields(body: &Value) -> Verdict {
    let fields = object(body, "the request")?;
    check_keys(
        fields,
        "the request",
        &[
            "model",
            "stream",
            "store",
            "previous_response_id",
            "instructions",
            "max_output_tokens",
            "include",
            "tools",
            "input",
            "reasoning",
            "temperature",
            "stop",
            "metadata",
            "top_p",
        ],
    )?;
    text_field(fields, "model", "the request")?;
    rule(
        fields.get("max_output_tokens").is_none_or(|n| n.as_u64().is_some_and(|n| n >= 16)),
        "max_output_tokens must be at least 16",
    )?;
    check_sampling(fields, 2.0)?;
    for name in ["stream", "store"] {
        rule(fields.get(name).is_some_and(Value::is_boolean), format!("{name} must be true or false"))?;
    }
    if let Some(reasoning) = fields.get("reasoning") {
        let reasoning = object(reasoning, "reasoning")?;
        check_keys(reasoning, "reasoning", &["effort", "summary"])?;
        rule(!reasoning.is_empty(), "reasoning must not be empty: leave it out")?;
        if let Some(effort) = reasoning.get("effort") {
            check_effort(effort)?;
        }
        let summary = reasoning.get("summary").map_or("auto", |summary| summary.as_str().unwrap_or("?"));
        rule(matches!(summary, "auto" | "concise" | "detailed"), format!("summary: unknown {summary}"))?;
    }
    for kind in fields.get("include").map_or(Ok(&[][..]), |include| list(include, "include"))? {
        rule(kind == "reasoning.encrypted_content", format!("include: unknown value {kind}"))?;
        rule(body["store"] == false, "encrypted reasoning is for requests with store: false")?;
    }
    for tool in fields.get("tools").map_or(Ok(&[][..]), |tools| list(tools, "tools"))? {
        let tool = object(tool, "a tool")?;
        check_keys(tool, "a tool", &["type", "name", "description", "parameters", "strict"])?;
        rule(tool.get("type").is_some_and(|kind| kind == "function"), "a tool must be of type function")?;
        text_field(tool, "name", "a tool")?;
        rule(tool.get("parameters").is_some_and(Value::is_object), "parameters must be an object")?;
        rule(tool.get("strict").is_some_and(Value::is_boolean), "strict must be true or false")?;
    }
    Ok(())
}

fn check_input(body: &Value, mut owed: Vec<String>) -> Verdict {
    let items = list(&body["input"], "input")?;
    rule(!items.is_empty(), "input must not be empty")?;
    let mut seen = owed.clone();
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        let item = object(item, &place)?;
        // The short form of an earlier answer is the only item without a type.
        if item.get("role").is_some_and(|role| role == "assistant")
            && item.get("content").is_some_and(Value::is_string)
        {
            check_keys(item, &place, &["role", "content"])?;
            text_field(item, "content", &place)?;
            rule(owed.is_empty(), format!("{place}: calls {owed:?} were not answered"))?;
            continue;
        }
        match text_field(item, "type", &place)? {
            "message" => {
                let role = text_field(item, "role", &place)?;
                rule(matches!(role, "user" | "assistant"), format!("{place}: unknown role {role}"))?;
                // The vendor's types (openai 3.54.0, `ResponseOutputMessageParam`) require these fields
                // in an answer.
                if role == "assistant" {
                    check_keys(item, &place, &["type", "role", "content", "id", "status"])?;
                    text_field(item, "id", &place)?;
                    text_field(item, "status", &place)?;
                } else {
                    check_keys(item, &place, &["type", "role", "content"])?;
                }
                rule(owed.is_empty(), format!("{place}: calls {owed:?} were not answered"))?;
                for part in list(item.get("content").unwrap_or(&Value::Null), &place)? {
                    let part = object(part, &place)?;
                    let kind = text_field(part, "type", &place)?;
                    match (role, kind) {
                        ("user", "input_text") => {
                            check_keys(part, &place, &["type", "text"])?;
                            text_field(part, "text", &place)?;
                        }
                        ("assistant", "output_text") => {
                            check_keys(part, &place, &["type", "text", "annotations"])?;
                            text_field(part, "text", &place)?;
                            list(part.get("annotations").unwrap_or(&Value::Null), &place)?;
                        }
                        ("user", "input_image") => {
                            check_keys(part, &place, &["type", "image_url", "detail"])?;
                            let detail = text_field(part, "detail", &place)?;
                            let known = ["auto", "low", "high", "original"];
                            rule(known.contains(&detail), format!("{place}: unknown detail {detail}"))?;
                            model_media::data_url(true, text_field(part, "image_url", &place)?, &place)?;
                        }
                        ("user", "input_file") => {
                            check_keys(part, &place, &["type", "filename", "file_data"])?;
                            text_field(part, "filename", &place)?;
                            model_media::data_url(false, text_field(part, "file_data", &place)?, &place)?;
                        }
                        _ => return Err(format!("{place}: {kind} has no place in a message of the {role}")),
                    }
                }
            }
            "reasoning" => {
                check_keys(item, &place, &["type", "id", "summary", "encrypted_content"])?;
                text_field(item, "id", &place)?;
                text_field(item, "encrypted_content", &place)?;
                for part in list(item.get("summary").unwrap_or(&Value::Null), &place)? {
                    let part = object(part, &place)?;
                    check_keys(part, &place, &["type", "text"])?;
                    rule(
                        part.get("type").is_some_and(|kind| kind == "summary_text"),
                        format!("{place}: type"),
                    )?;
                    text_field(part, "text", &place)?;
                }
                let kind = |item: &Value| match item["role"] == "assistant" {
                    true => "message".to_owned(),
                    false => item["type"].as_str().unwrap_or("?").to_owned(),
                };
                let next = items.get(at + 1).map_or("nothing".into(), kind);
                let is_own = items.get(at + 1).is_some_and(|item| item["role"] != "user");
                rule(
                    is_own && matches!(next.as_str(), "message" | "function_call" | "reasoning"),
                    format!("{place}: reasoning without what it led to, followed by {next}"),
                )?;
            }
            "function_call" => {
                check_keys(item, &place, &["type", "call_id", "name", "arguments"])?;
                let id = text_field(item, "call_id", &place)?.to_owned();
                short_id(&id, &place)?;
                text_field(item, "name", &place)?;
                let arguments = text_field(item, "arguments", &place)?;
                rule(
                    serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok(),
                    format!("{place}: arguments must be the text of an object, not {arguments:?}"),
                )?;
                rule(!seen.contains(&id), format!("{place}: call_id {id} was used before"))?;
                seen.push(id.clone());
                owed.push(id);
            }
            "function_call_output" => {
                check_keys(item, &place, &["type", "call_id", "output"])?;
                text_field(item, "output", &place)?;
                let id = text_field(item, "call_id", &place)?;
                short_id(id, &place)?;
                let at = owed.iter().position(|owed| owed == id);
                let Some(at) = at else { return Err(format!("{place}: no open call {id} ({owed:?})")) };
                owed.remove(at);
            }
            other => return Err(format!("{place}: unknown type {other}")),
        }
    }
    rule(owed.is_empty(), format!("calls {owed:?} were not answered"))?;
    let last = &items[items.len() - 1];
    rule(
        last["type"] == "function_call_output" || last["role"] == "user",
        "the last item must be the user's or an output",
    )
}

/// "Expected a string with maximum length 64".
fn short_id(id: &str, place: &str) -> Verdict {
    rule(id.chars().count() <= 64, format!("{place}: call_id {id} has more than 64 characters"))
}

/// The calls of an answer. A request that continues the answer must have a result for each of them.
pub fn calls_of(step: &Step, number: usize) -> Vec<String> {
    (0..step.calls.len()).map(|n| call_id(number, n)).collect()
}

pub fn response_id(number: usize) -> String {
    format!("resp_{number}")
}

fn items(step: &Step, number: usize, encrypted: bool) -> Vec<Value> {
    let mut items = Vec::new();
    if !step.thinking.is_empty() {
        let mut item = json!({"type":"reasoning","id":format!("rs_{number}"),
            "summary":[{"type":"summary_text","text":step.thinking.concat()}]});
        if encrypted {
            item["encrypted_content"] = json!(format!("sealed_{number}"));
        }
        items.push(item);
    }
    if !step.text.is_empty() {
        items.push(json!({"type":"message","id":format!("msg_{number}"),"role":"assistant",
            "status":"completed","content":[{"type":"output_text","text":step.text.concat(),"annotations":[]}]}));
    }
    for (n, (tool, _)) in step.calls.iter().enumerate() {
        items.push(json!({"type":"function_call","id":format!("fc_{number}_{n}"),"status":"completed",
            "call_id":call_id(number, n),"name":tool,"arguments":arguments(step, n)}));
    }
    items
}

/// The answer in one body.
pub fn body(step: &Step, number: usize, request: &Value) -> Value {
    let encrypted = request["include"].as_array().is_some_and(|include| !include.is_empty());
    let (input, output) = usage(step);
    let reason = step.stop.as_deref();
    json!({"id":response_id(number),"object":"response","model":"scripted","error":null,
        "status": if reason.is_some() { "incomplete" } else { "completed" },
        "incomplete_details": reason.map(|reason| json!({"reason":reason})),
        "output":items(step, number, encrypted),
        "usage":{"input_tokens":input,"input_tokens_details":{"cached_tokens":0},"output_tokens":output,
            "output_tokens_details":{"reasoning_tokens":0},"total_tokens":input + output}})
}

/// The answer as a stream.
pub fn stream(step: &Step, number: usize, request: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    let mut sequence = 0;
    let mut send = |mut event: Value, is_delta: bool| {
        event["sequence_number"] = json!(sequence);
        sequence += 1;
        let kind = event["type"].as_str().expect("a type");
        events.push(Event { bytes: format!("event: {kind}\ndata: {event}\n\n").into_bytes(), is_delta });
    };
    let whole = body(step, number, request);
    let begun = json!({"id":response_id(number),"object":"response","status":"in_progress","output":[]});
    send(json!({"type":"response.created","response":begun}), false);
    send(json!({"type":"response.in_progress","response":begun}), false);
    for (index, item) in whole["output"].as_array().expect("items").iter().enumerate() {
        let mut bare = item.clone();
        match item["type"].as_str() {
            Some("reasoning") => bare["summary"] = json!([]),
            Some("message") => bare["content"] = json!([]),
            _ => bare["arguments"] = json!(""),
        }
        send(json!({"type":"response.output_item.added","output_index":index,"item":bare}), false);
        let (kind, pieces) = match item["type"].as_str() {
            Some("reasoning") => {
                let part = json!({"type":"response.reasoning_summary_part.added","output_index":index,"summary_index":0});
                send(part, false);
                ("response.reasoning_summary_text.delta", step.thinking.clone())
            }
            Some("message") => ("response.output_text.delta", step.text.clone()),
            _ => {
                let text = item["arguments"].as_str().expect("text");
                ("response.function_call_arguments.delta", halves(text))
            }
        };
        for piece in pieces {
            send(json!({"type":kind,"output_index":index,"content_index":0,"delta":piece}), true);
        }
        if step.break_off.is_none() || index + 1 < whole["output"].as_array().map_or(0, Vec::len) {
            send(json!({"type":"response.output_item.done","output_index":index,"item":item}), false);
        }
    }
    if let Some((kind, message)) = &step.break_off {
        send(json!({"type":"error","code":kind,"message":message,"param":null}), false);
        return events;
    }
    let end = if step.stop.is_some() { "response.incomplete" } else { "response.completed" };
    send(json!({"type":end,"response":whole}), false);
    events
}
