//! Background tasks: they belong to the session, not to the turn that started them. The journal records the
//! start and the end of each. Loading a session closes the tasks of a dead daemon.

use std::sync::Arc;

use crate::engine::decide::plan::{Effect, PlanBuilder};
use crate::engine::request::model_texts;
use crate::engine::state::output_excerpt::OutputExcerpt;
use crate::engine::state::{Engine, Stage, State};
use crate::types::background::{
    BackgroundCommand, BackgroundEnd, BackgroundRead, BackgroundState, BashId, KilledBy, Over,
};
use crate::types::blob::{Blob, BlobRef};
use crate::types::event::{Envelope, Event};
use crate::types::ids::{CallId, ItemId, Seq, TurnId};
use crate::types::tool::{Subject, ToolOutcome};

/// Number of ended tasks that the session remembers, because the model may request their output.
const MAX_ENDED_TASKS: usize = 32;
/// Maximum characters of a command in its event; `tool.requested` holds the full command.
const MAX_SHOWN_CHARS: usize = 200;

/// State of one background task.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct BackgroundTaskState {
    pub known: BackgroundCommand,
    /// The turn and the item of the call that started it.
    pub turn_id: Option<TurnId>,
    pub item_id: Option<ItemId>,
    /// Seq of the event that started it; its progress rows belong to that event.
    pub opened: Seq,
    /// Its output while it runs.
    pub said: OutputExcerpt,
}

impl BackgroundTaskState {
    pub fn is_running(&self) -> bool {
        self.known.state == BackgroundState::Running
    }
}

impl State {
    pub fn apply_background(&mut self, envelope: &Envelope) {
        let Event::ToolBackground { call_id, bash_id, state, command, end } = &envelope.event else { return };
        if *state == BackgroundState::Running {
            self.command_count = self.command_count.max(bash_id.0);
            self.commands.push(Arc::new(BackgroundTaskState {
                known: BackgroundCommand {
                    bash_id: *bash_id,
                    call_id: *call_id,
                    command: command.clone().unwrap_or_default(),
                    state: *state,
                    started_at_ms: envelope.at_ms,
                    read_bytes: 0,
                    end: None,
                },
                turn_id: envelope.turn_id,
                item_id: envelope.item_id,
                opened: envelope.seq,
                said: OutputExcerpt::default(),
            }));
            return;
        }
        if let Some(command) = self.commands.iter_mut().find(|it| it.known.bash_id == *bash_id) {
            let command = Arc::make_mut(command);
            (command.known.state, command.known.end) = (*state, end.clone());
            command.said = OutputExcerpt::default();
        }
        let over = self.commands.iter().filter(|it| !it.is_running()).count();
        let mut excess = over.saturating_sub(MAX_ENDED_TASKS);
        self.commands.retain(|it| {
            let goes = excess > 0 && !it.is_running();
            excess -= usize::from(goes);
            !goes
        });
    }

    pub fn heard_command(&mut self, call_id: CallId, text: &str) {
        let running = self.commands.iter_mut().find(|it| it.known.call_id == call_id && it.is_running());
        if let Some(command) = running {
            Arc::make_mut(command).said.push(text);
        }
    }

    pub fn record_background_read(&mut self, read: BackgroundRead) {
        if let Some(command) = self.commands.iter_mut().find(|it| it.known.bash_id == read.bash_id) {
            let known = &mut Arc::make_mut(command).known;
            known.read_bytes = known.read_bytes.max(read.bytes);
        }
    }

    /// The running command that the call `call_id` started.
    pub fn running_command(&self, call_id: CallId) -> Option<&BackgroundTaskState> {
        let mut running = self.commands.iter().filter(|it| it.is_running());
        running.find(|it| it.known.call_id == call_id).map(|it| &**it)
    }
}

impl Engine {
    /// Known background commands: all running ones, and the newest ended ones.
    #[must_use]
    pub fn commands(&self) -> Vec<BackgroundCommand> {
        self.state.commands.iter().map(|it| it.known.clone()).collect()
    }

