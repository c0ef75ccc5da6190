//! Messages without the figures of a model call: inputs, notices for the model, and interrupted answers.

use crate::decide::plan::PlanBuilder;
use types::event::Event;
use types::ids::{ItemId, Seq, TurnId};
use types::message::{Block, Role};
use types::session::{Item, ItemKind, ItemStatus};
use types::slash_command::SlashCommand;

/// A message without usage, cost and duration.
pub(crate) struct PlainMessage {
    pub item_id: ItemId,
    pub kind: ItemKind,
    pub status: ItemStatus,
    pub first_seq: Seq,
    pub role: Role,
    pub text: String,
    pub content: Vec<Block>,
    pub model: Option<String>,
    /// The slash command whose expansion is a user's input.
    pub command: Option<SlashCommand>,
    pub superseded: bool,
}

impl PlanBuilder<'_> {
    /// Adds a message with the role of the user to the next request.
    pub fn push_request_message(&mut self, kind: ItemKind, text: String, content: Vec<Block>) {
        let item_id = self.mint.item();
        self.push_input_message((item_id, kind), text, content, None);
    }

    /// Adds a message with the role of the user. `command` is the slash command whose expansion the
    /// message contains.
    pub fn push_input_message(
        &mut self,
        (item_id, kind): (ItemId, ItemKind),
        text: String,
        content: Vec<Block>,
        command: Option<SlashCommand>,
    ) {
        let first_seq = self.state.next_seq;
        let (status, role) = (ItemStatus::Completed, Role::User);
        let (model, superseded) = (None, false);
        self.push_plain_message(PlainMessage {
            item_id,
            kind,
            status,
            first_seq,
            role,
            text,
            content,
            model,
            command,
            superseded,
        });
    }

    /// The item of an answer whose newest event is the next one.
    pub fn answer_item(
        &self,
        (item_id, turn_id): (ItemId, TurnId),
        first_seq: Seq,
        status: ItemStatus,
        text: String,
        content: Vec<Block>,
    ) -> Item {
        Item {
            item_id,
            turn_id,
            kind: ItemKind::AssistantMessage,
            status,
            first_seq,
            last_seq: self.state.next_seq,
            text: Some(text),
            role: Some(Role::Assistant),
            content,
            call: None,
            command: None,
            truncated_fields: Vec::new(),
        }
    }

    /// Adds a completed or interrupted message of the running turn.
    pub fn push_plain_message(&mut self, message: PlainMessage) {
        let Some(turn_id) = self.state.turn.as_ref().map(|turn| turn.id) else { return };
        let item = Item {
            item_id: message.item_id,
            turn_id,
            kind: message.kind,
            status: message.status,
            first_seq: message.first_seq,
            last_seq: self.state.next_seq,
            text: Some(message.text),
            role: Some(message.role),
            content: message.content,
            call: None,
            command: message.command,
            truncated_fields: Vec::new(),
        };
        let mut completed = Event::message(item);
        if let Event::MessageCompleted { model, superseded, .. } = &mut completed {
            (*model, *superseded) = (message.model, message.superseded);
        }
        self.push_item(message.item_id, completed);
    }
}
