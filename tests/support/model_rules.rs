//! The rules for a request, stricter than those of any provider. A request that violates a rule gets a
//! 400 with the text, and the test's server counts it.

use serde_json::{Map, Value};

use super::model_media;

pub type Verdict = Result<(), String>;

/// Rules of Anthropic Messages. `goes_on`: the previous answer was paused (`pause_turn`), so it may be
/// the last message.
pub fn check_anthropic(body: &Value, goes_on: bool) -> Verdict {
    let fields = object(body, "the request")?;
    check_keys(
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
            "output_config",
            "tool_choice",
            "top_p",
        ],
    )?;
    text_field(fields, "model", "the request")?;
    rule(fields.get("stream").is_some_and(Value::is_boolean), "stream must be true or false")?;
    rule(
        fields.get("max_tokens").and_then(Value::as_u64).is_some_and(|n| n > 0),
        "max_tokens must be positive",
    )?;
    check_sampling(fields, 1.0)?;
    rule(
        !(fields.contains_key("temperature") && fields.contains_key("top_p")),
        "temperature and top_p exclude each other",
    )?;
    check_thinking(fields)?;
    for part in fields.get("system").map_or(Ok(&[][..]), |system| list(system, "system"))? {
        let part = object(part, "a system block")?;
        check_keys(part, "a system block", &["type", "text", "cache_control"])?;
        rule(part.get("type").is_some_and(|kind| kind == "text"), "a system block must be of type text")?;
        text_field(part, "text", "a system block")?;
    }
    for tool in fields.get("tools").map_or(Ok(&[][..]), |tools| list(tools, "tools"))? {
        let tool = object(tool, "a tool")?;
        check_keys(tool, "a tool", &["name", "description", "input_schema", "cache_control"])?;
        text_field(tool, "name", "a tool")?;
        rule(
            tool.get("input_schema").is_some_and(|schema| schema["type"] == "object"),
            "a tool's input_schema must be of an object",
        )?;
        check_schema(&tool["input_schema"], true)?;
    }
    let marks = cache_marks(body);
    rule(marks.len() <= 4, "at most 4 cache breakpoints")?;
    rule(
        marks.iter().all(|mark| **mark == serde_json::json!({"type": "ephemeral"})),
        "cache_control must be of type ephemeral",
    )?;

    let messages = list(fields.get("messages").unwrap_or(&Value::Null), "messages")?;
    rule(!messages.is_empty(), "messages must not be empty")?;
    let mut owed: Vec<&str> = Vec::new();
    let mut all_ids: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let message = object(message, &place)?;
        check_keys(message, &place, &["role", "content"])?;
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        rule(message.get("role").is_some_and(|r| r == role), format!("{place}: expected role {role}"))?;
        let blocks = list(message.get("content").unwrap_or(&Value::Null), &place)?;
        rule(!blocks.is_empty(), format!("{place}: content must not be empty"))?;
        let mut paid: Vec<&str> = Vec::new();
        let mut asked: Vec<&str> = Vec::new();
        for (n, block) in blocks.iter().enumerate() {
            let place = format!("{place}.content[{n}]");
            let block = object(block, &place)?;
            let kind = text_field(block, "type", &place)?;
            match (kind, role) {
                ("text", _) => {
                    check_keys(block, &place, &["type", "text", "cache_control"])?;
                    text_field(block, "text", &place)?;
                }
                ("thinking", "assistant") => {
                    check_keys(block, &place, &["type", "thinking", "signature"])?;
                    text_field(block, "signature", &place)?;
                    rule(
                        block.get("thinking").is_some_and(Value::is_string),
                        format!("{place}: no thinking"),
                    )?;
                    rule(n + 1 < blocks.len(), format!("{place}: thinking must not be last"))?;
                }
                ("redacted_thinking", "assistant") => {
                    check_keys(block, &place, &["type", "data"])?;
                    text_field(block, "data", &place)?;
                }
                ("tool_use", "assistant") => {
                    check_keys(block, &place, &["type", "id", "name", "input", "cache_control"])?;
                    let id = text_field(block, "id", &place)?;
                    let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
                    rule(
                        is_plain && id.len() <= 64,
                        format!("{place}: id {id} does not match [a-zA-Z0-9_-]{{1,64}}"),
                    )?;
                    text_field(block, "name", &place)?;
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
                    check_keys(
                        block,
                        &place,
                        &["type", "tool_use_id", "content", "is_error", "cache_control"],
                    )?;
                    rule(paid.len() == n, format!("{place}: results come before anything else"))?;
                    match block.get("content") {
                        Some(Value::Array(parts)) => tool_result(parts, &place)?,
                        _ => _ = text_field(block, "content", &place)?,
                    }
                    paid.push(text_field(block, "tool_use_id", &place)?);
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
    rule(goes_on || messages.len() % 2 == 1, "the last message must be the user's")?;
    rule(all_ids.is_empty() || fields.contains_key("tools"), "calls in the history need tools in the request")
}

/// Checks that the temperature is at most `hottest` and that top-p is a valid share.
pub fn check_sampling(fields: &Map<String, Value>, hottest: f64) -> Verdict {
    for (name, most) in [("temperature", hottest), ("top_p", 1.0)] {
        let is_inside = |value: &Value| value.as_f64().is_some_and(|number| (0.0..=most).contains(&number));
        rule(fields.get(name).is_none_or(is_inside), format!("{name} must be from 0 to {most}"))?;
    }
    Ok(())
}

/// Checks the version header of Anthropic's API. Later versions reject the sampling fields with any value.
pub fn check_version(version: Option<&str>, body: &Value) -> Verdict {
    rule(version.is_some(), "anthropic-version: header is required")?;
    for name in ["temperature", "top_p", "top_k"] {
        let is_refused = version.is_some_and(|version| version >= "2026-10-21") && !body[name].is_null();
        rule(!is_refused, format!("{name}: Extra inputs are not permitted"))?;
    }
    Ok(())
}

/// Every cache breakpoint that is not part of a message's content.
fn cache_marks(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let lists = [&value["tools"], &value["system"]];
    let contents = value["messages"].as_array().into_iter().flatten().map(|message| &message["content"]);
    for list in lists.into_iter().chain(contents) {
        found.extend(list.as_array().into_iter().flatten().filter_map(|block| block.get("cache_control")));
    }
    found
}

/// Thinking as the vendor documents it: a budget of at least 1,024 tokens and less than `max_tokens`,
/// or `adaptive`. The temperature must be 1, and thinking never begins inside a tool loop.
fn check_thinking(fields: &Map<String, Value>) -> Verdict {
    if let Some(config) = fields.get("output_config") {
        let config = object(config, "output_config")?;
        check_keys(config, "output_config", &["effort"])?;
        let effort = text_field(config, "effort", "output_config")?;
        rule(matches!(effort, "low" | "medium" | "high" | "max"), format!("effort: unknown {effort}"))?;
    }
    let Some(thinking) = fields.get("thinking") else { return Ok(()) };
    let thinking = object(thinking, "thinking")?;
    let display = thinking.get("display").and_then(Value::as_str).unwrap_or("summarized");
    rule(matches!(display, "summarized" | "omitted"), format!("thinking.display: unknown {display}"))?;
    match text_field(thinking, "type", "thinking")? {
        "disabled" => return check_keys(thinking, "thinking", &["type"]),
        "adaptive" => check_keys(thinking, "thinking", &["type", "display"])?,
        "enabled" => {
            check_keys(thinking, "thinking", &["type", "budget_tokens", "display"])?;
            let budget = thinking.get("budget_tokens").and_then(Value::as_u64).unwrap_or(0);
            let most = fields.get("max_tokens").and_then(Value::as_u64).unwrap_or(0);
            rule(budget >= 1_024, format!("budget_tokens must be at least 1024, not {budget}"))?;
            rule(budget < most, format!("max_tokens {most} must be greater than budget_tokens {budget}"))?;
            rule(opens_with_thinking(fields), "thinking begins inside a tool loop")?;
        }
        other => return Err(format!("thinking.type: unknown {other}")),
    }
    rule(fields.get("temperature").is_none_or(|t| t == 1), "temperature must be 1 with thinking")?;
    let top_p = fields.get("top_p").and_then(Value::as_f64).unwrap_or(1.0);
    rule((0.95..=1.0).contains(&top_p), "top_p must be from 0.95 to 1 with thinking")
}

/// Whether the tool loop at the end of the conversation, if there is one, begins with thinking.
fn opens_with_thinking(fields: &Map<String, Value>) -> bool {
    let messages = fields.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let holds = |message: &Value, kinds: &[&str]| {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        blocks.iter().any(|block| block["type"].as_str().is_some_and(|kind| kinds.contains(&kind)))
    };
    let mut rest = messages;
    let mut first = None;
    while let [before @ .., said, told] = rest
        && holds(told, &["tool_result"])
    {
        (first, rest) = (Some(said), before);
    }
    first.is_none_or(|said| holds(said, &["thinking", "redacted_thinking"]))
}

fn tool_result(parts: &[Value], place: &str) -> Verdict {
    rule(!parts.is_empty(), format!("{place}: content must not be empty"))?;
    for (n, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{n}]");
        let part = object(part, &place)?;
        match text_field(part, "type", &place)? {
            "text" => {
                check_keys(part, &place, &["type", "text"])?;
                text_field(part, "text", &place)?;
            }
            "image" | "document" => model_media::anthropic(part, &place)?,
            other => return Err(format!("{place}: {other} has no place in a result")),
        }
    }
    Ok(())
}

fn said_by_user(message: &Map<String, Value>, place: &str) -> Verdict {
    let Some(Value::Array(parts)) = message.get("content") else {
        return text_field(message, "content", place).map(|_| ());
    };
    rule(!parts.is_empty(), format!("{place}: content must not be empty"))?;
    for (n, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{n}]");
        let part = object(part, &place)?;
        match text_field(part, "type", &place)? {
            "text" => {
                check_keys(part, &place, &["type", "text"])?;
                text_field(part, "text", &place)?;
            }
            "image_url" => {
                check_keys(part, &place, &["type", "image_url"])?;
                let image = object(part.get("image_url").unwrap_or(&Value::Null), &place)?;
                check_keys(image, &place, &["url", "detail"])?;
                model_media::data_url(true, text_field(image, "url", &place)?, &place)?;
            }
            "file" => {
                check_keys(part, &place, &["type", "file"])?;
                let file = object(part.get("file").unwrap_or(&Value::Null), &place)?;
                check_keys(file, &place, &["filename", "file_data"])?;
                text_field(file, "filename", &place)?;
                model_media::data_url(false, text_field(file, "file_data", &place)?, &place)?;
            }
            other => return Err(format!("{place}: {other} has no place in a message of the user")),
        }
    }
    Ok(())
}

