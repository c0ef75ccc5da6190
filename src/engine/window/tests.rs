//! Properties of the stages over random conversations: calls keep their results, the newest messages
//! stay, and a second run of a stage changes nothing more.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use crate::request::build::normalize;
use crate::request::tokens::messages_tokens;
use crate::window::StageEdit;
use crate::window::collapse::collapse;
use crate::window::history::{History, has_results};
use crate::window::microcompact::microcompact;
use crate::window::shorten::shorten;
use crate::window::size::ResultLimits;
use crate::window::snip::snip;
use crate::window::summary::{summary_message, summary_messages};
use types::compaction::WindowEdit;
use types::ids::{CallId, Mint, Seed};
use types::message::{Block, Message, Role, ToolCall};

/// One model answer with calls: per call the tool, the file, the length of the result, whether it failed.
type AnswerCalls = Vec<(u8, u8, u16, bool)>;

/// Turns of steps; each turn ends with an answer, except perhaps the last.
fn conversation() -> impl Strategy<Value = (Vec<Vec<AnswerCalls>>, bool)> {
    let call = (0..4u8, 0..4u8, 0..3_000u16, prop::bool::weighted(0.2));
    let step = prop::collection::vec(call, 1..4);
    (prop::collection::vec(prop::collection::vec(step, 0..5), 1..6), any::<bool>())
}

fn messages(turns: &[Vec<AnswerCalls>], is_open: bool) -> Vec<Arc<Message>> {
    let mut mint = Mint::new(0, Seed(1));
    let mut all = Vec::new();
    for (number, steps) in turns.iter().enumerate() {
        all.push(Message::user(format!("please do {number}")));
        for step in steps {
            let (mut calls, mut results) = (Vec::new(), Vec::new());
            for (tool, file, length, is_error) in step {
                let call_id = mint.call();
                let tool = ["Read", "Edit", "Write", "Bash"][usize::from(*tool)];
                let input = match tool {
                    "Bash" => json!({"command": format!("make {file}")}),
                    _ => json!({"file_path": format!("/w/{file}.rs")}),
                };
                let provider_id = call_id.to_string();
                calls.push(Block::ToolCall(ToolCall {
                    call_id,
                    provider_id: provider_id.clone(),
                    tool: tool.into(),
                    input,
                    input_error: None,
                }));
                results.push(Block::ToolResult {
                    call_id,
                    provider_id,
                    content: "line é\n".repeat(usize::from(*length) / 7 + 1),
                    is_error: *is_error,
                    attachments: Vec::new(),
                });
            }
            all.push(Message::new(Role::Assistant, calls));
            all.push(Message::new(Role::User, results));
        }
        if !(is_open && number + 1 == turns.len()) {
            all.push(Message::new(Role::Assistant, vec![Block::Text { text: format!("done {number}") }]));
        }
    }
    all.into_iter().map(Arc::new).collect()
}

fn apply(messages: &[Arc<Message>], edit: &WindowEdit) -> Vec<Arc<Message>> {
    let mut all = messages.to_vec();
    match edit {
        WindowEdit::Results { results } => {
            let new: HashMap<CallId, &String> = results.iter().map(|it| (it.call_id, &it.content)).collect();
            for message in &mut all {
                for block in &mut Arc::make_mut(message).content {
                    if let Block::ToolResult { call_id, content, .. } = block
                        && let Some(text) = new.get(call_id)
                    {
                        (*content).clone_from(text);
                    }
                }
            }
        }
        WindowEdit::Messages { from, count, messages } => {
            let (from, count) = (*from as usize, *count as usize);
            all.splice(from..from + count, messages.iter().cloned().map(Arc::new));
        }
    }
    all
}

/// Calls and results of each message, which a strict provider compares.
fn assert_paired(messages: &[Arc<Message>]) {
    let messages = normalize(messages, None);
    assert_eq!(messages.first().map(|first| first.role), Some(Role::User));
    for (at, message) in messages.iter().enumerate() {
        let call_ids: Vec<CallId> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some(call.call_id),
                _ => None,
            })
            .collect();
        let next = messages.get(at + 1).map_or(&[][..], |next| &next.content);
        let answered: Vec<CallId> = next
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult { call_id, .. } => Some(*call_id),
                _ => None,
            })
            .collect();
        if !call_ids.is_empty() || !answered.is_empty() {
            assert_eq!(call_ids, answered, "message {at}");
        }
    }
}

