use std::sync::Arc;

use serde_json::{Value, json};

use crate::request::request_cache::RequestCache;
use crate::settings::ModelSettings;
use types::blob::{Blob, BlobRef, Picture};
use types::ids::{Mint, Seed};
use types::message::{Block, Message, Role, ToolCall};
use types::model::ModelRequest;
use types::thinking::Thinking;
use types::tool::ToolDefinition;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [ToolDefinition {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type":"object","properties":{}}),
            read_only: true,
        }]
        .into(),
        ..ModelRequest::new("anthropic/claude-test".parse().unwrap())
    }
}

fn body(request: &ModelRequest, settings: &ModelSettings) -> Value {
    serde_json::from_slice(&super::super::request::body(request, settings, &RequestCache::default()).unwrap())
        .unwrap()
}

#[test]
fn request_body_matches_messages_api() {
    let call_id = Mint::new(1, Seed(1)).call();
    let tool_call = |provider_id: &str, input: Value| {
        Block::ToolCall(ToolCall {
            call_id,
            provider_id: provider_id.into(),
            tool: "Read".into(),
            input,
            input_error: None,
        })
    };
    let result = |provider_id: &str, content: &str, is_error| Block::ToolResult {
        call_id,
        provider_id: provider_id.into(),
        content: content.into(),
        is_error,
        attachments: Vec::new(),
    };
    let text_block = |text: &str| Block::Text { text: text.into() };
    let request = request(vec![
        Message::user("hi"),
        Message::new(
            Role::Assistant,
            vec![
                Block::Thinking { text: "signed".into(), signature: Some("sig".into()) },
                Block::Thinking { text: "foreign".into(), signature: None },
                Block::RedactedThinking { data: "opaque".into() },
                text_block("\n"),
                tool_call("toolu_1", json!({"file_path":"a"})),
                tool_call("not/allowed", json!("{\"cut")),
            ],
        ),
        Message::new(
            Role::User,
            vec![
                text_block("and then?"),
                result("toolu_1", "content", false),
                result("not/allowed", "", true),
            ],
        ),
    ]);
    let mark = json!({"type":"ephemeral"});
    assert_eq!(
        body(&request, &ModelSettings::default()),
        json!({
            "model": "claude-test",
            "max_tokens": 8192,
            "stream": true,
            "system": [{"type":"text","text":"Be brief.","cache_control":mark}],
            "tools": [{"name":"Read","description":"Reads a file.",
                "input_schema":{"type":"object","properties":{}},"cache_control":mark}],
            "messages": [
                {"role":"user","content":[{"type":"text","text":"hi","cache_control":mark}]},
                {"role":"assistant","content":[
                    {"type":"thinking","thinking":"signed","signature":"sig"},
                    {"type":"redacted_thinking","data":"opaque"},
                    {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a"}},
                    {"type":"tool_use","id":call_id.to_string(),"name":"Read",
                        "input":{"unreadable_input":"{\"cut"}},
                ]},
                {"role":"user","content":[
                    {"type":"tool_result","tool_use_id":"toolu_1","content":"content"},
                    {"type":"tool_result","tool_use_id":call_id.to_string(),"content":"(no output)","is_error":true},
                    {"type":"text","text":"and then?","cache_control":mark},
                ]},
            ],
        })
    );
}

#[test]
fn limits_and_capabilities_shape_request_body() {
    let mut model_request = request(vec![Message::user("hi")]);
    model_request.system = "".into();
    let settings = ModelSettings { max_output_tokens: Some(64_000), ..ModelSettings::default() };
    let written = body(&model_request, &settings);
    assert_eq!(written["max_tokens"], 64_000);
    assert_eq!(written.get("system"), None);
    assert_eq!(written["tools"][0]["cache_control"]["type"], "ephemeral");

    model_request.max_output_tokens = Some(100);
    let settings = ModelSettings { tools: false, streaming: false, ..settings };
    let written = body(&model_request, &settings);
    assert_eq!((&written["max_tokens"], &written["stream"]), (&json!(100), &json!(false)));
    assert_eq!(written.get("tools"), None);
}

#[test]
fn request_prefix_stays_identical_as_conversation_grows() {
    let mut messages = vec![Message::user("one")];
    let mut earlier: Option<Vec<Value>> = None;
    for step in 0..5 {
        let mut written = body(&request(messages.clone()), &ModelSettings::default());
        for message in written["messages"].as_array_mut().unwrap() {
            for part in message["content"].as_array_mut().unwrap() {
                part.as_object_mut().unwrap().remove("cache_control");
            }
        }
        let now = written["messages"].as_array().unwrap().clone();
        if let Some(earlier) = earlier {
            assert_eq!(now[..earlier.len()], earlier[..]);
        }
        earlier = Some(now);
        let answer = vec![Block::Text { text: format!("answer {step}") }];
        messages.push(Message::new(Role::Assistant, answer));
        messages.push(Message::user("more"));
    }
}

/// A growing conversation with everything that a message can contain.
fn grown(step: usize) -> Vec<Message> {
    let blob = BlobRef::from(&Blob::new("image/png", *b"x"));
    let call = ToolCall {
        call_id: Mint::new(0, Seed(step as u128)).call(),
        provider_id: format!("toolu_{step}"),
        tool: "Read".into(),
        input: json!({"file_path": "a\"b"}),
        input_error: None,
    };
    let result = Block::ToolResult {
        call_id: call.call_id,
        provider_id: call.provider_id.clone(),
        content: format!("line {step}\n"),
        is_error: step.is_multiple_of(2),
        attachments: Vec::new(),
    };
    let thought = Block::Thinking { text: "hm".into(), signature: Some("s".into()) };
    let mut answer_blocks = vec![thought, Block::Text { text: format!("step {step}") }];
    let mut user_blocks = Vec::new();
    if step.is_multiple_of(3) {
        answer_blocks.push(Block::ToolCall(call));
        user_blocks.push(result);
    }
    user_blocks.push(Block::Text { text: "go on".into() });
    if step % 4 == 1 {
        user_blocks.push(Block::Image(Picture { blob, name: None }));
    }
    vec![Message::new(Role::Assistant, answer_blocks), Message::new(Role::User, user_blocks)]
}

#[test]
fn request_cache_does_not_change_request_bytes() {
    let written = RequestCache::default();
    let settings = ModelSettings::default();
    let mut model_request = request(vec![Message::user("one")]);
    for step in 0..12 {
        for thinking in [None, Some(Thinking::Off)] {
            model_request.thinking = thinking;
            let bytes = |written: &RequestCache| {
                super::super::request::body(&model_request, &settings, written).unwrap()
            };
            let text = String::from_utf8(bytes(&written)).unwrap();
            assert_eq!(
                text,
                String::from_utf8(bytes(&RequestCache::default())).unwrap(),
                "{step}, {thinking:?}"
            );
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        }
        model_request.messages.extend(grown(step).into_iter().map(Arc::new));
        // Replace a message, as a repair does, and later cut off the end of the conversation.
        if step == 5 {
            model_request.messages[3] =
                Arc::new(Message::new(Role::Assistant, vec![Block::Text { text: "new".into() }]));
        } else if step == 8 {
            model_request.messages.truncate(5);
        }
        // Only this request carries the content of a picture.
        let blob = Blob::new("image/png", *b"x");
        model_request.media =
            if step.is_multiple_of(2) { [(blob.blob_id, Arc::from(*b"x"))].into() } else { [].into() };
    }
    model_request.messages.clear();
    let empty: Value =
        serde_json::from_slice(&super::super::request::body(&model_request, &settings, &written).unwrap())
            .unwrap();
    assert_eq!(empty["messages"], json!([]));
}
