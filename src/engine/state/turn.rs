//! The running turn and its current activity.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::state::backoff::Backoff;
use crate::state::partial::PartialAnswer;
use crate::state::{CallStage, CallState, RepeatedCall};
use types::compaction::{CompactStage, CompactTrigger};
use types::event::Origin;
use types::ids::{CallId, ItemId, QuestionId, Seq, TurnId};
use types::ledger::ModelUsage;
use types::message::InputBlock;
use types::model::StopReason;
use types::permission::Mode;
use types::sampling::Sampling;
use types::session::{Denial, Item, SessionSpec, Subtype, TurnError};
use types::thinking::Thinking;
use types::time::Timestamp;
use types::tool::ToolChoice;
use types::turn_options::TurnOptions;
use types::usage::{BudgetKind, Budgets, Usage};

/// The stable code of the error, and of the retry, after a request that exceeded the context window.
pub const CONTEXT_OVERFLOW: &str = "context_overflow";

/// The running turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub id: TurnId,
    pub settings: TurnSettings,
    pub started_at: Timestamp,
    /// Whether parts of the turn's command are filled in before its message.
    pub is_expanding: bool,
    /// The item that the turn's message will have, while it waits for these parts.
    pub message_item: Option<ItemId>,
    /// Number of the model call, from 1; 0 before the first.
    pub step: u64,
    pub model_call: ModelAttempts,
    pub activity: Activity,
    /// With binary feedback: the candidates of this step, while none is chosen.
    pub candidates: Arc<Vec<Candidate>>,
    /// The tool calls of the newest answer. They are requested while the answer is still streaming.
    pub calls: Vec<CallState>,
    /// Whether the results of `calls` are in the transcript. If so, the next answer's calls replace `calls`.
    pub has_results: bool,
    /// The newest calls in a row that were identical, with identical results.
    pub repeated: Option<RepeatedCall>,
    /// Calls whose decision a hook leaves to the user. No rule and no mode settles their requests.
    pub left_to_user: BTreeSet<CallId>,
    /// Number of steps with tool calls since the todo list was changed or the turn began.
    pub steps_since_todo: u32,
    /// Inputs for the next request, each with the item that its message will have.
    pub steered: VecDeque<(Option<ItemId>, Arc<Vec<InputBlock>>)>,
    pub compaction: TurnCompaction,
    pub restart: TurnRestart,
    pub stop: TurnStop,
    pub totals: TurnTotals,
    pub outcome: TurnOutcome,
}

/// The settings of a turn, from its options and those of the session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TurnSettings {
    /// The options of `turn.started`.
    pub options: Arc<TurnOptions>,
    /// The turn's own system prompt, if its options need one and it was built.
    pub system: Option<Arc<str>>,
    pub model: String,
    pub mode: Mode,
    /// The tools that models are offered until the turn ends.
    pub tools: ToolChoice,
    pub budgets: Budgets,
    /// The thinking level. It is constant during a turn, because a change would change the beginning of
    /// its requests.
    pub thinking: Option<Thinking>,
    pub sampling: Sampling,
}

/// The attempts at the model call of the current step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelAttempts {
    /// Number of attempts at this model call, including attempts that a restart interrupted.
    pub attempts: u32,
    /// Number of failed attempts of this model at this call.
    pub failures: u32,
    /// Number of overloads at the end of `failures`.
    pub overloads: u32,
    /// Number of attempts of the whole turn that were booked although they gave no answer.
    pub unanswered_attempts: u64,
    /// Whether the next attempt uses a new connection, because the last connection broke.
    pub is_fresh: bool,
    /// Models that this turn switched away from.
    pub tried_models: Vec<String>,
    /// Discarded answers of this call that clients still show.
    pub discarded_items: Vec<ItemId>,
    /// The reduced output limit in tokens, if this call did not fit the window.
    pub reduced_output_limit: Option<u32>,
    /// Whether the model's highest output limit is requested.
    pub output_limit_raised: bool,
    /// Number of continuations of an answer in a row.
    pub continuations: u32,
    /// Whether the next answer continues the last one.
    pub continues_previous: bool,
    /// Uncalibrated tokens of the running model call's request.
    pub uncalibrated_tokens: Option<u64>,
}

/// The compaction of the conversation during a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnCompaction {
    /// The stage that started and has not completed.
    pub open: Option<OpenCompaction>,
    /// The step before which the last summary was requested; 0 for none. A step requests at most one summary.
    pub last_step: u64,
    /// Whether the conversation was compacted after a refusal, and the model has not answered since.
    pub is_shortened: bool,
    /// Whether a summary failed in this turn, so that the session's model writes the next one.
    pub has_failed_summary: bool,
}

/// The effects of restarts of the daemon on a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnRestart {
    /// Number of restarts after which the turn continued.
    pub resumes: u32,
    /// Whether the daemon stopped cleanly and no event of the turn followed.
    pub parked: bool,
    /// Whether the end of the journal is lost. If so, a call without a start event may have run.
    pub journal_truncated: bool,
    /// After a restart: the condition for continuing the turn.
    pub hold: Option<Hold>,
}

/// How a turn that ends before its answer is stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TurnStop {
    pub is_aborting: bool,
    pub is_ending: bool,
    /// The client that aborted the turn.
    pub aborted_by: Option<Origin>,
    /// The result that the turn will have.
    pub ends_as: Subtype,
}

