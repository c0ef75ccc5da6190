//! Everything that can happen to a session.

use crate::engine::copy::Forked;
use crate::engine::state::Engine;
use crate::types::background::Over;
use crate::types::blob::Blob;
use crate::types::compaction::CompactRequest;
use crate::types::event::{Event, Origin, SettledBy};
use crate::types::history::{FileCheckpoint, RewoundFile};
use crate::types::hook::HookRun;
use crate::types::ids::{CallId, ItemId, Mint, PermissionId, QuestionId, Seed, Seq, TurnId};
use crate::types::mcp::{McpCatalog, McpStatus};
use crate::types::message::InputBlock;
use crate::types::model::{Delta, ModelFault, ModelReply};
use crate::types::permission::{Decision, Mode, RuleKind, Scope, Verdict};
use crate::types::question::{Choice, UserAnswer, UserQuestion, WrongAnswer};
use crate::types::reminder::FileVersion;
use crate::types::session::{TurnResult, Untrusted};
use crate::types::slash_command::SlashCommand;
use crate::types::time::Timestamp;
use crate::types::tool::{Inspection, PreparedCall, Progress, ToolOutcome};
use crate::types::turn_options::TurnOptions;
use crate::types::usage::{ModelSnapshot, Usage};

/// Time and randomness of one decision. `decide` takes both as an argument, so it is a pure function: its ids are
/// computed from this value.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Time of the decision; its events carry it.
    pub at: Timestamp,
    /// Seed of the ids and random values of the decision.
    pub seed: Seed,
}

impl Now {
    pub(super) fn mint(&self) -> Mint {
        Mint::new(self.at.0, self.seed)
    }
}

/// A request to work on an input.
#[derive(Clone, Debug)]
pub struct Submit {
    /// Text, pictures and documents; must not be empty.
    pub input: Vec<InputBlock>,
    /// Contents of the pictures and documents of `input`.
    pub blobs: Vec<Blob>,
    /// Action if a turn is running.
    pub when_busy: Busy,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// Options of the turn.
    pub options: TurnOptions,
    /// The client that submits.
    pub origin: Option<Origin>,
}

/// A slash command or a note that needs no model. Its answer is known.
#[derive(Clone, Debug)]
pub struct AnsweredCommand {
    /// The command; its name is `#` for a note.
    pub command: SlashCommand,
    /// The answer for users.
    pub text: String,
    /// The change of the session that it requests.
    pub change: Option<Box<Update>>,
    /// With [`Busy::Reject`] it is refused while a turn runs. All others are answered at once.
    pub when_busy: Busy,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// The client that submits.
    pub origin: Option<Origin>,
}

/// The action of a submit while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Busy {
    /// The caller gave no policy: queue the input, but if a question is open, settle it by continuing.
    #[default]
    Unspecified,
    /// Wait for the running turn to end.
    Queue,
    /// Steer the running turn.
    Steer,
    /// Abort the running turn first.
    Interrupt,
    /// Refuse the submit.
    Reject,
}

/// A prepared call with its verdict, or the reason why it cannot run.
#[derive(Clone, Debug)]
pub struct JudgedCall {
    /// Id of the call.
    pub call_id: CallId,
    /// Arguments of a hook that replace the model's; the call was prepared with them.
    pub updated_input: Option<serde_json::Value>,
    /// The prepared call and its verdict, or the result of a call that cannot run.
    pub result: Result<(PreparedCall, Verdict), ToolOutcome>,
}

/// A user's answer to a permission request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Id of the request.
    pub request_id: PermissionId,
    /// Allow or deny.
    pub decision: Decision,
    /// How long an allow is valid.
    pub scope: Scope,
    /// The grant to store, with scopes `session` and `project`.
    pub grant: Option<String>,
    /// Feedback of the user for the model.
    pub feedback: Option<String>,
    /// Whether the turn ends with this denial.
    pub stop: bool,
    /// Whether the client denies because it has no user to ask: the action of `on_timeout` then applies at
    /// once.
    pub no_approver: bool,
    /// Arguments that replace the model's, prepared and judged before. Never present with a denial.
    pub edited: Option<EditedCall>,
    /// The mode that follows plan mode, for the approval of a plan.
    pub mode: Option<Mode>,
    /// Digest of the request that the user saw; the answer is refused if the pending request differs.
    pub digest: Option<String>,
    /// The client that answered.
    pub origin: Option<Origin>,
}

/// Arguments of a user that replace the model's.
#[derive(Clone, Debug)]
pub struct EditedCall {
    /// The new arguments.
    pub input: serde_json::Value,
    /// The call as prepared with the new arguments.
    pub prepared: PreparedCall,
}

/// Changes of a session. Absent values stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// Short name.
    pub title: Option<String>,
    /// Options of later turns. Mode, safe mode and folders also apply to the running turn.
    pub options: TurnOptions,
    /// Pending requests that the new mode allows, each with the reason.
    pub covered: Vec<(PermissionId, String)>,
    /// The client that requests the change.
    pub origin: Option<Origin>,
}

