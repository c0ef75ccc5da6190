//! The conversation that a session begins with: messages that a client gives when it creates the session.

use sha2::{Digest as _, Sha256};

use crate::actor::journal;
use crate::error::SessionError;
use store::{ItemRow, MessageText, NewSession};
use types::event::{Envelope, Event};
use types::hex;
use types::ids::Mint;
use types::message::{Block, Role};
use types::session::{Item, ItemKind, ItemStatus};

/// Maximum number of messages.
const MAX_ITEMS: usize = 1_000;
/// Maximum bytes of the texts of all messages.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// A message that the conversation begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialMessage {
    /// The author of the message.
    pub role: Role,
    /// The text blocks of the message.
    pub texts: Vec<String>,
}

/// Checks the messages. Returns their digest, which identifies a repeated request; `None` if there are no messages.
pub(super) fn digest(messages: &[InitialMessage]) -> Result<Option<String>, SessionError> {
    let wrong = |why: String| Err(SessionError::BadParam("initial_items", why));
    if messages.len() > MAX_ITEMS {
        return wrong(format!("{} messages are too many, {MAX_ITEMS} at most", messages.len()));
    }
    let bytes: usize = messages.iter().flat_map(|message| &message.texts).map(String::len).sum();
    if bytes > MAX_TEXT_BYTES {
        return wrong(format!("{bytes} bytes are too many, {MAX_TEXT_BYTES} at most"));
    }
    let is_blank = |message: &InitialMessage| message.texts.iter().all(|text| text.trim().is_empty());
    if let Some(at) = messages.iter().position(is_blank) {
        return wrong(format!("there is no text in message {at}"));
    }
    if messages.is_empty() {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    for InitialMessage { role, texts } in messages {
        hash.update(format!("{role:?} {}\n", texts.len()));
        for text in texts {
            hash.update(format!("{}\n", text.len()));
            hash.update(text);
        }
    }
    Ok(Some(hex::encode(&hash.finalize())))
}

/// The events of these messages, which follow the event that created the session. They belong to one
/// turn that never ran.
pub(super) fn events(created: &Envelope, messages: &[InitialMessage], mint: &mut Mint) -> Vec<Envelope> {
    let turn_id = mint.turn();
    let event = |(seq, message): (u64, &InitialMessage)| {
        let item_id = mint.item();
        let content = message.texts.iter().map(|text| Block::Text { text: text.clone() }).collect();
        let kind = match message.role {
            Role::User => ItemKind::UserMessage,
            Role::Assistant => ItemKind::AssistantMessage,
        };
        let item = Item {
            item_id,
            turn_id,
            kind,
            status: ItemStatus::Completed,
            first_seq: seq,
            last_seq: seq,
            text: Some(message.texts.join("\n")),
            role: Some(message.role),
            content,
            call: None,
            command: None,
            truncated_fields: Vec::new(),
        };
        Envelope {
            seq,
            turn_id: Some(turn_id),
            item_id: Some(item_id),
            event: Event::message(item),
            ..created.clone()
        }
    };
    (created.seq + 1..).zip(messages).map(event).collect()
}

/// Adds the rows of an event of [`events`] to a new session.
pub(super) fn add(new: &mut NewSession, event: &Envelope) {
    let (row, _, blobs) = journal::encode_event(event, None);
    new.rows.push(row);
    new.blobs.extend(blobs);
    new.history.texts.extend(MessageText::from_envelope(event));
    if let Event::MessageCompleted { item, .. } = &event.event {
        let Item { first_seq, last_seq, kind, status, .. } = *item;
        new.items.push(ItemRow { first_seq, last_seq, kind, status });
    }
}
