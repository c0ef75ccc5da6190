//! Length of requests in tokens: the count that the provider reported with its newest answer, plus an estimate of
//! what was added since. An estimate never ends a turn. It counts characters and is corrected for each model
//! ([`crate::engine::state::TokenRatio`]).

use std::sync::Arc;

use serde_json::Value;

use crate::engine::state::State;
use crate::types::blob::AttachmentKind;
use crate::types::message::{Block, Message, Role};
use crate::types::tool::ToolDefinition;

/// Characters per token of code and of unaccented Latin text: vendors say four (platform.openai.com, "What are
/// tokens"). In other writing systems, nearly each character is one token.
const PLAIN: u64 = 4;
/// Maximum tokens of a picture of the size that is sent.
const PICTURE: u64 = 1_600;
/// Tokens of the next request of `model`, as far as they are known.
pub(in crate::engine) fn sent_tokens(state: &State, model: &str, tools: &[ToolDefinition]) -> u64 {
    let (transcript, reported) = (&state.transcript, state.context_tokens);
    let ratio = state.token_ratio(model);
    let since = transcript.iter().rev().take_while(|message| message.role != Role::Assistant).count();
    if reported > 0 && since < transcript.len() {
        return reported.saturating_add(ratio.tokens(of_messages(transcript.iter().rev().take(since))));
    }
    ratio.tokens(of_request(state, tools))
}

/// Uncalibrated tokens of the next request.
pub(in crate::engine) fn of_request(state: &State, tools: &[ToolDefinition]) -> u64 {
    of_system(state) + of_tools(tools) + of_messages(state.transcript.iter())
}

pub(in crate::engine) fn of_system(state: &State) -> u64 {
    state.system().map_or(0, |system| of_text(system)) + of_text(&state.mcp.prompt)
}

pub(in crate::engine) fn of_tools(tools: &[ToolDefinition]) -> u64 {
    tools.iter().map(of_tool).sum()
}

fn of_tool(tool: &ToolDefinition) -> u64 {
    of_text(&tool.name) + of_text(&tool.description) + of_json(&tool.input_schema)
}

pub(in crate::engine) fn of_messages<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> u64 {
    messages.map(|message| of_message(message)).sum()
}

/// Uncalibrated tokens without pictures, whose length is known least.
pub(in crate::engine) fn of_texts<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> u64 {
    messages.flat_map(|message| &message.content).map(|block| of_block(block) - of_pictures(block)).sum()
}

fn of_pictures(block: &Block) -> u64 {
    block.shown().filter(|(kind, _)| *kind == AttachmentKind::Image).count() as u64 * PICTURE
}

pub(in crate::engine) fn of_message(message: &Message) -> u64 {
    message.content.iter().map(of_block).sum()
}

pub(in crate::engine) fn of_block(block: &Block) -> u64 {
    let text = match block {
        Block::Text { text } | Block::Thinking { text, .. } => of_text(text),
        Block::RedactedThinking { data } => of_text(data),
        Block::Document(document) => of_text(&document.text),
        Block::ToolResult { content, .. } => of_text(content),
        Block::ToolCall(call) => of_text(&call.tool) + of_json(&call.input),
        Block::Image(_) => 0,
    };
    text + of_pictures(block)
}

pub(in crate::engine) fn of_text(text: &str) -> u64 {
    let mut characters = Characters::default();
    characters.add_text(text);
    characters.tokens()
}

/// Tokens of a value as JSON without spaces; escapes do not count.
fn of_json(value: &Value) -> u64 {
    let mut characters = Characters::default();
    characters.add_json(value);
    characters.tokens()
}

/// Counted characters. Whole conversations are counted at each step, so nothing is copied.
#[derive(Default)]
struct Characters {
    ascii: usize,
    others: usize,
}

impl Characters {
    fn tokens(&self) -> u64 {
        (self.ascii as u64).div_ceil(PLAIN) + self.others as u64
    }

    fn add_text(&mut self, text: &str) {
        // This check is much faster than looking at each character, and most texts pass it.
        if text.is_ascii() {
            self.ascii += text.len();
            return;
        }
        let others = text.chars().filter(|c| !c.is_ascii()).count();
        self.others += others;
        self.ascii += text.chars().count() - others;
    }

    fn add_json(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(true) => self.ascii += 4,
            Value::Bool(false) => self.ascii += 5,
            Value::Number(number) => self.ascii += number.to_string().len(),
            Value::String(text) => {
                self.ascii += 2;
                self.add_text(text);
            }
            Value::Array(items) => {
                self.ascii += 2 + items.len().saturating_sub(1);
                items.iter().for_each(|item| self.add_json(item));
            }
            Value::Object(members) => {
                // Quotes and colon of each name.
                self.ascii += 2 + members.len().saturating_sub(1) + 3 * members.len();
                for (name, member) in members {
                    self.add_text(name);
                    self.add_json(member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::engine::request::tokens::*;
    use crate::types::blob::{Blob, BlobRef, Picture};

    #[test]
    fn json_counts_as_its_text() {
        let value = json!({ "a": [1, -2.5, null, true, false], "é": { "b": "日本", "c": [] }, "d": {} });
        assert_eq!(of_json(&value), of_text(&value.to_string()));
        assert_eq!(of_json(&json!("a\n\"b")), of_json(&json!("abcd")), "escapes do not count");
    }

    #[test]
    fn token_estimate_depends_on_script_and_images() {
        for (text, tokens) in [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("Grüße", 3)]
        {
            assert_eq!(of_text(text), tokens, "{text}");
        }
        let blob = BlobRef::from(&Blob::new("image/png", *b"x"));
        let content = vec![Block::Text { text: "a".repeat(400) }, Block::Image(Picture { blob, name: None })];
        let message = Arc::new(Message::new(Role::User, content));
        assert_eq!(of_messages([message].iter()), 100 + PICTURE);
    }
}
