//! The summary of the conversation: the messages that it replaces, the request messages for the model
//! that writes it, and the message with the summary.
//!
//! Sizes are *uncalibrated tokens*: the estimate of `request/tokens.rs`, before its correction for the model
//! (`TokenRatio`).

use std::collections::HashSet;
use std::sync::Arc;

use crate::request::model_texts;
use crate::request::tokens::{message_tokens, messages_tokens, text_tokens};
use crate::window::history::{History, file_of, has_results};
use types::message::{Block, Message, Role};

/// Number of most recently read files whose content stays.
const MAX_FILES: usize = 5;
/// The tools whose success makes an earlier read of the same file outdated.
const EDIT_TOOLS: [&str; 5] = ["Edit", "MultiEdit", "Write", "ApplyPatch", "NotebookEdit"];
/// Maximum bytes of the user's newest input that stay next to the summary.
const MAX_INPUT_BYTES: usize = 8_000;

/// Messages for the call that summarises the first `count` messages, or all if there are fewer. The oldest messages
/// are omitted until the rest has at most `room` uncalibrated tokens.
pub(crate) fn summary_messages(
    messages: &[Arc<Message>],
    count: usize,
    instructions: Option<&str>,
    room: u64,
) -> Vec<Arc<Message>> {
    let messages = &messages[..count.min(messages.len())];
    let request = model_texts::summary_request(instructions);
    let omission = Arc::new(Message::user(model_texts::BEGINNING_OMITTED));
    let room = room.saturating_sub(text_tokens(&request)).saturating_sub(message_tokens(&omission));
    let mut omitted = 0;
    let mut size = messages_tokens(messages.iter());
    while size > room && omitted < messages.len() {
        size -= message_tokens(&messages[omitted]);
        omitted += 1;
    }
    // A result needs its call directly before it.
    while omitted < messages.len() && has_results(&messages[omitted]) {
        omitted += 1;
    }
    let mut call_messages = messages[omitted..].to_vec();
    if omitted > 0 && call_messages.first().is_some_and(|message| message.role == Role::Assistant) {
        // A request must begin with a message of the user. To begin at the user's next input instead would omit
        // all of a long turn.
        call_messages.insert(0, omission);
    }
    call_messages.push(Arc::new(Message::user(request)));
    call_messages
}

/// The message that replaces the first `count` messages. It contains the summary, the user's newest
/// input among these messages, and the content of the most recently read files. `file_room` limits that
/// content in uncalibrated tokens.
///
/// # Panics
/// The history has fewer than `count` messages.
pub(crate) fn summary_message(history: &History<'_>, count: usize, summary: &str, file_room: u64) -> Message {
    let text = model_texts::summary(summary.trim());
    let replaced = &history.messages[..count];
    let mut blocks = vec![Block::Text { text }];
    let has_newer_input = history.messages[count..].iter().any(|message| user_input(message).is_some());
    if !has_newer_input && let Some(input) = replaced.iter().rev().find_map(|message| user_input(message)) {
        let end = input.floor_char_boundary(MAX_INPUT_BYTES);
        let rest = if end < input.len() { "…" } else { "" };
        blocks.push(Block::Text { text: format!("{}\n{}{rest}", model_texts::NEWEST_INPUT, &input[..end]) });
    }
    let mut room = file_room;
    for (file, content) in recent_files(history, count) {
        let size = text_tokens(content);
        if size <= room {
            room -= size;
            blocks.push(Block::Text { text: model_texts::file_after_summary(file, content) });
        }
    }
    Message::new(Role::User, blocks)
}

/// The user's input in a message. For a summary message, it is the newest input that the summary repeats.
fn user_input(message: &Message) -> Option<String> {
    if message.role != Role::User || has_results(message) {
        return None;
    }
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let mut input_texts = Vec::new();
    for (index, text) in texts.enumerate() {
        if index == 0 && text.starts_with(model_texts::SUMMARY_BEGINS) {
            let mut blocks = message.content.iter().filter_map(|block| match block {
                Block::Text { text } => text.strip_prefix(model_texts::NEWEST_INPUT),
                _ => None,
            });
            return blocks.next().map(|input| input.trim_start_matches('\n').to_owned());
        }
        if !text.starts_with(model_texts::REMINDER) {
            input_texts.push(text);
        }
    }
    (!input_texts.is_empty()).then(|| input_texts.join("\n"))
}

/// The newest content of the most recently read files among the first `count` messages. A file is
/// omitted if it was changed after it was read, or if a later message shows it.
fn recent_files<'a>(history: &'a History<'_>, count: usize) -> Vec<(&'a str, &'a str)> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut files = Vec::new();
    for entry in history.results.iter().rev() {
        let Some(file) = file_of(entry.call) else { continue };
        let changes = EDIT_TOOLS.contains(&entry.call.tool.as_str()) && !entry.is_error;
        if !(changes || entry.is_read()) || !seen.insert(file) {
            continue;
        }
        if entry.is_read() && entry.message < count && !entry.is_cleared() && files.len() < MAX_FILES {
            files.push((file, entry.content));
        }
    }
    files
}
