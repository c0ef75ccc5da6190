//! Messages: the text of a message is sent once, whether it came as deltas, as a whole, or partly as both.

use super::{InputOrigin, Mapper, chunk};
use crate::acp::schema::{SessionUpdate, TextBlock, Version};
use types::event::{Envelope, Event};
use types::ids::ItemId;
use types::item::{Item, ItemKind};
use types::message::Block;
use types::reason::TombstoneReason;
use types::slash_command::SlashCommand;

/// The sent text of an item.
#[derive(Debug, Default)]
pub(super) struct StreamedItem {
    text: String,
    thinking: String,
}

impl Mapper {
    pub(super) fn map_message(&mut self, envelope: &Envelope, origin: InputOrigin) -> Vec<SessionUpdate> {
        match &envelope.event {
            Event::MessageTextDelta { text, .. } => self.add_text(envelope.item_id, text),
            Event::MessageThinkingDelta { text, .. } => self.add_thinking(envelope.item_id, text),
            Event::MessageCompleted {
                item,
                usage,
                model_snapshot,
                cost_usd_micros,
                superseded,
                candidate,
                ..
            } => {
                if item.kind == ItemKind::UserMessage {
                    let update = (origin == InputOrigin::Other).then(|| user_message(item));
                    return update.into_iter().collect();
                }
                if item.kind != ItemKind::AssistantMessage {
                    return Vec::new();
                }
                let mut updates = self.complete_message(item);
                if *superseded {
                    updates.extend(self.retract(item.item_id, "another answer follows"));
                }
                if let Some(usage) = usage {
                    self.add_cost(*cost_usd_micros);
                    let used = self.add_usage(usage.all_tokens(), model_snapshot.as_ref());
                    updates.extend(used.filter(|_| !candidate));
                }
                updates
            }
            Event::MessageTombstone { reason } => {
                let reason_text = match reason {
                    TombstoneReason::ModelSwitched => "another model answers instead",
                    TombstoneReason::OutputLimit => "it reached the output limit and is requested again",
                    TombstoneReason::NotChosen => "the other answer was chosen",
                    TombstoneReason::Chosen => "it was chosen and follows again",
                };
                envelope.item_id.and_then(|item_id| self.retract(item_id, reason_text)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn add_text(&mut self, item_id: Option<ItemId>, text: &str) -> Vec<SessionUpdate> {
        let Some(item_id) = item_id.filter(|id| !text.is_empty() && !self.completed.contains(id)) else {
            return Vec::new();
        };
        self.items.entry(item_id).or_default().text.push_str(text);
        vec![SessionUpdate::AgentMessageChunk(chunk(text, item_id.to_string()))]
    }

    fn add_thinking(&mut self, item_id: Option<ItemId>, text: &str) -> Vec<SessionUpdate> {
        let Some(item_id) = item_id.filter(|id| !text.is_empty() && !self.completed.contains(id)) else {
            return Vec::new();
        };
        self.items.entry(item_id).or_default().thinking.push_str(text);
        vec![SessionUpdate::AgentThoughtChunk(chunk(text, thought_id(item_id)))]
    }

    /// The part of a complete message that was not sent yet.
    fn complete_message(&mut self, item: &Item) -> Vec<SessionUpdate> {
        self.completed.insert(item.item_id);
        let (id, shown) = (item.item_id, self.items.entry(item.item_id).or_default());
        let (mut text_sent, mut thinking_sent) = (shown.text.clone(), shown.thinking.clone());
        let mut updates = Vec::new();
        for (index, block) in item.content.iter().enumerate() {
            match block {
                Block::Text { text } if !text.is_empty() => match unsent(&mut text_sent, text) {
                    Unsent::Rest("") => {}
                    Unsent::Rest(rest) => {
                        shown.text.push_str(rest);
                        updates.push(SessionUpdate::AgentMessageChunk(chunk(rest, id.to_string())));
                    }
                    // The provider restated the answer.
                    Unsent::Other if self.features.version == Version::V2 => {
                        let content = item.content[..=index].iter().filter_map(text_block).collect();
                        updates.push(SessionUpdate::AgentMessage { message_id: id.to_string(), content });
                    }
                    // In version 1, a message cannot be changed, so this is another one.
                    Unsent::Other => {
                        updates.push(SessionUpdate::AgentMessageChunk(chunk(text, format!("{id}-restated"))));
                    }
                },
                Block::Thinking { text, .. } if !text.is_empty() => {
                    if let Unsent::Rest(rest) = unsent(&mut thinking_sent, text)
                        && !rest.is_empty()
                    {
                        shown.thinking.push_str(rest);
                        updates.push(SessionUpdate::AgentThoughtChunk(chunk(rest, thought_id(id))));
                    }
                }
                _ => {}
            }
        }
        updates
    }

    /// Withdraws an answer that the client shows and that no longer counts, or tells that it does not count.
    fn retract(&mut self, item_id: ItemId, reason: &str) -> Option<SessionUpdate> {
        let shown = self.items.remove(&item_id)?;
        let text = format!("(The answer above does not count: {reason}.)");
        (!shown.text.is_empty()).then(|| match self.features.version {
            Version::V1 => SessionUpdate::AgentMessageChunk(chunk(text, format!("{item_id}-retracted"))),
            Version::V2 => {
                SessionUpdate::AgentMessage { message_id: item_id.to_string(), content: Vec::new() }
            }
        })
    }
}

/// The part of a block that was not sent.
enum Unsent<'a> {
    Rest(&'a str),
    /// Another text was sent.
    Other,
}

/// Compares a block with the text that was sent and takes the block from it.
fn unsent<'a>(sent: &mut String, block: &'a str) -> Unsent<'a> {
    if let Some(later) = sent.strip_prefix(block) {
        *sent = later.to_owned();
        return Unsent::Rest("");
    }
    match block.strip_prefix(std::mem::take(sent).as_str()) {
        Some(rest) => Unsent::Rest(rest),
        None => Unsent::Other,
    }
}

fn text_block(block: &Block) -> Option<TextBlock> {
    match block {
        Block::Text { text } => Some(TextBlock::new(text.as_str())),
        _ => None,
    }
}

fn thought_id(item_id: ItemId) -> String {
    format!("{item_id}-thought")
}

/// An input as the user typed it. `item.text` lacks what hooks and the daemon added for the model.
fn user_message(item: &Item) -> SessionUpdate {
    let typed =
        item.command.as_ref().map(SlashCommand::line).or_else(|| item.text.clone()).unwrap_or_default();
    let attached = item.content.iter().filter_map(|block| match block {
        Block::Image(picture) => {
            Some(format!("[image {}]", picture.name.as_deref().unwrap_or("without a name")))
        }
        Block::Document(document) => {
            Some(format!("[file {}]", document.name.as_deref().unwrap_or("without a name")))
        }
        _ => None,
    });
    let parts: Vec<String> = [typed].into_iter().filter(|text| !text.is_empty()).chain(attached).collect();
    SessionUpdate::UserMessageChunk(chunk(parts.join("\n"), item.item_id.to_string()))
}
