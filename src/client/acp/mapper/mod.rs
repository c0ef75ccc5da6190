//! Events as updates of the protocol. The same function maps stored and live events, so that a loaded session looks
//! as it did live. Pure.

pub(super) mod calls;
pub(super) mod diff;
mod messages;
mod tools;

use std::collections::{HashMap, HashSet};

use serde_json::json;

use crate::acp::options::{Choices, Settings};
use crate::acp::schema::{Activity, Chunk, Cost, PlanEntry, SessionUpdate, TextBlock, Version};
use crate::acp::wire::AcpError;
use api::Code;
use messages::StreamedItem;
use tools::OpenCall;
use types::compaction::CompactStage;
use types::event::{Envelope, Event};
use types::ids::{CallId, ItemId, Seq, TurnId};
use types::mcp::McpState;
use types::model::StopReason;
use types::session::{SessionState, Subtype, TurnResult};
use types::time::Timestamp;
use types::usage::ModelSnapshot;

/// What the client can show beyond the basics of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// The version of the connection.
    pub(super) version: Version,
    /// Terminals that this program fills with the output of commands.
    pub(super) terminal_output: bool,
    pub(super) notices: bool,
    pub(super) compaction: bool,
    /// Forms for questions.
    pub(super) forms: bool,
}

/// Whether the client itself sent the input that an event belongs to. Its editor shows that input already, and the
/// reply to its prompt reports a failure. In version 2, editors show no input before its update, and an update of the
/// state reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputOrigin {
    ThisClient,
    Other,
}

/// The state that the updates of one session need.
pub(super) struct Mapper {
    features: Features,
    cwd: String,
    /// The settings of the session, and the values that they may have.
    pub(super) settings: Settings,
    choices: Choices,
    pub(super) turn: Option<TurnId>,
    items: HashMap<ItemId, StreamedItem>,
    /// Complete messages. After a rewind, the daemon may repeat the text of one as a delta.
    completed: HashSet<ItemId>,
    calls: HashMap<CallId, OpenCall>,
    /// Calls whose command continues in the background, in a terminal.
    background: HashSet<CallId>,
    activity: Activity,
    /// Cost of the session in millionths of a dollar; `None` once a price is unknown.
    cost: Option<u64>,
    window: Option<u32>,
    /// Id of the running compaction.
    compaction: Option<String>,
}

impl Mapper {
    pub(super) fn new(features: Features, choices: Choices, cwd: String) -> Self {
        Self {
            features,
            cwd,
            settings: Settings::default(),
            choices,
            turn: None,
            items: HashMap::new(),
            completed: HashSet::new(),
            calls: HashMap::new(),
            background: HashSet::new(),
            activity: Activity::Idle { stop_reason: None, error: None },
            cost: Some(0),
            window: None,
            compaction: None,
        }
    }

    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The values that settings may have.
    pub(super) fn choices(&self) -> &Choices {
        &self.choices
    }

