//! What a session remembers between inputs. Everything here folds from the journal.
//!
//! The big parts sit behind `Arc`, so that a decision can work on a cheap copy.

pub(super) mod output_excerpt;
pub(super) mod transcript;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use super::settings::Settings;
use crate::engine::decide::background::BackgroundTaskState;
use crate::engine::decide::backoff::Backoff;
use crate::types::blob::{Attachment, BlobRef};
use crate::types::event::{Origin, Purpose, TitledBy};
use crate::types::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::ledger::ModelUsage;
use crate::types::message::{Block, InputBlock, ToolCall};
use crate::types::model::StopReason;
use crate::types::permission::{Mode, OnTimeout, RuleKind, digest};
use crate::types::sampling::Sampling;
use crate::types::session::{Denial, Requires, SessionSpec, SessionState, Subtype, TurnError};
use crate::types::thinking::Thinking;
use crate::types::time::Timestamp;
use crate::types::tool::{Blocked, PreparedCall, ReadRecord, ToolChoice, ToolStatus};
use crate::types::usage::{Budgets, ModelSnapshot, Usage};
use output_excerpt::OutputExcerpt;
use transcript::Transcript;

/// Rules that people gave this session, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    /// Grants, and rules that allow.
    pub allow: Vec<String>,
    /// Rules that ask.
    pub ask: Vec<String>,
    /// Rules that deny.
    pub deny: Vec<String>,
}

impl SessionRules {
    /// Those of one kind.
    #[must_use]
    pub fn of(&self, kind: RuleKind) -> &Vec<String> {
        match kind {
            RuleKind::Allow => &self.allow,
            RuleKind::Ask => &self.ask,
            RuleKind::Deny => &self.deny,
        }
    }

    pub(super) fn of_mut(&mut self, kind: RuleKind) -> &mut Vec<String> {
        match kind {
            RuleKind::Allow => &mut self.allow,
            RuleKind::Ask => &mut self.ask,
            RuleKind::Deny => &mut self.deny,
        }
    }
}

/// One session's engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) settings: Arc<Settings>,
    pub(super) state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub session_id: SessionId,
    pub spec: SessionSpec,
    /// Who made its title, if no client did.
    pub titled_by: Option<TitledBy>,
    /// How often a model was asked for a title.
    pub title_tries: u32,
    /// The helper that was asked last and has not answered.
    pub helper: Option<Helper>,
    pub next_seq: Seq,
    pub status: SessionState,
    pub requires: Option<Requires>,
    pub system: Option<Arc<str>>,
    /// The system prompt names other folders, or another model, than those of now: the next turn makes it anew.
    pub is_stale: bool,
    /// What of the workspace trust was asked for last.
    pub trust_asked: Option<String>,
    pub transcript: Transcript,
    /// The model that gave the newest answer of the transcript, and the provider's id of that answer.
    pub continues: Option<(String, String)>,
    pub turn: Option<Turn>,
    pub queue: VecDeque<QueuedInput>,
    /// Background commands: those that run, and the newest of the others. Oldest first.
    pub commands: Vec<Arc<BackgroundTaskState>>,
    /// How many were started.
    pub command_count: u32,
    pub rules: Arc<SessionRules>,
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    pub cwd: PathBuf,
    /// Tokens of the newest answer and of all that was sent for it.
    pub context_tokens: u64,
    /// What all model calls took.
    pub spent: ModelUsage,
    /// Duration of all turns that ended.
    pub worked_ms: u64,
    pub last_line: String,
    pub updated_at: Timestamp,
}

/// A model that was asked something beside the turns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Helper {
    /// Names the call: the number of its `helper.started`.
    pub token: Seq,
    pub purpose: Purpose,
    pub model: String,
    pub terms: ModelSnapshot,
    /// What it takes at most.
    pub most: Usage,
}

/// An input that waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueuedInput {
    pub turn_id: TurnId,
    pub input: Vec<InputBlock>,
    pub budgets: Budgets,
    pub mode: Option<Mode>,
    pub model: Option<String>,
    pub thinking: Option<Thinking>,
    pub tools: Option<ToolChoice>,
    pub sampling: Sampling,
}

