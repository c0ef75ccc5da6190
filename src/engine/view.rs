//! Read access to a session's state for other modules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::settings::Settings;
use super::state::{CallStage, CallState, Engine, Hold, SessionRules, State};
use crate::state::background_task::BackgroundTask;
use types::background::BackgroundCommand;
use types::ids::{CallId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use types::mcp::McpCatalog;
use types::message::ToolCall;
use types::permission::Mode;
use types::queue::QueuedTurn;
use types::sampling::Sampling;
use types::session::{SessionSpec, SessionState, SessionSummary};
use types::slash_command::SlashCommand;
use types::thinking::Thinking;
use types::time::Timestamp;
use types::todo::Todo;
use types::tool::{Confinement, PreparedCall, ReadRecord};

/// Maximum characters of a session's activity.
const MAX_ACTIVITY_CHARS: usize = 120;

/// A pending request with the prepared call.
#[derive(Clone, Debug)]
pub struct PendingPermission {
    pub request_id: PermissionId,
    /// The call that waits for the answer.
    pub call: Arc<ToolCall>,
    /// The prepared call that was judged.
    pub prepared: Arc<PreparedCall>,
    /// Present if the request is about a second run of a blocked command outside the sandbox. The inner
    /// value is the only grant that covers this command; `None` if the command is too long for a grant.
    /// No other rule and no mode settles the request.
    pub outside: Option<Option<String>>,
    /// Whether a hook leaves the decision to the user.
    pub is_left_to_user: bool,
}

impl Engine {
    /// A new session without events; its first event is `session.created`.
    #[must_use]
    pub fn new(session_id: SessionId, settings: Arc<Settings>) -> Self {
        Self { settings, state: State::new(session_id) }
    }

    /// Uses these settings from the next decision on. Settings are not part of the state. A running
    /// turn keeps its tools until it ends, so that the beginning of its requests does not change. The
    /// caller must give the settings again after that turn.
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

    /// Uses these settings at once, including the tools, for a state that was just replayed.
    pub fn replace_settings(&mut self, settings: &Arc<Settings>) {
        self.settings = Arc::clone(settings);
    }

    /// Seq of the next event.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.state.next_seq
    }

    /// Ensures that seqs of pruned events are not used again.
    pub fn skip_to(&mut self, next_seq: Seq) {
        self.state.next_seq = self.state.next_seq.max(next_seq);
    }

    /// The settings with which the session was created.
    #[must_use]
    pub fn spec(&self) -> &SessionSpec {
        &self.state.spec
    }

    /// The tools of MCP servers that the running or next turn has.
    #[must_use]
    pub fn mcp_catalog(&self) -> Arc<McpCatalog> {
        Arc::clone(&self.state.mcp.catalog)
    }

    /// Names of tools that a search loaded.
    #[must_use]
    pub fn loaded_tools(&self) -> Vec<String> {
        self.state.mcp.loaded.clone()
    }

    /// Whether the system prompt is built and the workspace was checked for it.
    #[must_use]
    pub fn has_context(&self) -> bool {
        self.state.system_prompt().is_some()
    }

    /// The settings for the next system prompt. The options of a turn that needs its own prompt replace
    /// the session's.
    #[must_use]
    pub fn prompt_spec(&self) -> SessionSpec {
        let mut spec = (*self.state.spec).clone();
        if let Some(turn) =
            self.state.turn.as_ref().filter(|turn| turn.settings.options.change_system_prompt())
        {
            spec.set(&turn.settings.options);
        }
        spec
    }

    /// Whether tools run one at a time and every call needs a request.
    #[must_use]
    pub fn safe_mode(&self) -> bool {
        self.state.safe_mode()
    }

    /// Whether the session offers this tool to its models.
    #[must_use]
    pub fn offers_tool(&self, tool: &str) -> bool {
        let exists = self.settings.tools.iter().any(|card| card.name == tool);
        exists && self.state.spec.tools.offers(tool)
    }

    /// How much the model may think, by the running turn or the session.
    #[must_use]
    pub fn thinking(&self) -> Option<Thinking> {
        self.state.turn.as_ref().map_or(self.state.spec.thinking, |turn| turn.settings.thinking)
    }

    /// The sampling settings of the running turn or the session.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        self.state.turn.as_ref().map_or(self.state.spec.sampling, |turn| turn.settings.sampling)
    }

    /// The fallback model of the running turn or the session; `None` if the configuration's fallback model applies.
    #[must_use]
    pub fn fallback_model(&self) -> Option<&String> {
        self.state.fallback_model()
    }

    /// Additional folders of the workspace, from the running turn or the session.
    #[must_use]
    pub fn additional_dirs(&self) -> &[String] {
        self.state.additional_dirs()
    }

    #[must_use]
    pub fn session_id(&self) -> SessionId {
        self.state.session_id
    }

    /// The confinement of a command, as it was judged.
    #[must_use]
    pub fn confinement(&self, call_id: CallId) -> Option<Confinement> {
        match &self.state.call(call_id)?.stage {
            CallStage::Awaiting { prepared, .. }
            | CallStage::Ready { prepared, .. }
            | CallStage::Running { prepared, .. } => prepared.sandbox,
            CallStage::Requested
            | CallStage::Unknown { .. }
            | CallStage::Asking(_)
            | CallStage::Done { .. } => None,
        }
    }

    /// A call of the running turn, with a user's arguments if the user changed them.
    #[must_use]
    pub fn tool_call(&self, call_id: CallId) -> Option<Arc<ToolCall>> {
        self.state.call(call_id).map(CallState::effective_call)
    }

    /// Whether the session was killed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state.status == SessionState::Ended
    }

    /// Whether an abort is in progress.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.stop.is_aborting)
    }

    /// The running turn.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|turn| turn.id)
    }

    /// Calls of the running turn that have no result yet.
    #[must_use]
    pub fn open_calls(&self) -> Vec<CallId> {
        self.state.calls().iter().filter(|call| !call.is_done()).map(|call| call.call.call_id).collect()
    }

    /// Rules and grants given to this session.
    #[must_use]
    pub fn rules(&self) -> Arc<SessionRules> {
        Arc::clone(&self.state.rules)
    }

    /// Allow rules of the running turn's slash command that hold only while the folder is trusted.
    #[must_use]
    pub fn rules_that_need_trust(&self) -> &[String] {
        let command = self.state.turn.as_ref().and_then(|turn| turn.settings.options.command.as_ref());
        command.filter(|command| command.needs_trust).map_or(&[], |command| &command.allow_rules)
    }

    /// Rules and grants of this session, together with the rules of the running turn's slash command that need no trust.
    #[must_use]
    pub fn rules_in_force(&self) -> Arc<SessionRules> {
        let command = self.state.turn.as_ref().and_then(|turn| turn.settings.options.command.as_ref());
        let is_own = |command: &&SlashCommand| !command.allow_rules.is_empty() && !command.needs_trust;
        let Some(command) = command.filter(is_own) else {
            return self.rules();
        };
        let mut rules = (*self.state.rules).clone();
        rules.allow.extend(command.allow_rules.iter().cloned());
        Arc::new(rules)
    }

    /// Time of the session's first event.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.state.created_at
    }

    /// The mode for verdicts: the running turn's mode, else the session's.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.mode()
    }

    /// The earliest deadline of a pending request or of a time limit. It is computed from the journal, so a
    /// restart does not change it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = |call: &CallState| match &call.stage {
            CallStage::Awaiting { deadline: Some(deadline), expired: false, .. } => Some(deadline.at),
            _ => None,
        };
        if self.is_aborting() {
            return None;
        }
        let requests = self.state.calls().iter().filter_map(due).min();
        requests.into_iter().chain(self.state.next_time_check()).min()
    }

    /// The versions of files that the model has seen.
    #[must_use]
    pub fn reads(&self) -> Arc<HashMap<PathBuf, ReadRecord>> {
        Arc::clone(&self.state.reads)
    }

    /// The todo list of the session.
    #[must_use]
    pub fn todos(&self) -> Arc<Vec<Todo>> {
        Arc::clone(&self.state.todos)
    }

    /// The working folder of commands.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.state.cwd
    }

    /// Pending permission requests with their prepared calls.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingPermission> {
        self.state
            .calls()
            .iter()
            .filter_map(|call| match &call.stage {
                CallStage::Awaiting { request_id, prepared, suggestions, .. } => Some(PendingPermission {
                    request_id: *request_id,
                    call: Arc::clone(&call.call),
                    prepared: Arc::clone(prepared),
                    is_left_to_user: self
                        .state
                        .turn
                        .as_ref()
                        .is_some_and(|turn| turn.left_to_user.contains(&call.call.call_id)),
                    outside: call.blocked_run.is_some().then(|| suggestions.first().cloned()),
                }),
                _ => None,
            })
            .collect()
    }

    /// The first call that waits for an answer, else the first running call, and the number of the remaining ones.
    fn activity(&self) -> Option<String> {
        let mut active: Vec<(bool, &CallState, &str)> = Vec::new();
        for call in self.state.calls() {
            match &call.stage {
                CallStage::Awaiting { prepared, .. } => active.push((true, call, &prepared.summary)),
                CallStage::Running { prepared, .. } => active.push((false, call, &prepared.summary)),
                CallStage::Unknown { .. } | CallStage::Asking { .. } => active.push((true, call, "")),
                CallStage::Requested | CallStage::Ready { .. } | CallStage::Done { .. } => {}
            }
        }
        let (_, call, summary) = active.iter().find(|(waits, ..)| *waits).or(active.first())?;
        let line = summary.lines().next().unwrap_or_default();
        // The summary of a file tool already begins with the tool's name.
        let tool = if line.starts_with(&call.call.tool) { "" } else { &call.call.tool };
        let text: String = format!("{tool} {line}").trim().chars().take(MAX_ACTIVITY_CHARS).collect();
        Some(match active.len() {
            1 => text,
            count => format!("{text} +{}", count - 1),
        })
    }

    /// The values that `session.list` shows.
    #[must_use]
    pub fn snapshot(&self) -> SessionSummary {
        let state = &self.state;
        SessionSummary {
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
            last_turn: state.last_turn.clone(),
            activity: self.activity(),
            context_tokens: Some(state.context_tokens).filter(|tokens| *tokens > 0),
            updated_at_ms: state.updated_at,
            notice: self.notice(),
        }
    }

    /// What the user should know about the session's hooks, in one line.
    fn notice(&self) -> Option<String> {
        /// Maximum characters of a notice.
        const MAX_CHARS: usize = 300;
        let hooks = &self.state.hooks;
        let failure = hooks.failure.as_ref();
        let failure =
            failure.map(|it| format!("hook {} on {} failed: {}", it.command, it.event.name(), it.error));
        let text = if hooks.problems.is_empty() { failure? } else { hooks.problems.join("; ") };
        Some(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect())
    }

    /// How the conversation starts whose system prompt is built now, for hooks: `startup`, `resume` or `clear`.
    #[must_use]
    pub fn start_source(&self) -> &'static str {
        match (self.state.is_cleared, self.state.transcript.len()) {
            (true, _) => "clear",
            (false, 0 | 1) => "startup",
            (false, _) => "resume",
        }
    }

    /// Open questions about the state after a restart, and about a call that the model repeats.
    #[must_use]
    pub fn questions(&self) -> Vec<QuestionId> {
        let Some(turn) = &self.state.turn else { return Vec::new() };
        let held = match turn.restart.hold {
            Some(Hold::Paused { request_id, .. }) => Some(request_id),
            _ => None,
        };
        let unknown = self.state.calls().iter().filter_map(|call| match call.stage {
            CallStage::Unknown { request_id, .. } => Some(request_id),
            _ => None,
        });
        held.into_iter().chain(unknown).collect()
    }

    /// The model of the running turn, else of the next turn.
    #[must_use]
    pub fn model(&self) -> &str {
        self.state.turn.as_ref().map_or(&self.state.spec.model, |turn| &turn.settings.model)
    }
}

