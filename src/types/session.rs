//! Sessions, turns and items as clients receive them.

pub use super::item::{CallStatus, CallView, Item, ItemKind, ItemStatus};
pub use super::permission_request::PermissionRequest;
pub use super::turn_result::{Denial, LastTurn, Subtype, TurnError, TurnResult};
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ablation::Ablation;
use super::background::BackgroundCommand;
use super::history::{ForkedFrom, TextMatch};
use super::ids::{CallId, JobId, Seq, SessionId, TurnId};
use super::permission::Mode;
use super::project_settings::ProjectSettings;
use super::sampling::Sampling;
use super::subagent::{AgentProfile, ParentCall};
use super::thinking::Thinking;
use super::time::Timestamp;
use super::todo::Todo;
use super::tool::ToolChoice;
use super::usage::ModelUsage;
use super::usage::{Budgets, Usage};
use super::worktree::SessionWorktree;

/// State of a session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SessionState {
    /// Waits for a submit.
    #[default]
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for the user.
    RequiresAction,
    /// A turn is paused until a client resumes it.
    Paused,
    /// The last turn could not be continued.
    Failed,
    /// Killed. It accepts no more input.
    Ended,
    /// Archived: kept, but clients treat it as inactive.
    Archived,
}

impl SessionState {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The kind of decision that a session in `requires_action` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Requires {
    /// An answer to one or more permission requests.
    Permission,
    /// An answer to a question of the model.
    Question,
    /// A decision about a tool call with unknown outcome.
    UnknownOutcome,
}

/// Handling of a turn that a restart interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// The turn continues automatically.
    #[default]
    Resume,
    /// The turn is paused until a user decides.
    Pause,
}

/// Settings with which a session is created.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpec {
    /// The working folder, absolute and free of links.
    pub cwd: String,
    /// Short name for users.
    pub title: String,
    /// `PROVIDER/MODEL`; empty if none is configured.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// Whether the session is unattended.
    #[serde(default)]
    pub background: bool,
    /// Whether tools run one at a time and every call needs a permission request.
    #[serde(default)]
    pub safe_mode: bool,
    /// Handling of a turn that a restart interrupts; absent for the configured default.
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    #[serde(default)]
    pub budgets: Budgets,
    /// How much its models may think; absent for the vendor's default.
    pub thinking: Option<Thinking>,
    /// Sampling settings of its models.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Replaces the default system prompt.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The tools on offer.
    #[serde(skip_serializing_if = "ToolChoice::is_all", default)]
    pub tools: ToolChoice,
    /// Additional folders of the workspace, absolute and free of links.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub additional_dirs: Vec<String>,
    /// For a fork: the session and the item with which its history begins.
    pub forked_from: Option<ForkedFrom>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
    /// fallback`.
    pub fallback_model: Option<String>,
    /// Texts at which its models stop their answers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stop: Vec<String>,
    /// Labels that the provider receives with each model request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub metadata: BTreeMap<String, String>,
    /// Optimisations that are turned off; fixed when the session is created.
    #[serde(skip_serializing_if = "Ablation::is_none", default)]
    pub ablation: Ablation,
    /// Values of the project's configuration file for the engine and the tools; fixed when the session is created.
    #[serde(skip_serializing_if = "ProjectSettings::is_none", default)]
    pub project_settings: ProjectSettings,
    /// Whether the model answers twice and a client chooses the answer; fixed when the session is created.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub binary_feedback: bool,
    /// SHA-256 of the messages with which the session begins, if there are any.
    pub initial_digest: Option<String>,
    /// JSON Schema that the results of turns must satisfy.
    pub output_schema: Option<Value>,
    /// Whether the session only plans and gives its work to sub-agents; fixed when the session is created.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub coordinator: bool,
    /// For a sub-agent: the call that started it; fixed when the session is created.
    pub parent: Option<ParentCall>,
    /// The agent as which the session works; fixed when the session is created.
    pub agent: Option<AgentProfile>,
    /// The root of the project that held the folder when the session was created. Later changes on the disk can move
    /// the root outwards only.
    pub project_root: Option<String>,
    /// The job that the session is an attempt of; fixed when the session is created.
    pub job_id: Option<JobId>,
    /// The worktree of the daemon that the session works in; fixed when the session is created.
    pub worktree: Option<Box<SessionWorktree>>,
}

