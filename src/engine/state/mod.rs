//! The state of a session between inputs. All of it is computed from the journal.
//!
//! Large parts are behind `Arc`, so that a decision can work on a cheap copy.

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

/// Rules that users gave this session, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    /// Grants and allow rules.
    pub allow: Vec<String>,
    /// Rules that require a permission request.
    pub ask: Vec<String>,
    /// Rules that deny.
    pub deny: Vec<String>,
}

impl SessionRules {
    /// The rules of one kind.
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
    /// The source of the title, if no client set it.
    pub titled_by: Option<TitledBy>,
    /// Number of requests for a title.
    pub title_tries: u32,
    /// The last helper call, while it has no answer.
    pub helper: Option<Helper>,
    pub next_seq: Seq,
    pub status: SessionState,
    pub requires: Option<Requires>,
    pub system: Option<Arc<str>>,
    /// The system prompt names folders or a model that have changed since: the next turn builds it again.
    pub is_stale: bool,
    /// Digest of the workspace parts for which trust was requested last.
    pub trust_asked: Option<String>,
    pub transcript: Transcript,
    /// The model that gave the newest answer of the transcript, and the provider's id of that answer.
    pub continues: Option<(String, String)>,
    pub turn: Option<Turn>,
    pub queue: VecDeque<QueuedInput>,
    /// Background commands, oldest first: all running ones and the newest ended ones.
    pub commands: Vec<Arc<BackgroundTaskState>>,
    /// Number of background commands that were started.
    pub command_count: u32,
    pub rules: Arc<SessionRules>,
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    pub cwd: PathBuf,
    /// Tokens of the newest answer and of its request.
    pub context_tokens: u64,
    /// Usage of all model calls.
    pub spent: ModelUsage,
    /// Duration of all ended turns, in milliseconds.
    pub worked_ms: u64,
    pub last_line: String,
    pub updated_at: Timestamp,
}

/// A model call outside the turns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Helper {
    /// Identifies the call: the seq of its `helper.started`.
    pub token: Seq,
    pub purpose: Purpose,
    pub model: String,
    pub model_snapshot: ModelSnapshot,
    /// Maximum usage of the call.
    pub max_usage: Usage,
}

/// A queued input.
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
    /// The tools on offer until the turn ends.
    pub tools: ToolChoice,
    pub budgets: Budgets,
    /// Constant during a turn, because a change would change the beginning of its requests.
    pub thinking: Option<Thinking>,
    /// Sampling settings of the turn.
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
    /// The connection broke: the next attempt uses a new connection.
    pub is_fresh: bool,
    /// Models that this turn switched away from.
    pub tried_models: Vec<String>,
    /// Discarded answers of this call that clients still show.
    pub discarded_items: Vec<ItemId>,
    /// The reduced output limit in tokens, if this call did not fit the window.
    pub reduced_output_limit: Option<u32>,
    /// The model's highest output limit is requested.
    pub output_limit_raised: bool,
    /// Continuations of an answer, in a row.
    pub continuations: u32,
    /// The next answer continues the last one.
    pub continues_previous: bool,
    /// Attempts at this model call, including those that a restart interrupted.
    pub attempts: u32,
    /// Attempts that were booked although they brought no answer.
    pub unanswered_attempts: u64,
    pub resumes: u32,
    /// The daemon stopped cleanly, and no event of the turn followed.
    pub parked: bool,
    /// The end of the journal after its last event is lost: a call without a start event may have run.
    pub journal_truncated: bool,
    /// After a restart: the condition for continuing the turn.
    pub hold: Option<Hold>,
    pub activity: Activity,
    pub aborting: bool,
    pub ending: bool,
    /// The client that aborted the turn, and the result that the turn will have.
    pub aborted_by: Option<Origin>,
    pub ends_as: Subtype,
    pub steered: VecDeque<Vec<InputBlock>>,
    /// Usage of the turn's model calls.
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

/// Why an interrupted turn is held. While it is held, it starts no effects.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hold {
    /// The turn was resumed before, so it waits a while.
    Wait { token: Seq },
    /// A user decides what to do.
    Paused { request_id: QuestionId },
}

/// The current activity of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Activity {
    /// Just started, or waiting for the system prompt.
    Context,
    /// Waiting for the model; `token` identifies the call.
    Calling { token: Seq, partial: Option<Partial> },
    /// Waiting for another attempt; without a `wait` it is due.
    Waiting { token: Seq, wait: Option<Backoff> },
    /// Tools are prepared, wait for permission, or run.
    Tools { calls: Vec<Call> },
}

/// A message that is still streaming.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partial {
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Blocks of text and of reasoning received so far, in order. Calls are left out, because a partial call is
    /// useless.
    pub content: Vec<Block>,
    /// Bytes received, including calls.
    pub bytes: usize,
}

/// One tool call of the current message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub call: Arc<ToolCall>,
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Arguments of a user that replace the model's.
    pub edited: Option<serde_json::Value>,
    /// The result of its first run, if the sandbox blocked it and a second run was requested.
    pub first: Option<Arc<FirstRun>>,
    pub stage: Stage,
}

/// The result of a run that the sandbox blocked: the result of the call unless it runs again.
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

/// The time at which a request expires, and the action at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub at: Timestamp,
    pub on_timeout: OnTimeout,
}

/// The stage of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Requested by the model; not prepared yet.
    Requested,
    /// Waits for a user's answer.
    Awaiting {
        request_id: PermissionId,
        prepared: Arc<PreparedCall>,
        suggestions: Vec<String>,
        deadline: Option<Deadline>,
        /// Its deadline has passed and the request stays pending.
        expired: bool,
        /// The folder and the digest of the request; empty in old journals.
        folder: String,
        digest: String,
        /// A command whose parts are all read-only.
        read_only_command: bool,
    },
    /// May run once the calls before it are done. `bound` holds the folder and the digest that the user
    /// allowed.
    Ready { prepared: Arc<PreparedCall>, allowed_by: String, bound: Option<(String, String)> },
    /// Runs. `started_seq` identifies its progress rows; `said` holds their excerpt.
    Running { prepared: Arc<PreparedCall>, started_seq: Seq, said: OutputExcerpt },
    /// The daemon died while it ran, and a user decides what to do.
    Unknown { request_id: QuestionId, started_seq: Seq, said: String },
    /// Has its result.
    Done { output: String, is_error: bool, attachments: Vec<Attachment> },
}

impl Call {
    /// Whether the run has started whose result the call will have. A run that the sandbox blocked does not
    /// count.
    pub fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Running { .. } | Stage::Unknown { .. })
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done { .. })
    }

    /// The call as it runs: with a user's arguments, if the user changed them.
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

    /// The mode for verdicts.
    pub fn mode(&self) -> Mode {
        self.turn.as_ref().map_or(self.spec.mode, |turn| turn.mode)
    }

    /// The digest to which an answer would be bound if the call were allowed now.
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
