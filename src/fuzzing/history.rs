//! Any transcript becomes a history that every provider accepts.

use std::sync::Arc;

use serde_json::json;

use engine::normalized;
use engine::repair;
use types::blob::{Blob, BlobRef, Picture};
use types::ids::{Mint, Seed};
use types::message::{Block, Message, Role, ToolCall};

/// The model of the request.
const MODEL: Option<&str> = Some("p/m");

/// Builds a damaged transcript from the bytes, repairs it as a session does when it is loaded, and builds the
/// history of a request from it.
///
/// # Panics
/// If a property does not hold.
pub fn history(data: &[u8]) {
    let torn = transcript(data);
    let repaired = repair(&torn);
    assert_eq!(
        repaired.is_none(),
        check_pairs(&torn).is_ok(),
        "{torn:#?}: {:?} {repaired:#?}",
        check_pairs(&torn)
    );
    let mended: Vec<Arc<Message>> = match repaired {
        None => torn,
        Some(repair) => {
            assert!(!repair.changes.is_empty(), "a repair that says nothing");
            repair.messages.into_iter().map(Arc::new).collect()
        }
    };
    assert_eq!(check_pairs(&mended), Ok(()), "{mended:#?}");
    assert_eq!(repair(&mended), None, "mending twice is not mending once");

    let sent = normalized(&mended, MODEL);
    assert_eq!(check_shape(&sent).and_then(|()| check_pairs(&sent)), Ok(()), "{mended:#?} became {sent:#?}");
    assert_eq!(normalized(&sent, MODEL), sent, "a second time is not the first");
    // Only reasoning of other or unknown models is removed from a valid transcript.
    let is_thought = |block: &Block| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
    let is_foreign =
        |message: &Arc<Message>| message.model.as_deref() != MODEL && message.content.iter().any(is_thought);
    if check_shape(&mended).is_ok() && !mended.iter().any(is_foreign) {
        assert_eq!(sent, mended, "what was in order was changed");
    }
}

/// Two bytes make a block: its kind and its content.
fn transcript(data: &[u8]) -> Vec<Arc<Message>> {
    const TEXTS: [&str; 8] = ["", " ", "\n\t", "a", "text", "\u{a0}", "ü\n", "(no output)"];
    let mut mint = Mint::new(0, Seed(7));
    let ids: Vec<_> = (0..4).map(|_| mint.call()).collect();
    let mut messages: Vec<Message> = Vec::new();
    for pair in data.chunks_exact(2).take(64) {
        let (what, inside) = (pair[0], pair[1]);
        let text = || TEXTS[usize::from(inside & 7)].to_owned();
        let number = usize::from(inside >> 3 & 3);
        let names = ["", " ", "a", "b"];
        let provider_id = match inside >> 6 {
            0 => format!("p{number}"),
            _ => names[usize::from(inside >> 5 & 3)].to_owned(),
        };
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
                attachments: Vec::new(),
            }),
            _ if inside & 1 > 0 => {
                let blob = BlobRef::from(&Blob::new("image/png", [inside]));
                Some(Block::Image(Picture { blob, name: None }))
            }
            _ => None,
        };
        let role = if what & 8 == 0 { Role::User } else { Role::Assistant };
        match messages.last_mut() {
            Some(last) if last.role == role && what & 16 == 0 => last.content.extend(block),
            _ => {
                let model = (inside & 64 > 0 && role == Role::Assistant).then(|| "p/m".to_owned());
                messages.push(Message { role, content: block.into_iter().collect(), model });
            }
        }
    }
    messages.into_iter().map(Arc::new).collect()
}

/// Checks the form that every provider requires.
fn check_shape(history: &[Arc<Message>]) -> Result<(), String> {
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
                Block::Image(_) | Block::Document(_) => true,
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

/// A conversation begins with a user message, each role has its own kinds of blocks, and each call has exactly
/// one result, in call order, at the beginning of the next message.
fn check_pairs(history: &[Arc<Message>]) -> Result<(), String> {
    if history.first().is_some_and(|first| first.role != Role::User) {
        return Err("the model begins".into());
    }
    let empty = Message::new(Role::User, Vec::new());
    for (at, message) in history.iter().enumerate() {
        let rule = |kept: bool, text: &str| if kept { Ok(()) } else { Err(format!("{at}: {text}")) };
        rule(!message.content.is_empty(), "a message is empty")?;
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for block in &message.content {
            match block {
                Block::Text { .. } => {}
                Block::ToolResult { .. } => rule(message.role == Role::User, "a result of the model")?,
                Block::Image(_) | Block::Document(_) => {
                    rule(message.role == Role::User, "a picture of the model")?;
                }
                Block::ToolCall(call) => {
                    rule(!call.provider_id.trim().is_empty(), "a call without a name")?;
                    calls.push((call.call_id, call.provider_id.clone()));
                    rule(message.role == Role::Assistant, "a call of a person")?;
                }
                Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                    rule(message.role == Role::Assistant, "a person's reasoning")?;
                }
            }
        }
        let next = history.get(at + 1).map_or(&empty, |next| next);
        for block in &next.content {
            if let Block::ToolResult { call_id, provider_id, .. } = block {
                results.push((*call_id, provider_id.clone()));
            }
        }
        rule(calls == results, "calls and results differ")?;
        let leading = next.content.iter().take_while(|block| matches!(block, Block::ToolResult { .. }));
        rule(leading.count() == results.len(), "a result is not at the beginning")?;
        for (n, (id, name)) in calls.iter().enumerate() {
            let before = &calls[..n];
            rule(before.iter().all(|(other, same)| other != id && same != name), "a call is there twice")?;
        }
    }
    let strays = history
        .first()
        .is_some_and(|first| first.content.iter().any(|block| matches!(block, Block::ToolResult { .. })));
    if strays { Err("a result at the very beginning".into()) } else { Ok(()) }
}
