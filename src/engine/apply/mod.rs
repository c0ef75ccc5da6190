//! Applies events. No other code changes the state, and applying cannot refuse an event. Each file
//! holds one family of events.

mod background;
mod compaction;
mod message;
mod permission;
mod queue;
mod session;
mod subagents;
mod tool;
mod turn;

use std::sync::Arc;

use super::settings::Settings;
use super::state::{Engine, State};
use types::event::{Envelope, Event};
use types::ids::{SessionId, TurnId};
use types::ledger::UsageRecord;

// Most rows of a journal describe the course of a turn, so loading a session may skip them. A property test
// checks that skipping makes no difference. A kind that becomes relevant later must be removed from these lists.

/// Kinds whose rows at or before the last `turn.completed` change nothing.
pub const TRANSIENT_KINDS: &[&str] = &[
    "mcp.status",
    "session.attached",
    "session.detached",
    "config.reloaded",
    "hook.completed",
    "turn.phase",
    "turn.prompt_built",
    "turn.parked",
    "turn.resumed",
    "turn.steered",
    "command.completed",
    "message.started",
    "message.block_started",
    "message.block_completed",
    "message.text_delta",
    "message.thinking_delta",
    "message.tool_input_delta",
    "tool.status",
    "tool.started",
    "tool.blocked",
    "feedback.request",
    "tool.summary",
    "file.checkpointed",
    "file.changed",
    "permission.requested",
    "permission.expired",
    "question.requested",
    "question.resolved",
    "message.tombstone",
    "retry",
    "heartbeat",
    "stream.idle",
    "budget.warning",
    "model.switched",
    "notice",
    "error",
];

/// Kinds of which only the newest row at or before the last `turn.completed` counts.
pub const LATEST_ONLY_KINDS: &[&str] =
    &["session.status", "session.prompt_built", "mcp.tools", "workspace.trust_required", "hooks.status"];

impl Engine {
    /// Applies a committed event to the state.
    pub fn apply(&mut self, envelope: &Envelope) {
        self.state.apply(envelope);
    }

    /// Applies the events of the journal in order; a restart computes the state this way.
    pub fn replay<'a>(
        session_id: SessionId,
        settings: Arc<Settings>,
        journal: impl IntoIterator<Item = &'a Envelope>,
    ) -> Self {
        let mut engine = Engine::new(session_id, settings);
        for envelope in journal {
            engine.apply(envelope);
        }
        engine
    }
}

impl State {
    pub fn apply(&mut self, envelope: &Envelope) {
        self.next_seq = self.next_seq.max(envelope.seq + 1);
        if let Some(turn) = self.turn.as_mut().filter(|turn| envelope.turn_id == Some(turn.id)) {
            turn.restart.parked = matches!(envelope.event, Event::TurnParked {});
        }
        if envelope.event.needs_sync() {
            self.updated_at = envelope.at_ms;
        }
        if let Some(booking) = UsageRecord::from_envelope(envelope) {
            self.book_usage(&booking, envelope.turn_id);
        }
        match &envelope.event {
            event if event.shows_request_of().is_some() => self.apply_subagent_request(envelope),
            Event::SessionCreated(_)
            | Event::SessionUpdated { .. }
            | Event::SessionStatus { .. }
            | Event::SessionPromptBuilt { .. }
            | Event::SessionCleared {}
            | Event::ReminderAdded { .. }
            | Event::TurnOutputRejected { .. }
            | Event::SessionEnded { .. }
            | Event::SessionArchived { .. }
            | Event::SessionForked { .. }
            | Event::SessionRewound(_)
            | Event::WorkspaceTrustRequired { .. }
            | Event::HistoryRepaired { .. }
            | Event::MediaWithheld { .. }
            | Event::HelperStarted { .. }
            | Event::HelperCompleted { .. }
            | Event::TodoUpdated { .. }
            | Event::McpTools(_)
            | Event::UsageBooked { .. } => self.apply_session_event(envelope),
            Event::TurnQueued { .. }
            | Event::TurnDequeued { .. }
            | Event::TurnQueueUpdated { .. }
            | Event::TurnQueueMoved { .. } => self.apply_queue_event(envelope),
            Event::TurnStarted { .. }
            | Event::TurnPromptBuilt { .. }
            | Event::TurnCompleted { .. }
            | Event::Notice { .. } => self.apply_turn_border(envelope),
            Event::TurnPhase { .. }
            | Event::TurnResumed { .. }
            | Event::TurnSteered { .. }
            | Event::TurnAborting { .. }
            | Event::ClockChanged { .. }
            | Event::CommandCompleted { .. }
            | Event::QuestionRequested { .. }
            | Event::QuestionResolved { .. }
            | Event::Retry { .. }
            | Event::Heartbeat { .. }
            | Event::BudgetWarning { .. }
            | Event::ToolSummary { .. }
            | Event::ModelSwitched { .. }
            | Event::HookCompleted { .. }
            | Event::Error { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.apply(envelope, &self.subagents);
                }
            }
            Event::MessageStarted { .. }
            | Event::MessageBlockStarted { .. }
            | Event::MessageTextDelta { .. }
            | Event::MessageThinkingDelta { .. }
            | Event::MessageToolInputDelta { .. }
            | Event::MessageBlockCompleted { .. } => self.apply_stream_event(envelope),
            Event::MessageCompleted { .. }
            | Event::MessageTombstone { .. }
            | Event::FeedbackRequested { .. }
            | Event::FeedbackCompleted { .. } => {
                self.apply_message_event(envelope);
            }
            Event::CompactStarted { .. } | Event::CompactCompleted { .. } => self.apply_compaction(envelope),
            Event::ToolRequested { .. }
            | Event::ToolStatus { .. }
            | Event::ToolStarted { .. }
            | Event::ToolBlocked { .. }
            | Event::ToolProgress { .. }
            | Event::ToolCompleted { .. } => {
                self.apply_tool_search(&envelope.event);
                self.apply_tool_event(envelope);
            }
            Event::ToolBackground { .. } => self.apply_background(envelope),
            Event::JobEvent { event } => self.job_seq = event.seq,
            Event::HooksStatus { status } => self.hooks = Arc::new(status.clone()),
            Event::PermissionRuleAdded { .. } | Event::PermissionRuleRemoved { .. } => {
                self.apply_rule_event(&envelope.event);
            }
            Event::SubagentStarted { .. }
            | Event::SubagentCompleted { .. }
            | Event::SessionInherited { .. } => {
                self.apply_subagent_event(envelope);
            }
            Event::PermissionRequested { .. }
            | Event::PermissionResolved { .. }
            | Event::PermissionExpired { .. } => self.apply_permission_event(envelope),
            // These events report something that the state does not need.
            Event::McpStatus(_)
            | Event::SessionAttached { .. }
            | Event::SessionDetached { .. }
            | Event::ConfigReloaded { .. }
            | Event::TurnParked {}
            | Event::StreamIdle { .. }
            | Event::FileCheckpointed { .. }
            | Event::FileChanged { .. } => {}
        }
    }

    /// Session, turn and model receive the same usage record, so that their sums agree.
    fn book_usage(&mut self, booking: &UsageRecord, turn_id: Option<TurnId>) {
        self.spent.add_record(booking);
        // The usage of a helper call counts for the session only.
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn_id == Some(turn.id)) {
            turn.totals.spent.add_record(booking);
            turn.totals.usage_by_model.entry(booking.model.clone()).or_default().add_record(booking);
        }
    }
}
