//! Length of requests in tokens: the count that the provider reported with its newest answer, plus an estimate of the
//! content that was added since. An estimate never ends a turn. It counts characters and is corrected for each model
//! ([`crate::state::TokenRatio`]).

use std::sync::Arc;

use serde_json::Value;

use crate::state::State;
use types::blob::AttachmentKind;
use types::message::{Block, Message, Role};
use types::tool::ToolDefinition;

/// Characters per token of code and of unaccented Latin text. Vendors say four (platform.openai.com,
/// "What are tokens"). In other writing systems, nearly each character is one token.
const ASCII_CHARS_PER_TOKEN: u64 = 4;
/// Maximum tokens of a picture of the size that is sent.
const PICTURE_TOKENS: u64 = 1_600;
/// Tokens of the next request to `model`: the reported count plus an estimate, or an estimate alone.
pub(crate) fn sent_tokens(state: &State, model: &str, tools: &[ToolDefinition]) -> u64 {
    let (transcript, reported) = (&state.transcript, state.context_tokens);
    let ratio = state.token_ratio(model);
    let since = transcript.iter().rev().take_while(|message| message.role != Role::Assistant).count();
    if reported > 0 && since < transcript.len() {
        return reported.saturating_add(ratio.tokens(messages_tokens(transcript.iter().rev().take(since))));
    }
    ratio.tokens(request_tokens(state, tools))
}

/// Uncalibrated tokens of the next request.
pub(crate) fn request_tokens(state: &State, tools: &[ToolDefinition]) -> u64 {
    system_tokens(state) + tools_tokens(tools) + messages_tokens(state.transcript.iter())
}

pub(crate) fn system_tokens(state: &State) -> u64 {
    state.system_prompt().map_or(0, |system| text_tokens(system)) + text_tokens(&state.mcp.prompt)
}

pub(crate) fn tools_tokens(tools: &[ToolDefinition]) -> u64 {
    tools.iter().map(tool_tokens).sum()
}

fn tool_tokens(tool: &ToolDefinition) -> u64 {
    text_tokens(&tool.name) + text_tokens(&tool.description) + json_tokens(&tool.input_schema)
}

pub(crate) fn messages_tokens<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> u64 {
    messages.map(|message| message_tokens(message)).sum()
}

/// Uncalibrated tokens without pictures, because the estimates of pictures are the least reliable.
pub(crate) fn texts_tokens<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> u64 {
    messages
        .flat_map(|message| &message.content)
        .map(|block| block_tokens(block) - picture_tokens(block))
        .sum()
}

fn picture_tokens(block: &Block) -> u64 {
    block.media_refs().filter(|(kind, _)| *kind == AttachmentKind::Image).count() as u64 * PICTURE_TOKENS
}

pub(crate) fn message_tokens(message: &Message) -> u64 {
    message.content.iter().map(block_tokens).sum()
}

pub(crate) fn block_tokens(block: &Block) -> u64 {
    let text = match block {
        Block::Text { text } | Block::Thinking { text, .. } => text_tokens(text),
        Block::RedactedThinking { data } => text_tokens(data),
        Block::Document(document) => text_tokens(&document.text),
        Block::ToolResult { content, .. } => text_tokens(content),
        Block::ToolCall(call) => text_tokens(&call.tool) + json_tokens(&call.input),
        Block::Image(_) => 0,
    };
    text + picture_tokens(block)
}

pub(crate) fn text_tokens(text: &str) -> u64 {
    let mut characters = CharacterCounts::default();
    characters.add_text(text);
    characters.tokens()
}

/// Tokens of a value as JSON without spaces; escapes do not count.
fn json_tokens(value: &Value) -> u64 {
    let mut characters = CharacterCounts::default();
    characters.add_json(value);
    characters.tokens()
}

/// Counts characters. Whole conversations are counted at each step, so nothing is copied.
#[derive(Default)]
struct CharacterCounts {
    ascii: usize,
    others: usize,
}

impl CharacterCounts {
    fn tokens(&self) -> u64 {
        (self.ascii as u64).div_ceil(ASCII_CHARS_PER_TOKEN) + self.others as u64
    }

    fn add_text(&mut self, text: &str) {
        // This check is much faster than reading each character, and most texts are ASCII.
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
                // Braces and commas, and the quotes and the colon of each name.
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

    use crate::request::tokens::*;
    use types::blob::{Blob, BlobRef, Picture};

    #[test]
    fn json_counts_as_its_text() {
        let value = json!({ "a": [1, -2.5, null, true, false], "é": { "b": "日本", "c": [] }, "d": {} });
        assert_eq!(json_tokens(&value), text_tokens(&value.to_string()));
        assert_eq!(json_tokens(&json!("a\n\"b")), json_tokens(&json!("abcd")), "escapes do not count");
    }

    #[test]
    fn token_estimate_depends_on_script_and_images() {
        for (text, tokens) in [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("Grüße", 3)]
        {
            assert_eq!(text_tokens(text), tokens, "{text}");
        }
        let blob = BlobRef::from(&Blob::new("image/png", *b"x"));
        let content = vec![Block::Text { text: "a".repeat(400) }, Block::Image(Picture { blob, name: None })];
        let message = Arc::new(Message::new(Role::User, content));
        assert_eq!(messages_tokens([message].iter()), 100 + PICTURE_TOKENS);
    }
}
