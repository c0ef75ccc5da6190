//! A session, a turn and an item as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::background::BackgroundCommand;
use super::blob::{Attachment, BlobRef, Cut};
use super::ids::{CallId, ItemId, PermissionId, Seq, SessionId, TurnId};
use super::ledger::ModelUsage;
use super::message::{Block, Role};
use super::model::StopReason;
use super::permission::{Mode, OnTimeout, RequestKind};
use super::sampling::Sampling;
use super::thinking::Thinking;
use super::time::Timestamp;
use super::tool::{ToolChoice, ToolStatus};
use super::usage::{Budgets, Usage};

/// State of a session (R13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Waits for a submit.
    #[default]
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for a person.
    RequiresAction,
    /// A turn stands still until somebody resumes it.
    Paused,
    /// The last turn could not be continued.
    Failed,
    /// Killed; takes no more input.
    Ended,
    /// Put away.
    Archived,
}

impl SessionState {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SessionState::Idle => "idle",
            SessionState::Running => "running",
            SessionState::RequiresAction => "requires_action",
            SessionState::Paused => "paused",
            SessionState::Failed => "failed",
            SessionState::Ended => "ended",
            SessionState::Archived => "archived",
        }
    }
}

/// What a session in `requires_action` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Requires {
    /// An answer to one or more permission requests.
    Permission,
    /// An answer to a question of the model.
    Question,
    /// A decision what to do about a tool call whose outcome is unknown.
    UnknownOutcome,
}

/// What becomes of a turn that a restart interrupts (S7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// It goes on by itself.
    #[default]
    Resume,
    /// It stands still until a person says what to do.
    Pause,
}

/// What is fixed when a session is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpec {
    /// The folder it works in, absolute and free of links.
    pub cwd: String,
    /// Short name for people.
    pub title: String,
    /// `PROVIDER/MODEL`; empty if none is configured.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// Made for unattended work.
    #[serde(default)]
    pub background: bool,
    /// Everything runs serially and every call asks (Q22).
    #[serde(default)]
    pub safe_mode: bool,
    /// What becomes of a turn that a restart interrupts; absent for what the configuration says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    #[serde(default)]
    pub budgets: Budgets,
    /// How much its models may think; absent for what their vendors made the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thinking: Option<Thinking>,
    /// How freely its models choose their words.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Takes the place of the default system prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system_prompt: Option<String>,
    /// Stands at the end of the system prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub append_system_prompt: Option<String>,
    /// The tools on offer.
    #[serde(skip_serializing_if = "ToolChoice::is_all", default)]
    pub tools: ToolChoice,
    /// Further folders that count as workspace, absolute and free of links.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub additional_dirs: Vec<String>,
}

/// A session as `session.list` and `session.get` return it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Its id.
    pub session_id: SessionId,
    /// Short name.
    pub title: String,
    /// What it is doing.
    pub state: SessionState,
    /// What it waits for, in `requires_action`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requires: Option<Requires>,
    /// Its folder.
    pub cwd: String,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// How much its models may think; absent for what their vendors made the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thinking: Option<Thinking>,
    /// How freely its models choose their words.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Made for unattended work.
    pub background: bool,
    /// When it was made.
    pub created_at_ms: Timestamp,
    /// When something last happened in it; clients that come and go do not count.
    pub updated_at_ms: Timestamp,
    /// Its newest event.
    pub last_seq: Seq,
    /// Tokens of all its model calls.
    pub usage: Usage,
    /// Cost so far; `null` if a price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known: what all of them cost at least.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// The ledger by `PROVIDER/MODEL`. Lists leave it out: `model.usage` has it for many sessions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelUsage>,
    /// Clients attached now.
    pub clients: u32,
    /// The turn that runs or waits, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn_id: Option<TurnId>,
    /// Last line that was said.
    #[serde(default)]
    pub last_line: String,
    /// Commands that run in the background now.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub background_commands: Vec<BackgroundCommand>,
}

/// Kinds of items (R13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// What a person submitted.
    UserMessage,
    /// What the model answered.
    AssistantMessage,
    /// A tool call with its result.
    ToolCall,
    /// What the daemon told the model by itself, for example to go on after the output limit.
    Notice,
}

impl ItemKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ItemKind::UserMessage => "user_message",
            ItemKind::AssistantMessage => "assistant_message",
            ItemKind::ToolCall => "tool_call",
            ItemKind::Notice => "notice",
        }
    }
}

/// Status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Still growing.
    Running,
    /// Whole.
    Completed,
    /// Cut short; what there is stays, and is not sent to the model again.
    Interrupted,
}

impl ItemStatus {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ItemStatus::Running => "running",
            ItemStatus::Completed => "completed",
            ItemStatus::Interrupted => "interrupted",
        }
    }
}

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Its id.
    pub item_id: ItemId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// What it is.
    pub kind: ItemKind,
    /// Whether it is whole.
    pub status: ItemStatus,
    /// Seq of the event that opened it.
    pub first_seq: Seq,
    /// Seq of its newest permanent event.
    pub last_seq: Seq,
    /// Messages: all the text. Tool calls: what the model was told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Messages: who speaks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<Role>,
    /// Messages: the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub content: Vec<Block>,
    /// Tool calls: details.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<CallView>,
    /// In replies: places of this item that show only the beginning of what they hold. Inside an event
    /// the event has the list.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cut: Vec<Cut>,
}

/// The tool call of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    /// Its id.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// Where it stands (R13).
    pub status: CallStatus,
    /// The whole of the output, where the item's text shows only its beginning and its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_blob: Option<BlobRef>,
    /// Pictures and documents that the model got with the result.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attachments: Vec<Attachment>,
}