/// Rules of OpenAI Chat Completions.
pub fn check_openai(body: &Value) -> Verdict {
    let fields = object(body, "the request")?;
    check_keys(
        fields,
        "the request",
        &[
            "model",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "reasoning_effort",
            "tools",
            "messages",
            "stop",
            "metadata",
            "temperature",
            "tool_choice",
            "top_p",
        ],
    )?;
    text_field(fields, "model", "the request")?;
    if let Some(effort) = fields.get("reasoning_effort") {
        check_effort(effort)?;
    }
    check_sampling(fields, 2.0)?;
    // Not a key of the vendor; some providers with the same API accept it.
    let takes_reasoning = body["model"].as_str().is_some_and(|model| model.starts_with("deep"));
    rule(fields.get("stream").is_some_and(Value::is_boolean), "stream must be true or false")?;
    if let Some(options) = fields.get("stream_options") {
        rule(body["stream"] == true, "stream_options are for streams")?;
        check_keys(object(options, "stream_options")?, "stream_options", &["include_usage"])?;
    }
    for name in ["max_tokens", "max_completion_tokens"] {
        let limit = fields.get(name);
        rule(limit.is_none_or(|n| n.as_u64().is_some_and(|n| n > 0)), format!("{name} must be positive"))?;
    }
    rule(
        !(fields.contains_key("max_tokens") && fields.contains_key("max_completion_tokens")),
        "max_tokens and max_completion_tokens exclude each other",
    )?;
    if let Some(tools) = fields.get("tools") {
        rule(!list(tools, "tools")?.is_empty(), "tools must not be empty: leave them out")?;
        for tool in list(tools, "tools")? {
            check_keys(object(tool, "a tool")?, "a tool", &["type", "function"])?;
            rule(tool["type"] == "function", "a tool must be of type function")?;
            let function = object(&tool["function"], "a tool's function")?;
            check_keys(function, "a tool's function", &["name", "description", "parameters"])?;
            text_field(function, "name", "a tool's function")?;
            rule(function.get("parameters").is_some_and(Value::is_object), "parameters must be an object")?;
            check_schema(&function["parameters"], true)?;
        }
    }
    let messages = list(fields.get("messages").unwrap_or(&Value::Null), "messages")?;
    let mut owed: Vec<&str> = Vec::new();
    let mut before = "nothing";
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let message = object(message, &place)?;
        let role = text_field(message, "role", &place)?;
        if role != "tool" {
            rule(owed.is_empty(), format!("{place}: calls {owed:?} were not answered"))?;
        }
        match (role, before) {
            ("system", "nothing") => {
                check_keys(message, &place, &["role", "content"])?;
                text_field(message, "content", &place)?;
            }
            ("user", "nothing" | "system" | "assistant" | "tool") => {
                check_keys(message, &place, &["role", "content"])?;
                said_by_user(message, &place)?;
            }
            ("assistant", "user" | "tool") => {
                if takes_reasoning && message.contains_key("reasoning_content") {
                    text_field(message, "reasoning_content", &place)?;
                    check_keys(message, &place, &["role", "content", "tool_calls", "reasoning_content"])?;
                } else {
                    check_keys(message, &place, &["role", "content", "tool_calls"])?;
                }
                let calls = message.get("tool_calls").map_or(Ok(&[][..]), |calls| list(calls, &place))?;
                if calls.is_empty() || !message.get("content").is_some_and(Value::is_null) {
                    text_field(message, "content", &place)?;
                }
                for call in calls {
                    check_keys(object(call, &place)?, &place, &["id", "type", "function"])?;
                    let id = text_field(object(call, &place)?, "id", &place)?;
                    rule(!owed.contains(&id), format!("{place}: id {id} twice"))?;
                    owed.push(id);
                    rule(call["type"] == "function", format!("{place}: a call must be of type function"))?;
                    let function = object(&call["function"], &place)?;
                    check_keys(function, &place, &["name", "arguments"])?;
                    text_field(function, "name", &place)?;
                    let arguments = text_field(function, "arguments", &place)?;
                    rule(
                        serde_json::from_str::<Map<String, Value>>(arguments).is_ok(),
                        format!("{place}: arguments must be the text of an object, not {arguments:?}"),
                    )?;
                }
            }
            ("tool", "assistant" | "tool") => {
                check_keys(message, &place, &["role", "tool_call_id", "content"])?;
                text_field(message, "content", &place)?;
                let id = text_field(message, "tool_call_id", &place)?;
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

/// Checks that the effort is one that OpenAI accepts.
pub fn check_effort(effort: &Value) -> Verdict {
    let known = ["none", "minimal", "low", "medium", "high", "xhigh"];
    rule(effort.as_str().is_some_and(|word| known.contains(&word)), format!("effort: unknown {effort}"))
}

/// Checks the schema of a tool's input by the rules that all providers have.
fn check_schema(schema: &Value, is_top: bool) -> Verdict {
    let Some(fields) = schema.as_object() else { return Ok(()) };
    for key in ["anyOf", "oneOf", "allOf"] {
        rule(
            !is_top || !fields.contains_key(key),
            format!("input_schema does not support {key} at the top level"),
        )?;
    }
    rule(schema["type"] != "array" || fields.contains_key("items"), "array schema missing items")?;
    for key in ["properties", "required", "items", "type"] {
        rule(fields.get(key) != Some(&Value::Null), format!("{key} must not be null"))?;
    }
    for key in ["properties", "$defs", "definitions"] {
        for (name, inner) in fields.get(key).and_then(Value::as_object).into_iter().flatten() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            let fits = (1..=64).contains(&name.len()) && name.chars().all(is_plain);
            rule(
                key != "properties" || fits,
                format!("property keys should match the pattern, got {name:?}"),
            )?;
            check_schema(inner, false)?;
        }
    }
    for key in ["items", "additionalProperties"] {
        fields.get(key).map_or(Ok(()), |inner| check_schema(inner, false))?;
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let mut all = fields.get(key).and_then(Value::as_array).into_iter().flatten();
        all.try_for_each(|inner| check_schema(inner, false))?;
    }
    Ok(())
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

/// The field as a text that is not blank.
pub fn text_field<'a>(fields: &'a Map<String, Value>, name: &str, place: &str) -> Result<&'a str, String> {
    let text = fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| format!("{place}: {name} must be a text that is not empty"))
}

pub fn check_keys(fields: &Map<String, Value>, place: &str, known: &[&str]) -> Verdict {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{place}: unknown key {key}")),
        None => Ok(()),
    }
}
