//! Parts of a slash command that are filled in before the model receives its text: outputs of commands, and files.
//!
//! They are calls of Bash and Read before the first step of the turn, prepared, judged, recorded and recovered like calls
//! of a model. The user's message follows them, with their results in it.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::request::model_texts;
use crate::state::{CallStage, CallState};
use types::blob::{AttachmentKind, Blob, Document, Picture};
use types::message::InputBlock;
use types::slash_command::CommandPart;

/// The result of a command without output.
const NO_OUTPUT: &str = "(no output)";

impl PlanBuilder<'_> {
    /// Whether the user's message of the turn still waits for its parts.
    pub fn is_expanding(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.is_expanding)
    }

    /// Requests the calls that fill in the parts of the turn's command. Returns `false` if there are none.
    pub fn begin_expansion(&mut self) -> bool {
        if !self.is_expanding() {
            return false;
        }
        for (number, part) in self.command_parts().into_iter().enumerate() {
            let (tool, input) = match part {
                CommandPart::Text { .. } => continue,
                CommandPart::Output { command } => ("Bash", serde_json::json!({ "command": command })),
                CommandPart::File { path } => ("Read", serde_json::json!({ "file_path": path })),
            };
            let (item_id, call_id, tool) = (self.mint.item(), self.mint.call(), tool.to_owned());
            let provider_id = Some(format!("command-{number}"));
            self.push_call(item_id, call_id, tool, input, provider_id);
        }
        self.prepare_open_calls();
        true
    }

    fn command_parts(&self) -> Vec<CommandPart> {
        let command = self.state.turn.as_ref().and_then(|turn| turn.settings.options.command.as_ref());
        command.map(|command| command.parts.clone()).unwrap_or_default()
    }

    /// If every part has its result, adds the user's message and continues the turn.
    pub fn advance_expansion(&mut self) {
        if self.state.calls().iter().all(CallState::is_done) {
            self.finish_expansion();
            self.prepare_context(0);
        }
    }

    /// Adds the user's message with the parts that have their results.
    pub fn finish_expansion(&mut self) {
        let calls = self.state.calls().to_vec();
        let mut calls = calls.iter();
        let (mut text, mut attached) = (String::new(), Vec::new());
        for part in self.command_parts() {
            let stage = match part {
                CommandPart::Text { .. } => None,
                _ => calls.next().map(|call| &call.stage),
            };
            let Some(CallStage::Done { output, is_error, attachments, .. }) = stage else {
                text += &part.source();
                continue;
            };
            match part {
                CommandPart::Text { .. } => {}
                CommandPart::Output { .. } if **output == *NO_OUTPUT => {}
                CommandPart::Output { command } if *is_error => {
                    text += &model_texts::failed_output(&command, output);
                }
                CommandPart::Output { .. } => text += output.trim_end(),
                CommandPart::File { path } => {
                    text += &format!("@{path}");
                    if *is_error {
                        text += &model_texts::not_attached(output);
                        continue;
                    }
                    attached.extend(attachments.iter().map(|it| match it.kind {
                        AttachmentKind::Image => {
                            InputBlock::Image(Picture { blob: it.blob.clone(), name: Some(path.clone()) })
                        }
                        AttachmentKind::Document => InputBlock::Document(Document {
                            blob: it.blob.clone(),
                            name: Some(path.clone()),
                            text: output.to_string(),
                            unsaved: false,
                        }),
                    }));
                    if attachments.is_empty() {
                        let blob = Blob::text(output);
                        attached.push(InputBlock::Document(Document {
                            blob: (&blob).into(),
                            name: Some(path),
                            text: output.to_string(),
                            unsaved: false,
                        }));
                        self.plan.blobs.push(blob);
                    }
                }
            }
        }
        let options = self.state.turn.as_ref().map(|turn| Arc::clone(&turn.settings.options));
        let input = std::iter::once(InputBlock::Text { text }).chain(attached).collect();
        let item_id = self.state.turn.as_ref().and_then(|turn| turn.message_item);
        self.user_message(item_id, input, options.as_deref());
    }
}
