//! Parameters and replies for submitting inputs, and for updating, compacting and aborting.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::SubmitInput;
use types::ids::{CallId, Seq, SessionId, TurnId};
use types::permission::Mode;
use types::sampling::{Temperature, TopP};
use types::thinking::Thinking;
use types::tool::ToolChoice;
use types::usage::Budgets;

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
    /// The action if a turn runs. By default the input is queued, and pending questions whether to continue are
    /// settled with `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<WhenBusy>,
    /// The submit is refused unless this is the current turn.
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
    /// The tools that this turn offers its model, instead of the session's choice; `{}` for all.
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
    /// JSON Schema of the turn's result: `turn.completed.result.structured` is a value that satisfies it. By default
    /// the session's schema; `{}` for none. References to other documents are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// Whether to send the text to the model even if it looks like a slash command or a note. Otherwise a single text
    /// block of one line is a command (`/name …`) or a note for the project instructions (`# …`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Whether tools run one at a time and every call needs a permission request.
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
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of
    /// at most 512 bytes. Anthropic accepts only `user_id`.
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
    /// `PROVIDER/MODEL` of later turns. The system prompt names the model, so the prompt is built again for the next
    /// turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that later turns offer; `{}` for all.
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
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Whether tools run one at a time and every call needs a permission request.
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
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of
    /// at most 512 bytes. Anthropic accepts only `user_id`.
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
    /// The answer of a command that needs no model. The event `command.completed` contains it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `session.compact`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompactParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Instructions about the content that the summary must keep; at most 10,000 characters.
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
    /// The turn to stop; by default the running turn. If another turn runs, the daemon refuses the abort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The only tool call to stop; the turn continues.
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
