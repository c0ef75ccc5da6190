//! Events: the single source of journal rows, of what subscribers get, and of `proto-docs/events.md`.
//!
//! Past tense, append-only. `*_delta` and `tool.progress` are *foldable*: they are written before
//! they are shown like everything else, and are removed in the transaction that writes the event
//! that holds the whole (R9). All others are permanent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::background::{BackgroundEnd, BackgroundRead, BackgroundState, BashId};
use super::blob::{Attachment, BlobRef, Cut};
use super::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use super::message::{InputBlock, Message};
use super::model::{BlockKind, StopReason};
use super::permission::{Decision, Mode, OnTimeout, RuleKind, Scope};
use super::question::{Choice, Question, QuestionKind};
use super::sampling::Sampling;
use super::session::{Item, PermissionRequest, Requires, SessionSpec, SessionState, Subtype, TurnResult};
use super::thinking::Thinking;
use super::time::Timestamp;
use super::tool::{
    Blocked, Confinement, FileChange, PlannedChange, PreparedCall, ReadRecord, ToolChoice, ToolStatus,
};
use super::usage::{Budgets, ModelSnapshot, Usage};

pub use super::origin::Origin;
pub use super::reason::{Phase, Purpose, SettledBy, SwitchReason, TitledBy, TombstoneReason, UsageReason};

/// `kind` of the notice that ends a journal of which more is lost.
pub const HISTORY_LOST: &str = "history_lost";

/// One event as it stands in the journal and on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Its number in the session.
    pub seq: Seq,
    /// The session.
    pub session_id: SessionId,
    /// The turn, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn_id: Option<TurnId>,
    /// The item, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub item_id: Option<ItemId>,
    /// When it happened.
    pub at_ms: Timestamp,
    /// Who caused it, if a client did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<Origin>,
    /// Places of this event that show only the beginning of what they hold, since it is too large for
    /// an event (64 KiB): `session.blob` reads the whole. Nothing is cut where this is absent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cut: Vec<Cut>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// An event before it has a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The turn, where there is one.
    pub turn_id: Option<TurnId>,
    /// The item, where there is one.
    pub item_id: Option<ItemId>,
    /// Who caused it, if a client did.
    pub origin: Option<Origin>,
    /// What happened.
    pub event: Event,
}

const fn aborted() -> Subtype {
    Subtype::Aborted
}

fn is_aborted(subtype: &Subtype) -> bool {
    *subtype == Subtype::Aborted
}