impl Engine {
    /// Number of queued turns.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.state.queue.len()
    }

    /// The queued turns in the order of their start.
    #[must_use]
    pub fn queue(&self) -> Vec<QueuedTurn> {
        let queued = self.state.queue.iter().map(|queued| QueuedTurn {
            turn_id: queued.turn_id,
            input: queued.input.clone(),
            queued_at_ms: queued.queued_at,
            front: queued.front,
            model: queued.options.model.clone(),
            mode: queued.options.mode,
            origin: queued.origin.clone(),
        });
        queued.collect()
    }

    /// Whether this turn is queued.
    #[must_use]
    pub fn is_queued(&self, turn_id: TurnId) -> bool {
        self.state.queue_position(turn_id).is_some()
    }

    /// Known background commands: all running ones, and the newest ended ones.
    #[must_use]
    pub fn commands(&self) -> Vec<BackgroundCommand> {
        self.state.commands.iter().map(|it| it.known.clone()).collect()
    }

    /// Calls that started the running commands.
    #[must_use]
    pub fn running_commands(&self) -> Vec<CallId> {
        let running = self.state.commands.iter().filter(|it| it.is_running());
        running.map(|it| it.known.call_id).collect()
    }

    /// Running commands that end with the aborted turn. The turn ends only after they have ended.
    #[must_use]
    pub fn aborted_commands(&self) -> Vec<CallId> {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.stop.is_aborting) else {
            return Vec::new();
        };
        let goes = |it: &&Arc<BackgroundTask>| {
            it.is_running() && (turn.stop.is_ending || it.turn_id == Some(turn.id))
        };
        self.state.commands.iter().filter(goes).map(|it| it.known.call_id).collect()
    }
}
