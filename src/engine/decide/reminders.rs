//! Adds reminders to the conversation, and waits for the check of the disk that some of them need.

use crate::decide::plan::PlanBuilder;
use crate::request::reminders::{self, Reminder};
use crate::state::Activity;
use types::event::Event;
use types::ids::TurnId;
use types::mcp::McpStatus;
use types::reminder::{FileVersion, ReminderKind};

/// The tool that writes the todo list.
const TODO_WRITE: &str = "TodoWrite";

impl PlanBuilder<'_> {
    /// Adds the reminders for a user's message. `is_first`: it begins the conversation.
    pub fn remind_of_message(&mut self, is_first: bool) {
        let due = reminders::of_message(&self.state, self.now.at, is_first);
        self.remind(due);
    }

    /// Reports files that changed on disk and continues the turn that waits for this check.
    pub fn context_checked(
        &mut self,
        turn_id: TurnId,
        changed_files: Vec<FileVersion>,
        instructions: Option<&[FileVersion]>,
    ) {
        let is_waiting = self.state.turn.as_ref().is_some_and(|turn| {
            turn.id == turn_id
                && turn.activity == Activity::Context
                && turn.restart.hold.is_none()
                && !turn.is_expanding
        });
        if !is_waiting || self.is_aborting() || self.state.system.is_none() {
            return;
        }
        let due = reminders::of_files(&self.state, changed_files, instructions);
        self.remind(due);
        self.deliver_steered();
        self.call_model();
    }

    /// Adds the reminder about edits that were refused because their text occurs several times.
    /// Precondition: all calls of the message are done.
    pub fn remind_of_matches(&mut self) {
        let due = reminders::of_matches(&self.state);
        self.remind(due);
    }

    /// Adds the reminder about a todo list that is empty or stale, if the model may write one.
    pub fn remind_of_todos(&mut self) {
        if !self.is_offered(TODO_WRITE) {
            return;
        }
        let due = reminders::of_todos(&self.state);
        self.remind(due);
    }

    /// Adds the reminder about MCP servers that are not available.
    pub fn remind_of_servers(&mut self, statuses: &[McpStatus]) {
        let due = reminders::of_servers(statuses);
        self.remind(due);
    }

    /// Adds the reminder after a summary replaced the conversation.
    pub fn remind_of_compaction(&mut self) {
        let due = reminders::of_compaction(&self.state);
        self.remind([due]);
    }

    /// Adds the reminder about a repeated call.
    pub fn remind_of_call(&mut self, text: Option<String>) {
        self.remind(text.map(|text| Reminder { kind: ReminderKind::RepeatedCall, text, files: Vec::new() }));
    }

    fn remind(&mut self, due: impl IntoIterator<Item = Reminder>) {
        if self.state.spec.ablation.reminders {
            return;
        }
        for Reminder { kind, text, files } in due {
            self.push_turn(Event::ReminderAdded { kind, text, files });
        }
    }
}