    /// Calls that started the running commands.
    #[must_use]
    pub fn running_commands(&self) -> Vec<CallId> {
        let running = self.state.commands.iter().filter(|it| it.is_running());
        running.map(|it| it.known.call_id).collect()
    }

    /// Running commands that end with the turn that is being aborted; the turn ends after them.
    #[must_use]
    pub fn aborted_commands(&self) -> Vec<CallId> {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.aborting) else { return Vec::new() };
        let goes =
            |it: &&Arc<BackgroundTaskState>| it.is_running() && (turn.ending || it.turn_id == Some(turn.id));
        self.state.commands.iter().filter(goes).map(|it| it.known.call_id).collect()
    }
}

impl PlanBuilder<'_> {
    /// Refuses a call that would exceed the limit of background commands. Returns `false` if no call does.
    pub fn refuse_over_limit(&mut self) -> bool {
        let most = self.engine.settings.background_commands;
        let running: Vec<BashId> =
            self.state.commands.iter().filter(|it| it.is_running()).map(|it| it.known.bash_id).collect();
        if running.len() < most {
            return false;
        }
        let is_background = |subject: &Subject| matches!(subject, Subject::Bash { background: true, .. });
        let next = self.startable().into_iter().find(|it| is_background(&it.prepared.subject));
        let Some(next) = next else { return false };
        let outcome =
            ToolOutcome::failed("too_many_background", model_texts::too_many_commands(most, &running));
        self.complete(next.call.call_id, outcome, 0);
        true
    }

    /// Records that a command continues in the background after its call returned. Returns the text for the
    /// model.
    pub(in crate::engine) fn command_began(&mut self, call_id: CallId) -> Option<String> {
        let call = self.state.call(call_id).filter(|call| matches!(call.stage, Stage::Running { .. }))?;
        let item_id = call.item_id;
        let input = call.effective();
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
    pub fn command_over(&mut self, call_id: CallId, over: Over) {
        let Some(command) = self.state.running_command(call_id).cloned() else { return };
        let Over { state, end, blob } = over;
        self.plan.blobs.extend(blob);
        self.end_command(&command, state, end);
    }

    fn end_command(&mut self, command: &BackgroundTaskState, state: BackgroundState, end: BackgroundEnd) {
        let turn_id = self.state.turn.as_ref().map(|turn| turn.id).filter(|id| command.turn_id == Some(*id));
        let (call_id, bash_id) = (command.known.call_id, command.known.bash_id);
        self.plan.prune_deltas_of.push(command.opened);
        let event = Event::ToolBackground { call_id, bash_id, state, command: None, end: Some(end) };
        self.push(command.item_id, turn_id, event);
    }

    /// Stops the commands that end with the turn that is being aborted. When a session is killed, it stops all.
    pub fn stop_aborted_commands(&mut self) {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.aborting) else { return };
        let (ending, turn_id) = (turn.ending, turn.id);
        let by = if ending { KilledBy::Session } else { KilledBy::Abort };
        self.stop_commands(by, |it| ending || it.turn_id == Some(turn_id));
    }

    /// Stops the running commands that `meant` selects.
    pub fn stop_commands(&mut self, by: KilledBy, meant: impl Fn(&BackgroundTaskState) -> bool) {
        let running = self.state.commands.iter().filter(|it| it.is_running() && meant(it));
        let calls: Vec<CallId> = running.map(|it| it.known.call_id).collect();
        if !calls.is_empty() {
            self.effect(Effect::StopCommands { calls, by });
        }
    }

    /// Closes all commands after a restart, because none of them runs any more.
    pub fn close_lost_commands(&mut self) {
        for command in self.state.commands.clone().iter().filter(|it| it.is_running()) {
            let said = command.said.text();
            let blob = (!said.is_empty()).then(|| Blob::text(&said));
            let end = BackgroundEnd {
                output_bytes: said.len() as u64,
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
