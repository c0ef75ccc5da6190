//! What a settled turn leaves behind. Most rows of a journal say how a turn went, and nothing of that
//! is state any more once the turn is completed: whoever loads a session may pass over them. A law
//! holds that it makes no difference; a kind that begins to matter later must leave these lists.

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
pub const LATEST_ONLY_KINDS: &[&str] = &["session.status", "session.context", "workspace.trust_required"];