/// The running turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub id: TurnId,
    pub model: String,
    pub mode: Mode,
    /// The tools on offer until it ends.
    pub tools: ToolChoice,
    pub budgets: Budgets,
    /// Never changes inside a turn: the beginning of its requests would.
    pub thinking: Option<Thinking>,
    /// How freely its model chooses its words.
    pub sampling: Sampling,
    pub started_at: Timestamp,
    /// Number of the model call, from 1; 0 before the first.
    pub step: u64,
    /// Failed attempts of this model at this call.
    pub failures: u32,
    /// How many of the newest of them were overloads.
    pub overloads: u32,
    /// How many of the newest of them did not reach the provider at all.
    pub unreached: u32,
    /// The connection broke: the next attempt gets one of its own.
    pub is_fresh: bool,
    /// Models that this turn turned away from.
    pub tried_models: Vec<String>,
    /// Answers to this call that came to nothing and are still shown.
    pub discarded_items: Vec<ItemId>,
    /// What there is room for, where this call did not fit.
    pub reduced_output_limit: Option<u32>,
    /// The model's highest output limit is asked for.
    pub output_limit_raised: bool,
    /// Continuations of an answer, in a row.
    pub continuations: u32,
    /// The next answer continues the last.
    pub continues_previous: bool,
    /// Attempts at this model call, those that a restart cut off included.
    pub attempts: u32,
    /// Attempts that were booked although no answer came of them.
    pub unanswered_attempts: u64,
    pub resumes: u32,
    /// The daemon stopped in good order, and nothing has happened in the turn since.
    pub parked: bool,
    /// What came behind the last event of it is lost: a call that seems not to have begun may have run.
    pub journal_truncated: bool,
    /// After a restart: what has to happen before the turn goes on.
    pub hold: Option<Hold>,
    pub activity: Activity,
    pub aborting: bool,
    pub ending: bool,
    /// Who stopped it, and how it ends then.
    pub aborted_by: Option<Origin>,
    pub ends_as: Subtype,
    pub steered: VecDeque<Vec<InputBlock>>,
    /// What its model calls took.
    pub spent: ModelUsage,
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    pub model_ms: u64,
    pub tools_ms: u64,
    pub permission_ms: u64,
    pub model_calls: u64,
    pub waiting_since: Option<Timestamp>,
    pub denials: Vec<Denial>,
    pub errors: Vec<TurnError>,
    pub last_text: String,
    pub stop_reason: Option<StopReason>,
}

/// Why an interrupted turn does not go on yet. While it is held nothing of it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hold {
    /// It was resumed before: it waits a while.
    Wait { token: Seq },
    /// A person says what to do.
    Paused { request_id: QuestionId },
}

/// What a turn is doing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Activity {
    /// Just begun, or waiting for the system prompt.
    Context,
    /// Waiting for the model; `token` names the call.
    Calling { token: Seq, partial: Option<Partial> },
    /// Waiting for another attempt; without a `wait` it is due.
    Waiting { token: Seq, wait: Option<Backoff> },
    /// Tools are looked at, asked for, run.
    Tools { calls: Vec<Call> },
}

/// A message that is still streaming.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partial {
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Blocks of text and of reasoning, in order, each as long as it is so far. Calls are left out:
    /// half a call is nothing.
    pub content: Vec<Block>,
    /// Bytes received, calls included.
    pub bytes: usize,
}

/// One tool call of the current message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub call: Arc<ToolCall>,
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// What a person put in the place of its arguments.
    pub edited: Option<serde_json::Value>,
    /// How its first run ended, if the sandbox stopped it and a second one is asked for, or was.
    pub first: Option<Arc<FirstRun>>,
    pub stage: Stage,
}

/// How a run ended that the sandbox stopped: the result of the call unless it runs again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstRun {
    pub blocked: Blocked,
    pub status: ToolStatus,
    pub output: String,
    pub output_blob: Option<BlobRef>,
    pub code: Option<String>,
    pub detail: Option<serde_json::Value>,
    pub duration_ms: u64,
    pub cwd: Option<String>,
}

