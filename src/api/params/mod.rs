//! One `…Params` and one `…Reply` per method. Clients outside this repository depend on their serialised forms.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::ablation::Ablation;
use crate::types::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::message::Role;
use crate::types::permission::{Decision, Mode, Scope};
use crate::types::question::UserAnswer;
use crate::types::sampling::{Temperature, TopP};
use crate::types::session::{OnRestart, SessionState, SessionView};
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

mod agent;
mod command;
mod daemon;
mod history;
mod input;
mod knowledge;
mod mcp;
mod memory;
mod model;
mod permission;
mod queue;
mod reading;
mod tool;
mod turn_options;
mod workspace;

pub use agent::*;
pub use command::*;
pub use daemon::*;
pub use history::*;
pub use input::*;
pub use knowledge::*;
pub use mcp::*;
pub use memory::{
    MemoryListParams, MemoryListReply, MemoryRemoveParams, MemoryRemoveReply, MemorySetParams, MemorySetReply,
};
pub use model::*;
pub use permission::*;
pub use queue::*;
pub use reading::*;
pub use tool::*;
pub use workspace::*;

/// A method without parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}

/// A reply without content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// `session.create`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CreateParams {
    /// An id that the client chooses: the same id with the same parameters returns the same session.
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
    /// Whether the session is unattended.
    #[serde(default)]
    pub background: bool,
    /// Tools run one at a time, and every call needs a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// Handling of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// How much its models may think; by default `[session] thinking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Temperature of its models, by default the model's own. From 0, which nearly always selects the most
    /// likely token, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only
    /// one of `temperature` and `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Replaces the default system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// The tools on offer; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// Additional existing folders of the workspace, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_dirs: Option<Vec<String>>,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
    /// fallback`. Empty for that default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Texts at which the model stops its answer: at most 4, of at most 256 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values
    /// of at most 512 bytes. Anthropic takes `user_id` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Optimisations that the session does without; by default `[session.ablation]`. Fixed from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
    /// The model answers every request twice, and a client chooses (`feedback.request`); by default `[session]
    /// binary_feedback`. Not for unattended sessions. Fixed from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_feedback: Option<bool>,
    /// MCP servers of this session and its sub-agents alone, by name, each with the keys of `[mcp.NAME]`. They come
    /// before servers of the same names from other places. They are in no event and in no export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<BTreeMap<String, serde_json::Value>>,
    /// The session only plans and hands work to sub-agents, which share a scratch folder with it. It gets no tool
    /// that changes anything outside that folder. Not together with `agent` or `tools`. Fixed from then on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coordinator: bool,
    /// Name of the agent that the session works as (`agent.list`). Its tools and its model apply unless others are
    /// given. Fixed from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A conversation to begin with: at most 1,000 messages, of at most 4 MiB together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_items: Option<Vec<InitialItem>>,
    /// JSON Schema of the results of turns, as in `session.submit`; `{}` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
}

/// A message of the conversation that a session begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitialItem {
    /// Its author.
    pub role: Role,
    /// Text, or a list of text blocks; must not be empty.
    pub content: SubmitInput,
}

/// Reply of `session.create` and `session.get`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReply {
    /// The session as `session.list` shows it.
    pub session: SessionView,
}

/// Selects one session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionParams {
    /// Id of the session.
    pub session_id: SessionId,
}

/// `session.kill` and `session.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListParams {
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Sessions per page, 1 to 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only these states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<SessionState>>,
    /// Only sessions of this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only sessions whose title, folder or last line contain this text, or with a message that contains all of
    /// its words, the last one as a beginning; then `matches` names the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Whether the sessions of sub-agents are listed as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_children: bool,
}

/// Reply of `session.list`: newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListReply {
    /// Sessions of this page.
    pub sessions: Vec<SessionView>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The action of a submit while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Wait for the turn to end.
    #[default]
    Queue,
    /// Steer the running turn: the input arrives with the next tool results.
    Steer,
    /// Abort the running turn first.
    Interrupt,
    /// Answer with the error `busy`.
    Reject,
}

