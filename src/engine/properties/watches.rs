//! State of the reference model for a call, a turn and a background command.

use std::collections::BTreeSet;

use types::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, TurnId};
use types::model::StopReason;
use types::sampling::Sampling;
use types::session::{Item, Subtype, TurnError};
use types::thinking::Thinking;
use types::time::Timestamp;
use types::tool::ToolStatus;
use types::usage::{BudgetKind, Budgets, Usage};

/// State of one call.
#[derive(Clone, Debug, Default)]
pub struct CallWatch {
    pub read_only: Option<bool>,
    /// Whether the call runs without a request in modes that allow read-only calls.
    pub passes_as_reading: bool,
    pub allowed: bool,
    pub permission_id: Option<PermissionId>,
    pub denied: bool,
    pub started: Option<Seq>,
    pub status: Option<ToolStatus>,
    pub is_edit: bool,
    pub is_background: bool,
    /// Whether the call waits for answers of the user, or received them.
    pub asks_user: bool,
    /// Whether a summary of its answer named the call.
    pub is_summarized: bool,
    /// The folder that the permission request showed.
    pub folder: Option<String>,
    /// Arguments of a user that replace the model's arguments.
    pub edited: Option<serde_json::Value>,
    /// Output of the call so far, while it runs.
    pub output: String,
    /// How often the engine requested to run this attempt of the call.
    pub runs: u32,
    /// The result of the call's first run, if the sandbox blocked it.
    pub blocked: Option<(ToolStatus, String)>,
}

/// State of the running turn.
#[derive(Clone, Debug)]
pub struct TurnWatch {
    pub id: TurnId,
    pub started_at: Timestamp,
    pub budgets: Budgets,
    pub thinking: Option<Thinking>,
    pub sampling: Sampling,
    /// Limits about which a client was warned.
    pub warned: BTreeSet<BudgetKind>,
    pub aborting: bool,
    pub ending: bool,
    pub ends_as: Subtype,
    pub step: u64,
    /// Whether this step may be requested again, because a retry or a restart came before.
    pub may_repeat: bool,
    pub retries: u32,
    /// The remaining wait in milliseconds, as last reported.
    pub waits_ms: u64,
    pub model: String,
    /// Models that the turn switched away from.
    pub tried: BTreeSet<String>,
    /// Superseded answers of this model call.
    pub orphans: BTreeSet<ItemId>,
    /// Whether the last answer paused. The turn then continues the answer with another call.
    pub paused: bool,
    /// Whether the last answer was cut at the output limit, and how many continuations came in a row.
    pub cut: bool,
    pub go_ons: u32,
    pub raised: bool,
    /// Whether the next answer continues the last one.
    pub joins: bool,
    pub resumes: u32,
    pub parked: bool,
    /// Time of the first event after the turn was parked or started.
    pub woken: Option<Timestamp>,
    /// Number of attempts that were booked although they gave no answer.
    pub lost: u64,
    /// Number of booked calls without their own step: summaries, and first answers of binary feedback.
    pub summaries: u64,
    pub model_calls: u64,
    /// Whether the turn waits before it continues.
    pub waits: bool,
    pub usage: Usage,
    pub cost: Option<u64>,
    pub at_least: u64,
    pub text: String,
    pub stop: Option<StopReason>,
    pub errors: Vec<TurnError>,
    pub denied: Vec<CallId>,
    pub calls: Vec<CallId>,
    /// Results of the turn's calls: tool, arguments, whether it succeeded, and output.
    pub results: Vec<(String, serde_json::Value, bool, String)>,
    /// The command that started the turn.
    pub command: Option<String>,
    pub has_schema: bool,
    /// Number of answers that did not satisfy the schema.
    pub rejected: u32,
    /// The candidates of this step, while none is chosen.
    pub candidates: Vec<Item>,
    /// The open request to choose one of the candidates.
    pub feedback_id: Option<QuestionId>,
    /// The chosen candidate, until its copy follows.
    pub chosen: Option<Item>,
}

impl TurnWatch {
    /// Adds the usage of a booked model call.
    pub fn add_usage(&mut self, usage: &Usage, cost_usd_micros: Option<u64>) {
        self.usage.add(usage);
        self.cost = self.cost.zip(cost_usd_micros).map(|(sum, more)| sum + more);
        self.at_least += cost_usd_micros.unwrap_or(0);
    }
}

/// State of one background command.
#[derive(Clone, Debug)]
pub struct CommandWatch {
    pub call_id: CallId,
    pub turn_id: Option<TurnId>,
    pub opened: Seq,
    pub is_over: bool,
}
