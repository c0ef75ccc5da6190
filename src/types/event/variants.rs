//! All events. Each variant is documented here; `proto-docs/events.md` prints it.
//!
//! Their names are in the past tense. `*_delta` and `tool.progress` are *pruned*: they are removed in the transaction
//! that writes the event with the complete content. All other events are permanent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::defaults::{aborted, first, is_aborted, is_first};
use crate::background::{BackgroundEnd, BackgroundRead, BackgroundState, BashId};
use crate::blob::{Attachment, BlobRef};
use crate::compaction::{CompactStage, CompactTrigger, WindowEdit};
use crate::history::{FileCheckpoint, ForkedFrom, RewoundHistory};
use crate::hook::{HookRun, HookStatus};
use crate::ids::{CallId, ItemId, PermissionId, QuestionId, SessionId, TurnId};
use crate::job::JobEvent;
use crate::mcp::{McpCatalog, McpStatus};
use crate::message::{InputBlock, Message};
use crate::model::{BlockKind, StopReason};
use crate::permission::{Decision, OnTimeout, RuleKind, Scope};
use crate::question::{Choice, Question, QuestionKind, UserAnswer};
use crate::reason::{
    DequeueReason, FeedbackBy, Phase, Purpose, SettledBy, SwitchReason, TitledBy, TombstoneReason,
    UsageReason,
};
use crate::reminder::{FileVersion, ReminderKind};
use crate::session::{Item, PermissionRequest, Requires, SessionSpec, SessionState, Subtype, TurnResult};
use crate::todo::Todo;
use crate::tool::{Blocked, Confinement, FileChange, PlannedChange, PreparedCall, ReadRecord, ToolStatus};
use crate::turn_options::TurnOptions;
use crate::usage::{BudgetKind, Budgets, ModelSnapshot, Usage};

