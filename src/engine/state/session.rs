//! The state of a session: its settings, conversation, queue, and the running turn.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::state::background_task::BackgroundTask;
use crate::state::mcp::McpTools;
use crate::state::partial::PartialAnswer;
use crate::state::transcript::Transcript;
use crate::state::{
    Activity, CallStage, CallState, OpenCompaction, SessionRules, Subagent, TokenRatio, Turn,
};
use types::event::{Origin, Purpose, TitledBy};
use types::hook::HookStatus;
use types::ids::{CallId, ItemId, Seq, SessionId, TurnId};
use types::ledger::ModelUsage;
use types::message::{InputBlock, ToolCall};
use types::permission::{Mode, digest};
use types::session::{LastTurn, Requires, SessionSpec, SessionState};
use types::time::Timestamp;
use types::todo::Todo;
use types::tool::ReadRecord;
use types::turn_options::TurnOptions;
use types::usage::{Budgets, ModelSnapshot, Usage};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub session_id: SessionId,
    pub spec: Arc<SessionSpec>,
    /// The source of the title, if no client set it.
    pub titled_by: Option<TitledBy>,
    /// Number of requests for a title.
    pub title_tries: u32,
    /// The last helper call, while it has no answer.
    pub helper: Option<Helper>,
    pub next_seq: Seq,
    pub status: SessionState,
    pub requires: Option<Requires>,
    /// Whether a client archived the session.
    pub archived: bool,
    pub system: Option<Arc<str>>,
    /// Whether the system prompt is outdated, because folders or the model have changed. The next turn
    /// then builds it again.
    pub is_stale: bool,
    /// Digest of the workspace parts for which trust was requested last.
    pub trust_asked: Option<String>,
    /// The instructions that the session's prompt leaves out, each with the reason.
    pub skipped_instructions: Vec<String>,
    pub transcript: Transcript,
    /// The model that gave the newest answer of the transcript, and the provider's id of that answer.
    /// Cleared when the provider cannot continue from that answer.
    pub continues: Option<(String, String)>,
    pub turn: Option<Turn>,
    /// Whether the last turn could not be continued.
    pub has_failed: bool,
    pub queue: VecDeque<Arc<QueuedInput>>,
    /// Background commands, oldest first: all running ones and the newest ended ones.
    pub commands: Vec<Arc<BackgroundTask>>,
    /// Number of background commands that were started.
    pub command_count: u32,
    /// Running sub-agents, oldest first.
    pub subagents: Vec<Arc<Subagent>>,
    pub rules: Arc<SessionRules>,
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    pub cwd: PathBuf,
    /// The todo list.
    pub todos: Arc<Vec<Todo>>,
    /// Tokens of the newest answer and of its request.
    pub context_tokens: u64,
    /// Corrections of token estimates, by model.
    pub token_ratios: Arc<BTreeMap<String, TokenRatio>>,
    /// The longest request that each model answered, in uncalibrated tokens.
    pub answered_tokens: Arc<BTreeMap<String, u64>>,
    /// Whether a refusal with an unknown reason was taken for an overflow, and the shorter request failed as well.
    /// Until the next answer, no other refusal is.
    pub has_wrong_guess: bool,
    /// Number of summaries that replaced messages.
    pub compactions: u32,
    /// Failed summaries in a row.
    pub compaction_failures: u32,
    /// Usage of all model calls.
    pub spent: ModelUsage,
    /// Duration of all ended turns, in milliseconds.
    pub worked_ms: u64,
    pub last_line: String,
    /// How the newest turn ended.
    pub last_turn: Option<LastTurn>,
    /// The part of the newest turn's limits that it did not use. A turn that starts with the result of
    /// a sub-agent gets at most this part.
    pub left_of_turn: Budgets,
    /// Aborted sub-agents, which the next input reports to the model.
    pub aborted_subagents: Arc<Vec<String>>,
    pub updated_at: Timestamp,
    pub created_at: Timestamp,
    /// The newest date that the model received, as a number of days since 1970.
    pub reported_day: i64,
    /// The files with project instructions that the model knows, with their digests; `None` if unknown.
    pub instructions: Option<Arc<BTreeMap<PathBuf, String>>>,
    /// Versions of changed files that were reported to the model.
    pub reported_files: Arc<BTreeMap<PathBuf, String>>,
    /// Tools and instructions of MCP servers.
    pub mcp: Arc<McpTools>,
    /// What hooks left behind.
    pub hooks: Arc<HookStatus>,
    /// Number of the newest event of the session's job that the session has; 0 if it has none.
    pub job_seq: u64,
    /// Whether the conversation was cleared and its system prompt is not built yet.
    pub is_cleared: bool,
}

/// A model call outside the turns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Helper {
    /// Seq of the event `helper.started`, which identifies the call.
    pub token: Seq,
    pub purpose: Purpose,
    pub model: String,
    pub model_snapshot: ModelSnapshot,
    /// Maximum usage of the call.
    pub max_usage: Usage,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueuedInput {
    pub turn_id: TurnId,
    /// The item that its message will have; `None` in old journals and for commands without a message.
    pub item_id: Option<ItemId>,
    pub input: Vec<InputBlock>,
    pub options: TurnOptions,
    pub queued_at: Timestamp,
    /// Whether the input was queued before the other turns and was not moved since.
    pub front: bool,
    /// The client that submitted the input.
    pub origin: Option<Origin>,
}