/// What happened. The `type` on the wire is dotted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// The session was made.
    #[serde(rename = "session.created")]
    SessionCreated(SessionSpec),
    /// Title, model, mode, limits, tools or folders changed; only what changed is there. Model and tools count
    /// from the next turn on.
    #[serde(rename = "session.updated")]
    SessionUpdated {
        /// New title.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        title: Option<String>,
        /// Who made it, if no client did.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        titled_by: Option<TitledBy>,
        /// New model.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// New approval mode.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mode: Option<Mode>,
        /// New limits of turns to come.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        budgets: Option<Budgets>,
        /// The tools on offer from now on.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tools: Option<ToolChoice>,
        /// All further folders that count as workspace from now on.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        additional_dirs: Option<Vec<String>>,
        /// How much models may think from the next turn on.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thinking: Option<Thinking>,
        /// How freely the model chooses its words from the next turn on.
        #[serde(flatten)]
        sampling: Sampling,
    },
    /// The session's state changed.
    #[serde(rename = "session.status")]
    SessionStatus {
        /// The new state.
        state: SessionState,
        /// What it waits for.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        requires: Option<Requires>,
    },
    /// The system prompt was put together (Q9): kept, so that it stays byte-identical.
    #[serde(rename = "session.context")]
    SessionContext {
        /// The whole system prompt.
        system: String,
        /// Where its parts came from, for people.
        sources: Vec<String>,
    },
    /// A client attached.
    #[serde(rename = "session.attached")]
    SessionAttached {
        /// Clients attached now.
        clients: u32,
    },
    /// A client detached.
    #[serde(rename = "session.detached")]
    SessionDetached {
        /// Clients attached now.
        clients: u32,
    },
    /// The daemon read its configuration again. Sessions are told that have clients or a running turn;
    /// what is already running keeps what it began with.
    #[serde(rename = "config.reloaded")]
    ConfigReloaded {
        /// Keys that changed and count from now on, for example `retry.attempts`.
        changed: Vec<String>,
        /// Keys that changed and count only after a restart of the daemon.
        needs_restart: Vec<String>,
    },
    /// The session was killed and takes no more input.
    #[serde(rename = "session.ended")]
    SessionEnded {
        /// Why.
        reason: String,
    },
    /// The workspace holds parts that are used only once it is trusted.
    #[serde(rename = "workspace.trust_required")]
    WorkspaceTrustRequired {
        /// The folder.
        cwd: String,
        /// What is left out until then.
        parts: Vec<String>,
        /// Of all of it: `workspace.trust` takes it.
        #[serde(default)]
        digest: String,
    },
    /// An input waits for the running turn to end.
    #[serde(rename = "turn.queued")]
    TurnQueued {
        /// The input.
        input: Vec<InputBlock>,
        /// Whether it goes before the others that wait.
        #[serde(default)]
        front: bool,
        /// Limits of the turn.
        #[serde(default)]
        budgets: Budgets,
        /// Its approval mode, if not the session's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mode: Option<Mode>,
        /// Its model, if not the session's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// How much the model may think, if not as the session says.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thinking: Option<Thinking>,
        /// The tools on offer, if not the session's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tools: Option<ToolChoice>,
        /// How freely the model chooses its words, if not as the session says.
        #[serde(flatten)]
        sampling: Sampling,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// The model.
        model: String,
        /// The approval mode.
        mode: Mode,
        /// Limits of the turn.
        #[serde(default)]
        budgets: Budgets,
        /// How much the model may think; it stays so to the turn's end.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thinking: Option<Thinking>,
        /// The tools on offer, if not the session's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tools: Option<ToolChoice>,
        /// How freely the model chooses its words; it stays so to the turn's end.
        #[serde(flatten)]
        sampling: Sampling,
    },
    /// The turn moved on.
    #[serde(rename = "turn.phase")]
    TurnPhase {
        /// Where it stands.
        phase: Phase,
        /// Number of the model call, from 1.
        step: u64,
    },
    /// The daemon stops in good order and the turn stands where it can go on: its resume does not count.
    #[serde(rename = "turn.parked")]
    TurnParked {},
    /// A turn that a restart had interrupted goes on.
    #[serde(rename = "turn.resumed")]
    TurnResumed {
        /// How often this turn was resumed after a stop that was not in good order.
        resumes: u32,
        /// How long it waits before it goes on: 0 the first time, then longer each time.
        #[serde(default)]
        delay_ms: u64,
    },
    /// An input for the running turn: the model gets it with the next tool results.
    #[serde(rename = "turn.steered")]
    TurnSteered {
        /// The input.
        input: Vec<InputBlock>,
    },
    /// An abort was accepted; everything is being stopped.
    #[serde(rename = "turn.aborting")]
    TurnAborting {
        /// Whether the session ends with it.
        #[serde(default)]
        ending: bool,
        /// How the turn will end: `aborted`, or `permission_denied`.
        #[serde(default = "aborted", skip_serializing_if = "is_aborted")]
        subtype: Subtype,
    },
    /// The turn ended.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// How.
        result: TurnResult,
    },
    /// A model's answer begins.
    #[serde(rename = "message.started")]
    MessageStarted {
        /// The model.
        model: String,
        /// Number of the model call in this turn, from 1.
        step: u64,
        /// Number of the attempt at this call, from 1.
        attempt: u32,
    },
    /// A block of the answer begins.
    #[serde(rename = "message.block_started")]
    MessageBlockStarted {
        /// Its position.
        index: u32,
        /// What it is.
        block: BlockKind,
    },
    /// More text. Foldable.
    #[serde(rename = "message.text_delta")]
    MessageTextDelta {
        /// The block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More reasoning. Foldable.
    #[serde(rename = "message.thinking_delta")]
    MessageThinkingDelta {
        /// The block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More of a tool call's arguments, as JSON text. Foldable.
    #[serde(rename = "message.tool_input_delta")]
    MessageToolInputDelta {
        /// The block.
        index: u32,
        /// The new part.
        json: String,
    },
    /// A block of the answer is complete.
    #[serde(rename = "message.block_completed")]
    MessageBlockCompleted {
        /// Its position.
        index: u32,
    },
    /// A message is whole (or was cut short: then `item.status` is `interrupted`).
    #[serde(rename = "message.completed")]
    MessageCompleted {
        /// The message.
        item: Item,
        /// The model, for answers.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// Why the answer ended.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<StopReason>,
        /// Tokens of the call.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usage: Option<Usage>,
        /// Whether they are an upper estimate, as in `usage`: the provider reported none.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        estimated: bool,
        /// Cost of the call; absent if the price is unknown.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cost_usd_micros: Option<u64>,
        /// What was known of the model when it was asked, the price included.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        terms: Option<ModelSnapshot>,
        /// How long the call took.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        duration_ms: Option<u64>,
        /// The provider's id of the answer.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        response_id: Option<String>,
        /// Of an `interrupted` one: the model is asked again, and what it says then takes the place of
        /// this text. Clients must not show both as one.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        superseded: bool,
        /// No model was asked: it is the answer to the same request of a moment ago, and costs nothing.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        cache_hit: bool,
    },
    /// What was said of an answer (`item_id`) counts no more: another answer, to the same question, takes
    /// its place. Clients drop what they show of it. It is kept in the journal, and was never sent to a
    /// model.
    #[serde(rename = "message.tombstone")]
    MessageTombstone {
        /// Why.
        reason: TombstoneReason,
    },
    /// The history broke a rule of the providers and was repaired when the session was loaded (S5).
    #[serde(rename = "history.repaired")]
    HistoryRepaired {
        /// Messages at the beginning that stay as they were.
        kept: u64,
        /// What takes the place of all messages after them.
        messages: Vec<Message>,
        /// What was repaired, for people.
        changes: Vec<String>,
    },
    /// Tokens that belong to no whole answer of a turn. They count like those of an answer, and the attempt as
    /// a model call, so that budgets hold over any number of crashes (S3). Those of a helper count for the
    /// session and for no turn.
    #[serde(rename = "usage")]
    UsageBooked {
        /// The model.
        model: String,
        /// The tokens.
        usage: Usage,
        /// Their cost; absent if the price is unknown.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cost_usd_micros: Option<u64>,
        /// What was known of the model when it was asked, the price included.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        terms: Option<ModelSnapshot>,
        /// Why they are booked.
        reason: UsageReason,
        /// What the call was for, if it was a helper's.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        purpose: Option<Purpose>,
        /// Whether they are an upper estimate: one token for every two bytes of the request, and one
        /// for every two bytes of what was received of the answer (of a helper: all that it may answer). What the provider reported before the
        /// end takes the place of the estimate where it is there: of the input always, of the output
        /// where it is more.
        estimated: bool,
    },
    /// A model is asked something beside the turns, in the background. Nobody waits for it; a fault ends it
    /// at once (Q26).
    #[serde(rename = "helper.started")]
    HelperStarted {
        /// What for.
        purpose: Purpose,
        /// The model.
        model: String,
        /// What is known of the model, the price included.
        terms: ModelSnapshot,
        /// What the call takes at most: booked if its end is not seen.
        most: Usage,
    },
    /// It came to an end. What it took was booked before by `usage`, if it took anything.
    #[serde(rename = "helper.completed")]
    HelperCompleted {
        /// What it was for.
        purpose: Purpose,
        /// The model.
        model: String,
        /// Why nothing came of it, as a stable word: of `error`, or `unusable` (an answer that is no title),
        /// `stopped` (with the daemon or the session). Absent: something did.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        fault: Option<String>,
        /// The same for people.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<String>,
        /// How long it took, if its end was seen.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        duration_ms: Option<u64>,
    },
    /// The model asked for a tool call.
    #[serde(rename = "tool.requested")]
    ToolRequested {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The full arguments.
        input: Value,
    },
    /// The call may run, once those before it are done.
    #[serde(rename = "tool.status")]
    ToolStatus {
        /// The call.
        call_id: CallId,
        /// What was judged.
        prepared: PreparedCall,
        /// Why it may run.
        allowed_by: String,
    },
    /// Execution begins. Written, and synced, before anything runs.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// Why it may run: a rule, a mode, or the request that was answered.
        allowed_by: String,
        /// Whether it changes nothing.
        read_only: bool,
        /// For calls that change a file: what it held and will hold.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        change: Option<PlannedChange>,
        /// For commands: how they are held.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sandbox: Option<Confinement>,
        /// 2: the command runs again, outside the sandbox that stopped its first run.
        #[serde(skip_serializing_if = "is_first", default = "first")]
        attempt: u8,
    },
    /// The command of a call has run and failed, and the sandbox seems to have stopped it. A
    /// `permission.requested` of kind `sandbox` follows: whether it runs again outside. What it did until then
    /// is done. This is how the first run ended; it becomes the result of the call unless there is a second.
    #[serde(rename = "tool.blocked")]
    ToolBlocked {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// What stopped it.
        blocked: Blocked,
        /// How it ended.
        status: ToolStatus,
        /// What it said, as the model would be told.
        output: String,
        /// The whole, where `output` shows only its beginning and its end.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output_blob: Option<BlobRef>,
        /// A stable word for the reason of its failure.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<String>,
        /// More for clients: exit code, counts.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<Value>,
        /// Time from start to end.
        duration_ms: u64,
        /// The folder for further commands, if it moved.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cwd: Option<String>,
    },
    /// Output of a running tool, or of a background command until it ends. Foldable.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// `stdout` or `stderr`.
        stream: String,
        /// The new part.
        text: String,
    },
    /// A tool call ended, one way or another.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// How it ended.
        status: ToolStatus,
        /// What the model is told.
        output: String,
        /// The whole, where `output` shows the model only its beginning and its end.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        output_blob: Option<BlobRef>,
        /// Pictures and documents that the model gets with it.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<Attachment>,
        /// A stable word for the reason of a failure.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<String>,
        /// More for clients: exit code, counts, encoding.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<Value>,
        /// Time from start to end; 0 if it never ran.
        duration_ms: u64,
        /// What the model has now seen of files.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        reads: Vec<ReadRecord>,
        /// The folder for further commands, if it moved.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cwd: Option<String>,
        /// Of BashOutput: how far the model has now been told the output of a background command.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        told: Option<BackgroundRead>,
    },
    /// A command runs on behind its call, which has its result already, or it ended. It belongs to the
    /// session: `turn_id` is there only while the turn that started it runs.
    #[serde(rename = "tool.background")]
    ToolBackground {
        /// The call that started it.
        call_id: CallId,
        /// Its name in the session.
        bash_id: BashId,
        /// Where it stands.
        state: BackgroundState,
        /// The beginning of the command, with `running`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        command: Option<String>,
        /// How it ended.
        #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
        end: Option<BackgroundEnd>,
    },
    /// A tool changed a file.
    #[serde(rename = "file.changed")]
    FileChanged {
        /// The call.
        call_id: CallId,
        /// What changed.
        #[serde(flatten)]
        change: FileChange,
    },
    /// A tool call waits for a person.
    #[serde(rename = "permission.requested")]
    PermissionRequested {
        /// The request.
        #[serde(flatten)]
        request: PermissionRequest,
        /// Whether the call changes nothing.
        #[serde(default)]
        read_only: bool,
        /// For calls that change a file: what it holds and would hold.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        change: Option<PlannedChange>,
        /// For commands: how they would be held.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sandbox: Option<Confinement>,
    },
    /// A permission request was settled.
    #[serde(rename = "permission.resolved")]
    PermissionResolved {
        /// The request.
        request_id: PermissionId,
        /// The call.
        call_id: CallId,
        /// Allow or deny.
        decision: Decision,
        /// For how long.
        scope: Scope,
        /// The grant that was given with it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        grant: Option<String>,
        /// Words for the model.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        feedback: Option<String>,
        /// By an answer, an abort, a rule, a change of mode, or for want of an answer.
        by: SettledBy,
        /// By `rule` or `mode`: what lets it pass.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rule: Option<String>,
        /// The arguments with which the call runs instead of the model's: a person changed them.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        updated_input: Option<Value>,
        /// What was judged of the changed arguments.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        prepared: Option<PreparedCall>,
        /// Whether the turn ends with this denial.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        stop: bool,
    },
    /// Nobody answered a permission request by its deadline. With `pause` it stays pending; else
    /// `permission.resolved` follows.
    #[serde(rename = "permission.expired")]
    PermissionExpired {
        /// The request.
        request_id: PermissionId,
        /// The call.
        call_id: CallId,
        /// What becomes of it.
        on_timeout: OnTimeout,
    },
    /// A permission rule was added to this session.
    #[serde(rename = "permission.rule_added")]
    PermissionRuleAdded {
        /// What it says.
        kind: RuleKind,
        /// The rule.
        rule: String,
    },
    /// A permission rule or grant of this session was taken back.
    #[serde(rename = "permission.rule_removed")]
    PermissionRuleRemoved {
        /// What it said.
        kind: RuleKind,
        /// The rule.
        rule: String,
    },
    /// Something waits for a person to decide (not a permission).
    #[serde(rename = "question.requested")]
    QuestionRequested {
        /// The question.
        #[serde(flatten)]
        question: Question,
    },
    /// A question was settled.
    #[serde(rename = "question.resolved")]
    QuestionResolved {
        /// The question.
        request_id: QuestionId,
        /// What it was about.
        kind: QuestionKind,
        /// The call that it was about, if it was about one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        call_id: Option<CallId>,
        /// What is done.
        choice: Choice,
        /// By an answer, an abort or a submit.
        by: SettledBy,
    },
    /// A model call failed and is tried again after a wait.
    #[serde(rename = "retry")]
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Attempts at most; 0: without end.
        max: u32,
        /// The wait.
        delay_ms: u64,
        /// What failed.
        reason: String,
        /// The same as a stable word, as in `error`: `rate_limited`, `overloaded`, `server`, `interrupted`,
        /// `idle`, `unreachable`, or `context_overflow`.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        kind: String,
        /// With `context_overflow`: the next attempt asks for an answer of at most so many tokens, which
        /// is what the provider says there is room for.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        max_output_tokens: Option<u32>,
    },
    /// A long wait before another attempt goes on (told every `[retry] heartbeat`).
    #[serde(rename = "heartbeat")]
    Heartbeat {
        /// What is waited for: the reason of the `retry` before.
        reason: String,
        /// The attempt that failed last.
        attempt: u32,
        /// How long the wait still is.
        remaining_ms: u64,
    },
    /// Nothing has come from the provider for a while (`[retry] idle_warn`). Only a warning: after
    /// `[retry] idle_timeout` the attempt counts as failed.
    #[serde(rename = "stream.idle")]
    StreamIdle {
        /// How long.
        silent_ms: u64,
    },
    /// Another model takes the turn over, until the turn ends. The next turn begins with the session's
    /// model again.
    #[serde(rename = "model.switched")]
    ModelSwitched {
        /// The model until now.
        from: String,
        /// The model from now on.
        to: String,
        /// Why.
        reason: SwitchReason,
        /// The same for people.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        detail: String,
    },
    /// The provider refused the pictures and documents of the conversation. From now on models are told in
    /// words that they are there, with the text of the documents, and are not shown them; the call is made
    /// again at once. What was handed over stays where it is, and what comes later is shown.
    #[serde(rename = "media.withheld")]
    MediaWithheld {
        /// How many there are.
        count: u32,
        /// What the provider said.
        reason: String,
    },
    /// Something a person should know; changes nothing.
    #[serde(rename = "notice")]
    Notice {
        /// A stable word.
        kind: String,
        /// The text.
        text: String,
    },
    /// Something failed.
    #[serde(rename = "error")]
    Error {
        /// A stable word.
        kind: String,
        /// The text, secrets removed.
        message: String,
        /// What caused it, from the outermost to the innermost, where more is known; secrets removed.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        causes: Vec<String>,
    },
}

const fn first() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_first(attempt: &u8) -> bool {
    *attempt == 1
}
