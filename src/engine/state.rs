//! What a session remembers between inputs. Everything here folds from the journal.
//!
//! The big parts sit behind `Arc`, so that a decision can work on a cheap copy.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::background::Command;
use super::known::{Known, Quick, StandIns};
use super::limit::OUTPUT_TOKENS;
use super::retry::Retry;
use super::said::Said;
use super::transcript::Transcript;
use super::wait::Wait;
use crate::types::blob::{Attachment, BlobRef};
use crate::types::event::{Origin, Purpose, TitledBy};
use crate::types::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::ledger::ModelUsage;
use crate::types::message::{Block, InputBlock, ToolCall};
use crate::types::model::StopReason;
use crate::types::permission::{Mode, OnTimeout, RuleKind, digest};
use crate::types::sampling::Sampling;
use crate::types::session::{Denial, OnRestart, Requires, SessionSpec, SessionState, Subtype, TurnError};
use crate::types::thinking::Thinking;
use crate::types::time::Timestamp;
use crate::types::tool::{
    Blocked, Confinement, OfferOutside, Prepared, ReadRecord, ToolCard, ToolChoice, ToolStatus,
};
use crate::types::usage::{Budgets, Terms, Usage};

/// What the engine is told from outside, once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How failed model calls are tried again (Q26).
    pub retry: Retry,
    /// Models that stand in for the session's own.
    pub stand_ins: StandIns,
    /// The model that is asked for titles; without one nobody is.
    pub quick: Option<Quick>,
    /// What is known of models.
    pub known: Known,
    /// Tokens of an answer that are asked for at first, where a model can give more (Q28).
    pub output_tokens: u32,
    /// Tools that run beside each other at most (Q22).
    pub parallel_tools: usize,
    /// How often a turn is resumed after restarts (S7).
    pub max_resumes: u32,
    /// The wait before the second resume, in milliseconds; it doubles with each further one.
    pub resume_base_ms: u64,
    /// What becomes of interrupted turns of sessions that do not say.
    pub on_restart: OnRestart,
    /// Bytes of one tool result that the model is shown (Q14).
    pub result_bytes: usize,
    /// The same of all results of one message.
    pub results_bytes: usize,
    /// Commands that run in the background at once, in one session; 0 for none.
    pub background_commands: usize,
    /// Tools on offer.
    pub tools: Arc<[ToolCard]>,
    /// Requests of sessions without a person.
    pub unattended: Unattended,
    /// Whether commands that the sandbox stopped may be offered to run outside of it.
    pub offer_outside: OfferOutside,
}

/// What becomes of requests of unattended sessions (P6). Only the user's configuration says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unattended {
    /// How long a request waits, in milliseconds; `None`: nobody is asked, what asks is denied.
    pub deadline_ms: Option<u64>,
    /// What becomes of it then.
    pub on_timeout: OnTimeout,
}

impl Default for Unattended {
    fn default() -> Self {
        Self { deadline_ms: Some(3_600_000), on_timeout: OnTimeout::Deny }
    }
}

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

/// A pending request with what was judged.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The request.
    pub request_id: PermissionId,
    /// The call.
    pub call: Arc<ToolCall>,
    /// What it would do.
    pub prepared: Arc<Prepared>,
    /// It asks whether a command that the sandbox stopped runs again outside: the one grant that covers it,
    /// or none if the command is too long for one. No other rule and no mode settles it.
    pub outside: Option<Option<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: Retry::default(),
            stand_ins: StandIns::default(),
            quick: None,
            known: Known::default(),
            output_tokens: OUTPUT_TOKENS,
            parallel_tools: 10,
            max_resumes: 3,
            resume_base_ms: 2_000,
            on_restart: OnRestart::Resume,
            result_bytes: 128 * 1024,
            results_bytes: 256 * 1024,
            background_commands: 8,
            tools: Arc::from([]),
            unattended: Unattended::default(),
            offer_outside: OfferOutside::default(),
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
    pub queue: VecDeque<Queued>,
    /// Background commands: those that run, and the newest of the others. Oldest first.
    pub commands: Vec<Arc<Command>>,
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
    pub terms: Terms,
    /// What it takes at most.
    pub most: Usage,
}

