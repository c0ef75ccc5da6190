//! One `…Params` and one `…Reply` per method. Serialised forms are promises to strangers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::ids::{CallId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::permission::{Decision, Mode, Scope};
use crate::types::sampling::{Temperature, TopP};
use crate::types::session::{OnRestart, SessionState, SessionView};
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

mod daemon;
mod input;
mod model;
mod permission;
mod reading;
mod tool;
mod workspace;

pub use daemon::*;
pub use input::*;
pub use model::*;
pub use permission::*;
pub use reading::*;
pub use tool::*;
pub use workspace::*;

/// A method without parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}

/// A reply that says nothing but that it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// `session.create`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CreateParams {
    /// An id of the caller's choice: the same id with the same parameters returns the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// An existing folder, absolute.
    pub cwd: String,
    /// Short name; by default the first words of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/MODEL`; by default `[models] main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Approval mode; by default `[session] mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// For unattended work.
    #[serde(default)]
    pub background: bool,
    /// Serial, and every call asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// What becomes of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// How much its models may think; by default `[session] thinking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How freely its models choose their words; by default what is left to them. From 0, nearly always the likeliest word, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The share of the likeliest words that is chosen from, from 0 to 1. Vendors advise to set one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Takes the place of the default system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Stands at the end of the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Which tools are offered; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// Further existing folders that count as workspace, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_dirs: Vec<String>,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.create` and `session.get`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReply {
    /// The session.
    pub session: SessionView,
}

/// Names one session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionParams {
    /// The session.
    pub session_id: SessionId,
}

/// `session.kill` and `session.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndParams {
    /// The session.
    pub session_id: SessionId,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListParams {
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Sessions a page, 1 to 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only these states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<SessionState>>,
    /// Only sessions of this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only sessions whose title, folder or last line contain this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// Reply of `session.list`: newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListReply {
    /// A page of sessions.
    pub sessions: Vec<SessionView>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What a submit does while a turn runs (Q6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Wait for its end.
    #[default]
    Queue,
    /// Give it to the running turn with the next tool results.
    Steer,
    /// Abort the running turn first.
    Interrupt,
    /// Answer with the error `busy`.
    Reject,
}

/// `session.submit`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubmitParams {
    /// The session.
    pub session_id: SessionId,
    /// What to do.
    pub input: SubmitInput,
    /// While a turn runs. Left out, it waits; but if a question is open, it answers it by going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<WhenBusy>,
    /// Refuse unless this is the current turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_turn_id: Option<TurnId>,
    /// The same key with the same input returns the same turn, also after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Limits of this turn; by default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// Approval mode of this turn; by default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// `PROVIDER/MODEL` of this turn, or the name of a pointer of `[models]`, for example `reasoning`; by
    /// default the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model may think in this turn; by default as the session says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Which tools this turn offers its model, in place of the session's choice; `{}` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// How freely it chooses its words in this turn; by default as the session says. From 0, nearly always the likeliest word, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The share of the likeliest words that is chosen from, from 0 to 1. Vendors advise to set one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
}

/// `session.update`. What is left out stays.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UpdateParams {
    /// The session.
    pub session_id: SessionId,
    /// Short name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Approval mode. It counts from the next verdict on, also in a running turn; requests that it lets
    /// pass are settled with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Limits of the turns to come, all of them anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// `PROVIDER/MODEL` of the turns to come. The system prompt, which names it, is put together anew for the
    /// next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which tools the turns to come offer; `{}` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// All further existing folders that count as workspace, absolute. They count at once; their AGENTS.md is read
    /// for the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_dirs: Option<Vec<String>>,
    /// How much models may think, from the next turn on: a running turn keeps what it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How freely they choose their words, from the next turn on. From 0, nearly always the likeliest word, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The share of the likeliest words that is chosen from, from 0 to 1. Vendors advise to set one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// What became of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmitState {
    /// The turn started.
    Running,
    /// It waits for the turn before it.
    Queued,
    /// The running turn takes it in.
    Steered,
}

/// Reply of `session.submit`: the input is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmitReply {
    /// The turn that answers the input.
    pub turn_id: TurnId,
    /// What became of it.
    pub state: SubmitState,
    /// Seq of the event that took it in.
    pub seq: Seq,
}

/// `session.abort`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AbortParams {
    /// The session.
    pub session_id: SessionId,
    /// Only if this is the running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Only this tool call; the turn goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The same key with the same parameters returns the same `stopped`, and stops nothing that began later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.abort`: the work has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbortReply {
    /// Ids of the turn and tool calls that were stopped; empty if nothing ran.
    pub stopped: Vec<String>,
    /// Process ids that could not be stopped.
    pub survivors: Vec<i32>,
}

/// `session.approve`: one answer, or a list of them in `answers`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApproveParams {
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<PermissionId>,
    /// Allow or deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// For how long an allow holds.
    #[serde(default)]
    pub scope: Scope,
    /// The grant to give with scope `session` or `project`; by default the narrowest suggestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// With `deny`: the turn ends as `permission_denied`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    /// With `deny`: there is nobody to ask. What `[permissions.unattended] on_timeout` says holds at once, and the model
    /// is told so, and not that a person refused. With `pause` the answer is refused (`path: "nobody"`): the request waits on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nobody: bool,
    /// With `allow` and scope `once`: other arguments than the model's. They are looked at and judged
    /// like the model's own; its history keeps what it said, and the result tells of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<serde_json::Value>,
    /// The request's `digest` as it was seen: the answer is refused if the request is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Several answers, each taken or refused by itself; then nothing else is given but the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<ApproveParams>>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.approve`: what was taken is on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ApproveReply {
    /// To one answer.
    One(Approved),
    /// To `answers`.
    Several {
        /// What became of each, in their order.
        results: Vec<ApproveResult>,
    },
}

/// An answer that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// The session.
    pub session_id: SessionId,
    /// Seq of `permission.resolved`.
    pub seq: Seq,
    /// The grant that was given, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// What became of one of several answers: taken, or refused with an `error` as it would stand in a
/// reply of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApproveResult {
    /// The request; absent if the answer named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<PermissionId>,
    /// If it was taken.
    #[serde(flatten)]
    pub approved: Option<Approved>,
    /// If it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerError>,
}

/// Why one of several answers was not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerError {
    /// The number of the error.
    pub code: i32,
    /// What is wrong, and what to do.
    pub message: String,
    /// `kind` and more.
    pub data: serde_json::Value,
}

/// `session.answer`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// The question.
    pub request_id: QuestionId,
    /// One of the question's options: `continue` or `abort`.
    pub choice: String,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.answer`: the answer is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReply {
    /// The session.
    pub session_id: SessionId,
    /// Seq of `question.resolved`.
    pub seq: Seq,
}
