//! What a provider demands of a request, stricter than any of them: whoever breaks a rule gets a
//! 400 with the text, and the test's server counts a breach.

use serde_json::{Map, Value};

use super::model_media;

pub type Verdict = Result<(), String>;

/// Rules of Anthropic Messages.
pub fn check_anthropic(body: &Value) -> Verdict {
    let fields = object(body, "the request")?;
    only(
        fields,
        "the request",
        &[
            "model",
            "max_tokens",
            "stream",
            "system",
            "tools",
            "messages",
            "metadata",
            "stop_sequences",
            "temperature",
            "thinking",
            "tool_choice",
            "top_p",
        ],
    )?;
    filled(fields, "model", "the request")?;
    rule(
        fields.get("max_tokens").and_then(Value::as_u64).is_some_and(|n| n > 0),
        "max_tokens must be positive",
    )?;
    for part in fields.get("system").map_or(Ok(&[][..]), |system| list(system, "system"))? {
        let part = object(part, "a system block")?;
        only(part, "a system block", &["type", "text", "cache_control"])?;
        filled(part, "text", "a system block")?;
    }
    for tool in fields.get("tools").map_or(Ok(&[][..]), |tools| list(tools, "tools"))? {
        let tool = object(tool, "a tool")?;
        only(tool, "a tool", &["name", "description", "input_schema", "cache_control"])?;
        filled(tool, "name", "a tool")?;
        rule(
            tool.get("input_schema").is_some_and(|schema| schema["type"] == "object"),
            "a tool's input_schema must be of an object",
        )?;
    }
    rule(body.to_string().matches("\"cache_control\"").count() <= 4, "at most 4 cache breakpoints")?;

    let messages = list(fields.get("messages").unwrap_or(&Value::Null), "messages")?;
    rule(!messages.is_empty(), "messages must not be empty")?;
    let mut owed: Vec<&str> = Vec::new();
    let mut all_ids: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let message = object(message, &place)?;
        only(message, &place, &["role", "content"])?;
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        rule(message.get("role").is_some_and(|r| r == role), format!("{place}: expected role {role}"))?;
        let blocks = list(message.get("content").unwrap_or(&Value::Null), &place)?;
        rule(!blocks.is_empty(), format!("{place}: content must not be empty"))?;
        let mut paid: Vec<&str> = Vec::new();
        let mut asked: Vec<&str> = Vec::new();
        for (n, block) in blocks.iter().enumerate() {
            let place = format!("{place}.content[{n}]");
            let block = object(block, &place)?;
            let kind = filled(block, "type", &place)?;
            match (kind, role) {
                ("text", _) => {
                    only(block, &place, &["type", "text", "cache_control"])?;
                    filled(block, "text", &place)?;
                }
                ("thinking", "assistant") => {
                    only(block, &place, &["type", "thinking", "signature"])?;
                    filled(block, "signature", &place)?;
                    rule(n + 1 < blocks.len(), format!("{place}: thinking must not be last"))?;
                }
                ("redacted_thinking", "assistant") => only(block, &place, &["type", "data"])?,
                ("tool_use", "assistant") => {
                    only(block, &place, &["type", "id", "name", "input", "cache_control"])?;
                    let id = filled(block, "id", &place)?;
                    filled(block, "name", &place)?;
                    rule(
                        block.get("input").is_some_and(Value::is_object),
                        format!("{place}: input must be an object"),
                    )?;
                    rule(!all_ids.contains(&id), format!("{place}: id {id} was used before"))?;
                    all_ids.push(id);
                    asked.push(id);
                }
                ("image" | "document", "user") => model_media::anthropic(block, &place)?,
                ("tool_result", "user") => {
                    only(block, &place, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
                    rule(paid.len() == n, format!("{place}: results come before anything else"))?;
                    match block.get("content") {
                        Some(Value::Array(parts)) => tool_result(parts, &place)?,
                        _ => _ = filled(block, "content", &place)?,
                    }
                    paid.push(filled(block, "tool_use_id", &place)?);
                }
                _ => {
                    return Err(format!(
                        "{place}: a block of type {kind} has no place in a message of the {role}"
                    ));
                }
            }
        }
        rule(
            owed == paid || role == "assistant",
            format!("{place}: results {paid:?} do not answer calls {owed:?}"),
        )?;
        owed = asked;
    }
    rule(messages.len() % 2 == 1, "the last message must be the user's")?;
    rule(all_ids.is_empty() || fields.contains_key("tools"), "calls in the history need tools in the request")
}

fn tool_result(parts: &[Value], place: &str) -> Verdict {
    rule(!parts.is_empty(), format!("{place}: content must not be empty"))?;
    for (n, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{n}]");
        let part = object(part, &place)?;
        match filled(part, "type", &place)? {
            "text" => {
                only(part, &place, &["type", "text"])?;
                filled(part, "text", &place)?;
            }
            "image" | "document" => model_media::anthropic(part, &place)?,
            other => return Err(format!("{place}: {other} has no place in a result")),
        }
    }
    Ok(())
}

