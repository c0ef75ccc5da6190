//! Events of the session as a whole: settings, status, context, history, and helper calls.

use std::path::PathBuf;
use std::sync::Arc;

use crate::request::vision::replace_media;
use crate::state::transcript::Transcript;
use crate::state::{Activity, Helper, State};
use types::event::{Envelope, Event, Purpose, UsageReason};
use types::history::RewoundHistory;
use types::ledger::ModelUsage;
use types::message::Block;
use types::reminder::{FileVersion, ReminderKind};
use types::session::SessionState;
use types::time::Timestamp;

impl State {
    pub(super) fn apply_session_event(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::SessionCreated(spec) => {
                self.cwd = PathBuf::from(&spec.cwd);
                self.created_at = envelope.at_ms;
                self.reported_day = envelope.at_ms.day();
                self.spec = Arc::new((**spec).clone());
            }
            Event::SessionUpdated { title, titled_by, options } => {
                // The system prompt names the model, and a provider's cache is not shared between models.
                let is_other_model = options.model.as_ref().is_some_and(|model| *model != self.spec.model);
                self.is_stale |= is_other_model || options.change_system_prompt();
                let spec = Arc::make_mut(&mut self.spec);
                if let Some(title) = title {
                    spec.title.clone_from(title);
                    self.titled_by = *titled_by;
                }
                spec.set(options);
                if let (Some(mode), Some(turn)) = (options.mode, &mut self.turn) {
                    turn.settings.mode = mode;
                }
            }
            Event::SessionStatus { state, requires } => {
                self.status = *state;
                self.requires = *requires;
            }
            Event::SessionPromptBuilt { system, instructions, skipped_instructions, .. } => {
                self.skipped_instructions.clone_from(skipped_instructions);
                self.is_cleared = false;
                self.system = Some(Arc::from(system.as_str()));
                let versions = |files: &Vec<FileVersion>| {
                    Arc::new(files.iter().map(|file| (file.path.clone(), file.digest.clone())).collect())
                };
                self.instructions = instructions.as_ref().map(versions);
            }
            Event::TodoUpdated { todos } => {
                self.todos = Arc::new(todos.clone());
                if let Some(turn) = &mut self.turn {
                    turn.steps_since_todo = 0;
                }
            }
            Event::McpTools(catalog) => self.mcp = Arc::new(self.mcp.with_catalog(catalog)),
            Event::SessionCleared {} => self.clear_conversation_state(),
            Event::ReminderAdded { kind, text, files } => {
                self.transcript.push_user_block(Block::Text { text: text.clone() });
                self.note_reminder(*kind, files, envelope.at_ms);
            }
            Event::TurnOutputRejected { attempt, text, .. } => {
                self.transcript.push_user_block(Block::Text { text: text.clone() });
                if let Some(turn) = &mut self.turn {
                    turn.outcome.rejected_outputs = *attempt;
                }
            }
            Event::WorkspaceTrustRequired { digest, .. } => self.trust_asked = Some(digest.clone()),
            Event::SessionForked { context_tokens, .. } => {
                self.has_failed = false;
                // The source session spent the time and the money, so the fork counts from zero.
                (self.spent, self.worked_ms, self.title_tries) = (ModelUsage::default(), 0, 0);
                self.context_tokens = *context_tokens;
            }
            Event::SessionRewound(rewound) => {
                let RewoundHistory { kept_messages, messages, reads, cwd, context_tokens, todos, .. } =
                    rewound;
                self.transcript.truncate(usize::try_from(*kept_messages).unwrap_or(usize::MAX));
                messages.iter().for_each(|message| self.transcript.push(message.clone()));
                // The provider stored the longer history, so the next request must send the whole conversation.
                self.continues = None;
                let reads = reads.iter().map(|read| (read.path.clone(), read.clone()));
                self.reads = Arc::new(reads.collect());
                if let Some(todos) = todos {
                    self.todos = Arc::new(todos.clone());
                }
                self.reported_files = Arc::default();
                self.compaction_failures = 0;
                self.cwd = PathBuf::from(cwd);
                self.context_tokens = *context_tokens;
                self.last_line = self.transcript.last_line();
            }
            Event::SessionArchived { archived } => self.archived = *archived,
            Event::SessionEnded { .. } => {
                self.status = SessionState::Ended;
                self.requires = None;
                self.queue.clear();
                self.turn = None;
            }
            Event::HistoryRepaired { kept_messages, messages, .. } => {
                self.transcript.truncate(usize::try_from(*kept_messages).unwrap_or(usize::MAX));
                // The provider stored the history before its repair, so the next request must send the
                // whole conversation.
                self.continues = None;
                messages.iter().for_each(|message| self.transcript.push(message.clone()));
            }
            Event::HelperStarted { purpose, model, model_snapshot, max_usage } => {
                let (token, purpose, model) = (envelope.seq, *purpose, model.clone());
                self.title_tries += u32::from(purpose == Purpose::Title);
                self.helper = Some(Helper {
                    token,
                    purpose,
                    model,
                    model_snapshot: *model_snapshot,
                    max_usage: *max_usage,
                });
            }
            Event::HelperCompleted { .. } => self.helper = None,
            Event::UsageBooked {
                purpose: Some(Purpose::Compaction), reason: UsageReason::Helper, ..
            } => {
                if let Some(turn) = &mut self.turn {
                    // The summary call counts as a model call of the turn.
                    turn.model_call.unanswered_attempts += 1;
                    turn.totals.model_calls += 1;
                }
            }
            Event::UsageBooked { purpose: Some(_), .. } => {}
            Event::UsageBooked { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.model_call.unanswered_attempts += 1;
                    // The attempt has ended. Leaving `Calling` prevents a second booking.
                    if matches!(turn.activity, Activity::Calling { .. }) {
                        turn.activity = Activity::Waiting { token: envelope.seq, wait: None };
                    }
                }
            }
            Event::MediaWithheld { .. } => {
                self.transcript.edit_messages(replace_media);
                // The conversation stored by the provider may contain the refused media.
                self.continues = None;
            }
            _ => {}
        }
    }
}

