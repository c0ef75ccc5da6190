//! The inputs: everything that can happen to a session.

mod values;

pub use values::{
    AnsweredCommand, EditedCall, JudgedCall, Now, OutsideUsage, QueueEdit, Refusal, RequestAnswer, Rewind,
    SessionUpdate, SubmitRequest,
};

use crate::copy::CopyEnd;
use types::background::UnrecordedEnd;
use types::blob::Blob;
use types::compaction::CompactRequest;
use types::event::{Event, Origin, SettledBy};
use types::history::FileCheckpoint;
use types::hook::HookRun;
use types::ids::{CallId, ItemId, PermissionId, QuestionId, Seq, TurnId};
use types::job::JobEvent;
use types::mcp::{McpCatalog, McpStatus};
use types::model::{Delta, ModelFault, ModelReply};
use types::permission::{Mode, RuleKind, Verdict};
use types::question::{Choice, UserAnswer, UserQuestion};
use types::reminder::FileVersion;
use types::session::{TurnResult, UntrustedParts};
use types::tool::{Inspection, ToolOutcome, ToolProgress};
use types::usage::ModelSnapshot;

/// One thing that happened to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client submitted an input.
    Submit(Box<SubmitRequest>),
    /// A client requests that the conversation is compacted.
    Compact {
        /// The user's instructions for the summary.
        request: CompactRequest,
        /// The client that requests it.
        origin: Option<Origin>,
    },
    /// A client submitted a command that needs no model.
    Command(Box<AnsweredCommand>),
    /// The session built the system prompt.
    ContextReady {
        /// The complete system prompt.
        system: String,
        /// Sources of its parts, for example file names.
        sources: Vec<String>,
        /// The files with project instructions among them.
        instructions: Vec<FileVersion>,
        /// For users: instructions that were left out, each with the reason.
        skipped_instructions: Vec<String>,
        /// Parts of the workspace that need trust, if any.
        untrusted: Option<UntrustedParts>,
    },
    /// The session compared the disk with the versions that the model knows.
    ContextChecked {
        /// The turn that waits for this.
        turn_id: TurnId,
        /// The current versions of read files that differ from the versions that the model has read.
        changed_files: Vec<FileVersion>,
        /// The current files with project instructions; `None` if they could not be read.
        instructions: Option<Vec<FileVersion>>,
    },
    /// The session looked up its MCP servers, or the state of one server changed.
    Mcp {
        /// The states that differ from those that were reported before.
        statuses: Vec<McpStatus>,
        /// The servers' tools and instructions, for a turn that waits for its context. `None` if they
        /// were not looked up.
        catalog: Option<Box<McpCatalog>>,
    },
    /// A check of the workspace found parts that need trust.
    Untrusted(UntrustedParts),
    /// The model streamed more of its answer.
    Deltas {
        /// Token of [`super::Effect::CallModel`].
        token: Seq,
        /// The new parts of the answer, in order.
        deltas: Vec<Delta>,
    },
    /// The model's answer is complete.
    ModelDone {
        /// Token of [`super::Effect::CallModel`].
        token: Seq,
        /// The complete answer.
        reply: Box<ModelReply>,
        /// Cost of the call in millionths of a dollar, if the price is known.
        cost_usd_micros: Option<u64>,
        /// Limits and price of the model at the time of the call.
        model_snapshot: ModelSnapshot,
        /// Duration of the call, in milliseconds.
        duration_ms: u64,
    },
    /// The model call failed.
    ModelFailed {
        /// Token of [`super::Effect::CallModel`].
        token: Seq,
        /// Reason of the failure.
        fault: ModelFault,
        /// Limits and price of the model at the time of the call.
        model_snapshot: ModelSnapshot,
        /// Duration of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A helper call ended.
    HelperDone {
        /// Token of [`super::Effect::AskHelper`].
        token: Seq,
        /// The answer or the fault.
        outcome: Box<Result<ModelReply, ModelFault>>,
        /// Whether the model began to answer. If so, the provider may charge for the call.
        began: bool,
        /// Duration of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A wait ended.
    TimerFired {
        /// Token of [`super::Effect::Sleep`].
        token: Seq,
    },
    /// All calls of a message were prepared and judged.
    Prepared {
        /// The turn that made the calls.
        turn_id: TurnId,
        /// The mode in which they were judged.
        mode: Mode,
        /// The judged calls, in call order.
        calls: Vec<JudgedCall>,
    },
    /// Calls that waited were judged by the rules and the mode in force now.
    RulesChecked {
        /// The turn that made the calls.
        turn_id: TurnId,
        /// The mode in which they were judged.
        mode: Mode,
        /// The verdicts, in call order.
        verdicts: Vec<(CallId, Verdict)>,
    },
    /// A running tool wrote output.
    Progress {
        call_id: CallId,
        /// The new output.
        progress: ToolProgress,
    },
    /// The files that a call will change were read; the call waits for `file.checkpointed`.
    FilesRead {
        call_id: CallId,
        /// The files before the call.
        files: Vec<FileCheckpoint>,
        /// The contents of these files.
        blobs: Vec<Blob>,
    },
    /// A tool ended.
    ToolDone {
        call_id: CallId,
        /// The result of the call.
        outcome: Box<ToolOutcome>,
        /// Duration of the run, in milliseconds.
        duration_ms: u64,
    },
    /// A background command ended.
    CommandOver {
        /// Id of the call that started the command.
        call_id: CallId,
        /// How the command ended.
        over: Box<UnrecordedEnd>,
    },
    HooksRan {
        /// The call that the hooks were about, if any.
        call_id: Option<CallId>,
        /// The runs, in the order of the configuration.
        runs: Vec<HookRun>,
        /// For `stop`: the reason with which a hook makes the session continue.
        continues: Option<String>,
        /// The reason with which a hook ends the turn.
        stops: Option<String>,
        /// A text for the model: for the running turn, else for the next input.
        context: Option<String>,
    },
    HooksRead {
        /// The entries and files that cannot be used, each with file, line and reason.
        problems: Vec<String>,
    },
    /// A running tool asks the user. The effect `AnswerTool` returns the answers.
    ToolAsks {
        call_id: CallId,
        /// The questions of the tool.
        questions: Vec<UserQuestion>,
    },
    /// A running tool no longer waits for the user's answers.
    ToolStoppedAsking { call_id: CallId },
    /// A sub-agent raised a permission request, or one of its requests ended.
    SubagentEvent {
        /// Id of the call that started the sub-agent.
        call_id: CallId,
        /// `permission.requested`, `permission.resolved` or `permission.expired` of the sub-agent's journal.
        event: Box<Event>,
    },
    /// A sub-agent ended.
    SubagentDone {
        /// Id of the call that started the sub-agent.
        call_id: CallId,
        /// The result of the sub-agent's turn, or the reason why there is none.
        done: Box<Result<TurnResult, ToolOutcome>>,
        /// Duration of the run, in milliseconds.
        duration_ms: u64,
    },
    /// A user answered a permission request.
    Answer(Box<RequestAnswer>),
    /// A rule or a mode now allows a pending request.
    AllowedByRule {
        request_id: PermissionId,
        /// How the request is settled: [`SettledBy::Rule`] or [`SettledBy::Mode`].
        by: SettledBy,
        /// The rule that allows the request, or the reason.
        rule: String,
    },
    /// A client changes settings of the session.
    Update(Box<SessionUpdate>),
    /// A client adds or removes a rule of this session.
    Rule {
        /// `true` to add, `false` to remove.
        add: bool,
        /// Whether the rule allows, asks or denies.
        kind: RuleKind,
        /// The rule as text, for example `Bash(git status)`.
        rule: String,
        /// The client that requests the change.
        origin: Option<Origin>,
    },
    /// A client changes the queue.
    EditQueue {
        /// The change.
        edit: QueueEdit,
        /// The client that requests the change.
        origin: Option<Origin>,
    },
    /// A client archives the session or restores it.
    Archive {
        /// `true` to archive, `false` to restore.
        archived: bool,
        /// The client that requests the change.
        origin: Option<Origin>,
    },
    /// The events so far were copied from another session, and no effect runs.
    Forked(Box<CopyEnd>),
    /// The events so far were imported, and no effect runs.
    Imported,
    /// A client rewinds the conversation.
    Rewind(Box<Rewind>),
    /// The deadline of a request may have passed, so check the deadlines.
    DeadlineReached,
    /// A notice for the user.
    Notice {
        /// A stable code for the kind of notice.
        kind: String,
        /// The text for users.
        text: String,
    },
    /// Events of the job that the session works on, oldest first. Those that the session has are ignored.
    JobEvents(Vec<JobEvent>),
    /// The daemon called a model outside the conversation.
    BookUsage(Box<OutsideUsage>),
    /// A user answered a question.
    AnswerQuestion {
        request_id: QuestionId,
        /// The chosen option.
        choice: Choice,
        /// The client that answered.
        origin: Option<Origin>,
    },
    /// A user answered the questions of a model.
    AnswerUser {
        request_id: QuestionId,
        /// One answer for each question.
        answers: Vec<UserAnswer>,
        /// The client that answered.
        origin: Option<Origin>,
    },
    /// A user chose one of two answers of the model.
    ChooseAnswer {
        request_id: QuestionId,
        /// The item of the chosen answer.
        item_id: ItemId,
        /// The client that chose.
        origin: Option<Origin>,
    },
    /// The session inspected the file that an interrupted call was to change.
    Inspected {
        call_id: CallId,
        /// Whether the change took effect, according to the file.
        inspection: Inspection,
    },
    /// A client aborts the turn, or one call of it.
    Abort {
        /// Abort only if this is the current turn.
        turn_id: Option<TurnId>,
        /// Abort only this call.
        call_id: Option<CallId>,
        /// The client that requests the abort.
        origin: Option<Origin>,
    },
    /// A client stops the turn and ends the session.
    Kill {
        /// The client that requests the kill.
        origin: Option<Origin>,
    },
    /// After an abort: no effect of the turn runs any more.
    Stopped {
        /// Limits and price of the turn's model.
        model_snapshot: ModelSnapshot,
    },
    /// A client attached.
    Attached {
        /// Number of attached clients now.
        clients: u32,
        /// The client that attached.
        origin: Option<Origin>,
    },
    /// A client detached.
    Detached {
        /// Number of attached clients now.
        clients: u32,
        /// The client that detached.
        origin: Option<Origin>,
    },
    /// The system's clock was set: it shows `by_ms` milliseconds more than it would without that.
    ClockSet { by_ms: i64 },
    /// The daemon reloaded the configuration.
    Reloaded {
        /// Changed keys that apply from now on.
        changed: Vec<String>,
        /// Changed keys that apply after a restart.
        needs_restart: Vec<String>,
        /// Paths of the changed files.
        files: Vec<String>,
    },
    /// The daemon stops cleanly; no effect of the session runs any more.
    Parked {
        /// Whether a helper call was running and was dropped.
        helped: bool,
    },
    /// The session was loaded after a restart; no effect of it runs.
    Recovered(Recovery),
}

/// Data for recovery that the journal does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Limits and price of the turn's model.
    pub model_snapshot: ModelSnapshot,
}
