//! Any transcript becomes a history that every provider takes (S5).

use std::sync::Arc;

use serde_json::json;

use crate::engine::normalized;
use crate::types::ids::{Mint, Seed};
use crate::types::message::{Block, Message, Role, ToolCall};

/// Builds a transcript out of the bytes, as torn and mixed up as they say, and mends it.
///
/// # Panics
/// If a law is broken.
pub fn history(data: &[u8]) {
    let torn = transcript(data);
    let mended = normalized(&torn);
    assert_eq!(shape(&mended), Ok(()), "{torn:#?} became {mended:#?}");
    assert_eq!(normalized(&mended), mended, "mending twice is not mending once");
    if shape(&torn).is_ok() {
        assert_eq!(mended, torn, "what was in order was changed");
    }
}

/// Two bytes make a block: what it is, and what is in it.
fn transcript(data: &[u8]) -> Vec<Arc<Message>> {
    const TEXTS: [&str; 8] = ["", " ", "\n\t", "a", "text", "\u{a0}", "ü\n", "(no output)"];
    let mut mint = Mint::new(0, Seed(7));
    let ids: Vec<_> = (0..4).map(|_| mint.call()).collect();
    let mut messages: Vec<Message> = Vec::new();
    for pair in data.chunks_exact(2).take(64) {
        let (what, inside) = (pair[0], pair[1]);
        let text = || TEXTS[usize::from(inside & 7)].to_owned();
        let number = usize::from(inside >> 3 & 3);
        let provider_id = format!("p{number}");
        let block = match what & 7 {
            0 | 1 => Some(Block::Text { text: text() }),
            2 => Some(Block::Thinking { text: text(), signature: (inside & 8 > 0).then(|| "s".into()) }),
            3 => Some(Block::RedactedThinking { data: text() }),
            4 | 5 => Some(Block::ToolCall(ToolCall {
                call_id: ids[number],
                provider_id,
                tool: "Read".into(),
                input: if inside & 4 > 0 { json!({"file_path": "a"}) } else { json!("not an object") },
                input_error: None,
            })),
            6 => Some(Block::ToolResult {
                call_id: ids[number],
                provider_id,
                content: text(),
                is_error: inside & 32 > 0,
            }),
            _ => None,
        };
        let role = if what & 8 == 0 { Role::User } else { Role::Assistant };
        match messages.last_mut() {
            Some(last) if last.role == role && what & 16 == 0 => last.content.extend(block),
            _ => messages.push(Message { role, content: block.into_iter().collect() }),
        }
    }
    messages.into_iter().map(Arc::new).collect()
}

/// What every provider demands of the shape.
fn shape(history: &[Arc<Message>]) -> Result<(), String> {
    if history.first().is_some_and(|first| first.role != Role::User) {
        return Err("the model begins".into());
    }
    for (at, message) in history.iter().enumerate() {
        let rule = |kept: bool, text: &str| if kept { Ok(()) } else { Err(format!("{at}: {text}")) };
        rule(at == 0 || history[at - 1].role != message.role, "roles do not alternate")?;
        rule(!message.content.is_empty(), "a message is empty")?;
        for block in &message.content {
            let is_filled = match block {
                Block::Text { text } => !text.trim().is_empty(),
                Block::ToolResult { content, .. } => !content.trim().is_empty(),
                Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolCall(_) => true,
            };
            rule(is_filled, "a block is empty")?;
        }
        let thinks_last =
            matches!(message.content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }));
        rule(message.role == Role::User || !thinks_last, "reasoning comes last")?;
    }
    Ok(())
}