    /// The updates of an event, in order.
    pub(super) fn map(&mut self, envelope: &Envelope, origin: InputOrigin) -> Vec<SessionUpdate> {
        match &envelope.event {
            Event::SessionCreated(spec) => {
                self.cwd.clone_from(&spec.cwd);
                self.settings =
                    Settings { mode: spec.mode, model: spec.model.clone(), thinking: spec.thinking };
                Vec::new()
            }
            Event::SessionUpdated { title, options, .. } => {
                let mut updates = self.change_settings(options);
                updates.extend(title.as_ref().map(|title| SessionUpdate::SessionInfoUpdate {
                    title: title.clone(),
                    updated_at: iso_time(envelope.at_ms),
                }));
                updates
            }
            Event::TurnStarted { .. } => {
                self.turn = envelope.turn_id;
                self.change_activity(Activity::Running).into_iter().collect()
            }
            Event::SessionStatus { state, .. } => self.map_status(*state),
            Event::TurnCompleted { result } => self.end_turn(envelope, result, origin),
            Event::MessageTextDelta { .. }
            | Event::MessageThinkingDelta { .. }
            | Event::MessageCompleted { .. }
            | Event::MessageTombstone { .. } => self.map_message(envelope, origin),
            Event::CommandCompleted { name, arguments, text } => {
                self.map_command(envelope, origin, (name, arguments), text)
            }
            Event::ToolRequested { .. }
            | Event::ToolStatus { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolBackground { .. }
            | Event::ToolBlocked { .. }
            | Event::ToolCompleted { .. }
            | Event::FileChanged { .. }
            | Event::SubagentStarted { .. }
            | Event::PermissionRequested { .. }
            | Event::PermissionResolved { .. } => self.map_tool(envelope),
            Event::SubagentCompleted { result, .. } => {
                self.add_cost(result.cost_usd_micros);
                Vec::new()
            }
            Event::UsageBooked { cost_usd_micros, .. } => {
                self.add_cost(*cost_usd_micros);
                Vec::new()
            }
            Event::TodoUpdated { todos } => {
                let entry = |todo: &types::todo::Todo| PlanEntry {
                    content: todo.display_text().to_owned(),
                    priority: "medium",
                    status: todo.status.name(),
                };
                vec![SessionUpdate::Plan { entries: todos.iter().map(entry).collect() }]
            }
            Event::SessionRewound(rewound) => {
                let count = rewound.removed_items.len();
                let text =
                    format!("The conversation was rewound: {count} entries above are no longer part of it.");
                vec![self.say(envelope, &text)]
            }
            Event::CompactStarted { .. } | Event::CompactCompleted { .. } => self.map_compaction(envelope),
            _ => self.map_notice(envelope),
        }
    }

    fn map_status(&mut self, state: SessionState) -> Vec<SessionUpdate> {
        let activity = match state {
            SessionState::Running => Activity::Running,
            SessionState::RequiresAction | SessionState::Paused => Activity::RequiresAction,
            SessionState::Idle | SessionState::Failed | SessionState::Ended | SessionState::Archived => {
                // The end of the turn had a reason.
                if matches!(self.activity, Activity::Idle { .. }) {
                    return Vec::new();
                }
                Activity::Idle { stop_reason: None, error: None }
            }
        };
        self.change_activity(activity).into_iter().collect()
    }

    fn change_activity(&mut self, activity: Activity) -> Option<SessionUpdate> {
        let is_shown = self.features.version == Version::V2 && self.activity != activity;
        self.activity = activity;
        is_shown.then(|| self.state())
    }

    /// What the session does. Only in version 2.
    pub(super) fn state(&self) -> SessionUpdate {
        SessionUpdate::StateUpdate(self.activity.clone())
    }

    /// A slash command, with its line if another client sent it.
    fn map_command(
        &mut self,
        envelope: &Envelope,
        origin: InputOrigin,
        (name, arguments): (&str, &str),
        text: &str,
    ) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        let is_alone = self.turn.is_none();
        if is_alone {
            updates.extend(self.change_activity(Activity::Running));
        }
        if origin == InputOrigin::Other {
            let line = if name == "#" { format!("# {arguments}") } else { format!("/{name} {arguments}") };
            updates.push(SessionUpdate::UserMessageChunk(chunk(line.trim_end(), command_id(envelope.seq))));
        }
        updates.push(self.say(envelope, text));
        if is_alone {
            updates
                .extend(self.change_activity(Activity::Idle { stop_reason: Some("end_turn"), error: None }));
        }
        updates
    }

    fn map_compaction(&mut self, envelope: &Envelope) -> Vec<SessionUpdate> {
        match &envelope.event {
            Event::CompactStarted { stage: CompactStage::Autocompact, .. } => {
                let id = format!("compact-{}", envelope.seq);
                self.compaction = Some(id.clone());
                self.compaction_update(id, "in_progress", None)
            }
            Event::CompactCompleted { stage, error, tokens_after, .. } => {
                let mut updates = Vec::new();
                if let Some(id) = self.compaction.take_if(|_| *stage == CompactStage::Autocompact) {
                    let status = match error.as_deref() {
                        None => "completed",
                        Some("aborted") => "cancelled",
                        Some(_) => "failed",
                    };
                    updates = self.compaction_update(id, status, error.clone());
                }
                if error.is_none() {
                    updates.extend(self.usage(*tokens_after));
                }
                updates
            }
            _ => Vec::new(),
        }
    }

