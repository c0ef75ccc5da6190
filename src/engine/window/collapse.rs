//! Replaces each old turn by a short text: the beginning of the user's input, the tools that were used,
//! and the beginning of the answer. The full text of the turn becomes a blob that the model can read.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::request::tokens::{message_tokens, messages_tokens};
use crate::window::StageEdit;
use crate::window::history::{History, file_of};
use types::blob::Blob;
use types::compaction::WindowEdit;
use types::message::{Block, Message, Role, ToolCall};

/// Begins the answer of a collapsed turn.
const COLLAPSED: &str = "[This turn was collapsed to save context";
/// Maximum bytes of the user's input that stay.
const INPUT_BYTES: usize = 1_000;
/// Maximum bytes of the answer that stay.
const ANSWER_BYTES: usize = 1_500;
/// Maximum number of tool calls that the text names.
const MAX_NAMED_CALLS: usize = 12;

/// Returns the edit that saves about `excess` uncalibrated tokens, or less if there are not enough old
/// turns. `None` if there are no old turns.
pub(crate) fn collapse(history: &History<'_>, excess: u64) -> Option<StageEdit> {
    let starts = history.turn_starts();
    let mut messages: Vec<Message> = Vec::new();
    let (mut blobs, mut saved, mut end) = (Vec::new(), 0u64, None);
    for pair in starts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if to > history.recent_from || saved >= excess {
            break;
        }
        let turn = &history.messages[from..to];
        let before = messages_tokens(turn.iter());
        match short_turn(turn) {
            Some((short, blob)) if short.iter().map(message_tokens).sum::<u64>() < before => {
                saved += before - short.iter().map(message_tokens).sum::<u64>();
                messages.extend(short);
                blobs.push(blob);
            }
            // Drop an answer that contains only reasoning: without the reasoning it would be empty, and
            // no message may be empty.
            _ => messages.extend(
                turn.iter()
                    .map(|message| without_thinking(message))
                    .filter(|message| !message.content.is_empty()),
            ),
        }
        end = Some(to);
    }
    let (from, end) = (*starts.first()?, end?);
    if blobs.is_empty() {
        return None;
    }
    let (from, count) = (from as u64, (end - from) as u64);
    Some(StageEdit { edit: WindowEdit::Messages { from, count, messages }, blobs })
}

/// The short form of a turn. `None` if the turn is already short.
fn short_turn(turn: &[Arc<Message>]) -> Option<([Message; 2], Blob)> {
    let (first, rest) = turn.split_first()?;
    if rest.is_empty() || text_of(rest).starts_with(COLLAPSED) {
        return None;
    }
    let blob = Blob::text(&transcript_of(turn));
    let calls: Vec<&ToolCall> = rest.iter().flat_map(|message| &message.content).filter_map(call).collect();
    let mut text = format!(
        "{COLLAPSED}. Read with file_path \"{}\" shows all of it. {} tool calls",
        blob.blob_id,
        calls.len()
    );
    let named: Vec<String> = calls.iter().take(MAX_NAMED_CALLS).map(|call| name_of(call)).collect();
    if !named.is_empty() {
        let more = if calls.len() > named.len() { ", …" } else { "" };
        let _ = write!(text, ": {}{more}", named.join(", "));
    }
    text.push_str(".]");
    let answer = rest.iter().rev().find(|message| message.role == Role::Assistant);
    let answer = answer.map(|message| text_of(std::slice::from_ref(message))).unwrap_or_default();
    if !answer.trim().is_empty() {
        let _ = write!(text, "\n{}", text_beginning(&answer, ANSWER_BYTES));
    }
    let input = text_beginning(&text_of(std::slice::from_ref(first)), INPUT_BYTES);
    let input = if input.trim().is_empty() { "(no text)".into() } else { input };
    let message = |role, text| Message::new(role, vec![Block::Text { text }]);
    Some(([message(Role::User, input), message(Role::Assistant, text)], blob))
}

/// A message without reasoning. Providers need only the newest turn's reasoning, and clients may not
/// want to show it.
fn without_thinking(message: &Message) -> Message {
    let mut message = message.clone();
    message.content.retain(|block| !matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. }));
    message
}

fn call(block: &Block) -> Option<&ToolCall> {
    match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// A call in a few words, for example `Read src/main.rs`.
fn name_of(call: &ToolCall) -> String {
    let what = file_of(call).or_else(|| {
        ["command", "pattern", "url", "path"].iter().find_map(|name| call.input.get(name)?.as_str())
    });
    match what {
        Some(what) => {
            format!("{} {}", call.tool, text_beginning(what.lines().next().unwrap_or_default(), 60))
        }
        None => call.tool.clone(),
    }
}

fn text_beginning(text: &str, bytes: usize) -> String {
    let cut = text.floor_char_boundary(bytes);
    if cut == text.len() { text.to_owned() } else { format!("{}…", &text[..cut]) }
}

/// The texts of messages, without calls and results.
fn text_of(messages: &[Arc<Message>]) -> String {
    let texts = messages.iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Messages as plain text for a blob.
pub(crate) fn transcript_of(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = message.role.name();
        for block in &message.content {
            // Writing to a string cannot fail.
            let _ = match block {
                Block::Text { text: block_text } => writeln!(text, "{role}: {block_text}"),
                Block::ToolCall(call) => writeln!(text, "call: {} {}", call.tool, call.input),
                Block::ToolResult { content, is_error: true, .. } => writeln!(text, "error: {content}"),
                Block::ToolResult { content, .. } => writeln!(text, "result: {content}"),
                Block::Document(document) => writeln!(text, "{role}: {}", document.text),
                Block::Image(_) => writeln!(text, "{role}: (a picture)"),
                Block::Thinking { .. } | Block::RedactedThinking { .. } => Ok(()),
            };
        }
    }
    text
}
