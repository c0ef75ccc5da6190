//! Hooks: commands of the user that run on events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The events on which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before a tool call runs, after the rules judged it.
    PreToolUse,
    /// After a tool call ended.
    PostToolUse,
    /// Before a user's input is accepted.
    UserPromptSubmit,
    /// When the system prompt of a session is built.
    SessionStart,
    /// After a turn ended with success.
    Stop,
    /// Before a summary replaces the conversation.
    PreCompact,
    /// When a permission request or a question waits for the user.
    Notification,
    /// After the turn of a sub-agent ended with success.
    SubagentStop,
}

impl HookEvent {
    /// All events.
    pub const ALL: [HookEvent; 8] = [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::UserPromptSubmit,
        HookEvent::SessionStart,
        HookEvent::Stop,
        HookEvent::PreCompact,
        HookEvent::Notification,
        HookEvent::SubagentStop,
    ];

    /// The name in the configuration and on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "pre_tool_use",
            HookEvent::PostToolUse => "post_tool_use",
            HookEvent::UserPromptSubmit => "user_prompt_submit",
            HookEvent::SessionStart => "session_start",
            HookEvent::Stop => "stop",
            HookEvent::PreCompact => "pre_compact",
            HookEvent::Notification => "notification",
            HookEvent::SubagentStop => "subagent_stop",
        }
    }

    /// The name in `.claude/settings.json`
    /// (<https://docs.anthropic.com/en/docs/claude-code/hooks>).
    #[must_use]
    pub const fn claude_name(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::UserPromptSubmit => "UserPromptSubmit",
            HookEvent::SessionStart => "SessionStart",
            HookEvent::Stop => "Stop",
            HookEvent::PreCompact => "PreCompact",
            HookEvent::Notification => "Notification",
            HookEvent::SubagentStop => "SubagentStop",
        }
    }
}

/// The decision of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// The call may run, unless a rule denies it.
    Allow,
    /// The user decides.
    Ask,
    /// The call or the input is refused. After `stop`, the model continues.
    Deny,
}

/// One run of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// The event.
    pub event: HookEvent,
    /// The command of the hook.
    pub command: String,
    /// Its decision, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<HookDecision>,
    /// The reason that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Why it gave no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