/// A rewind of the conversation.
#[derive(Clone, Debug)]
pub struct Rewind {
    /// The item that becomes the last one.
    pub item_id: ItemId,
    /// Seq of the event that opened it.
    pub last_item_seq: Seq,
    /// The items that are removed.
    pub removed_items: Vec<ItemId>,
    /// The state at that item: a copy of the journal up to it, after [`Input::Forked`].
    pub target: Box<Engine>,
    /// The files that were rewound.
    pub files: Vec<RewoundFile>,
    /// The client that requests the rewind.
    pub origin: Option<Origin>,
}

/// A change of the queue.
#[derive(Clone, Debug)]
pub enum QueueEdit {
    /// Remove all queued turns.
    Clear,
    /// Remove one queued turn.
    Remove {
        /// The queued turn.
        turn_id: TurnId,
    },
    /// Replace the input of a queued turn.
    Update {
        /// The queued turn.
        turn_id: TurnId,
        /// The new input; must not be empty.
        input: Vec<InputBlock>,
        /// Contents of the pictures and documents of `input`.
        blobs: Vec<Blob>,
    },
    /// Move a queued turn.
    Move {
        /// The queued turn.
        turn_id: TurnId,
        /// The queued turn that follows it afterwards; `None` moves it to the end.
        before: Option<TurnId>,
    },
}

