//! The rules of a valid history, and the repair of an invalid one. A journal of this version is always
//! valid. A journal of an older version, or one with unknown rows, may be invalid.
//!
//! The form of a single request (blank texts, adjacent messages of the same role) is handled in `build`.

use std::borrow::Borrow;
use std::collections::HashSet;

use types::ids::CallId;
use types::message::{Block, Message, Role, ToolCall};

/// The result of a call whose own result is missing.
pub(crate) const LOST_RESULT: &str =
    "The result of this call is missing from the record. It may have happened: check before you repeat it.";
/// Replaces a missing first message of the user.
const LOST_BEGINNING: &str = "(The beginning of this conversation is missing from the record.)";

#[derive(Clone, Debug, PartialEq)]
pub struct RepairedHistory {
    /// The complete repaired history.
    pub messages: Vec<Message>,
    /// The changes, as text for users; never empty.
    pub changes: Vec<String>,
}

/// Returns the first rule that a history breaks, if any. A valid history begins with a user message and has no
/// empty message. Every block fits its role. Each call has exactly one result, in call order, at the beginning
/// of the next message.
#[must_use]
pub fn find_breach<M: Borrow<Message>>(messages: &[M]) -> Option<&'static str> {
    if messages.first().is_some_and(|first| first.borrow().role != Role::User) {
        return Some("it does not begin with a person");
    }
    let mut open_calls: Vec<(CallId, &str)> = Vec::new();
    for message in messages {
        let message: &Message = message.borrow();
        if message.content.is_empty() {
            return Some("a message is empty");
        }
        if !message.content.iter().all(|block| is_allowed_block(message.role, block)) {
            return Some("a block does not fit its speaker");
        }
        let answered = message.content.iter().map_while(|block| match block {
            Block::ToolResult { call_id, provider_id, .. } => Some((*call_id, provider_id.as_str())),
            _ => None,
        });
        if !answered.clone().eq(open_calls.iter().copied()) {
            return Some("calls and results are not paired");
        }
        let results = message.content.iter().filter(|block| matches!(block, Block::ToolResult { .. }));
        if results.count() != open_calls.len() {
            return Some("a result is not where results are");
        }
        open_calls = calls_of(message).map(|call| (call.call_id, call.provider_id.as_str())).collect();
        let distinct: HashSet<&str> = open_calls.iter().map(|(_, name)| *name).collect();
        let call_ids: HashSet<CallId> = open_calls.iter().map(|(id, _)| *id).collect();
        if distinct.len() != open_calls.len() || call_ids.len() != open_calls.len() {
            return Some("two calls of a message have the same name");
        }
        if distinct.iter().any(|name| name.trim().is_empty()) {
            return Some("a call has no name");
        }
    }
    (!open_calls.is_empty()).then_some("the last calls have no results")
}

/// Repairs a history; `None` if it is valid. Valid parts stay, in order. Repairing a repaired history changes
/// nothing.
#[must_use]
pub fn repair<M: Borrow<Message>>(messages: &[M]) -> Option<RepairedHistory> {
    find_breach(messages)?;
    let mut mender = HistoryRepairer::default();
    for message in messages {
        mender.handle_message(message.borrow());
    }
    mender.close();
    let HistoryRepairer { messages, mut changes, .. } = mender;
    changes.dedup();
    if changes.is_empty() {
        changes.push("results were put in the order of their calls".into());
    }
    Some(RepairedHistory { messages, changes })
}

fn calls_of(message: &Message) -> impl Iterator<Item = &ToolCall> {
    message.content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    })
}

fn is_allowed_block(role: Role, block: &Block) -> bool {
    match block {
        Block::Text { .. } => true,
        Block::ToolResult { .. } | Block::Image(_) | Block::Document(_) => role == Role::User,
        Block::ToolCall(_) | Block::Thinking { .. } | Block::RedactedThinking { .. } => {
            role == Role::Assistant
        }
    }
}

/// Processes a history once and remembers the calls that wait for their results.
#[derive(Default)]
struct HistoryRepairer {
    messages: Vec<Message>,
    changes: Vec<String>,
    /// Calls of the model's newest message, each with its result once it was found.
    open: Vec<(ToolCall, Option<Block>)>,
    /// User blocks that follow these calls. They are held back until all results are found.
    pending_user_blocks: Vec<Block>,
}