/// An input that waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Queued {
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
    pub tried: Vec<String>,
    /// Answers to this call that came to nothing and are still shown.
    pub orphans: Vec<ItemId>,
    /// What there is room for, where this call did not fit.
    pub fitted: Option<u32>,
    /// The model's highest output limit is asked for.
    pub raised: bool,
    /// Continuations of an answer, in a row.
    pub go_ons: u32,
    /// The next answer continues the last.
    pub joins: bool,
    /// Attempts at this model call, those that a restart cut off included.
    pub attempts: u32,
    /// Attempts that were booked although no answer came of them.
    pub lost_calls: u64,
    pub resumes: u32,
    /// The daemon stopped in good order, and nothing has happened in the turn since.
    pub parked: bool,
    /// What came behind the last event of it is lost: a call that seems not to have begun may have run.
    pub lost: bool,
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
    Waiting { token: Seq, wait: Option<Wait> },
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
        prepared: Arc<Prepared>,
        suggestions: Vec<String>,
        deadline: Option<Deadline>,
        /// Its deadline has passed and it waits on.
        expired: bool,
        /// The folder and the digest that a person is shown; empty in journals of before.
        folder: String,
        digest: String,
    },
    /// May run once those before it are done. `bound` is what a person allowed: folder and digest.
    Ready { prepared: Arc<Prepared>, allowed_by: String, bound: Option<(String, String)> },
    /// Runs. `started_seq` names its progress rows; `said` is what they hold.
    Running { prepared: Arc<Prepared>, started_seq: Seq, said: Said },
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

/// What the rest of the house may know of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Short name.
    pub title: String,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Approval mode.
    pub mode: Mode,
    /// How much its models may think.
    pub thinking: Option<Thinking>,
    /// How freely they choose their words.
    pub sampling: Sampling,
    /// State.
    pub state: SessionState,
    /// What it waits for.
    pub requires: Option<Requires>,
    /// The running turn.
    pub turn_id: Option<TurnId>,
    /// Tokens so far.
    pub usage: Usage,
    /// Cost so far.
    pub cost_usd_micros: Option<u64>,
    /// What is known of it, if not all is.
    pub cost_at_least_usd_micros: u64,
    /// Last line that was said.
    pub last_line: String,
    /// Time of the newest fact; clients that come and go are none.
    pub updated_at: Timestamp,
}

impl Engine {
    /// A session that has seen nothing yet; its first fact is `session.created`.
    #[must_use]
    pub fn new(session_id: SessionId, settings: Arc<Settings>) -> Self {
        Self { settings, state: State::new(session_id) }
    }

    /// Takes settings that hold from the next decision on. They are not state: nothing that is known
    /// changes. The tools of a running turn stay on offer as they are until it ends, so that the
    /// beginning of its requests does not change (Q9); the settings are then to be given again.
    pub fn use_settings(&mut self, settings: &Arc<Settings>) {
        if Arc::ptr_eq(&self.settings, settings) {
            return;
        }
        let mut taken = Arc::clone(settings);
        if self.state.turn.is_some() && self.settings.tools != settings.tools {
            Arc::make_mut(&mut taken).tools = Arc::clone(&self.settings.tools);
        }
        self.settings = taken;
    }