/// `session.submit`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubmitParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text or blocks; must not be empty.
    pub input: SubmitInput,
    /// Action while a turn runs. By default the input is queued; an open question is then settled by
    /// continuing.
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
    /// How much the model may think in this turn; by default the session's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Which tools this turn offers its model, instead of the session's choice; `{}` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// Temperature in this turn; by default the session's. From 0, which nearly always selects the most likely
    /// token, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only
    /// one of `temperature` and `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// JSON Schema of the turn's result: `turn.completed.result.structured` is a value that satisfies it. References
    /// to other documents are refused. By default the session's; `{}` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// Send the text to the model even if it looks like a slash command or a note. Otherwise a single text block of
    /// one line is a command (`/name …`) or a note for the project instructions (`# …`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Tools run one at a time, and every call needs a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt; empty for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// The complete list of additional folders of the workspace in this turn, absolute and existing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_dirs: Option<Vec<String>>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
    /// fallback`. Empty for that default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Texts at which the model stops its answer: at most 4, of at most 256 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values
    /// of at most 512 bytes. Anthropic takes `user_id` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// `session.update`. Absent values stay unchanged.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UpdateParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Short name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Approval mode. It applies from the next verdict on, also in a running turn; pending requests that it
    /// allows are settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Limits of later turns; they replace all previous limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// `PROVIDER/MODEL` of later turns. The system prompt names it, so it is built again for the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which tools later turns offer; `{}` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// The complete list of additional existing folders of the workspace, absolute. They apply at once; their
    /// AGENTS.md is read for the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_dirs: Option<Vec<String>>,
    /// How much models may think, from the next turn on: a running turn keeps its setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Temperature from the next turn on. From 0, which nearly always selects the most likely token, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only
    /// one of `temperature` and `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Makes a repeated call return the first one's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Tools run one at a time, and every call needs a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt; empty for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
    /// fallback`. Empty for that default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Texts at which the model stops its answer: at most 4, of at most 256 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values
    /// of at most 512 bytes. Anthropic takes `user_id` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// JSON Schema of the results of turns, as in `session.submit`; `{}` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
}

/// The result of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmitState {
    /// The turn started.
    Running,
    /// The input waits for the turn before it.
    Queued,
    /// The input steers the running turn.
    Steered,
    /// The input was a command that needs no model, and it is answered.
    Completed,
}

/// Reply of `session.submit`: the input is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmitReply {
    /// The turn that processes the input. A command that needs no model belongs to the running turn, if there is one.
    pub turn_id: TurnId,
    /// Whether the turn started, waits, was steered, or is already done.
    pub state: SubmitState,
    /// Seq of the event that records the input.
    pub seq: Seq,
    /// The answer of a command that needs no model. Events have it as well (`command.completed`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `session.compact`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompactParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// What the summary must keep; at most 10,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.compact`: the request is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactReply {
    /// The turn that compacts the conversation.
    pub turn_id: TurnId,
    /// Seq of the event that records the request.
    pub seq: Seq,
}

/// `session.abort`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AbortParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Only if this is the running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Only this tool call; the turn continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The same key with the same parameters returns the same `stopped`, and stops no work that started later.
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
    /// Id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<PermissionId>,
    /// Allow or deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// How long an allow is valid.
    #[serde(default)]
    pub scope: Scope,
    /// The grant to give with scope `session` or `project`; by default the narrowest suggestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Feedback for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// With `deny`: the turn ends as `permission_denied`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    /// With `deny`: the client has no user to ask. The action of `[permissions.unattended] on_timeout` applies
    /// at once, and the model is told so, instead of a denial by the user. With `pause` the answer is refused
    /// (`path` names this field): the request stays pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_approver: bool,
    /// With `allow` and scope `once`: arguments that replace the model's. They are prepared and judged like the
    /// model's own. The history keeps the model's arguments, and the result reports the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<serde_json::Value>,
    /// The `digest` of the request that the user saw: the answer is refused if the pending request differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Several answers, each accepted or refused separately; then only the key may be present as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<ApproveParams>>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// With `allow` of a request of kind `plan`: the mode that follows plan mode; by default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// Reply of `session.approve`: accepted answers are on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ApproveReply {
    /// Reply to a single answer.
    One(Approved),
    /// Reply to `answers`.
    Several {
        /// The result of each answer, in their order.
        results: Vec<ApproveResult>,
    },
}

/// An accepted answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// Id of the session.
    pub session_id: SessionId,
    /// Seq of `permission.resolved`.
    pub seq: Seq,
    /// The grant that was stored, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// The result of one of several answers: accepted, or refused with an `error` as in a separate reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApproveResult {
    /// The request; absent if the answer named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<PermissionId>,
    /// Present if the answer was accepted.
    #[serde(flatten)]
    pub approved: Option<Approved>,
    /// Present if the answer was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerError>,
}

/// Why one of several answers was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerError {
    /// The JSON-RPC error number.
    pub code: i32,
    /// The error, and how to fix it.
    pub message: String,
    /// `kind` and further members.
    pub data: serde_json::Value,
}

/// `session.answer`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// Id of the question.
    pub request_id: QuestionId,
    /// For the kinds `unknown_outcome` and `resume`: one of the question's options, `continue` or `abort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// For the kind `question`: one answer for each of its questions, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<UserAnswer>>,
}

/// `session.feedback`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackParams {
    /// Id of the `feedback.request`.
    pub request_id: QuestionId,
    /// The chosen answer: one of its `item_ids`.
    pub item_id: ItemId,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.answer` and `session.feedback`: the answer is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReply {
    /// Id of the session.
    pub session_id: SessionId,
    /// Seq of `question.resolved` or `feedback.completed`.
    pub seq: Seq,
}