fn check(
    messages: &[Arc<Message>],
    recent: u64,
    found: Option<StageEdit>,
    keeps_recent: bool,
) -> Vec<Arc<Message>> {
    let Some(found) = found else { return messages.to_vec() };
    let after = apply(messages, &found.edit);
    assert_paired(&after);
    assert!(messages_tokens(after.iter()) <= messages_tokens(messages.iter()), "a stage saves");
    if keeps_recent {
        let newest = messages.len() - History::new(messages, recent).recent_from;
        assert_eq!(&messages[messages.len() - newest..], &after[after.len() - newest..]);
    }
    after
}

proptest! {
    #[test]
    fn stages_keep_pairs_and_newest_messages((turns, is_open) in conversation(), recent in 0..2_000u64, excess in 1..4_000u64) {
        let before = messages(&turns, is_open && turns.last().is_some_and(|steps| !steps.is_empty()));
        assert_paired(&before);
        let limits = ResultLimits { one: 4_000, all: 8_000 };
        let mut now = before.clone();
        now = check(&now, recent, shorten(&History::new(&now, recent), limits), false);
        prop_assert_eq!(shorten(&History::new(&now, recent), limits), None);
        now = check(&now, recent, snip(&History::new(&now, recent)), true);
        prop_assert_eq!(snip(&History::new(&now, recent)), None);
        now = check(&now, recent, microcompact(&History::new(&now, recent), u64::MAX, 500), true);
        prop_assert_eq!(microcompact(&History::new(&now, recent), excess, 500), None);
        now = check(&now, recent, collapse(&History::new(&now, recent), u64::MAX), true);
        let again = collapse(&History::new(&now, recent), excess);
        prop_assert_eq!(again, None);
        prop_assert!(now.len() <= before.len());
    }

    #[test]
    fn summary_request_is_valid_within_room((turns, is_open) in conversation(), recent in 0..2_000u64, room in 0..4_000u64) {
        let before = messages(&turns, is_open && turns.last().is_some_and(|steps| !steps.is_empty()));
        let history = History::new(&before, recent);
        let count = history.recent_from;
        let shown = summary_messages(&before, count, Some("keep names"), room);
        assert_paired(&shown);
        prop_assert_eq!(shown.last().map(|message| message.role), Some(Role::User));
        let request = shown.len() - 1;
        prop_assert!(request == 0 || messages_tokens(shown.iter()) <= room, "the request fits");
        let message = summary_message(&history, count, "it went well", room);
        let edit = WindowEdit::Messages { from: 0, count: count as u64, messages: vec![message] };
        let after = apply(&before, &edit);
        assert_paired(&after);
        prop_assert_eq!(&before[count..], &after[1..]);
        prop_assert!(count == before.len() || !has_results(&before[count]));
    }
}

#[test]
fn snip_clears_superseded_reads_and_retried_failures() {
    let read = |file| (0u8, file, 700u16, false);
    let fail = |tool, file| (tool, file, 700u16, true);
    let turns = vec![vec![vec![read(1), fail(3, 2), read(2)], vec![read(1), (3, 2, 700, false)]]];
    let before = messages(&turns, false);
    let found = snip(&History::new(&before, 0)).expect("two useless results");
    let WindowEdit::Results { results } = found.edit else { panic!("results are replaced") };
    let texts: Vec<&str> = results.iter().map(|result| result.content.as_str()).collect();
    assert_eq!(
        texts,
        ["[Cleared: a later Read shows it.]", "[Cleared: this attempt failed, and a later one succeeded.]"]
    );
}

#[test]
fn microcompact_clears_oldest_first_and_keeps_recent_files() {
    let turns =
        vec![vec![vec![(3, 1, 2_000, false)], vec![(3, 2, 2_000, false)], vec![(0, 3, 2_000, false)]]];
    let before = messages(&turns, false);
    let history = History::new(&before, 0);
    let found = microcompact(&history, 10, 2_000).expect("old results");
    let WindowEdit::Results { results } = found.edit else { panic!("results are replaced") };
    assert_eq!(results.len(), 1, "one result saves enough");
    assert_eq!(results[0].call_id, history.results[0].call.call_id);
    assert!(results[0].content.contains(&found.blobs[0].blob_id.to_string()), "{}", results[0].content);
    let WindowEdit::Results { results } = microcompact(&history, u64::MAX, 2_000).expect("old results").edit
    else {
        panic!("results are replaced")
    };
    assert_eq!(results.len(), 2, "the file that was read last stays");
}