    /// The next event's number.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.state.next_seq
    }

    /// Makes sure that numbers that were given out and folded away are not given out again.
    pub fn skip_to(&mut self, next_seq: Seq) {
        self.state.next_seq = self.state.next_seq.max(next_seq);
    }

    /// How the session was made.
    #[must_use]
    pub fn spec(&self) -> &SessionSpec {
        &self.state.spec
    }

    /// Whether the system prompt is put together, and the workspace was looked at for it.
    #[must_use]
    pub fn has_context(&self) -> bool {
        self.state.system.is_some()
    }

    /// Which session.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        self.state.session_id
    }

    /// How a command would be held, or is, as it was judged.
    #[must_use]
    pub fn confinement(&self, call_id: CallId) -> Option<Confinement> {
        match &self.state.call(call_id)?.stage {
            Stage::Awaiting { prepared, .. }
            | Stage::Ready { prepared, .. }
            | Stage::Running { prepared, .. } => prepared.sandbox,
            Stage::Requested | Stage::Unknown { .. } | Stage::Done { .. } => None,
        }
    }

    /// A call of the running turn, with a person's arguments if one changed them.
    #[must_use]
    pub fn tool_call(&self, call_id: CallId) -> Option<Arc<ToolCall>> {
        self.state.call(call_id).map(Call::effective)
    }

    /// Whether the session was killed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state.status == SessionState::Ended
    }

    /// Whether an abort is under way.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.aborting)
    }

    /// The running turn.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|turn| turn.id)
    }

    /// Calls of the running turn that have no result yet.
    #[must_use]
    pub fn open_calls(&self) -> Vec<CallId> {
        match self.state.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => {
                calls.iter().filter(|call| !call.is_done()).map(|call| call.call.call_id).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Rules and grants given to this session.
    #[must_use]
    pub fn rules(&self) -> Arc<SessionRules> {
        Arc::clone(&self.state.rules)
    }

    /// The mode that verdicts are made in: the running turn's, else the session's.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.mode()
    }

    /// When the next request stops waiting for an answer. It folds from the journal: a restart does
    /// not move it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = |call: &Call| match &call.stage {
            Stage::Awaiting { deadline: Some(deadline), expired: false, .. } => Some(deadline.at),
            _ => None,
        };
        if self.is_aborting() { None } else { self.state.calls().iter().filter_map(due).min() }
    }

    /// What the model has seen of files.
    #[must_use]
    pub fn reads(&self) -> Arc<HashMap<PathBuf, ReadRecord>> {
        Arc::clone(&self.state.reads)
    }

    /// Where commands run.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.state.cwd
    }

    /// Pending permission requests with what was judged.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        match self.state.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => calls
                .iter()
                .filter_map(|call| match &call.stage {
                    Stage::Awaiting { request_id, prepared, suggestions, .. } => Some(Pending {
                        request_id: *request_id,
                        call: Arc::clone(&call.call),
                        prepared: Arc::clone(prepared),
                        outside: call.first.is_some().then(|| suggestions.first().cloned()),
                    }),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// What `session.list` shows.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let state = &self.state;
        Snapshot {
            title: state.spec.title.clone(),
            model: state.spec.model.clone(),
            mode: state.spec.mode,
            thinking: state.spec.thinking,
            sampling: state.spec.sampling,
            state: state.status,
            requires: state.requires,
            turn_id: self.turn_id(),
            usage: state.spent.usage,
            cost_usd_micros: state.spent.cost_usd_micros,
            cost_at_least_usd_micros: state.spent.cost_at_least_usd_micros,
            last_line: state.last_line.clone(),
            updated_at: state.updated_at,
        }
    }

    /// Open questions.
    #[must_use]
    pub fn questions(&self) -> Vec<QuestionId> {
        let Some(turn) = &self.state.turn else { return Vec::new() };
        let held = match turn.hold {
            Some(Hold::Paused { request_id }) => Some(request_id),
            _ => None,
        };
        let unknown = self.state.calls().iter().filter_map(|call| match call.stage {
            Stage::Unknown { request_id, .. } => Some(request_id),
            _ => None,
        });
        held.into_iter().chain(unknown).collect()
    }

    /// The model that the running turn asks, or that the next one would.
    #[must_use]
    pub fn model(&self) -> &str {
        self.state.turn.as_ref().map_or(&self.state.spec.model, |turn| &turn.model)
    }

    #[cfg(test)]
    pub(super) fn same_as(&self, other: &Engine) -> bool {
        self.state == other.state
    }
}

impl State {
    fn new(session_id: SessionId) -> Self {
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
            tried: Vec::new(),
            orphans: Vec::new(),
            fitted: None,
            raised: false,
            go_ons: 0,
            joins: false,
            attempts: 0,
            lost_calls: 0,
            resumes: 0,
            parked: false,
            lost: false,
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