/// When a request stops waiting, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub at: Timestamp,
    pub on_timeout: OnTimeout,
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Asked for by the model; not looked at yet.
    Requested,
    /// Waits for a person.
    Awaiting {
        request_id: PermissionId,
        prepared: Arc<PreparedCall>,
        suggestions: Vec<String>,
        deadline: Option<Deadline>,
        /// Its deadline has passed and it waits on.
        expired: bool,
        /// The folder and the digest that a person is shown; empty in journals of before.
        folder: String,
        digest: String,
        /// It is a command of which every part only looks.
        only_looks: bool,
    },
    /// May run once those before it are done. `bound` is what a person allowed: folder and digest.
    Ready { prepared: Arc<PreparedCall>, allowed_by: String, bound: Option<(String, String)> },
    /// Runs. `started_seq` names its progress rows; `said` is what they hold.
    Running { prepared: Arc<PreparedCall>, started_seq: Seq, said: OutputExcerpt },
    /// The daemon died while it ran, and a person says what to do.
    Unknown { request_id: QuestionId, started_seq: Seq, said: String },
    /// Has its result.
    Done { output: String, is_error: bool, attachments: Vec<Attachment> },
}

impl Call {
    /// Whether a run of it began that is to give its result: not the one that the sandbox stopped.
    pub fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Running { .. } | Stage::Unknown { .. })
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done { .. })
    }

    /// The call as it runs: with a person's arguments, if one changed them.
    pub fn effective(&self) -> Arc<ToolCall> {
        match &self.edited {
            Some(input) => {
                Arc::new(ToolCall { input: input.clone(), input_error: None, ..(*self.call).clone() })
            }
            None => Arc::clone(&self.call),
        }
    }
}

impl State {
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            spec: SessionSpec {
                cwd: String::new(),
                title: String::new(),
                model: String::new(),
                mode: Mode::Default,
                background: false,
                safe_mode: false,
                on_restart: None,
                budgets: Budgets::default(),
                thinking: None,
                sampling: Sampling::default(),
                system_prompt: None,
                append_system_prompt: None,
                tools: ToolChoice::default(),
                additional_dirs: Vec::new(),
            },
            titled_by: None,
            title_tries: 0,
            helper: None,
            next_seq: 1,
            status: SessionState::Idle,
            requires: None,
            system: None,
            is_stale: false,
            trust_asked: None,
            transcript: Transcript::default(),
            continues: None,
            turn: None,
            queue: VecDeque::new(),
            commands: Vec::new(),
            command_count: 0,
            rules: Arc::default(),
            reads: Arc::default(),
            cwd: PathBuf::new(),
            context_tokens: 0,
            spent: ModelUsage::default(),
            worked_ms: 0,
            last_line: String::new(),
            updated_at: Timestamp(0),
        }
    }

    /// The mode that verdicts are made in.
    pub fn mode(&self) -> Mode {
        self.turn.as_ref().map_or(self.spec.mode, |turn| turn.mode)
    }

    /// What an answer would be bound to if the call were allowed now.
    pub fn digest(&self, call: &ToolCall) -> String {
        digest(self.session_id, &self.cwd.to_string_lossy(), &call.tool, &call.input)
    }

    pub fn calls(&self) -> &[Call] {
        match self.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => calls,
            _ => &[],
        }
    }

    pub fn call(&self, call_id: CallId) -> Option<&Call> {
        self.calls().iter().find(|call| call.call.call_id == call_id)
    }
}

impl Turn {
    pub fn new(id: TurnId, model: String, mode: Mode, budgets: Budgets, at: Timestamp) -> Self {
        Self {
            id,
            model,
            mode,
            tools: ToolChoice::default(),
            budgets,
            thinking: None,
            sampling: Sampling::default(),
            started_at: at,
            step: 0,
            failures: 0,
            overloads: 0,
            unreached: 0,
            is_fresh: false,
            tried_models: Vec::new(),
            discarded_items: Vec::new(),
            reduced_output_limit: None,
            output_limit_raised: false,
            continuations: 0,
            continues_previous: false,
            attempts: 0,
            unanswered_attempts: 0,
            resumes: 0,
            parked: false,
            journal_truncated: false,
            hold: None,
            activity: Activity::Context,
            aborting: false,
            ending: false,
            aborted_by: None,
            ends_as: Subtype::Aborted,
            steered: VecDeque::new(),
            spent: ModelUsage::default(),
            usage_by_model: BTreeMap::new(),
            model_ms: 0,
            tools_ms: 0,
            permission_ms: 0,
            model_calls: 0,
            waiting_since: None,
            denials: Vec::new(),
            errors: Vec::new(),
            last_text: String::new(),
            stop_reason: None,
        }
    }
}