    /// What the user should know and what is no part of the conversation.
    fn map_notice(&self, envelope: &Envelope) -> Vec<SessionUpdate> {
        match &envelope.event {
            Event::McpStatus(status) if status.state == McpState::Failed => {
                let error = status.error.as_deref().unwrap_or("it gave no reason");
                let title = format!("MCP server {} failed", status.server);
                if self.features.notices {
                    return self.notice("error", &title, Some(error.to_owned()));
                }
                vec![self.say(envelope, &format!("{title}: {error}"))]
            }
            Event::Notice { text, .. } => self.notice("info", text, None),
            Event::Retry { attempt, max, delay_ms, reason, .. } => {
                let of = if *max == 0 { String::new() } else { format!(" of {max}") };
                let next = format!(
                    "Attempt {attempt}{of} failed; the next one is in {} s.",
                    delay_ms.div_ceil(1000)
                );
                self.notice("warning", reason, Some(next))
            }
            Event::BudgetWarning { budget, used, limit } => {
                let title = format!("80 % of the limit {} is used: {used} of {limit}", budget.name());
                self.notice("warning", &title, None)
            }
            Event::ModelSwitched { from, to, reason, detail } => {
                let title = format!("{to} answers instead of {from}: {}", reason.words());
                self.notice("warning", &title, Some(detail.clone()))
            }
            _ => Vec::new(),
        }
    }

    fn change_settings(&mut self, options: &types::turn_options::TurnOptions) -> Vec<SessionUpdate> {
        let before = self.settings.clone();
        if let Some(mode) = options.mode {
            self.settings.mode = mode;
        }
        if let Some(model) = &options.model {
            self.settings.model.clone_from(model);
        }
        self.settings.thinking = options.thinking.or(self.settings.thinking);
        let mut updates = Vec::new();
        if self.settings.mode != before.mode {
            let current_mode_id = self.settings.mode.name().to_owned();
            updates.push(SessionUpdate::CurrentModeUpdate { current_mode_id });
        }
        if self.settings != before {
            let config_options = self.choices.options(&self.settings);
            updates.push(SessionUpdate::ConfigOptionUpdate { config_options });
        }
        updates
    }

    fn end_turn(
        &mut self,
        envelope: &Envelope,
        result: &TurnResult,
        origin: InputOrigin,
    ) -> Vec<SessionUpdate> {
        self.turn = None;
        self.items.clear();
        let mut updates = self.end_open_calls();
        // The client that sent the input receives the error as the reply to its prompt.
        if origin == InputOrigin::Other
            && let Some(text) = failure_text(result)
        {
            updates.push(self.say(envelope, &format!("The turn failed: {text}")));
        }
        updates.extend(self.change_activity(match stop_reason(result) {
            Ok(reason) => Activity::Idle { stop_reason: Some(reason), error: None },
            Err(error) => Activity::Idle { stop_reason: Some("error"), error: Some(error) },
        }));
        updates
    }

    /// A text of the daemon as a message of its own.
    fn say(&self, envelope: &Envelope, text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(chunk(text, format!("notice-{}", envelope.seq)))
    }

    /// A text of the bridge for the user.
    pub(super) fn note(&self, text: &str, after: Seq) -> SessionUpdate {
        match self.features.notices {
            true => SessionUpdate::Notice { severity: "warning", title: text.to_owned(), description: None },
            false => SessionUpdate::AgentMessageChunk(chunk(text, format!("note-{after}"))),
        }
    }

    fn notice(&self, severity: &'static str, title: &str, description: Option<String>) -> Vec<SessionUpdate> {
        if !self.features.notices {
            return Vec::new();
        }
        vec![SessionUpdate::Notice { severity, title: title.to_owned(), description }]
    }

