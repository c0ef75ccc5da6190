//! Properties of compaction: each stage completes once, and only a complete stage changes what models receive.

use crate::property;
use crate::reference_model::ReferenceModel;
use types::compaction::{CompactStage, WindowEdit};
use types::event::{Envelope, Event};
use types::session::{ItemKind, ItemStatus};

impl ReferenceModel {
    pub(super) fn check_compaction_event(&mut self, envelope: &Envelope) -> Result<(), String> {
        match &envelope.event {
            Event::CompactStarted { stage, trigger, messages, .. } => {
                property!(self.compacting.is_none() && self.turn.is_some(), "one stage runs at a time");
                property!(
                    messages.is_some() == (*stage == CompactStage::Autocompact),
                    "a summary names the messages that it replaces"
                );
                property!(self.running.is_empty(), "the conversation is not compacted while tools run");
                self.compacting = Some((envelope.seq, *stage, *trigger));
                self.items.insert(envelope.seq, (ItemKind::Compaction, ItemStatus::Running));
            }
            Event::CompactCompleted { stage: CompactStage::ToolResults, edit: None, .. } => {}
            Event::CompactCompleted { stage, trigger, tokens_before, tokens_after, error, edit } => {
                let (first, started_stage, started_trigger) =
                    self.compacting.take().ok_or("what completes was started")?;
                property!(
                    (started_stage, started_trigger) == (*stage, *trigger),
                    "a stage completes as it began"
                );
                property!(error.is_some() == edit.is_none(), "a stage changes something, or says why not");
                property!(tokens_after <= tokens_before, "a stage makes nothing longer");
                let status = if error.is_some() { ItemStatus::Interrupted } else { ItemStatus::Completed };
                self.items.insert(first, (ItemKind::Compaction, status));
                if let Some(edit) = edit {
                    self.seen.insert(format!("compacted {}", stage.name()));
                    // The beginning of the next request differs, so do not compare it with the last request.
                    self.sent = None;
                    if matches!(edit, WindowEdit::Messages { .. }) {
                        self.compacted = self.user_texts.len();
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