impl HistoryRepairer {
    fn handle_message(&mut self, message: &Message) {
        if message.content.is_empty() {
            self.note("an empty message was left out");
            return;
        }
        match message.role {
            Role::User => self.user(message),
            Role::Assistant => self.assistant(message),
        }
    }

    fn user(&mut self, message: &Message) {
        let was_open = !self.open.is_empty();
        let mut content = Vec::new();
        for block in &message.content {
            match block {
                Block::ToolResult { call_id, .. } => {
                    match self.open.iter_mut().find(|(call, _)| call.call_id == *call_id) {
                        Some((_, result @ None)) => *result = Some(block.clone()),
                        Some(_) => self.note("a second result of a call was left out"),
                        None => self.note("a result without its call was left out"),
                    }
                }
                block if is_allowed_block(Role::User, block) => content.push(block.clone()),
                _ => self.note("a block of the model in a person's message was left out"),
            }
        }
        if was_open {
            self.pending_user_blocks.extend(content);
            if self.open.iter().all(|(_, result)| result.is_some()) {
                self.close();
            }
        } else if !content.is_empty() {
            self.messages.push(Message::new(Role::User, content));
        }
    }

    fn assistant(&mut self, message: &Message) {
        self.close();
        if self.messages.is_empty() {
            self.note("the beginning is missing");
            self.messages.push(Message::user(LOST_BEGINNING));
        }
        let mut content = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for block in &message.content {
            match block {
                Block::ToolCall(call) => {
                    if self.open.iter().any(|(other, _)| other.call_id == call.call_id) {
                        self.note("a call that was there twice was left out");
                        continue;
                    }
                    let mut call = call.clone();
                    if call.provider_id.trim().is_empty() || names.contains(&call.provider_id) {
                        self.note("a call without a name of its own was given one");
                        call.provider_id = call.call_id.to_string();
                        while names.contains(&call.provider_id) {
                            call.provider_id.push('_');
                        }
                    }
                    names.insert(call.provider_id.clone());
                    content.push(Block::ToolCall(call.clone()));
                    self.open.push((call, None));
                }
                block if is_allowed_block(Role::Assistant, block) => content.push(block.clone()),
                _ => self.note("a result in a message of the model was left out"),
            }
        }
        if !content.is_empty() {
            let model = message.model.clone();
            self.messages.push(Message { role: Role::Assistant, content, model });
        }
    }

    /// Adds a result for every open call, followed by the user blocks that were held back.
    fn close(&mut self) {
        let mut content: Vec<Block> = Vec::new();
        for (call, result) in std::mem::take(&mut self.open) {
            let (text, is_error, attachments) = match result {
                Some(Block::ToolResult { content, is_error, attachments, .. }) => {
                    (content, is_error, attachments)
                }
                _ => {
                    self.note("a missing result was replaced by words that say so");
                    (LOST_RESULT.to_string(), true, Vec::new())
                }
            };
            content.push(Block::ToolResult {
                call_id: call.call_id,
                provider_id: call.provider_id,
                content: text,
                is_error,
                attachments,
            });
        }
        content.append(&mut self.pending_user_blocks);
        if !content.is_empty() {
            self.messages.push(Message::new(Role::User, content));
        }
    }

