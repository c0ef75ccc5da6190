//! The decisions about background tasks: their start, their end, and their stop. Loading a session closes the
//! tasks of a dead daemon.

use crate::decide::plan::PlanBuilder;
use crate::output::Effect;
use crate::request::model_texts;
use crate::state::CallStage;
use crate::state::background_task::BackgroundTask;
use types::background::{BackgroundEnd, BackgroundState, BashId, KilledBy, UnrecordedEnd};
use types::blob::{Blob, BlobRef};
use types::event::Event;
use types::ids::CallId;
use types::tool::{Subject, ToolOutcome};

/// Maximum characters of a command in its event; `tool.requested` holds the full command.
const MAX_SHOWN_CHARS: usize = 200;

impl PlanBuilder<'_> {
    /// Refuses the next background command if the limit of running commands is reached. Returns whether
    /// it refused one.
    pub fn refuse_over_limit(&mut self) -> bool {
        let is_off = self.state.spec.ablation.background_tasks;
        let most = if is_off { 0 } else { self.engine.background_commands() };
        let running: Vec<BashId> =
            self.state.commands.iter().filter(|it| it.is_running()).map(|it| it.known.bash_id).collect();
        if running.len() < most {
            return false;
        }
        let is_background = |subject: &Subject| matches!(subject, Subject::Bash { background: true, .. });
        let next = self.startable_calls().into_iter().find(|it| is_background(&it.prepared.subject));
        let Some(next) = next else { return false };
        let outcome =
            ToolOutcome::failed("too_many_background", model_texts::too_many_commands(most, &running));
        self.complete(next.call.call_id, outcome, 0);
        true
    }

    /// Records that a command continues in the background after its call returned. Returns the text for the
    /// model.
    pub(crate) fn command_began(&mut self, call_id: CallId) -> Option<String> {
        let call = self.state.call(call_id).filter(|call| matches!(call.stage, CallStage::Running { .. }))?;
        let item_id = call.item_id;
        let input = call.effective_call();
        let text = input.input.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
        let mut command: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        if command.len() < text.len() {
            command.push('…');
        }
        let bash_id = BashId(self.state.command_count + 1);
        self.push_item(
            item_id,
            Event::ToolBackground {
                call_id,
                bash_id,
                state: BackgroundState::Running,
                command: Some(command),
                end: None,
            },
        );
        Some(model_texts::command_began(bash_id))
    }

    /// Records the end of a background command.
    pub fn background_command_ended(&mut self, call_id: CallId, over: UnrecordedEnd) {
        let Some(command) = self.state.running_command(call_id).cloned() else { return };
        let UnrecordedEnd { state, end, blob } = over;
        self.plan.blobs.extend(blob);
        self.end_command(&command, state, end);
    }

    fn end_command(&mut self, command: &BackgroundTask, state: BackgroundState, end: BackgroundEnd) {
        let turn_id = self.state.turn.as_ref().map(|turn| turn.id).filter(|id| command.turn_id == Some(*id));
        let (call_id, bash_id) = (command.known.call_id, command.known.bash_id);
        self.plan.prune_deltas_of.push(command.opened);
        let event = Event::ToolBackground { call_id, bash_id, state, command: None, end: Some(end) };
        self.push(command.item_id, turn_id, event);
    }

    /// Stops the commands that end with the turn that is being aborted. When a session is killed, it stops all.
    pub fn stop_aborted_commands(&mut self) {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.stop.is_aborting) else { return };
        let (ending, turn_id) = (turn.stop.is_ending, turn.id);
        let by = if ending { KilledBy::Session } else { KilledBy::Abort };
        self.stop_commands(by, |it| ending || it.turn_id == Some(turn_id));
    }

    /// Stops the running commands that `is_selected` selects.
    pub fn stop_commands(&mut self, by: KilledBy, is_selected: impl Fn(&BackgroundTask) -> bool) {
        let running = self.state.commands.iter().filter(|it| it.is_running() && is_selected(it));
        let calls: Vec<CallId> = running.map(|it| it.known.call_id).collect();
        if !calls.is_empty() {
            self.add_effect(Effect::StopCommands { calls, by });
        }
    }

    /// Closes all commands after a restart, because none of them runs any more.
    pub fn close_lost_commands(&mut self) {
        for command in self.state.commands.clone().iter().filter(|it| it.is_running()) {
            let output = command.output.text();
            let blob = (!output.is_empty()).then(|| Blob::text(&output));
            let end = BackgroundEnd {
                output_bytes: output.len() as u64,
                output_blob: blob.as_ref().map(BlobRef::from),
                note: Some(model_texts::COMMAND_LOST.into()),
                duration_ms: self.now.at.since(command.known.started_at_ms),
                ..BackgroundEnd::default()
            };
            self.plan.blobs.extend(blob);
            self.end_command(command, BackgroundState::Lost, end);
        }
    }
}
