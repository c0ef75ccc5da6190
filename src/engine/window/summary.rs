//! The summary of the conversation: which messages it replaces, what the model is sent to write it, and the message
//! that takes their place.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::engine::request::model_texts;
use crate::engine::request::tokens::{of_message, of_messages, of_text};
use crate::engine::window::history::{History, file_of, has_results};
use crate::types::message::{Block, Message, Role};

/// Number of most recently read files whose content stays.
const MAX_FILES: usize = 5;
/// The tools whose success makes an earlier read of the same file outdated.
const EDITING: [&str; 5] = ["Edit", "MultiEdit", "Write", "ApplyPatch", "NotebookEdit"];
/// Maximum bytes of the user's newest input that stay next to the summary.
const INPUT_BYTES: usize = 8_000;

/// Messages for the call that writes the summary of the first `count` messages. The oldest are left out until the
/// rest has at most `room` uncalibrated tokens.
pub(in crate::engine) fn summary_messages(
    messages: &[Arc<Message>],
    count: usize,
    instructions: Option<&str>,
    room: u64,
) -> Vec<Arc<Message>> {
    let messages = &messages[..count.min(messages.len())];
    let request = model_texts::summary_request(instructions);
    let room = room.saturating_sub(of_text(&request));
    let mut from = 0;
    let mut size = of_messages(messages.iter());
    while size > room && from < messages.len() {
        size -= of_message(&messages[from]);
        from += 1;
    }
    // A result needs its call directly before it.
    while from < messages.len() && (has_results(&messages[from]) || messages[from].role == Role::Assistant) {
        from += 1;
    }
    let mut shown = messages[from..].to_vec();
    shown.push(Arc::new(Message::user(request)));
    shown
}

/// The message in the place of the first `count` messages: the summary, the user's newest input if it is among
/// them, and the content of the most recently read files, as far as `file_room` uncalibrated tokens allow.
pub(in crate::engine) fn summary_message(
    history: &History<'_>,
    count: usize,
    summary: &str,
    file_room: u64,
) -> Message {
    let mut text = model_texts::summary(summary.trim());
    let replaced = &history.messages[..count];
    if !history.messages[count..].iter().any(|message| is_input(message))
        && let Some(input) = replaced.iter().rev().find(|message| is_input(message))
    {
        let said = text_of(input);
        let cut = said.floor_char_boundary(INPUT_BYTES);
        let rest = if cut < said.len() { "…" } else { "" };
        let _ = write!(text, "\n\n{}\n{}{rest}", model_texts::NEWEST_INPUT, &said[..cut]);
    }
    let mut left = file_room;
    for (file, content) in recent_files(history, count) {
        let size = of_text(content);
        if size <= left {
            left -= size;
            let _ = write!(text, "\n\n{}", model_texts::file_after_summary(file, content));
        }
    }
    Message::user(text)
}

fn is_input(message: &Message) -> bool {
    message.role == Role::User
        && !has_results(message)
        && message.content.iter().any(|block| matches!(block, Block::Text { .. }))
}

fn text_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The newest content of the most recently read files among the first `count` messages. A file that was changed
/// after it was read is left out, and so is one that a later message shows.
fn recent_files<'a>(history: &'a History<'_>, count: usize) -> Vec<(&'a str, &'a str)> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut files = Vec::new();
    for entry in history.results.iter().rev() {
        let Some(file) = file_of(entry.call) else { continue };
        let changes = EDITING.contains(&entry.call.tool.as_str()) && !entry.is_error;
        if !(changes || entry.is_read()) || !seen.insert(file) {
            continue;
        }
        if entry.is_read() && entry.message < count && !entry.is_cleared() && files.len() < MAX_FILES {
            files.push((file, entry.content));
        }
    }
    files
}