impl State {
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            spec: Arc::default(),
            titled_by: None,
            title_tries: 0,
            helper: None,
            next_seq: 1,
            status: SessionState::Idle,
            requires: None,
            archived: false,
            system: None,
            is_stale: false,
            trust_asked: None,
            skipped_instructions: Vec::new(),
            hooks: Arc::default(),
            job_seq: 0,
            is_cleared: false,
            transcript: Transcript::default(),
            continues: None,
            turn: None,
            has_failed: false,
            queue: VecDeque::new(),
            commands: Vec::new(),
            command_count: 0,
            subagents: Vec::new(),
            rules: Arc::default(),
            reads: Arc::default(),
            cwd: PathBuf::new(),
            todos: Arc::default(),
            context_tokens: 0,
            token_ratios: Arc::default(),
            answered_tokens: Arc::default(),
            has_wrong_guess: false,
            compactions: 0,
            compaction_failures: 0,
            spent: ModelUsage::default(),
            worked_ms: 0,
            last_line: String::new(),
            last_turn: None,
            left_of_turn: Budgets::default(),
            aborted_subagents: Arc::default(),
            updated_at: Timestamp(0),
            created_at: Timestamp(0),
            reported_day: 0,
            instructions: None,
            reported_files: Arc::default(),
            mcp: Arc::default(),
        }
    }

    /// The correction of token estimates for a model.
    pub fn token_ratio(&self, model: &str) -> TokenRatio {
        self.token_ratios.get(model).copied().unwrap_or_default()
    }

    /// Whether a request of this many uncalibrated tokens is longer than each one that the model answered.
    pub fn is_longest_request(&self, model: &str, tokens: u64) -> bool {
        self.answered_tokens.get(model).is_none_or(|answered| tokens > *answered)
    }

    /// The summary call that is running, or that will be repeated next.
    pub fn compacting(&self) -> Option<&OpenCompaction> {
        self.turn.as_ref()?.compaction.open.as_ref()
    }

    /// The mode for verdicts.
    pub fn mode(&self) -> Mode {
        self.turn.as_ref().map_or(self.spec.mode, |turn| turn.settings.mode)
    }

    /// The options of the running turn, which replace the session's options.
    fn turn_options(&self) -> Option<&TurnOptions> {
        self.turn.as_ref().map(|turn| &*turn.settings.options)
    }

    /// Whether tools run one at a time and every call needs a request.
    pub fn safe_mode(&self) -> bool {
        self.turn_options().and_then(|options| options.safe_mode).unwrap_or(self.spec.safe_mode)
    }

    /// Additional folders of the workspace.
    pub fn additional_dirs(&self) -> &[String] {
        let own = self.turn_options().and_then(|options| options.additional_dirs.as_deref());
        own.unwrap_or(&self.spec.additional_dirs)
    }

    /// The fallback model of the turn or the session. `None` if the configuration's fallback model applies.
    pub fn fallback_model(&self) -> Option<&String> {
        let own = self.turn_options().and_then(|options| options.fallback_model.as_ref());
        own.or(self.spec.fallback_model.as_ref()).filter(|model| !model.is_empty())
    }

    /// Texts at which the model stops its answer.
    pub fn stop_sequences(&self) -> &[String] {
        let own = self.turn_options().and_then(|options| options.stop.as_deref());
        own.unwrap_or(&self.spec.stop)
    }

    /// Labels that the provider receives.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        let own = self.turn_options().and_then(|options| options.metadata.as_ref());
        own.unwrap_or(&self.spec.metadata)
    }

    /// The system prompt of the running turn, or of the session; `None` if it must be built first.
    pub fn system_prompt(&self) -> Option<&Arc<str>> {
        match &self.turn {
            Some(turn) if turn.settings.options.change_system_prompt() => turn.settings.system.as_ref(),
            _ => self.system.as_ref(),
        }
    }

    /// The digest that an answer would be bound to if the call were allowed now.
    pub fn digest(&self, call: &ToolCall) -> String {
        digest(self.session_id, &self.cwd.to_string_lossy(), &call.tool, &call.input)
    }

    pub fn calls(&self) -> &[CallState] {
        self.turn.as_ref().map_or(&[], |turn| &turn.calls)
    }

    pub fn call(&self, call_id: CallId) -> Option<&CallState> {
        self.calls().iter().find(|call| call.call.call_id == call_id)
    }

    /// The answer that is streaming.
    pub fn partial(&self) -> Option<&PartialAnswer> {
        match &self.turn.as_ref()?.activity {
            Activity::Calling { partial, .. } => partial.as_ref(),
            _ => None,
        }
    }

    /// The target of the output of a running call or background command: its turn, its item, and the seq of the event
    /// that started it.
    pub fn progress_target(&self, call_id: CallId) -> Option<(Option<TurnId>, Option<ItemId>, Seq)> {
        let turn_id = self.turn.as_ref().map(|turn| turn.id);
        if let Some(call) = self.call(call_id)
            && let CallStage::Running { started_seq, .. } = call.stage
        {
            return Some((turn_id, Some(call.item_id), started_seq));
        }
        let command = self.running_command(call_id).filter(|_| self.status != SessionState::Ended)?;
        Some((turn_id.filter(|id| command.turn_id == Some(*id)), command.item_id, command.opened))
    }

    /// The running command that the call `call_id` started.
    pub fn running_command(&self, call_id: CallId) -> Option<&BackgroundTask> {
        let mut running = self.commands.iter().filter(|it| it.is_running());
        running.find(|it| it.known.call_id == call_id).map(|it| &**it)
    }
}
