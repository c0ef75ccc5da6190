//! Event kinds that do not affect the state after their turn is completed. Most rows of a journal describe the
//! course of a turn, so loading a session may skip them. A property test checks that skipping makes no
//! difference. A kind that becomes relevant later must be removed from these lists.

/// Kinds whose rows at or before the last `turn.completed` change nothing.
pub const TRANSIENT_KINDS: &[&str] = &[
    "session.attached",
    "session.detached",
    "config.reloaded",
    "turn.phase",
    "turn.parked",
    "turn.resumed",
    "turn.steered",
    "turn.aborting",
    "message.started",
    "message.block_started",
    "message.block_completed",
    "message.text_delta",
    "message.thinking_delta",
    "message.tool_input_delta",
    "tool.status",
    "tool.started",
    "tool.blocked",
    "file.changed",
    "permission.requested",
    "permission.expired",
    "question.requested",
    "question.resolved",
    "message.tombstone",
    "retry",
    "heartbeat",
    "stream.idle",
    "model.switched",
    "notice",
    "error",
];

/// Kinds of which only the newest row at or before the last `turn.completed` counts.
pub const LATEST_ONLY_KINDS: &[&str] =
    &["session.status", "session.prompt_built", "workspace.trust_required"];