/// The type and the content of an event. The `type` on the wire is dotted.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Event {
    /// The session was created.
    #[serde(rename = "session.created")]
    SessionCreated(Box<SessionSpec>),
    /// The title or options of the session changed. Unchanged ones are absent. Mode, safe mode, folders and fallback
    /// model apply at once.
    #[serde(rename = "session.updated")]
    SessionUpdated {
        /// New title.
        title: Option<String>,
        /// Source of the title, if no client set it.
        titled_by: Option<TitledBy>,
        /// New options. An empty value removes the session's own.
        #[serde(flatten)]
        options: Box<TurnOptions>,
    },
    /// The session's state changed.
    #[serde(rename = "session.status")]
    SessionStatus {
        /// New state of the session.
        state: SessionState,
        /// The kind of decision that it waits for.
        requires: Option<Requires>,
    },
    /// The system prompt was built. It is stored, so that it stays byte-identical.
    #[serde(rename = "session.prompt_built", alias = "session.context")]
    SessionPromptBuilt {
        /// The complete system prompt.
        system: String,
        /// Sources of its parts, as text for users.
        sources: Vec<String>,
        /// The files with project instructions that it contains. A reminder reports a later change of them to the
        /// model. Absent in journals of older versions.
        instructions: Option<Vec<FileVersion>>,
        /// Instructions that were left out, each with the reason.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        skipped_instructions: Vec<String>,
    },
    /// The state of an MCP server changed for this session.
    #[serde(rename = "mcp.status")]
    McpStatus(McpStatus),
    /// The tools and instructions of MCP servers changed for later turns. A running turn keeps those with which it
    /// started.
    #[serde(rename = "mcp.tools")]
    McpTools(McpCatalog),
    /// A client attached.
    #[serde(rename = "session.attached")]
    SessionAttached {
        /// Number of attached clients now.
        clients: u32,
    },
    /// A client detached.
    #[serde(rename = "session.detached")]
    SessionDetached {
        /// Number of attached clients now.
        clients: u32,
    },
    /// The daemon reloaded its configuration, or files that extend the session changed. Sessions with clients or a
    /// running turn receive this event; running work keeps its settings.
    #[serde(rename = "config.reloaded")]
    ConfigReloaded {
        /// Keys that changed and apply from now on, for example `retry.attempts`. For files: `commands`, `skills`,
        /// `agents`, `instructions`.
        changed: Vec<String>,
        /// Keys that changed and apply only after a restart of the daemon.
        needs_restart: Vec<String>,
        /// Paths of the files that changed, as far as they are known, or of the configuration that was read again.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        files: Vec<String>,
    },
    /// The system's clock was set while a turn runs. Durations and limits do not count this change, but the times of
    /// earlier and later events differ by it.
    #[serde(rename = "clock.changed")]
    ClockChanged {
        /// How much later the clock shows than it would without the change, in milliseconds; negative if earlier.
        by_ms: i64,
    },
    /// The session was killed and accepts no more input.
    #[serde(rename = "session.ended")]
    SessionEnded {
        /// Reason of the end.
        reason: String,
    },
    /// The history before this event was copied from another session. Its turns and costs are those of that
    /// session.
    #[serde(rename = "session.forked")]
    SessionForked {
        /// The source of the copy.
        forked_from: ForkedFrom,
        /// Tokens of the newest copied answer and of its request.
        #[serde(default)]
        context_tokens: u64,
    },
    /// The conversation was rewound: the item `item_id` is its last one again. The events of the removed items
    /// stay in the journal.
    #[serde(rename = "session.rewound")]
    SessionRewound(RewoundHistory),
    /// A client archived the session, or restored it from the archive. An archived session is kept and
    /// accepts no input.
    #[serde(rename = "session.archived")]
    SessionArchived {
        /// Whether it is archived from now on.
        archived: bool,
    },
    /// The workspace contains parts that are used only with trust.
    #[serde(rename = "workspace.trust_required")]
    WorkspaceTrustRequired {
        /// Path of the workspace's folder.
        cwd: String,
        /// Parts that are not used until the user trusts the folder, as text for users.
        parts: Vec<String>,
        /// Digest of all parts, as a parameter of `workspace.trust`.
        #[serde(default)]
        digest: String,
    },
    /// The conversation started again. The model receives none of the earlier messages, and counts as not having read
    /// any file. The journal keeps the messages.
    #[serde(rename = "session.cleared")]
    SessionCleared {},
    /// A slash command or a note was answered without a model call. It belongs to the running turn, if there is
    /// one, else to a turn of its own that ends at once.
    #[serde(rename = "command.completed")]
    CommandCompleted {
        /// The command's name without the slash, or `#` for a note.
        name: String,
        /// The text after the name.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        arguments: String,
        /// The answer for users.
        text: String,
    },
    /// A reminder for the model was added to the newest message of the user's role. It stays there unchanged.
    #[serde(rename = "reminder.added")]
    ReminderAdded {
        /// The occasion.
        kind: ReminderKind,
        /// The text for the model.
        text: String,
        /// The versions of files that it reports, so that it reports each version once.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        files: Vec<FileVersion>,
    },
    /// The final answer does not satisfy the turn's `output_schema`. The model receives the reasons and answers
    /// again.
    #[serde(rename = "turn.output_rejected")]
    TurnOutputRejected {
        /// Number of rejected answers so far, from 1.
        attempt: u32,
        /// Number of corrections that the model may make.
        max: u32,
        /// The problems, as text for users.
        errors: Vec<String>,
        /// The text for the model.
        text: String,
    },
    /// An input waits for the running turn to end.
    #[serde(rename = "turn.queued")]
    TurnQueued {
        /// Text, pictures and documents of the input.
        input: Vec<InputBlock>,
        /// Whether it starts before the other queued inputs.
        #[serde(default)]
        front: bool,
        /// Options of the turn that replace the session's.
        #[serde(flatten)]
        options: Box<TurnOptions>,
    },
    /// A queued turn (`turn_id`) left the queue and will not start.
    #[serde(rename = "turn.dequeued")]
    TurnDequeued {
        /// Reason of the removal.
        reason: DequeueReason,
    },
    /// The input of a queued turn (`turn_id`) was replaced. Its place and its options are unchanged, except that it is no
    /// longer a slash command.
    #[serde(rename = "turn.queue_updated")]
    TurnQueueUpdated {
        /// The new text, pictures and documents.
        input: Vec<InputBlock>,
    },
    /// A queued turn (`turn_id`) moved to another place in the queue.
    #[serde(rename = "turn.queue_moved")]
    TurnQueueMoved {
        /// The queued turn that now follows it; absent if it is the last one.
        before: Option<TurnId>,
    },
    /// A turn started.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// Options of the turn. Model, mode, budgets, thinking and sampling are present even if they equal the
        /// session's.
        #[serde(flatten)]
        options: Box<TurnOptions>,
    },
    /// The system prompt of this turn was built, because the turn has another one than its session.
    #[serde(rename = "turn.prompt_built")]
    TurnPromptBuilt {
        /// The complete system prompt.
        system: String,
        /// Sources of its parts, as text for users.
        sources: Vec<String>,
    },
    /// The phase of the turn changed.
    #[serde(rename = "turn.phase")]
    TurnPhase {
        /// The new phase.
        phase: Phase,
        /// With `model_call`: tokens of the request, counted from its characters without calibration.
        uncalibrated_tokens: Option<u64>,
    },
    /// The daemon stops cleanly, and the turn is at a point where it can continue. Its resume does not count in
    /// `resumes`.
    #[serde(rename = "turn.parked")]
    TurnParked {},
    /// An interrupted turn continues after a restart.
    #[serde(rename = "turn.resumed")]
    TurnResumed {
        /// How often this turn was resumed after a stop that was not clean.
        resumes: u32,
        /// The wait before it continues, in milliseconds: 0 the first time, then longer each time.
        #[serde(default)]
        delay_ms: u64,
    },
    /// A client submitted an input for the running turn. The model receives it with the next tool results.
    #[serde(rename = "turn.steered")]
    TurnSteered {
        /// Text, pictures and documents of the input.
        input: Vec<InputBlock>,
    },
    /// An abort was accepted; all work of the turn is being stopped.
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
        /// The result of the turn.
        result: TurnResult,
    },
    /// A model's answer started.
    #[serde(rename = "message.started")]
    MessageStarted {
        /// `PROVIDER/MODEL` that answers.
        model: String,
        /// Number of the attempt at this call, from 1.
        attempt: u32,
    },
    /// A block of the answer started.
    #[serde(rename = "message.block_started")]
    MessageBlockStarted {
        /// Position of the block.
        index: u32,
        /// Kind of the block.
        block: BlockKind,
    },
    /// More text. Pruned.
    #[serde(rename = "message.text_delta")]
    MessageTextDelta {
        /// Position of the block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More reasoning. Pruned.
    #[serde(rename = "message.thinking_delta")]
    MessageThinkingDelta {
        /// Position of the block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More of a tool call's arguments, as JSON text. Pruned.
    #[serde(rename = "message.tool_input_delta")]
    MessageToolInputDelta {
        /// Position of the block.
        index: u32,
        /// The new part.
        json: String,
    },
    /// A block of the answer is complete.
    #[serde(rename = "message.block_completed")]
    MessageBlockCompleted {
        /// Position of the block.
        index: u32,
        /// For reasoning: the provider's signature over its text.
        signature: Option<String>,
        /// For encrypted reasoning: the complete data.
        data: Option<String>,
    },
    /// A message is complete (or was interrupted: then `item.status` is `interrupted`).
    #[serde(rename = "message.completed")]
    MessageCompleted {
        /// The item with the complete message.
        item: Item,
        /// Id of the item of kind `reasoning`, if there is one. Its text is in `item`.
        reasoning_item_id: Option<ItemId>,
        /// `PROVIDER/MODEL` of an answer.
        model: Option<String>,
        /// Why the answer ended.
        stop_reason: Option<StopReason>,
        /// Tokens of the call.
        usage: Option<Usage>,
        /// Whether `usage` is an upper estimate, because the provider reported none.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        estimated: bool,
        /// Cost of the call, in millionths of a dollar; absent if the price is unknown.
        cost_usd_micros: Option<u64>,
        /// Limits and price of the model at the time of the call.
        #[serde(default, alias = "terms")]
        model_snapshot: Option<ModelSnapshot>,
        /// Duration of the call, in milliseconds.
        duration_ms: Option<u64>,
        /// The provider's id of the answer.
        response_id: Option<String>,
        /// For an `interrupted` message: the model's next answer replaces this text. Clients must not show both.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        superseded: bool,
        /// Whether this is the cached answer to the same request shortly before. If so, no model was called, and the
        /// answer costs nothing.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        cache_hit: bool,
        /// For an answer: tokens of its request, estimated from its characters. The ratio of the reported tokens to
        /// this number corrects later estimates.
        uncalibrated_tokens: Option<u64>,
        /// Whether the stream broke off after complete tool calls, which may have run. The answer then ends with
        /// these calls.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        cut_short: bool,
        /// Whether this is one of two answers to choose from (`feedback.request`). Such an answer is not part of the
        /// conversation. The chosen answer is copied into the conversation as a new item.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        candidate: bool,
    },
    /// The model answered twice, and a client chooses the answer with which the turn continues.
    #[serde(rename = "feedback.request")]
    FeedbackRequested {
        /// Its id, as a parameter of `session.feedback`; a restart does not change it.
        request_id: QuestionId,
        /// The answers, in the order in which they were written.
        item_ids: Vec<ItemId>,
    },
    /// The answer `item_id` was chosen. Without an item, the turn was aborted before the choice. Both candidates get
    /// a `message.tombstone`; then `message.completed` of a new item with the chosen content follows.
    #[serde(rename = "feedback.completed")]
    FeedbackCompleted {
        /// The request; absent if no client was asked.
        request_id: Option<QuestionId>,
        /// How it was chosen.
        by: FeedbackBy,
        /// Tokens of the chosen answer and of its request.
        #[serde(default)]
        context_tokens: u64,
    },
    /// A partial answer (`item_id`) is discarded: another one replaces it. Clients remove what they show of it.
    #[serde(rename = "message.tombstone")]
    MessageTombstone {
        /// Reason of the discard.
        reason: TombstoneReason,
    },
    /// The history was invalid for providers and was repaired when the session was loaded.
    #[serde(rename = "history.repaired")]
    HistoryRepaired {
        /// Number of messages at the beginning that are unchanged.
        #[serde(alias = "kept")]
        kept_messages: u64,
        /// Replacements of all messages after them.
        messages: Vec<Message>,
        /// The repairs, as text for users.
        changes: Vec<String>,
    },
    /// A stage of compaction started. Most stages complete in the same transaction; `autocompact` calls a model.
    #[serde(rename = "compact.started")]
    CompactStarted {
        /// The stage.
        stage: CompactStage,
        /// Why the conversation is compacted.
        trigger: CompactTrigger,
        /// Tokens of the next request, as far as they are known.
        tokens_before: u64,
        /// For `autocompact`: number of messages, from the oldest, that the summary replaces.
        messages: Option<u64>,
    },
    /// A stage of compaction ended. Later requests contain less; the journal keeps all events.
    #[serde(rename = "compact.completed")]
    CompactCompleted {
        /// The stage.
        stage: CompactStage,
        /// Why the conversation is compacted.
        trigger: CompactTrigger,
        /// Tokens of the next request before the stage.
        tokens_before: u64,
        /// Tokens of the next request after the stage, estimated.
        tokens_after: u64,
        /// Why the stage changed nothing: a code of `error`, `empty_summary`, `no_saving`, or `aborted`.
        error: Option<String>,
        /// The change of the messages that later requests contain. Absent after an error, and for a result that was
        /// shortened when its call ended: its `tool.completed` has the short text.
        edit: Option<WindowEdit>,
    },
    /// Tokens were booked that belong to no complete answer of a turn. They count like tokens of an answer, and the
    /// attempt counts as a model call, so that budgets also hold after crashes. Tokens of a helper call count only
    /// for the session.
    #[serde(rename = "usage")]
    UsageBooked {
        /// `PROVIDER/MODEL` of the call.
        model: String,
        /// Tokens and searches of the call.
        usage: Usage,
        /// Cost of the tokens and searches, in millionths of a dollar; absent if the price is unknown.
        cost_usd_micros: Option<u64>,
        /// Limits and price of the model at the time of the call.
        #[serde(default, alias = "terms")]
        model_snapshot: Option<ModelSnapshot>,
        /// Reason of the booking.
        reason: UsageReason,
        /// Purpose of the call, if it was a helper call.
        purpose: Option<Purpose>,
        /// Whether `usage` is an upper estimate: one token for every two bytes of the request and of the answer, or
        /// the maximum usage of a helper call. Reported input tokens replace the estimate. Reported output tokens
        /// replace it only if they are larger.
        estimated: bool,
    },
    /// A helper call started in the background. No turn waits for it. If it fails, it is not retried.
    #[serde(rename = "helper.started")]
    HelperStarted {
        /// Purpose of the call.
        purpose: Purpose,
        /// `PROVIDER/MODEL` of the call.
        model: String,
        /// Known limits and price of the model.
        #[serde(alias = "terms")]
        model_snapshot: ModelSnapshot,
        /// Maximum usage of the call. It is booked if the end of the call is not recorded.
        #[serde(alias = "most")]
        max_usage: Usage,
    },
    /// A helper call ended. Its usage, if any, was booked before by `usage`.
    #[serde(rename = "helper.completed")]
    HelperCompleted {
        /// Purpose of the call.
        purpose: Purpose,
        /// `PROVIDER/MODEL` of the call.
        model: String,
        /// Stable code of the failure: a code of `error`, or `unusable` (an answer that is no title), or
        /// `stopped` (with the daemon or the session). Absent after a success.
        fault: Option<String>,
        /// The failure as text for users.
        detail: Option<String>,
        /// Duration of the call in milliseconds, if its end was recorded.
        duration_ms: Option<u64>,
    },
    /// The model requested a tool call. The rest of its message may still be streaming.
    #[serde(rename = "tool.requested")]
    ToolRequested {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool: String,
        /// The full arguments.
        input: Value,
        /// The call as one line for users, from its arguments alone: a command, or a verb and a path. Absent in
        /// events of versions before 0.2.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        summary: String,
        /// The provider's id of the call, if its message is still streaming.
        provider_id: Option<String>,
    },
    /// The call may run after the calls before it have ended.
    #[serde(rename = "tool.status")]
    ToolStatus {
        /// Id of the call.
        call_id: CallId,
        /// The prepared call that was judged.
        prepared: PreparedCall,
        /// The rule, mode or request that allows it.
        allowed_by: String,
        /// Arguments from a hook, which replace the model's.
        updated_input: Option<Value>,
    },
    /// Execution starts. The event is written and synced before the tool runs.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool: String,
        /// The rule, mode or answered request that allows it.
        allowed_by: String,
        /// Whether it changes nothing.
        read_only: bool,
        /// For calls that change a file: its content hash before and after.
        change: Option<PlannedChange>,
        /// For commands: their confinement.
        sandbox: Option<Confinement>,
        /// Number of the run; 1 if absent. 2 means that the command runs again, outside the sandbox that blocked its
        /// first run.
        #[serde(skip_serializing_if = "is_first", default = "first")]
        attempt: u8,
    },
    /// A command ran and failed, and the sandbox probably blocked it. A `permission.requested` of kind
    /// `sandbox` follows, which asks for a second run outside. The effects of the first run remain. This result
    /// becomes the result of the call unless there is a second run.
    #[serde(rename = "tool.blocked")]
    ToolBlocked {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool: String,
        /// The part of the sandbox that blocked it.
        blocked: Blocked,
        /// Status of the first run.
        status: ToolStatus,
        /// Output of the first run, as the model would receive it.
        output: String,
        /// The full output, if `output` is only its beginning and its end.
        output_blob: Option<BlobRef>,
        /// A stable code of the failure.
        code: Option<String>,
        /// Additional data for clients: exit code, counts.
        detail: Option<Value>,
        /// Duration from start to end, in milliseconds.
        duration_ms: u64,
        /// The folder for further commands, if it changed.
        cwd: Option<String>,
    },
    /// Output of a running tool, or of a background command until it ends. Pruned.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// Id of the call.
        call_id: CallId,
        /// `stdout`, to which both streams of a command go in the order of their writes, or `progress` for a note that
        /// says how far a call without output is. Older journals have `stderr` as well.
        stream: String,
        /// The new part.
        text: String,
    },
    /// A tool call ended, with any status.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// Id of the call.
        call_id: CallId,
        /// Name of the tool.
        tool: String,
        /// Status of the call.
        status: ToolStatus,
        /// The output for the model.
        output: String,
        /// The full output, if `output` is only its beginning and its end.
        output_blob: Option<BlobRef>,
        /// Pictures and documents that the model receives with the result.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<Attachment>,
        /// A stable code of a failure.
        code: Option<String>,
        /// Additional data for clients: exit code, counts, encoding.
        detail: Option<Value>,
        /// Duration from start to end, in milliseconds; 0 if it never ran.
        duration_ms: u64,
        /// The versions of files that the model has now seen.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        reads: Vec<ReadRecord>,
        /// The folder for further commands, if it changed.
        cwd: Option<String>,
        /// For BashOutput: how much of a background command's output the model has now received.
        #[serde(default, alias = "told")]
        background_read: Option<BackgroundRead>,
    },
    /// All calls of an answer ended. Only an answer with two or more calls has a summary.
    #[serde(rename = "tool.summary")]
    ToolSummary {
        /// The calls, in the order of the answer.
        call_ids: Vec<CallId>,
        /// A summary of the calls as text for users, for example `read 2 files, ran 1 command; 1 failed`.
        text: String,
    },
    /// A command continues in the background after its call returned, or it ended. It belongs to the session:
    /// `turn_id` is present only while the turn that started it runs.
    #[serde(rename = "tool.background")]
    ToolBackground {
        /// The call that started it.
        call_id: CallId,
        /// Its name in the session, for example `bash_1`.
        bash_id: BashId,
        /// State of the command.
        state: BackgroundState,
        /// The beginning of the command, with `running`.
        command: Option<String>,
        /// The end of the command, if it ended.
        #[serde(flatten, default)]
        end: Option<BackgroundEnd>,
    },
    /// The content of files was stored before a tool call changes them, so that a rewind can restore it.
    #[serde(rename = "file.checkpointed")]
    FileCheckpointed {
        /// Id of the call.
        call_id: CallId,
        /// The files that the call may change.
        files: Vec<FileCheckpoint>,
    },
    /// A tool changed a file.
    #[serde(rename = "file.changed")]
    FileChanged {
        /// Id of the call.
        call_id: CallId,
        /// The changed file with its diff.
        #[serde(flatten)]
        change: FileChange,
    },
    /// The model changed the todo list of the session.
    #[serde(rename = "todo.updated")]
    TodoUpdated {
        /// The whole new list.
        todos: Vec<Todo>,
    },
    /// A tool call waits for the user's permission.
    #[serde(rename = "permission.requested")]
    PermissionRequested {
        /// The request as clients receive it.
        #[serde(flatten)]
        request: PermissionRequest,
        /// Whether the call changes nothing.
        #[serde(default)]
        read_only: bool,
        /// For calls that change a file: its content hash before and after.
        change: Option<PlannedChange>,
        /// For commands: their confinement.
        sandbox: Option<Confinement>,
    },
    /// A permission request was settled.
    #[serde(rename = "permission.resolved")]
    PermissionResolved {
        /// Id of the request.
        request_id: PermissionId,
        /// Id of the call.
        call_id: CallId,
        /// Allow or deny.
        decision: Decision,
        /// How long an allow is valid.
        scope: Scope,
        /// The grant that the user gave with the answer.
        grant: Option<String>,
        /// Feedback of the user for the model.
        feedback: Option<String>,
        /// How it was settled: an answer, an abort, a rule, a change of mode, or a missing answer.
        by: SettledBy,
        /// For `rule` or `mode`: the rule or mode that allows the call.
        rule: Option<String>,
        /// The user's arguments, which replace the model's.
        updated_input: Option<Value>,
        /// The call as prepared with the changed arguments.
        prepared: Option<PreparedCall>,
        /// Whether the turn ends with this denial.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        stop: bool,
        /// For a request of a sub-agent: the session that waited.
        child_session_id: Option<SessionId>,
    },
    /// A permission request was not answered by its deadline. With `pause` it stays pending; else
    /// `permission.resolved` follows.
    #[serde(rename = "permission.expired")]
    PermissionExpired {
        /// Id of the request.
        request_id: PermissionId,
        /// Id of the call.
        call_id: CallId,
        /// The action that applies.
        on_timeout: OnTimeout,
        /// For a request of a sub-agent: the session that waits.
        child_session_id: Option<SessionId>,
    },
    /// A `Task` call starts a sub-agent. The session `child_session_id` is created after this event.
    #[serde(rename = "subagent.started")]
    SubagentStarted {
        /// Id of the call.
        call_id: CallId,
        /// The session of the sub-agent.
        child_session_id: SessionId,
        /// Name of its agent.
        agent: String,
        /// Its task in a few words, as the model wrote them.
        #[serde(default)]
        description: String,
        /// The limits of the sub-agent. They are the part of this session's limits that is reserved for it.
        #[serde(default)]
        budgets: Budgets,
        /// Whether the call returns at once and the sub-agent continues.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        background: bool,
    },
    /// A sub-agent ended. Its usage counts for this session and its turn from now on.
    #[serde(rename = "subagent.completed")]
    SubagentCompleted {
        /// Id of the call.
        call_id: CallId,
        /// The session of the sub-agent.
        child_session_id: SessionId,
        /// The result of the turn that worked on the call's prompt.
        result: Box<TurnResult>,
    },
    /// The sub-agent takes over the read files of the session that started it.
    #[serde(rename = "session.inherited")]
    SessionInherited {
        /// The files that the other session has read.
        reads: Vec<ReadRecord>,
    },
    /// A hook ran.
    #[serde(rename = "hook.completed")]
    HookCompleted {
        /// The call that it was about, if any.
        call_id: Option<CallId>,
        /// The result of the hook.
        #[serde(flatten)]
        run: HookRun,
    },
    /// What hooks left behind in the session has changed.
    #[serde(rename = "hooks.status")]
    HooksStatus {
        /// All of it.
        #[serde(flatten)]
        status: HookStatus,
    },
    /// A permission rule was added to this session.
    #[serde(rename = "permission.rule_added")]
    PermissionRuleAdded {
        /// Whether the rule allows, asks or denies.
        kind: RuleKind,
        /// The rule as text.
        rule: String,
    },
    /// A permission rule or grant of this session was removed.
    #[serde(rename = "permission.rule_removed")]
    PermissionRuleRemoved {
        /// Whether the rule allowed, asked or denied.
        kind: RuleKind,
        /// The rule as text.
        rule: String,
    },
    /// The user must decide something other than a permission.
    #[serde(rename = "question.requested")]
    QuestionRequested {
        /// The question as clients receive it.
        #[serde(flatten)]
        question: Question,
    },
    /// A question was settled.
    #[serde(rename = "question.resolved")]
    QuestionResolved {
        /// Id of the question.
        request_id: QuestionId,
        /// Subject of the question.
        kind: QuestionKind,
        /// The call that it was about, if any.
        call_id: Option<CallId>,
        /// The chosen option of the kinds `unknown_outcome`, `resume` and `repeated_call`.
        choice: Option<Choice>,
        /// With kind `question`: the answer to each question; empty if an abort settled them.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        answers: Vec<UserAnswer>,
        /// How it was settled: an answer, an abort or a submit.
        by: SettledBy,
        /// For a question of a sub-agent: the session that waited.
        child_session_id: Option<SessionId>,
    },
    /// A model call failed and is retried after a wait.
    #[serde(rename = "retry")]
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Maximum number of attempts; 0 means no maximum.
        max: u32,
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// The failure as text.
        reason: String,
        /// The failure as a stable code, as in `error`: `rate_limited`, `overloaded`, `server`, `interrupted`,
        /// `idle`, `unreachable`, or `context_overflow`.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        kind: String,
        /// With `context_overflow`: the next attempt requests an answer of at most this many tokens, according
        /// to the limits that the provider reported.
        max_output_tokens: Option<u32>,
    },
    /// The daemon still waits before another attempt. Sent every `[retry] heartbeat` during a long wait.
    #[serde(rename = "heartbeat")]
    Heartbeat {
        /// Reason of the wait, as in the previous `retry`.
        reason: String,
        /// Number of the last failed attempt.
        attempt: u32,
        /// Remaining wait, in milliseconds.
        remaining_ms: u64,
        /// Maximum number of attempts; 0 means no maximum. Absent in old journals.
        max: Option<u32>,
    },
    /// The provider has sent nothing for a while (`[retry] idle_warn`). This is only a warning: after
    /// `[retry] idle_timeout` the attempt counts as failed.
    #[serde(rename = "stream.idle")]
    StreamIdle {
        /// Duration of the silence, in milliseconds.
        silent_ms: u64,
    },
    /// A limit of the turn or of its session is used up to 80 %. Sent once for each limit and turn.
    #[serde(rename = "budget.warning")]
    BudgetWarning {
        /// The limit, by its name in `budgets`.
        budget: BudgetKind,
        /// The amount used so far, in the unit of the limit.
        used: u64,
        /// Its value.
        limit: u64,
    },
    /// Another model answers until the turn ends. The next turn starts with the session's model again.
    #[serde(rename = "model.switched")]
    ModelSwitched {
        /// `PROVIDER/MODEL` until now.
        from: String,
        /// `PROVIDER/MODEL` from now on.
        to: String,
        /// Reason of the switch.
        reason: SwitchReason,
        /// The reason as text for users.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        detail: String,
    },
    /// The provider refused the pictures and documents of the conversation. From now on models receive a text
    /// instead of them, with the text of the documents; the call is repeated at once. The stored media stay
    /// unchanged, and later media are sent.
    #[serde(rename = "media.withheld")]
    MediaWithheld {
        /// Number of the refused media.
        count: u32,
        /// The provider's message.
        reason: String,
    },
    /// Something happened to the job that the session works on, without the job's result. `job.events` has all of it.
    #[serde(rename = "job.event")]
    JobEvent {
        /// The event of the job, for example `job.waiting`.
        event: Box<JobEvent>,
    },
    /// A notice for the user; it changes no state.
    #[serde(rename = "notice")]
    Notice {
        /// A stable code.
        kind: String,
        /// The text.
        text: String,
    },
    /// Something failed.
    #[serde(rename = "error")]
    Error {
        /// A stable code.
        kind: String,
        /// The text, with secrets removed.
        message: String,
        /// Causes from the outermost to the innermost, where known; secrets removed.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        causes: Vec<String>,
    },
}