    fn compaction_update(
        &self,
        id: String,
        status: &'static str,
        error: Option<String>,
    ) -> Vec<SessionUpdate> {
        if !self.features.compaction {
            return Vec::new();
        }
        vec![SessionUpdate::CompactionUpdate { compaction_id: id, status, error }]
    }

    fn add_cost(&mut self, cost: Option<u64>) {
        self.cost = self.cost.zip(cost).map(|(sum, more)| sum.saturating_add(more));
    }

    /// The fill of the context window after an answer.
    fn add_usage(&mut self, used: u64, snapshot: Option<&ModelSnapshot>) -> Option<SessionUpdate> {
        self.window = snapshot.and_then(|model| model.context_window);
        self.usage(used)
    }

    /// `None` if the window is not known.
    fn usage(&self, used: u64) -> Option<SessionUpdate> {
        let size = u64::from(self.window?);
        // Exact: a cost is far below 2^53 millionths of a dollar.
        let cost = self.cost.map(|micros| Cost { amount: micros as f64 / 1e6, currency: "USD" });
        Some(SessionUpdate::UsageUpdate { used, size, cost })
    }
}

fn chunk(text: impl Into<String>, message_id: String) -> Chunk {
    Chunk { content: TextBlock::new(text), message_id }
}

/// The id of the message that a slash command is. `seq` is that of its answer.
pub(super) fn command_id(seq: Seq) -> String {
    format!("input-{seq}")
}

/// Why a turn ended, or the error that ended it.
pub(super) fn stop_reason(result: &TurnResult) -> Result<&'static str, AcpError> {
    if let Some(text) = failure_text(result) {
        let code = match result.subtype {
            Subtype::ErrorMaxBudgetUsd | Subtype::ErrorMaxTime | Subtype::ErrorRepeatedCall => Code::Budget,
            _ => Code::Internal,
        };
        let kinds: Vec<&str> = result.errors.iter().map(|error| error.kind.as_str()).collect();
        let data = Some(json!({"subtype": result.subtype.name(), "kinds": kinds}));
        return Err(AcpError { data, ..AcpError::new(code, text) });
    }
    Ok(match (result.subtype, result.stop_reason) {
        (Subtype::Aborted | Subtype::PermissionDenied, _) => "cancelled",
        (Subtype::MaxOutputTokens | Subtype::ErrorMaxTokens, _) => "max_tokens",
        (Subtype::ErrorMaxTurns, _) => "max_turn_requests",
        (_, Some(StopReason::Refusal)) => "refusal",
        (_, Some(StopReason::MaxTokens)) => "max_tokens",
        _ => "end_turn",
    })
}

/// The text for users about a turn that failed; `None` for any other end.
fn failure_text(result: &TurnResult) -> Option<String> {
    let fallback = match result.subtype {
        Subtype::LlmError => "the model or its server failed",
        Subtype::ErrorDuringExecution => "the daemon failed",
        Subtype::StructuredOutputInvalid => "the answer does not match the schema",
        Subtype::ErrorMaxBudgetUsd => "the limit on money is reached",
        Subtype::ErrorMaxTime => "the time limit is reached",
        Subtype::ErrorRepeatedCall => "the model repeated the same call",
        Subtype::Success
        | Subtype::ErrorMaxTurns
        | Subtype::ErrorMaxTokens
        | Subtype::MaxOutputTokens
        | Subtype::Aborted
        | Subtype::PermissionDenied => return None,
    };
    let texts: Vec<&str> = result.errors.iter().map(|error| error.message.as_str()).collect();
    Some(if texts.is_empty() { fallback.to_owned() } else { texts.join("; ") })
}

/// RFC 3339 in UTC, to the second.
pub(super) fn iso_time(time: Timestamp) -> String {
    let seconds = time.0.div_euclid(1_000).rem_euclid(86_400);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{}T{hours:02}:{minutes:02}:{:02}Z", time.date(), seconds % 60)
}

#[cfg(test)]
mod tests;
