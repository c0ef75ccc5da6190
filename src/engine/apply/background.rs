//! Events of background tasks.

use std::sync::Arc;

use crate::state::State;
use crate::state::background_task::BackgroundTask;
use crate::state::output_excerpt::OutputExcerpt;
use types::background::{BackgroundCommand, BackgroundRead, BackgroundState};
use types::event::{Envelope, Event};
use types::ids::CallId;

/// Number of ended tasks that the session remembers, because the model may request their output.
const MAX_ENDED_TASKS: usize = 32;
impl State {
    pub(super) fn apply_background(&mut self, envelope: &Envelope) {
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
                output: OutputExcerpt::default(),
            }));
            return;
        }
        if let Some(command) = self.commands.iter_mut().find(|it| it.known.bash_id == *bash_id) {
            let command = Arc::make_mut(command);
            (command.known.state, command.known.end) = (*state, end.clone());
            command.output = OutputExcerpt::default();
        }
        let over = self.commands.iter().filter(|it| !it.is_running()).count();
        let mut excess = over.saturating_sub(MAX_ENDED_TASKS);
        self.commands.retain(|it| {
            let goes = excess > 0 && !it.is_running();
            excess -= usize::from(goes);
            !goes
        });
    }

    pub(super) fn record_command_output(&mut self, call_id: CallId, text: &str) {
        let running = self.commands.iter_mut().find(|it| it.known.call_id == call_id && it.is_running());
        if let Some(command) = running {
            Arc::make_mut(command).output.push(text);
        }
    }

    pub(super) fn record_background_read(&mut self, read: BackgroundRead) {
        if let Some(command) = self.commands.iter_mut().find(|it| it.known.bash_id == read.bash_id) {
            let known = &mut Arc::make_mut(command).known;
            known.read_bytes = known.read_bytes.max(read.bytes);
        }
    }
}