/// One thing that happened to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client submitted an input.
    Submit(Box<Submit>),
    /// A client requests that the conversation is compacted.
    Compact {
        /// The user's wishes.
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
        untrusted: Option<Untrusted>,
    },
    /// The session compared the disk with what the model knows.
    ContextChecked {
        /// The turn that waits for this.
        turn_id: TurnId,
        /// The current versions of read files that differ from what the model has read.
        changed_files: Vec<FileVersion>,
        /// The current files with project instructions; `None` if they could not be read.
        instructions: Option<Vec<FileVersion>>,
    },
    /// The MCP servers of the session were looked up, or the state of one changed.
    Mcp {
        /// The states that differ from those that were reported before.
        statuses: Vec<McpStatus>,
        /// What they contribute to a turn that waits for its context; `None` if that was not looked up.
        catalog: Option<Box<McpCatalog>>,
    },
    /// A check of the workspace found parts that need trust.
    Untrusted(Untrusted),
    /// The model streamed more of its answer. `token` is that of the effect that called the model.
    Deltas {
        /// Token of [`super::Effect::CallModel`].
        token: Seq,
        /// In order.
        deltas: Vec<Delta>,
    },
    /// The model's answer is complete.
    ModelDone {
        /// Token of [`super::Effect::CallModel`].
        token: Seq,
        /// The complete answer.
        reply: Box<ModelReply>,
        /// Its cost in millionths of a dollar, if the price is known.
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
        /// Whether an answer began, because the provider may charge for it.
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
        /// In call order.
        calls: Vec<JudgedCall>,
    },
    /// A running tool wrote output.
    Progress {
        /// Id of the call.
        call_id: CallId,
        /// The new output.
        progress: Progress,
    },
    /// The files that a call will change were read; the call waits for `file.checkpointed`.
    FilesRead {
        /// Id of the call.
        call_id: CallId,
        /// The files before the call.
        files: Vec<FileCheckpoint>,
        /// Their contents.
        blobs: Vec<Blob>,
    },
    /// A tool ended.
    ToolDone {
        /// Id of the call.
        call_id: CallId,
        /// The result of the call.
        outcome: Box<ToolOutcome>,
        /// Duration of the run, in milliseconds.
        duration_ms: u64,
    },
    /// A background command ended.
    CommandOver {
        /// The call that started it.
        call_id: CallId,
        /// How it ended.
        over: Box<Over>,
    },
    /// Hooks ran.
    HooksRan {
        /// The call that they were about, if any.
        call_id: Option<CallId>,
        /// The runs, in the order of the configuration.
        runs: Vec<HookRun>,
        /// For `stop`: the reason with which a hook makes the session continue.
        continues: Option<String>,
    },
    /// A running tool asks the user; its answer is the effect `AnswerTool`.
    ToolAsks {
        /// The call.
        call_id: CallId,
        /// What it asks.
        questions: Vec<UserQuestion>,
    },
    /// A running tool no longer waits for the user's answers.
    ToolStoppedAsking {
        /// The call.
        call_id: CallId,
    },
    /// A sub-agent raised a permission request, or one of its requests ended.
    SubagentEvent {
        /// The call that started it.
        call_id: CallId,
        /// `permission.requested`, `permission.resolved` or `permission.expired` of its journal.
        event: Box<Event>,
    },
    /// A sub-agent ended.
    SubagentDone {
        /// The call that started it.
        call_id: CallId,
        /// The result of its turn, or why there is none.
        done: Box<Result<TurnResult, ToolOutcome>>,
        /// Duration of the run, in milliseconds.
        duration_ms: u64,
    },
    /// A user answered a permission request.
    Answer(Box<Answer>),
    /// A rule or a mode now allows a pending request.
    AllowedByRule {
        /// Id of the request.
        request_id: PermissionId,
        /// The change: [`SettledBy::Rule`] or [`SettledBy::Mode`].
        by: SettledBy,
        /// The rule or the reason.
        rule: String,
    },
    /// A client changes settings of the session.
    Update(Box<Update>),
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
        /// Whether it is archived from now on.
        archived: bool,
        /// The client that requests the change.
        origin: Option<Origin>,
    },
    /// The events so far were copied from another session; nothing runs.
    Forked(Box<Forked>),
    /// The events so far were imported; nothing runs.
    Imported,
    /// A client rewinds the conversation.
    Rewind(Box<Rewind>),
    /// The deadline of a request may have passed.
    DeadlineReached,
    /// A notice for the user.
    Notice {
        /// A stable code.
        kind: String,
        /// The text.
        text: String,
    },
    /// A model was called about the index of the workspace.
    UsageOfIndex {
        /// `PROVIDER/MODEL`.
        model: String,
        /// Its tokens.
        usage: Usage,
        /// Its cost; `None` if the price is unknown.
        cost_usd_micros: Option<u64>,
        /// Limits and price of the model.
        model_snapshot: ModelSnapshot,
        /// It gave no answer, but the provider may charge for it.
        is_lost: bool,
    },
    /// A user answered a question.
    AnswerQuestion {
        /// Id of the question.
        request_id: QuestionId,
        /// The chosen option.
        choice: Choice,
        /// The client that answered.
        origin: Option<Origin>,
    },
    /// A user answered the questions of a model.
    AnswerUser {
        /// Id of the question.
        request_id: QuestionId,
        /// One answer for each question.
        answers: Vec<UserAnswer>,
        /// The client that answered.
        origin: Option<Origin>,
    },
    /// A user chose one of two answers of the model.
    ChooseAnswer {
        /// Id of the request.
        request_id: QuestionId,
        /// The item of the chosen answer.
        item_id: ItemId,
        /// The client that chose.
        origin: Option<Origin>,
    },
    /// The session inspected the file that an interrupted call was to change.
    Inspected {
        /// Id of the call.
        call_id: CallId,
        /// Whether the change took effect, according to the file.
        inspection: Inspection,
    },
    /// A client aborts the turn, or one call of it.
    Abort {
        /// Only if this is the current turn.
        turn_id: Option<TurnId>,
        /// Only this call.
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
    /// The daemon reloaded the configuration.
    Reloaded {
        /// Changed keys that apply from now on.
        changed: Vec<String>,
        /// Changed keys that apply after a restart.
        needs_restart: Vec<String>,
    },
    /// The daemon stops cleanly; no effect of the session runs any more.
    Parked {
        /// A helper call was running and was dropped.
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

/// Why an input is refused. A refused input writes no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The input is empty.
    EmptyInput,
    /// A turn runs and the caller does not want to wait.
    Busy {
        /// The running turn.
        turn_id: TurnId,
    },
    /// Another turn is current, or none.
    StaleTurn {
        /// The current turn.
        current: Option<TurnId>,
    },
    /// The request is not pending.
    NotPending,
    /// The answer does not fit the question.
    WrongAnswer(WrongAnswer),
    /// Only an approval of a plan names the mode that follows.
    ModeOfOtherAnswer,
    /// A plan is approved once; an approval neither grants anything nor continues plan mode.
    PlanNeedsOtherMode,
    /// The request offers no such answer.
    NoSuchAnswer,
    /// No user can answer, and `on_timeout = "pause"`: the request stays pending.
    Paused,
    /// There is no unfinished call with this id.
    NoSuchCall,
    /// The session was killed.
    Ended,
    /// The session has used up the limits that the submit names.
    Budget(String),
    /// The session is archived.
    Archived,
    /// Background commands of the session run.
    CommandsRun,
    /// This turn is not queued.
    NotQueued {
        /// The turn.
        turn_id: TurnId,
    },
    /// The answer asks for a grant, but none can be derived from the request.
    NoGrant,
    /// The client saw a different request than the pending one.
    OtherRequest,
    /// Steering input may not set a mode.
    ModeOfSteer,
    /// Steering input may not set a model.
    ModelOfSteer,
    /// Steering input may not set thinking, because it never changes during a turn.
    ThinkingOfSteer,
    /// Steering input may not set tools, because the running turn has its own.
    ToolsOfSteer,
    /// Steering input may not set a temperature or `top_p`.
    SamplingOfSteer,
    /// A slash command starts a turn of its own.
    CommandOfSteer,
    /// Steering input may not set this option, because the running turn has its own.
    OptionOfSteer(&'static str),
    /// This session has no such rule.
    NoSuchRule,
    /// A command that the sandbox blocked may run outside only unchanged, once or with its own grant of the
    /// session.
    RetryMustBeUnchanged,
}