impl State {
    /// Resets the conversation. The next turn builds the system prompt again.
    fn clear_conversation_state(&mut self) {
        self.transcript = Transcript::default();
        self.continues = None;
        self.context_tokens = 0;
        self.reads = Arc::default();
        self.todos = Arc::default();
        self.reported_files = Arc::default();
        self.compaction_failures = 0;
        self.reported_day = self.created_at.day();
        self.is_stale = true;
        self.is_cleared = true;
        if !self.hooks.context.is_empty() {
            Arc::make_mut(&mut self.hooks).context.clear();
        }
    }

    /// Records the content of a reminder, so that the model receives each reminder only once.
    fn note_reminder(&mut self, kind: ReminderKind, files: &[FileVersion], at: Timestamp) {
        let versions = files.iter().map(|file| (file.path.clone(), file.digest.clone()));
        match kind {
            ReminderKind::NewDay => self.reported_day = at.day(),
            ReminderKind::FilesChanged => Arc::make_mut(&mut self.reported_files).extend(versions),
            ReminderKind::InstructionsChanged => {
                let known = Arc::make_mut(self.instructions.get_or_insert_default());
                known.extend(versions);
                known.retain(|_, digest| !digest.is_empty());
            }
            // The summary may not contain the date.
            ReminderKind::Compacted => self.reported_day = self.created_at.day(),
            ReminderKind::SubagentsAborted => self.aborted_subagents = Arc::default(),
            ReminderKind::RepeatedCall => {
                if let Some(row) = self.turn.as_mut().and_then(|turn| turn.repeated.as_mut()) {
                    row.is_reminded = true;
                }
            }
            ReminderKind::SessionStart
            | ReminderKind::PlanMode
            | ReminderKind::SeveralMatches
            | ReminderKind::ServersFailed
            | ReminderKind::TodoEmpty
            | ReminderKind::TodoStale => {}
        }
    }
}