    fn note(&mut self, change: &str) {
        self.changes.push(change.into());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::request::build::normalize;
    use crate::request::repair_history::*;
    use types::ids::{Mint, Seed};

    fn call_id(number: u8) -> CallId {
        Mint::new(1, Seed(u128::from(number))).call()
    }

    fn call(number: u8, name: &str) -> Block {
        Block::ToolCall(ToolCall {
            call_id: call_id(number),
            provider_id: name.into(),
            tool: "Read".into(),
            input: serde_json::json!({}),
            input_error: None,
        })
    }

    fn result(number: u8, name: &str) -> Block {
        let content = format!("result {number}");
        Block::ToolResult {
            call_id: call_id(number),
            provider_id: name.into(),
            content,
            is_error: false,
            attachments: Vec::new(),
        }
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    fn user(content: impl Into<Vec<Block>>) -> Message {
        Message::new(Role::User, content.into())
    }

    fn model(content: impl Into<Vec<Block>>) -> Message {
        Message::new(Role::Assistant, content.into())
    }

    #[test]
    fn history_breach_is_repaired_with_minimal_change() {
        let lost = Block::ToolResult {
            call_id: call_id(1),
            provider_id: "a".into(),
            content: LOST_RESULT.into(),
            is_error: true,
            attachments: Vec::new(),
        };
        let begin = || user([text("go")]);
        for (name, broken, mended) in [
            (
                "a call without a result",
                vec![begin(), model([call(1, "a")])],
                vec![begin(), model([call(1, "a")]), user([lost.clone()])],
            ),
            (
                "the model goes on without a result",
                vec![begin(), model([call(1, "a")]), model([text("so")])],
                vec![begin(), model([call(1, "a")]), user([lost.clone()]), model([text("so")])],
            ),
            (
                "a result without a call",
                vec![begin(), model([text("x")]), user([result(1, "a"), text("y")])],
                vec![begin(), model([text("x")]), user([text("y")])],
            ),
            (
                "two results",
                vec![begin(), model([call(1, "a")]), user([result(1, "a"), result(1, "a")])],
                vec![begin(), model([call(1, "a")]), user([result(1, "a")])],
            ),
            (
                "results in another order, behind words",
                vec![
                    begin(),
                    model([call(1, "a"), call(2, "b")]),
                    user([text("hm"), result(2, "b"), result(1, "a")]),
                ],
                vec![
                    begin(),
                    model([call(1, "a"), call(2, "b")]),
                    user([result(1, "a"), result(2, "b"), text("hm")]),
                ],
            ),
            (
                "results in two messages",
                vec![
                    begin(),
                    model([call(1, "a"), call(2, "b")]),
                    user([result(2, "b")]),
                    user([result(1, "a")]),
                ],
                vec![begin(), model([call(1, "a"), call(2, "b")]), user([result(1, "a"), result(2, "b")])],
            ),
            ("an empty message", vec![begin(), model([])], vec![begin()]),
            (
                "the model first",
                vec![model([text("hi")])],
                vec![user([text(LOST_BEGINNING)]), model([text("hi")])],
            ),
            (
                "two calls of one name",
                vec![begin(), model([call(1, "a"), call(2, "a")]), user([result(1, "a"), result(2, "a")])],
                vec![
                    begin(),
                    model([call(1, "a"), call(2, &call_id(2).to_string())]),
                    user([result(1, "a"), result(2, &call_id(2).to_string())]),
                ],
            ),
        ] {
            let repair = repair(&broken).unwrap_or_else(|| panic!("{name}: no breach seen"));
            assert_eq!(repair.messages, mended, "{name}");
            assert!(!repair.changes.is_empty(), "{name}");
        }
    }

    fn block() -> impl Strategy<Value = Block> {
        let name = |name: u8| ["a", "b", "", " "][usize::from(name) % 4];
        prop_oneof![
            3 => prop_oneof![Just("word"), Just(" "), Just("")].prop_map(text),
            3 => (0..5u8, 0..4u8).prop_map(move |(number, at)| call(number, name(at))),
            3 => (0..5u8, 0..4u8).prop_map(move |(number, at)| result(number, name(at))),
            1 => Just(Block::Thinking { text: "t".into(), signature: None }),
            1 => Just(Block::RedactedThinking { data: "d".into() }),
        ]
    }

    fn history() -> impl Strategy<Value = Vec<Message>> {
        let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
        let message = (role, proptest::collection::vec(block(), 0..5));
        proptest::collection::vec(message.prop_map(|(role, content)| Message::new(role, content)), 0..10)
    }

    proptest! {
        #[test]
        fn repaired_history_is_valid_and_repair_is_idempotent(history in history()) {
            match repair(&history) {
                None => prop_assert_eq!(find_breach(&history), None),
                Some(repair) => {
                    prop_assert_eq!(find_breach(&repair.messages), None, "{:?}", &repair.messages);
                    prop_assert!(crate::request::repair_history::repair(&repair.messages).is_none());
                    prop_assert!(!repair.changes.is_empty());
                }
            }
        }

        #[test]
        fn request_of_repaired_history_is_accepted_by_strict_provider(history in history()) {
            let mended = repair(&history).map_or(history, |repair| repair.messages);
            let shared: Vec<_> = mended.into_iter().map(std::sync::Arc::new).collect();
            let messages = normalize(&shared, Some("p/m"));
            prop_assert!(messages.windows(2).all(|pair| pair[0].role != pair[1].role));
            let owned: Vec<Message> = messages.iter().map(|message| (**message).clone()).collect();
            // The repair cannot correct a blank first message; only the user can.
            if owned.first().is_none_or(|first| first.role == Role::User) {
                prop_assert_eq!(find_breach(&owned), None, "{:?}", owned);
            }
        }
    }
}
