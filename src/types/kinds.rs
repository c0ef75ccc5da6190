//! Kinds of events: their names on the wire, which rows are pruned, and which are synced to disk.

use super::event::Event;
use super::ids::SessionId;

impl Event {
    /// The `type` on the wire, the value of the `kind` column, and the heading in the reference.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Event::SessionCreated(_) => "session.created",
            Event::SessionUpdated { .. } => "session.updated",
            Event::SessionStatus { .. } => "session.status",
            Event::SessionPromptBuilt { .. } => "session.prompt_built",
            Event::McpStatus(_) => "mcp.status",
            Event::McpTools(_) => "mcp.tools",
            Event::SessionAttached { .. } => "session.attached",
            Event::SessionDetached { .. } => "session.detached",
            Event::ConfigReloaded { .. } => "config.reloaded",
            Event::ClockChanged { .. } => "clock.changed",
            Event::SessionEnded { .. } => "session.ended",
            Event::SessionCleared {} => "session.cleared",
            Event::CommandCompleted { .. } => "command.completed",
            Event::ReminderAdded { .. } => "reminder.added",
            Event::TurnOutputRejected { .. } => "turn.output_rejected",
            Event::WorkspaceTrustRequired { .. } => "workspace.trust_required",
            Event::TurnQueued { .. } => "turn.queued",
            Event::TurnDequeued { .. } => "turn.dequeued",
            Event::TurnQueueUpdated { .. } => "turn.queue_updated",
            Event::TurnQueueMoved { .. } => "turn.queue_moved",
            Event::SessionForked { .. } => "session.forked",
            Event::SessionRewound(_) => "session.rewound",
            Event::SessionArchived { .. } => "session.archived",
            Event::TurnStarted { .. } => "turn.started",
            Event::TurnPromptBuilt { .. } => "turn.prompt_built",
            Event::TurnPhase { .. } => "turn.phase",
            Event::TurnParked {} => "turn.parked",
            Event::TurnResumed { .. } => "turn.resumed",
            Event::TurnSteered { .. } => "turn.steered",
            Event::TurnAborting { .. } => "turn.aborting",
            Event::TurnCompleted { .. } => "turn.completed",
            Event::MessageStarted { .. } => "message.started",
            Event::MessageBlockStarted { .. } => "message.block_started",
            Event::MessageTextDelta { .. } => "message.text_delta",
            Event::MessageThinkingDelta { .. } => "message.thinking_delta",
            Event::MessageToolInputDelta { .. } => "message.tool_input_delta",
            Event::MessageBlockCompleted { .. } => "message.block_completed",
            Event::MessageCompleted { .. } => "message.completed",
            Event::FeedbackRequested { .. } => "feedback.request",
            Event::FeedbackCompleted { .. } => "feedback.completed",
            Event::MessageTombstone { .. } => "message.tombstone",
            Event::HistoryRepaired { .. } => "history.repaired",
            Event::CompactStarted { .. } => "compact.started",
            Event::CompactCompleted { .. } => "compact.completed",
            Event::UsageBooked { .. } => "usage",
            Event::HelperStarted { .. } => "helper.started",
            Event::HelperCompleted { .. } => "helper.completed",
            Event::ToolRequested { .. } => "tool.requested",
            Event::ToolStatus { .. } => "tool.status",
            Event::ToolStarted { .. } => "tool.started",
            Event::ToolBlocked { .. } => "tool.blocked",
            Event::ToolProgress { .. } => "tool.progress",
            Event::ToolCompleted { .. } => "tool.completed",
            Event::ToolSummary { .. } => "tool.summary",
            Event::ToolBackground { .. } => "tool.background",
            Event::FileCheckpointed { .. } => "file.checkpointed",
            Event::FileChanged { .. } => "file.changed",
            Event::TodoUpdated { .. } => "todo.updated",
            Event::PermissionRequested { .. } => "permission.requested",
            Event::PermissionResolved { .. } => "permission.resolved",
            Event::PermissionExpired { .. } => "permission.expired",
            Event::SubagentStarted { .. } => "subagent.started",
            Event::SubagentCompleted { .. } => "subagent.completed",
            Event::SessionInherited { .. } => "session.inherited",
            Event::HookCompleted { .. } => "hook.completed",
            Event::HooksStatus { .. } => "hooks.status",
            Event::PermissionRuleAdded { .. } => "permission.rule_added",
            Event::PermissionRuleRemoved { .. } => "permission.rule_removed",
            Event::QuestionRequested { .. } => "question.requested",
            Event::QuestionResolved { .. } => "question.resolved",
            Event::Retry { .. } => "retry",
            Event::Heartbeat { .. } => "heartbeat",
            Event::StreamIdle { .. } => "stream.idle",
            Event::BudgetWarning { .. } => "budget.warning",
            Event::ModelSwitched { .. } => "model.switched",
            Event::MediaWithheld { .. } => "media.withheld",
            Event::JobEvent { .. } => "job.event",
            Event::Notice { .. } => "notice",
            Event::Error { .. } => "error",
        }
    }

    /// Whether the row is pruned in the transaction that writes the event with the complete content: the kinds of
    /// [`DELTA_KINDS`](super::event::DELTA_KINDS).
    #[must_use]
    pub const fn is_delta(&self) -> bool {
        matches!(
            self,
            Event::MessageTextDelta { .. }
                | Event::MessageThinkingDelta { .. }
                | Event::MessageToolInputDelta { .. }
                | Event::ToolProgress { .. }
        )
    }

    /// Whether the row must survive a power loss. Such rows are synced to disk.
    #[must_use]
    pub const fn needs_sync(&self) -> bool {
        !(self.is_delta()
            || matches!(
                self,
                Event::TurnPhase { .. }
                    | Event::SessionAttached { .. }
                    | Event::SessionDetached { .. }
                    | Event::Heartbeat { .. }
                    | Event::JobEvent { .. }
                    | Event::StreamIdle { .. }
                    | Event::MessageStarted { .. }
                    | Event::MessageBlockStarted { .. }
                    | Event::MessageBlockCompleted { .. }
            ))
    }

    /// The session that waits, if the event only shows the request or question of a sub-agent in a session above it.
    #[must_use]
    pub const fn shows_request_of(&self) -> Option<SessionId> {
        match self {
            Event::PermissionRequested { request, .. } => request.child_session_id,
            Event::QuestionRequested { question } => question.child_session_id,
            Event::PermissionResolved { child_session_id, .. }
            | Event::PermissionExpired { child_session_id, .. }
            | Event::QuestionResolved { child_session_id, .. } => *child_session_id,
            _ => None,
        }
    }

    /// The event of a request or question as the sessions above the sub-agent `child` show it.
    #[must_use]
    pub fn for_child_session(mut self, child: SessionId) -> Self {
        match &mut self {
            Event::PermissionRequested { request, .. } => request.child_session_id = Some(child),
            Event::QuestionRequested { question } => question.child_session_id = Some(child),
            Event::PermissionResolved { child_session_id, .. }
            | Event::PermissionExpired { child_session_id, .. }
            | Event::QuestionResolved { child_session_id, .. } => *child_session_id = Some(child),
            _ => {}
        }
        self
    }
}
