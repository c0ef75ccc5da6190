//! Background tasks: they belong to the session, not to the turn that started them. The journal records the
//! start and the end of each.

use std::sync::Arc;

use crate::engine::state::output_excerpt::OutputExcerpt;
use crate::engine::state::{Engine, State};
use crate::types::background::{BackgroundCommand, BackgroundRead, BackgroundState};
use crate::types::event::{Envelope, Event};
use crate::types::ids::{CallId, ItemId, Seq, TurnId};

/// Number of ended tasks that the session remembers, because the model may request their output.
const MAX_ENDED_TASKS: usize = 32;
/// State of one background task.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct BackgroundTask {
    pub known: BackgroundCommand,
    /// The turn and the item of the call that started it.
    pub turn_id: Option<TurnId>,
    pub item_id: Option<ItemId>,
    /// Seq of the event that started it; its progress rows belong to that event.
    pub opened: Seq,
    /// Its output while it runs.
    pub said: OutputExcerpt,
}

impl BackgroundTask {
    pub fn is_running(&self) -> bool {
        self.known.state == BackgroundState::Running
    }
}

impl State {
    pub fn apply_background(&mut self, envelope: &Envelope) {
        let Event::ToolBackground { call_id, bash_id, state, command, end } = &envelope.event else { return };
        if *state == BackgroundState::Running {
            self.command_count = self.command_count.max(bash_id.0);
            self.commands.push(Arc::new(BackgroundTask {
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

    pub fn told_of_command(&mut self, told: BackgroundRead) {
        if let Some(command) = self.commands.iter_mut().find(|it| it.known.bash_id == told.bash_id) {
            let known = &mut Arc::make_mut(command).known;
            known.read_bytes = known.read_bytes.max(told.bytes);
        }
    }

    /// The running command that the call `call_id` started.
    pub fn running_command(&self, call_id: CallId) -> Option<&BackgroundTask> {
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
            |it: &&Arc<BackgroundTask>| it.is_running() && (turn.ending || it.turn_id == Some(turn.id));
        self.state.commands.iter().filter(goes).map(|it| it.known.call_id).collect()
    }
}
