//! The conversation as the stages see it: every tool result with its call, the beginnings of turns, and
//! the newest messages, which the stages do not change.

use std::collections::HashMap;
use std::sync::Arc;

use crate::request::tokens::message_tokens;
use types::ids::CallId;
use types::message::{Block, Message, Role, ToolCall};

/// Beginning of every text with which a stage replaces a result.
pub(crate) const CLEARED: &str = "[Cleared";

/// The tool that reads files.
const READ: &str = "Read";
/// The tool that replaces a whole file.
const WRITE: &str = "Write";

/// The messages and their tool results.
pub(crate) struct History<'a> {
    pub messages: &'a [Arc<Message>],
    /// The results, in the order of the conversation.
    pub results: Vec<ResultEntry<'a>>,
    /// Index of the first message that the stages do not change.
    pub recent_from: usize,
}

/// One tool result and its call.
#[derive(Clone, Copy)]
pub(crate) struct ResultEntry<'a> {
    pub call: &'a ToolCall,
    pub content: &'a str,
    pub is_error: bool,
    /// Index of the message that contains the result.
    pub message: usize,
}

impl<'a> History<'a> {
    /// Pairs each result with its call. `recent` is the number of uncalibrated tokens of the newest
    /// messages that stay.
    pub fn new(messages: &'a [Arc<Message>], recent: u64) -> Self {
        let mut calls: HashMap<CallId, &ToolCall> = HashMap::new();
        let mut results = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            for block in &message.content {
                match block {
                    Block::ToolCall(call) => _ = calls.insert(call.call_id, call),
                    Block::ToolResult { call_id, content, is_error, .. } => {
                        if let Some(call) = calls.get(call_id).copied() {
                            results.push(ResultEntry { call, content, is_error: *is_error, message: at });
                        }
                    }
                    _ => {}
                }
            }
        }
        Self { messages, results, recent_from: recent_from(messages, recent) }
    }

    /// Indexes of the messages with which turns begin. Such a message is an input of the user after a final answer.
    pub fn turn_starts(&self) -> Vec<usize> {
        let starts = |at: &usize| {
            let message = &self.messages[*at];
            let follows_answer = *at == 0 || is_final_answer(&self.messages[*at - 1]);
            message.role == Role::User && !has_results(message) && follows_answer
        };
        (0..self.messages.len()).filter(starts).collect()
    }
}

impl ResultEntry<'_> {
    /// The file that the call reads or changes.
    pub fn file(&self) -> Option<&str> {
        file_of(self.call)
    }

    pub fn is_read(&self) -> bool {
        self.call.tool == READ && !self.is_error
    }

    /// Whether the call shows or replaces the whole file.
    pub fn covers_whole_file(&self) -> bool {
        let is_part = |name: &str| self.call.input.get(name).is_some_and(|value| !value.is_null());
        match self.call.tool.as_str() {
            WRITE => true,
            READ => !is_part("offset") && !is_part("limit"),
            _ => false,
        }
    }

    pub fn is_cleared(&self) -> bool {
        self.content.starts_with(CLEARED)
    }
}

/// The file that a call names.
pub(crate) fn file_of(call: &ToolCall) -> Option<&str> {
    ["file_path", "notebook_path"].iter().find_map(|name| call.input.get(name)?.as_str())
}

pub(crate) fn has_results(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

fn is_final_answer(message: &Message) -> bool {
    let calls = message.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    message.role == Role::Assistant && !calls
}

/// Index of the first message that the stages do not change. The newest calls and their results never change.
fn recent_from(messages: &[Arc<Message>], recent: u64) -> usize {
    let mut from = messages.len();
    let mut sum = 0u64;
    for (at, message) in messages.iter().enumerate().rev() {
        sum = sum.saturating_add(message_tokens(message));
        if sum > recent {
            break;
        }
        from = at;
    }
    // A result needs its call directly before it.
    while from < messages.len() && from > 0 && has_results(&messages[from]) {
        from += 1;
    }
    let newest = messages.iter().rposition(|message| has_results(message)).map(|at| at.saturating_sub(1));
    let is_open = newest.is_some_and(|at| at + 2 == messages.len());
    if is_open { from.min(newest.unwrap_or(from)) } else { from }
}
