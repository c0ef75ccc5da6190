//! `session.items`: the conversation. Each item is assembled from the events that open and close it.

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ItemsParams, ItemsReply};
use session::{ItemQuery, Page, SessionError, StoredItem};
use types::blob::TruncatedField;
use types::event::{Envelope, Event};
use types::ids::{ItemId, Seq};
use types::message::{Block, Role};
use types::question::QuestionKind;
use types::session::{CallStatus, CallView, Item, ItemKind, ItemStatus};

pub(super) async fn items(ctx: Arc<RpcContext>, _: Caller, p: ItemsParams) -> Result<ItemsReply, Fault> {
    let cursor: Option<Seq> = convert::cursor(p.cursor.as_deref())?;
    let kinds: Vec<&str> = p.kinds.iter().map(|kind| kind.name()).collect();
    let wanted = ItemQuery {
        after: cursor.unwrap_or(0),
        before: p.newest_first.then(|| cursor.unwrap_or(Seq::MAX)),
        kinds: &kinds,
    };
    let limit = convert::limit(p.limit, 100, 500);
    let store = &ctx.registry.shared().store;
    let failed = |error| convert::fault(SessionError::Store(error));
    let key = store.find(p.session_id).await.map_err(failed)?;
    let key = key.ok_or_else(|| convert::fault(SessionError::NotFound))?;
    let Page { rows, is_last } =
        store.items(key, wanted, limit, convert::PAGE_BYTES).await.map_err(failed)?;
    let next_cursor = rows.last().map(|item| item.first_seq).filter(|_| !is_last);
    let items: Vec<Item> = rows.iter().filter_map(item).collect();
    Ok(ItemsReply { items, next_cursor: next_cursor.map(|seq| seq.to_string()) })
}

pub(super) fn item(stored: &StoredItem) -> Option<Item> {
    let first: Envelope = serde_json::from_str(&stored.first).ok()?;
    let last: Envelope = serde_json::from_str(&stored.last).ok()?;
    let running = Item {
        item_id: first.item_id?,
        turn_id: first.turn_id?,
        kind: ItemKind::AssistantMessage,
        status: ItemStatus::Running,
        first_seq: stored.first_seq,
        last_seq: stored.last_seq,
        text: None,
        role: None,
        content: Vec::new(),
        call: None,
        command: None,
        truncated_fields: Vec::new(),
    };
    match (first.event, last.event) {
        (Event::MessageCompleted { item, reasoning_item_id, .. }, _)
            if stored.kind == ItemKind::Reasoning.name() =>
        {
            Some(reasoning(item, reasoning_item_id?, first.truncated_fields, running))
        }
        (Event::Error { message, .. }, _) => Some(Item {
            kind: ItemKind::Error,
            status: ItemStatus::Completed,
            text: Some(message),
            truncated_fields: move_pointers(first.truncated_fields, "/message", "/text"),
            ..running
        }),
        (_, Event::MessageCompleted { item, .. }) => {
            Some(Item { truncated_fields: move_pointers(last.truncated_fields, "/item", ""), ..item })
        }
        (Event::CompactStarted { stage, .. }, last_event) => {
            let kind = ItemKind::Compaction;
            let (status, text) = match last_event {
                Event::CompactCompleted { error: Some(_), .. } => (ItemStatus::Interrupted, None),
                Event::CompactCompleted { tokens_before, tokens_after, .. } => {
                    let text = format!("{}: {tokens_before} -> {tokens_after} tokens", stage.name());
                    (ItemStatus::Completed, Some(text))
                }
                _ => (ItemStatus::Running, None),
            };
            Some(Item { kind, status, text, ..running })
        }
        (Event::MessageStarted { .. }, _) => Some(Item { role: Some(Role::Assistant), ..running }),
        (Event::ToolRequested { call_id, tool, input, .. }, last_event) => {
            let mut truncated_fields = move_pointers(first.truncated_fields, "/input", "/call/input");
            let (mut output_blob, mut shown) = (None, Vec::new());
            let (status, text) = match last_event {
                Event::ToolCompleted { status, output, output_blob: whole, attachments, .. } => {
                    truncated_fields.extend(move_pointers(last.truncated_fields, "/output", "/text"));
                    (output_blob, shown) = (whole, attachments);
                    (status.into(), Some(output))
                }
                Event::ToolStarted { .. } => (CallStatus::Running, None),
                Event::PermissionRequested { .. } | Event::ToolBlocked { .. } => {
                    (CallStatus::AwaitingPermission, None)
                }
                // A call that asks the user is still running until it receives the answer.
                Event::QuestionRequested { question } if question.kind == QuestionKind::Question => {
                    (CallStatus::Running, None)
                }
                Event::QuestionRequested { .. } | Event::QuestionResolved { .. } => {
                    (CallStatus::Unknown, None)
                }
                _ => (CallStatus::Pending, None),
            };
            let has_text = text.is_some();
            Some(Item {
                kind: ItemKind::of_tool(&tool),
                status: if has_text { ItemStatus::Completed } else { ItemStatus::Running },
                text,
                call: Some(CallView { call_id, tool, input, status, output_blob, attachments: shown }),
                truncated_fields,
                ..running
            })
        }
        _ => None,
    }
}

fn reasoning(answer: Item, item_id: ItemId, cut: Vec<TruncatedField>, running: Item) -> Item {
    let thoughts = answer.content.iter().enumerate().filter_map(|(at, block)| match block {
        Block::Thinking { text, .. } if !text.is_empty() => Some((at, text.as_str())),
        _ => None,
    });
    let thoughts: Vec<(usize, &str)> = thoughts.collect();
    let truncated_fields = match thoughts.as_slice() {
        [(at, _)] => move_pointers(cut, &format!("/item/content/{at}/text"), "/text"),
        _ => Vec::new(),
    };
    Item {
        item_id,
        kind: ItemKind::Reasoning,
        status: answer.status,
        role: Some(Role::Assistant),
        text: Some(thoughts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n\n")),
        truncated_fields,
        ..running
    }
}

/// Moves the truncated fields at or below `from` to the same position below `to`.
fn move_pointers(fields: Vec<TruncatedField>, from: &str, to: &str) -> Vec<TruncatedField> {
    let moved = fields.into_iter().filter_map(|field| {
        let rest =
            field.pointer.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(TruncatedField { pointer: format!("{to}{rest}"), ..field })
    });
    moved.collect()
}
