//! The hash of a request, by which a cassette may find its record.
//!
//! It covers model, system prompt, tools and messages. It omits values that differ from run to run: the
//! provider's name, the daemon's ids, and the provider's ids of calls, which are replaced by their number in
//! the conversation.

use std::collections::HashMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use types::message::{Block, Role};
use types::model::ModelRequest;

/// SHA-256 of the request in its canonical form, in hexadecimal.
pub(crate) fn request_hash(request: &ModelRequest) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut number = move |id| {
        let next = numbers.len();
        *numbers.entry(id).or_insert(next)
    };
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let role = message.role.name();
        let mut blocks = Vec::with_capacity(message.content.len());
        for block in &message.content {
            blocks.push(match block {
                Block::Text { text } => json!(["text", text]),
                Block::Image(picture) => json!(["image", picture]),
                Block::Document(document) => json!(["document", document]),
                Block::Thinking { text, .. } => json!(["thinking", text]),
                Block::RedactedThinking { data } => json!(["redacted", data]),
                Block::ToolCall(call) => {
                    json!(["call", number(call.provider_id.as_str()), call.tool, call.input])
                }
                Block::ToolResult { provider_id, content, is_error, attachments, .. } => {
                    let mut result = json!(["result", number(provider_id.as_str()), content, is_error]);
                    // Blobs are named by their hash. Requests without attachments keep their old hash.
                    if let (false, Some(parts)) = (attachments.is_empty(), result.as_array_mut()) {
                        parts.push(json!(attachments));
                    }
                    result
                }
            });
        }
        messages.push(json!([role, blocks]));
    }
    let tools: Vec<Value> =
        request.tools.iter().map(|card| json!([card.name, card.description, card.input_schema])).collect();
    let mut whole = json!([request.model.model, &*request.system, tools, messages]);
    // Requests without this setting keep their old hash.
    if let (Some(thinking), Some(parts)) = (request.thinking, whole.as_array_mut()) {
        parts.push(json!(thinking));
    }
    if let (false, Some(parts)) = (request.sampling.is_empty(), whole.as_array_mut()) {
        parts.push(json!(request.sampling));
    }
    if let (false, Some(parts)) = (request.stop.is_empty(), whole.as_array_mut()) {
        parts.push(json!({ "stop": request.stop }));
    }
    format!("{:x}", Sha256::digest(whole.to_string()))
}

/// Number of the record for this request: the number of answers in the conversation.
pub(crate) fn answers_so_far(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

#[cfg(test)]
mod tests {
    use crate::replay::request_hash::*;
    use std::sync::Arc;
    use types::ids::{Mint, Seed};
    use types::message::{Message, ToolCall};

    fn request(provider: &str, id: &str, seed: u128, output: &str) -> ModelRequest {
        let call_id = Mint::new(1, Seed(seed)).call();
        let call = ToolCall {
            call_id,
            provider_id: id.into(),
            tool: "Read".into(),
            input: json!({}),
            input_error: None,
        };
        let result = Block::ToolResult {
            call_id,
            provider_id: id.into(),
            content: output.into(),
            is_error: false,
            attachments: Vec::new(),
        };
        ModelRequest {
            system: "s".into(),
            messages: vec![
                Arc::new(Message::user("hi")),
                Arc::new(Message::new(Role::Assistant, vec![Block::ToolCall(call)])),
                Arc::new(Message::new(Role::User, vec![result])),
            ],
            ..ModelRequest::new(format!("{provider}/m").parse().unwrap())
        }
    }

    #[test]
    fn request_hash_ignores_ids_and_provider_name() {
        let hash = request_hash(&request("a", "toolu_1", 1, "out"));
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, request_hash(&request("b", "call_x", 2, "out")));
        assert_ne!(hash, request_hash(&request("a", "toolu_1", 1, "other")));
        assert_eq!(answers_so_far(&request("a", "x", 1, "")), 1);
    }
}