/// What a turn has used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnTotals {
    /// Usage of the turn's model calls.
    pub spent: ModelUsage,
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    /// Usage of sub-agents of earlier turns that ended during this turn.
    pub spent_by_earlier_subagents: ModelUsage,
    pub model_calls: u64,
    /// Model calls of sub-agents that have ended.
    pub subagent_calls: u64,
    /// Number of tool calls that the model requested.
    pub tool_calls: u64,
    pub model_ms: u64,
    pub tools_ms: u64,
    pub permission_ms: u64,
    /// The start of the wait for an answer, which `permission_ms` does not contain yet.
    pub waiting_since: Option<Timestamp>,
    /// Limits about which a client was warned.
    pub warned: Vec<BudgetKind>,
}

/// The parts of the turn's result that are known so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TurnOutcome {
    pub last_text: Arc<str>,
    pub stop_reason: Option<StopReason>,
    pub denials: Arc<Vec<Denial>>,
    pub errors: Vec<TurnError>,
    /// Number of final answers that did not satisfy the schema of the result.
    pub rejected_outputs: u32,
}

/// A stage of compaction that is not complete. Only a summary stays open between two decisions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenCompaction {
    pub stage: CompactStage,
    pub trigger: CompactTrigger,
    pub item_id: Option<ItemId>,
    pub first_seq: Seq,
    pub tokens_before: u64,
    /// Number of messages, from the oldest, that the summary replaces.
    pub messages: usize,
    /// The step that the turn continues with after the compaction.
    pub step: u64,
    /// How often the provider refused the summary's own request as too long.
    pub overflows: u32,
}

/// One of two answers to choose from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub item: Item,
    pub model: Option<String>,
    pub stop_reason: StopReason,
    pub usage: Option<Usage>,
    pub response_id: Option<String>,
}

/// The reason why an interrupted turn is held. A held turn starts no effects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hold {
    /// The turn was resumed before, so it waits before it continues.
    Wait { token: Seq },
    /// A user decides what to do: after a restart, or about a call that the model repeats.
    Paused { request_id: QuestionId, repeated_call: Option<CallId> },
}

/// The current activity of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Activity {
    /// Just started, or waiting for the system prompt.
    Context,
    /// Waiting for the model; `token` identifies the call.
    Calling { token: Seq, partial: Option<PartialAnswer> },
    /// Waiting for another attempt. Without a `wait`, the attempt is due.
    Waiting { token: Seq, wait: Option<Backoff> },
    /// A client chooses one of the candidates.
    Choosing { request_id: QuestionId },
    /// The answer is complete. Its calls are prepared, wait for permission, or run.
    Tools,
}

impl Turn {
    /// The part of the turn's limits that is not used when the turn ends at `at`. Running sub-agents
    /// are not counted.
    pub fn remaining_budgets(&self, at: Timestamp) -> Budgets {
        let mut left = self.settings.budgets;
        // Do not use `model_calls`, because loading a session skips the events that count them.
        left.subtract(&self.totals.spent);
        left.subtract(&self.totals.spent_by_earlier_subagents);
        let elapsed = at.since(self.started_at);
        left.wall_time_ms = left.wall_time_ms.map(|limit| limit.saturating_sub(elapsed));
        left
    }

    /// Moves the times from which durations are computed, because the clock was set.
    pub fn move_times(&mut self, by_ms: i64) {
        self.started_at = self.started_at.moved(by_ms);
        self.totals.waiting_since = self.totals.waiting_since.map(|since| since.moved(by_ms));
        if let Activity::Waiting { wait: Some(wait), .. } = &mut self.activity {
            wait.reported_at = wait.reported_at.moved(by_ms);
        }
        for call in &mut self.calls {
            if let CallStage::Awaiting { deadline: Some(deadline), .. } = &mut call.stage {
                deadline.at = deadline.at.moved(by_ms);
            }
        }
    }

    /// Removes the calls of the last answer. The first event of the next answer calls this as well,
    /// because loading a session may skip the event that begins a model call.
    pub fn forget_settled_calls(&mut self) {
        if std::mem::take(&mut self.has_results) {
            self.calls.clear();
        }
    }

    pub fn new(id: TurnId, options: TurnOptions, spec: &SessionSpec, at: Timestamp) -> Self {
        Self {
            id,
            started_at: at,
            is_expanding: options.command.as_ref().is_some_and(|command| !command.parts.is_empty()),
            message_item: None,
            settings: TurnSettings::new(options, spec),
            step: 0,
            model_call: ModelAttempts::default(),
            activity: Activity::Context,
            candidates: Arc::default(),
            calls: Vec::new(),
            has_results: false,
            repeated: None,
            left_to_user: BTreeSet::new(),
            steps_since_todo: 0,
            steered: VecDeque::new(),
            compaction: TurnCompaction::default(),
            restart: TurnRestart::default(),
            stop: TurnStop {
                is_aborting: false,
                is_ending: false,
                aborted_by: None,
                ends_as: Subtype::Aborted,
            },
            totals: TurnTotals::default(),
            outcome: TurnOutcome {
                last_text: Arc::from(""),
                stop_reason: None,
                denials: Arc::default(),
                errors: Vec::new(),
                rejected_outputs: 0,
            },
        }
    }
}

impl TurnSettings {
    fn new(options: TurnOptions, spec: &SessionSpec) -> Self {
        Self {
            system: None,
            model: options.model.clone().unwrap_or_else(|| spec.model.clone()),
            mode: options.mode.unwrap_or(spec.mode),
            tools: options.tools.clone().unwrap_or_else(|| spec.tools.clone()),
            budgets: options.budgets.unwrap_or_default(),
            thinking: options.thinking,
            sampling: options.sampling(),
            options: Arc::new(options),
        }
    }
}
