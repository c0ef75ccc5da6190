//! Properties of model requests: a strict provider accepts each one, and its beginning never changes.

use crate::property;
use types::message::{Block, Message, Role};
use types::model::ModelRequest;
use types::thinking::Thinking;

/// Checks the rules for message order that a strict provider enforces.
pub fn is_valid(request: &ModelRequest, may_end_with_assistant: bool) -> Result<(), String> {
    let messages = &request.messages;
    property!(
        messages.first().is_some_and(|first| first.role == Role::User),
        "a request starts with the user"
    );
    for pair in messages.windows(2) {
        property!(pair[0].role != pair[1].role, "roles alternate");
    }
    let none = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        property!(!message.content.is_empty(), "no message of a request is empty");
        for block in &message.content {
            let (fits, text) = match (message.role, block) {
                (_, Block::Text { text }) => (true, text.as_str()),
                (Role::User, Block::ToolResult { content, .. }) => (true, content.as_str()),
                (Role::User, Block::Image(_) | Block::Document(_)) => (true, "-"),
                (Role::Assistant, Block::ToolCall(call)) => (true, call.provider_id.as_str()),
                (Role::Assistant, Block::Thinking { .. } | Block::RedactedThinking { .. }) => (true, "-"),
                _ => (false, "-"),
            };
            property!(fits, "{:?} has no block like {block:?}", message.role);
            property!(!text.trim().is_empty(), "no block of a request is empty: {block:?}");
        }
        let thinks = |block: &Block| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
        if message.content.iter().any(thinks) {
            let maker = message.model.as_deref();
            property!(
                maker == Some(&request.model.to_string()),
                "reasoning goes to its own model: {maker:?}"
            );
            property!(request.thinking != Some(Thinking::Off), "with thinking off there is none");
        }
        if message.role == Role::Assistant {
            let last = message.content.last();
            property!(
                !matches!(last, Some(Block::Thinking { .. } | Block::RedactedThinking { .. })),
                "thinking is never last"
            );
        }
        // Results are first, one per call, in call order, directly after the message with the calls.
        let before = if index == 0 { &none } else { &messages[index - 1].content };
        let requested_calls: Vec<_> = before
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some((call.call_id, call.provider_id.as_str())),
                _ => None,
            })
            .collect();
        let answered: Vec<_> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult { call_id, provider_id, .. } => Some((*call_id, provider_id.as_str())),
                _ => None,
            })
            .collect();
        property!(
            requested_calls == answered,
            "every call is answered exactly once, in order: {requested_calls:?}, {answered:?}"
        );
        let results_first = message
            .content
            .iter()
            .take(answered.len())
            .all(|block| matches!(block, Block::ToolResult { .. }));
        property!(results_first, "results come before what a person says");
    }
    if let Some(last) = messages.last().filter(|last| last.role == Role::Assistant) {
        property!(may_end_with_assistant, "a request ends with the assistant only after a pause");
        let calls = last.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
        property!(!calls, "a request never ends with calls");
    }
    Ok(())
}

/// Messages that were sent before stay byte-identical; only the last one may have grown.
pub fn check_continuation(before: &ModelRequest, now: &ModelRequest) -> Result<(), String> {
    let Some((grown, fixed)) = before.messages.split_last() else { return Ok(()) };
    property!(now.messages.len() > fixed.len(), "a request never forgets");
    for (old, new) in fixed.iter().zip(&now.messages) {
        property!(old == new, "what was sent stays as it was: {old:?}, then {new:?}");
    }
    let new = &now.messages[fixed.len()];
    let same = grown.role == new.role && new.content.starts_with(&grown.content);
    property!(same, "the last message may only grow: {grown:?}, then {new:?}");
    Ok(())
}

/// All parts of a message that a model can read as text.
pub fn message_text(message: &Message) -> String {
    let parts: Vec<&str> = message
        .content
        .iter()
        .map(|block| match block {
            Block::Text { text } | Block::Thinking { text, .. } => text.as_str(),
            Block::ToolResult { content, .. } => content,
            Block::RedactedThinking { data } => data,
            Block::ToolCall(_) | Block::Image(_) | Block::Document(_) => "",
        })
        .collect();
    parts.join("\n")
}