fn said_by_user(message: &Map<String, Value>, place: &str) -> Verdict {
    let Some(Value::Array(parts)) = message.get("content") else {
        return filled(message, "content", place).map(|_| ());
    };
    rule(!parts.is_empty(), format!("{place}: content must not be empty"))?;
    for (n, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{n}]");
        let part = object(part, &place)?;
        match filled(part, "type", &place)? {
            "text" => {
                only(part, &place, &["type", "text"])?;
                filled(part, "text", &place)?;
            }
            "image_url" => {
                only(part, &place, &["type", "image_url"])?;
                let image = object(part.get("image_url").unwrap_or(&Value::Null), &place)?;
                only(image, &place, &["url", "detail"])?;
                model_media::data_url(true, filled(image, "url", &place)?, &place)?;
            }
            "file" => {
                only(part, &place, &["type", "file"])?;
                let file = object(part.get("file").unwrap_or(&Value::Null), &place)?;
                only(file, &place, &["filename", "file_data"])?;
                filled(file, "filename", &place)?;
                model_media::data_url(false, filled(file, "file_data", &place)?, &place)?;
            }
            other => return Err(format!("{place}: {other} has no place in a message of the user")),
        }
    }
    Ok(())
}

/// Rules of OpenAI Chat Completions.
pub fn check_openai(body: &Value) -> Verdict {
    let fields = object(body, "the request")?;
    only(
        fields,
        "the request",
        &[
            "model",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "tools",
            "messages",
            "stop",
            "temperature",
            "tool_choice",
            "top_p",
        ],
    )?;
    filled(fields, "model", "the request")?;
    if let Some(tools) = fields.get("tools") {
        rule(!list(tools, "tools")?.is_empty(), "tools must not be empty: leave them out")?;
        for tool in list(tools, "tools")? {
            rule(tool["type"] == "function", "a tool must be of type function")?;
            let function = object(&tool["function"], "a tool's function")?;
            only(function, "a tool's function", &["name", "description", "parameters"])?;
            filled(function, "name", "a tool's function")?;
        }
    }
    let messages = list(fields.get("messages").unwrap_or(&Value::Null), "messages")?;
    let mut owed: Vec<&str> = Vec::new();
    let mut before = "nothing";
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let message = object(message, &place)?;
        let role = filled(message, "role", &place)?;
        if role != "tool" {
            rule(owed.is_empty(), format!("{place}: calls {owed:?} were not answered"))?;
        }
        match (role, before) {
            ("system", "nothing") => {
                only(message, &place, &["role", "content"])?;
                filled(message, "content", &place)?;
            }
            ("user", "nothing" | "system" | "assistant" | "tool") => {
                only(message, &place, &["role", "content"])?;
                said_by_user(message, &place)?;
            }
            ("assistant", "user" | "tool") => {
                only(message, &place, &["role", "content", "tool_calls"])?;
                let calls = message.get("tool_calls").map_or(Ok(&[][..]), |calls| list(calls, &place))?;
                if calls.is_empty() || !message.get("content").is_some_and(Value::is_null) {
                    filled(message, "content", &place)?;
                }
                for call in calls {
                    let id = filled(object(call, &place)?, "id", &place)?;
                    rule(!owed.contains(&id), format!("{place}: id {id} twice"))?;
                    owed.push(id);
                    rule(call["type"] == "function", format!("{place}: a call must be of type function"))?;
                    let function = object(&call["function"], &place)?;
                    filled(function, "name", &place)?;
                    let arguments = filled(function, "arguments", &place)?;
                    rule(
                        serde_json::from_str::<Map<String, Value>>(arguments).is_ok(),
                        format!("{place}: arguments must be the text of an object, not {arguments:?}"),
                    )?;
                }
            }
            ("tool", "assistant" | "tool") => {
                only(message, &place, &["role", "tool_call_id", "content"])?;
                filled(message, "content", &place)?;
                let id = filled(message, "tool_call_id", &place)?;
                rule(
                    owed.first() == Some(&id),
                    format!("{place}: result of {id}, expected one of {owed:?} in order"),
                )?;
                owed.remove(0);
            }
            _ => return Err(format!("{place}: {role} must not follow {before}")),
        }
        before = role;
    }
    rule(owed.is_empty(), format!("calls {owed:?} were not answered"))?;
    rule(matches!(before, "user" | "tool"), "the last message must be the user's or a tool's")
}

pub fn rule(is_kept: bool, text: impl Into<String>) -> Verdict {
    if is_kept { Ok(()) } else { Err(text.into()) }
}

pub fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place} must be an object"))
}

pub fn list<'a>(value: &'a Value, place: &str) -> Result<&'a [Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{place} must be a list"))
}

/// The field, a text that is not blank.
pub fn filled<'a>(fields: &'a Map<String, Value>, name: &str, place: &str) -> Result<&'a str, String> {
    let text = fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| format!("{place}: {name} must be a text that is not empty"))
}

pub fn only(fields: &Map<String, Value>, place: &str, known: &[&str]) -> Verdict {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{place}: unknown key {key}")),
        None => Ok(()),
    }
}
