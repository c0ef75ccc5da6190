//! Hooks: commands of the user that run on events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The events on which hooks run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    pub fn name(self) -> &'static str {
        self.into()
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

/// `kind` of the notice about entries and files of hooks that cannot be used. Its text lists all of them.
pub const PROBLEM_NOTICE: &str = "hook_problem";
/// `kind` of the notice that all hooks can be used again.
pub const REPAIRED_NOTICE: &str = "hooks_repaired";
/// `kind` of the notice that a hook ended the turn.
pub const STOPPED_NOTICE: &str = "hook_stopped";

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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRun {
    /// The event.
    pub event: HookEvent,
    /// The command of the hook.
    pub command: String,
    /// Its decision, if it made one.
    pub decision: Option<HookDecision>,
    /// The reason that it gave.
    pub reason: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Why it gave no result.
    pub error: Option<String>,
    /// Its text for the user.
    pub message: Option<String>,
}

/// What hooks left behind in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookStatus {
    /// The entries and files that cannot be used, each with file, line and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The hook that failed last; absent if it has run well since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<HookFailure>,
    /// Texts of hooks for the model, which the next input contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

/// The failure of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookFailure {
    /// The event.
    pub event: HookEvent,
    /// The command of the hook.
    pub command: String,
    /// Why it failed.
    pub error: String,
}

impl HookRun {
    /// A run without a result yet.
    #[must_use]
    pub fn new(event: HookEvent, command: &str) -> Self {
        Self {
            event,
            command: command.to_owned(),
            decision: None,
            reason: None,
            duration_ms: 0,
            error: None,
            message: None,
        }
    }
}