/// What changes in a session and is shown in lists: the engine computes it, the store keeps it in columns, and clients
/// receive it as part of [`SessionView`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// Short name.
    pub title: String,
    /// Its state.
    pub state: SessionState,
    /// The kind of decision that it waits for, in `requires_action`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requires: Option<Requires>,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// How much its models may think; absent for the vendor's default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thinking: Option<Thinking>,
    /// Sampling settings of its models.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Time of the newest change; attaching and detaching clients do not count.
    pub updated_at_ms: Timestamp,
    /// Tokens of all its model calls.
    pub usage: Usage,
    /// Cost so far, in millionths of a dollar; `null` if a price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// The running or paused turn, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn_id: Option<TurnId>,
    /// Last line of text in the conversation.
    #[serde(default)]
    pub last_line: String,
    /// How its last turn ended; absent before the first end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_turn: Option<LastTurn>,
    /// The calls that run or wait for an answer, in one line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub activity: Option<String>,
    /// Tokens of the newest answer and of its request, which fill the context window. Absent before the first answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context_tokens: Option<u64>,
    /// What the user should know: hooks that cannot be used, or a hook that failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notice: Option<String>,
}

/// A session as `session.list` and `session.get` return it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Its id.
    pub session_id: SessionId,
    /// A small number that is accepted instead of the id. It is unique in its daemon and never used again.
    #[serde(default)]
    pub number: u64,
    /// What changes in it.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Its folder.
    pub cwd: String,
    /// Whether the session is unattended.
    pub background: bool,
    /// Time of its creation.
    pub created_at_ms: Timestamp,
    /// Seq of its newest event.
    pub last_seq: Seq,
    /// The ledger by `PROVIDER/MODEL`. Lists omit it: `model.usage` returns it for many sessions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelUsage>,
    /// Clients attached now.
    pub clients: u32,
    /// Commands that run in the background now.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub background_commands: Vec<BackgroundCommand>,
    /// For a fork: the session and the item with which its history begins.
    pub forked_from: Option<ForkedFrom>,
    /// For a sub-agent: the session whose `Task` call started it.
    pub parent_session_id: Option<SessionId>,
    /// For a sub-agent: the `Task` call that started it.
    pub parent_call_id: Option<CallId>,
    /// Name of the agent as which the session works.
    pub agent: Option<String>,
    /// The job that the session is an attempt of.
    pub job_id: Option<JobId>,
    /// With `search`: the newest messages that contain the words, at most three.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub matches: Vec<TextMatch>,
    /// Its settings and attached clients. Lists omit them.
    #[serde(flatten, default)]
    pub details: Option<Box<SessionDetails>>,
}

/// Settings and attached clients of a session, as `session.get` and `session.update` return them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetails {
    /// Attached clients.
    pub attached: Vec<AttachedClient>,
    /// Limits of each turn.
    pub budgets: Budgets,
    /// The tools on offer; `{}` for all.
    pub tools: ToolChoice,
    /// Additional folders of the workspace.
    pub additional_dirs: Vec<String>,
    /// Whether tools run one at a time and every call needs a permission request.
    pub safe_mode: bool,
    /// Handling of a turn that a restart interrupts.
    pub on_restart: OnRestart,
    /// Replaces the default system prompt.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model, if the session has its own.
    pub fallback_model: Option<String>,
    /// JSON Schema that the results of turns must satisfy.
    pub output_schema: Option<Value>,
    /// Texts at which its models stop their answers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stop: Vec<String>,
    /// Labels that the provider receives.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub metadata: BTreeMap<String, String>,
    /// Optimisations that are turned off.
    pub ablation: Ablation,
    /// Values of the project's configuration file for the engine and the tools.
    #[serde(skip_serializing_if = "ProjectSettings::is_none", default)]
    pub project_settings: ProjectSettings,
    /// Whether the model answers twice and a client chooses the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub binary_feedback: bool,
    /// The todo list of the model.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub todos: Vec<Todo>,
    /// Whether the session only plans and gives its work to sub-agents.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub coordinator: bool,
    /// The root of the session's project: the files of all folders from there to `cwd` count.
    pub project_root: Option<String>,
    /// Names of the variables that a client sent for its commands; absent if they get those of the daemon.
    pub env: Option<Vec<String>>,
    /// The worktree that the session works in.
    pub worktree: Option<Box<SessionWorktree>>,
}

/// A client that follows a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedClient {
    /// Name that the client gave in `daemon.hello`, or `client-N`.
    pub name: String,
    /// `observer`, `controller` or `tool`.
    pub role: String,
    /// Time at which it attached.
    pub since_ms: Timestamp,
}

/// The parts of a folder that need the user's trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntrustedParts {
    /// Digest of all parts: trust is bound to exactly this content.
    pub digest: String,
    /// The parts that are not used without trust, as text for users.
    pub parts: Vec<String>,
}

/// Kind of a file's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file did not exist before.
    Created,
    /// The file exists with different content.
    Modified,
    /// The file no longer exists.
    Removed,
}

/// All changes of a session in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// Absolute path.
    pub path: std::path::PathBuf,
    /// Kind of the change.
    pub change: ChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Unified diff from before the first change to after the last.
    pub diff: String,
    /// Number of changes.
    pub changes: u64,
    /// Whether `diff` is the exact total change. If not, another program changed the file in between, or a diff was
    /// too long to be kept. `diff` then contains the known changes, one after the other.
    pub exact: bool,
}
