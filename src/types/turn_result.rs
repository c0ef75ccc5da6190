//! How a turn ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::CallId;
use super::model::StopReason;
use super::time::Timestamp;
use super::usage::{BudgetKind, ModelUsage, Usage};

/// How a turn ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Subtype {
    /// The model finished.
    Success,
    /// The daemon failed; `errors` gives the reasons.
    ErrorDuringExecution,
    /// The limit on model calls was reached.
    ErrorMaxTurns,
    /// The limit on money was reached.
    ErrorMaxBudgetUsd,
    /// The limit on output tokens was reached.
    ErrorMaxTokens,
    /// The limit on wall time was reached.
    ErrorMaxTime,
    /// One answer reached the model's output limit.
    MaxOutputTokens,
    /// A user aborted it.
    Aborted,
    /// A user denied a call and ended the turn with it, or a request expired with `on_timeout = "fail"`.
    PermissionDenied,
    /// The final answer does not satisfy `output_schema`, even after corrections.
    StructuredOutputInvalid,
    /// The model made the same call again and again, with the same result, and no user was there to ask.
    ErrorRepeatedCall,
    /// The model or its server failed.
    LlmError,
}

impl BudgetKind {
    /// The `subtype` of a turn that ends at this limit.
    #[must_use]
    pub const fn subtype(self) -> Subtype {
        match self {
            BudgetKind::UsdMicros | BudgetKind::SessionUsdMicros => Subtype::ErrorMaxBudgetUsd,
            BudgetKind::ModelCalls | BudgetKind::SessionModelCalls => Subtype::ErrorMaxTurns,
            BudgetKind::OutputTokens | BudgetKind::SessionOutputTokens => Subtype::ErrorMaxTokens,
            BudgetKind::WallTimeMs | BudgetKind::SessionWallTimeMs => Subtype::ErrorMaxTime,
        }
    }
}

impl Subtype {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// How it ended.
    pub subtype: Subtype,
    /// The text of the last answer; may be empty.
    pub text: String,
    /// The value that satisfies the turn's `output_schema`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured: Option<Value>,
    /// Why the last answer ended.
    pub stop_reason: Option<StopReason>,
    /// Tokens of this turn.
    pub usage: Usage,
    /// The usage by `PROVIDER/MODEL`, with calls and cost.
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    /// Cost of this turn, in millionths of a dollar; `null` if a price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// Duration from start to end, in milliseconds.
    pub duration_ms: u64,
    /// Time of the model calls with complete answers, in milliseconds. Failed attempts and the waits between them are
    /// not included.
    pub model_ms: u64,
    /// Time spent running tools, in milliseconds.
    pub tools_ms: u64,
    /// Time spent waiting for users, in milliseconds.
    pub permission_ms: u64,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tool calls.
    #[serde(default)]
    pub tool_calls: u64,
    /// Input tokens of this turn that were read from a prompt cache.
    #[serde(default)]
    pub cache_hit_tokens: u64,
    /// Calls that were refused.
    pub permission_denials: Vec<Denial>,
    /// Errors of this turn only.
    pub errors: Vec<TurnError>,
}

impl TurnResult {
    /// The result of a turn whose text and usage are not known.
    #[must_use]
    pub fn unknown(subtype: Subtype, error: TurnError) -> Self {
        Self {
            subtype,
            text: String::new(),
            structured: None,
            stop_reason: None,
            usage: Usage::default(),
            usage_by_model: BTreeMap::new(),
            cost_usd_micros: None,
            cost_at_least_usd_micros: 0,
            duration_ms: 0,
            model_ms: 0,
            tools_ms: 0,
            permission_ms: 0,
            model_calls: 0,
            tool_calls: 0,
            cache_hit_tokens: 0,
            permission_denials: Vec::new(),
            errors: vec![error],
        }
    }
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
    /// A stable code.
    pub kind: String,
    /// Text for users, with secrets removed.
    pub message: String,
    /// Causes from the outermost to the innermost, where known; secrets removed.
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

/// The end of a session's last turn, for lists. `turn.completed` and `session.wait` have the whole result.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastTurn {
    /// How it ended.
    pub subtype: Subtype,
    /// Code of its first error.
    pub kind: Option<String>,
    /// Text of its first error, at most 200 characters.
    pub message: Option<String>,
    /// Time of its end.
    pub ended_at_ms: Timestamp,
    /// Duration from start to end, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The part of `duration_ms` that the turn spent waiting for users.
    #[serde(default)]
    pub permission_ms: u64,
}

/// Maximum characters of [`LastTurn::message`].
const MAX_MESSAGE_CHARS: usize = 200;

impl LastTurn {
    /// The end of a turn with this result.
    #[must_use]
    pub fn from_result(result: &TurnResult, ended_at_ms: Timestamp) -> Self {
        let error = result.errors.first();
        Self {
            subtype: result.subtype,
            kind: error.map(|error| error.kind.clone()),
            message: error.map(|error| error.message.chars().take(MAX_MESSAGE_CHARS).collect()),
            ended_at_ms,
            duration_ms: result.duration_ms,
            permission_ms: result.permission_ms,
        }
    }
}
