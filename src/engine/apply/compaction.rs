//! Events of compaction: the edit of the messages that later requests contain.

use std::collections::HashMap;
use std::sync::Arc;

use crate::state::{OpenCompaction, State};
use types::compaction::{CompactStage, CompactTrigger, WindowEdit};
use types::event::{Envelope, Event};
use types::ids::CallId;
use types::message::{Block, Message};

impl State {
    pub(super) fn apply_compaction(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::CompactStarted { stage, trigger, tokens_before, messages } => {
                if let Some(turn) = &mut self.turn {
                    if *trigger == CompactTrigger::Overflow {
                        turn.compaction.last_step = turn.step;
                        turn.compaction.is_shortened = true;
                    }
                    turn.compaction.open = Some(OpenCompaction {
                        stage: *stage,
                        trigger: *trigger,
                        item_id: envelope.item_id,
                        first_seq: envelope.seq,
                        tokens_before: *tokens_before,
                        messages: usize::try_from(messages.unwrap_or(0)).unwrap_or(usize::MAX),
                        step: turn.step,
                        overflows: 0,
                    });
                }
            }
            Event::CompactCompleted { stage, trigger, error, edit, .. } => {
                if *stage == CompactStage::Autocompact {
                    let is_manual = *trigger == CompactTrigger::Manual;
                    self.compaction_failures = match error {
                        None => 0,
                        Some(_) => self.compaction_failures.saturating_add(u32::from(!is_manual)),
                    };
                    self.compactions += u32::from(error.is_none());
                    if let Some(turn) = &mut self.turn {
                        (turn.model_call.failures, turn.model_call.overloads) = (0, 0);
                        turn.compaction.has_failed_summary |= error.is_some();
                        turn.model_call.reduced_output_limit = None;
                    }
                }
                if let Some(turn) = self.turn.as_mut().filter(|turn| {
                    turn.compaction.open.as_ref().is_some_and(|compaction| compaction.stage == *stage)
                }) {
                    turn.compaction.open = None;
                }
                if let Some(edit) = edit {
                    self.edit_window(edit);
                }
            }
            _ => {}
        }
    }

    fn edit_window(&mut self, edit: &WindowEdit) {
        // The edit changes the next request. The reported length and the conversation stored by the
        // provider no longer match it.
        self.context_tokens = 0;
        self.continues = None;
        match edit {
            WindowEdit::Results { results } => {
                let contents: HashMap<CallId, &String> =
                    results.iter().map(|result| (result.call_id, &result.content)).collect();
                self.transcript
                    .edit_messages(|part| part.iter_mut().for_each(|it| replace_results(it, &contents)));
            }
            WindowEdit::Messages { from, count, messages } => {
                let place = |number: &u64| usize::try_from(*number).unwrap_or(usize::MAX);
                self.transcript.replace_range(place(from), place(count), messages);
            }
        }
    }
}

fn replace_results(message: &mut Arc<Message>, contents: &HashMap<CallId, &String>) {
    let new_content = |block: &Block| match block {
        Block::ToolResult { call_id, .. } => contents.get(call_id).copied(),
        _ => None,
    };
    if !message.content.iter().any(|block| new_content(block).is_some()) {
        return;
    }
    for block in &mut Arc::make_mut(message).content {
        let replacement = new_content(block).cloned();
        if let (Block::ToolResult { content, attachments, .. }, Some(new)) = (block, replacement) {
            *content = new;
            attachments.clear();
        }
    }
}