/// Where a tool call stands (R13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Asked for by the model.
    Pending,
    /// Waits for a person.
    AwaitingPermission,
    /// Runs.
    Running,
    /// Did it.
    Completed,
    /// Reported an error.
    Failed,
    /// Was refused.
    Denied,
    /// Was stopped.
    Cancelled,
    /// Nobody knows whether it took effect.
    Unknown,
}

impl From<ToolStatus> for CallStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Completed => CallStatus::Completed,
            ToolStatus::Failed => CallStatus::Failed,
            ToolStatus::Denied => CallStatus::Denied,
            ToolStatus::Cancelled => CallStatus::Cancelled,
            ToolStatus::Unknown => CallStatus::Unknown,
        }
    }
}

/// How a turn ended (Q34).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    /// The model was done.
    Success,
    /// Something on our side failed; `errors` says what.
    ErrorDuringExecution,
    /// The limit on model calls was reached.
    ErrorMaxTurns,
    /// The limit on money was reached.
    ErrorMaxBudgetUsd,
    /// The limit on output tokens was reached.
    ErrorMaxTokens,
    /// The limit on wall time was reached.
    ErrorMaxTime,
    /// One answer was longer than the model may write.
    MaxOutputTokens,
    /// A person stopped it.
    Aborted,
    /// A person denied a call and ended the turn with it, or nobody answered in time and
    /// `on_timeout = "fail"` holds.
    PermissionDenied,
    /// The model or its server failed.
    LlmError,
}

impl Subtype {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Subtype::Success => "success",
            Subtype::ErrorDuringExecution => "error_during_execution",
            Subtype::ErrorMaxTurns => "error_max_turns",
            Subtype::ErrorMaxBudgetUsd => "error_max_budget_usd",
            Subtype::ErrorMaxTokens => "error_max_tokens",
            Subtype::ErrorMaxTime => "error_max_time",
            Subtype::MaxOutputTokens => "max_output_tokens",
            Subtype::Aborted => "aborted",
            Subtype::PermissionDenied => "permission_denied",
            Subtype::LlmError => "llm_error",
        }
    }
}

/// The result of a turn (Q34).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// How it ended.
    pub subtype: Subtype,
    /// The text of the last answer; may be empty.
    pub text: String,
    /// Why the last answer ended.
    pub stop_reason: Option<StopReason>,
    /// Tokens of this turn.
    pub usage: Usage,
    /// The same by `PROVIDER/MODEL`, with calls and cost.
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    /// Cost of this turn; `null` if a price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known: what all of them cost at least.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// From start to end.
    pub duration_ms: u64,
    /// Spent waiting for answers of the model that came to their end; attempts that failed, and the waits
    /// between them, are not in it.
    pub model_ms: u64,
    /// Spent running tools.
    pub tools_ms: u64,
    /// Spent waiting for people.
    pub permission_ms: u64,
    /// Model calls made.
    pub model_calls: u64,
    /// Calls that were refused.
    pub permission_denials: Vec<Denial>,
    /// Errors of this turn only (Q32).
    pub errors: Vec<TurnError>,
}

/// A refused call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// The call.
    pub call_id: CallId,
    /// Its arguments.
    pub input: Value,
}

/// An error of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnError {
    /// A stable word.
    pub kind: String,
    /// For people, secrets removed.
    pub message: String,
    /// What caused it, from the outermost to the innermost, where more is known; secrets removed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub causes: Vec<String>,
}

impl TurnError {
    /// An error without further causes.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), causes: Vec::new() }
    }
}

/// What of a folder waits for its user's trust (S22).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untrusted {
    /// Of all of it: trust is given to exactly this.
    pub digest: String,
    /// What is left out until then, for people.
    pub parts: Vec<String>,
}

/// A permission request as clients see it (P5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRequest {
    /// Its id, kept over restarts.
    pub request_id: PermissionId,
    /// What it is about. `sandbox`: the command of this call has run, the sandbox stopped it (see
    /// `tool.blocked` before this), and it would run again from its beginning, outside.
    #[serde(default)]
    pub kind: RequestKind,
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The exact arguments.
    pub input: Value,
    /// One line for people. Of Bash the first line of the command, then what the model says of it.
    pub summary: String,
    /// What the rules judged.
    pub subject: super::tool::Subject,
    /// Why this asks.
    pub reason: String,
    /// Of kind `sandbox`: what seems to have stopped the command.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocked: Option<super::tool::Blocked>,
    /// Unified diff, for edits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff: Option<String>,
    /// Grants that could be given, narrowest first.
    pub suggestions: Vec<String>,
    /// For commands: what becomes of each simple command in the line.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<super::permission::CommandPart>,
    /// A command of which every part only looks, inside the workspace and at no secrets: `allow_read_only` lets it pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_looks: bool,
    /// Until when an answer is waited for; absent in attended sessions, which wait without end. A
    /// restart does not move it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadline_ms: Option<Timestamp>,
    /// What becomes of it then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_timeout: Option<OnTimeout>,
    /// The folder in which it would run.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cwd: String,
    /// SHA-256 over session, folder, tool and arguments: what an answer is bound to.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub digest: String,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It is there and holds something else.
    Modified,
    /// It is no longer there.
    Removed,
}

/// All that a session changed in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// Absolute path.
    pub path: std::path::PathBuf,
    /// What became of it.
    pub change: ChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Unified diff from before the first change to after the last.
    pub diff: String,
    /// How often it was changed.
    pub changes: u64,
    /// Whether `diff` is the whole change. If not, somebody else changed the file in between, or a diff
    /// was too long to be kept: then it holds what is known, one change after the other.
    pub exact: bool,
}
