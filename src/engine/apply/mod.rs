//! Applying events: the only code that changes the state. It cannot refuse an event.

pub(super) mod transient_kinds;

use std::path::PathBuf;
use std::sync::Arc;

use super::settings::Settings;
use super::state::{
    Activity, Call, Deadline, Engine, FirstRun, Helper, Hold, Partial, QueuedInput, Stage, State, Turn,
};
use crate::engine::decide::backoff::Backoff;
use crate::engine::request::vision::withhold;
use crate::engine::state::output_excerpt::OutputExcerpt;
use crate::types::blob::Attachment;
use crate::types::event::{Envelope, Event, HISTORY_LOST, Phase, Purpose};
use crate::types::ids::{CallId, RequestId, SessionId, TurnId};
use crate::types::ledger::UsageRecord;
use crate::types::message::{Block, Message, Role};
use crate::types::model::{BlockKind, FaultKind, StopReason};
use crate::types::permission::{Decision, RuleKind, Scope, digest};
use crate::types::question::{Question, QuestionKind};
use crate::types::session::{Denial, Item, ItemKind, ItemStatus, SessionState, TurnError};
use crate::types::tool::{PreparedCall, ToolStatus};

impl Engine {
    /// Applies a committed event to the state.
    pub fn apply(&mut self, envelope: &Envelope) {
        self.state.apply(envelope);
    }

    /// Applies the events of the journal in order; a restart computes the state this way.
    pub fn replay<'a>(
        session_id: SessionId,
        settings: Arc<Settings>,
        journal: impl IntoIterator<Item = &'a Envelope>,
    ) -> Self {
        let mut engine = Engine::new(session_id, settings);
        for envelope in journal {
            engine.apply(envelope);
        }
        engine
    }
}

impl State {
    pub fn apply(&mut self, envelope: &Envelope) {
        self.next_seq = self.next_seq.max(envelope.seq + 1);
        if let Some(turn) = self.turn.as_mut().filter(|turn| envelope.turn_id == Some(turn.id)) {
            turn.parked = matches!(envelope.event, Event::TurnParked {});
        }
        if envelope.event.needs_sync() {
            self.updated_at = envelope.at_ms;
        }
        if let Some(booking) = UsageRecord::of(envelope) {
            self.book(&booking, envelope.turn_id);
        }
        match &envelope.event {
            Event::SessionCreated(spec) => {
                self.cwd = PathBuf::from(&spec.cwd);
                self.spec = spec.clone();
            }
            Event::SessionUpdated {
                title,
                titled_by,
                model,
                mode,
                budgets,
                thinking,
                sampling,
                tools,
                additional_dirs,
            } => {
                if let Some(tools) = tools {
                    self.spec.tools.clone_from(tools);
                }
                if let Some(dirs) = additional_dirs {
                    self.spec.additional_dirs.clone_from(dirs);
                    self.is_stale = true;
                }
                if let Some(title) = title {
                    self.spec.title.clone_from(title);
                    self.titled_by = *titled_by;
                }
                if let Some(model) = model {
                    // The system prompt names the model, and a provider's cache is not shared between models.
                    self.is_stale |= self.spec.model != *model;
                    self.spec.model.clone_from(model);
                }
                if let Some(mode) = mode {
                    self.spec.mode = *mode;
                    if let Some(turn) = &mut self.turn {
                        turn.mode = *mode;
                    }
                }
                if let Some(budgets) = budgets {
                    self.spec.budgets = *budgets;
                }
                self.spec.thinking = thinking.or(self.spec.thinking);
                self.spec.sampling = sampling.or(self.spec.sampling);
            }
            Event::PermissionRuleAdded { kind, rule } => self.add_rule(*kind, rule),
            Event::PermissionRuleRemoved { kind, rule } => {
                Arc::make_mut(&mut self.rules).of_mut(*kind).retain(|known| known != rule);
            }
            Event::SessionStatus { state, requires } => {
                self.status = *state;
                self.requires = *requires;
            }
            Event::SessionPromptBuilt { system, .. } => self.system = Some(Arc::from(system.as_str())),
            Event::WorkspaceTrustRequired { digest, .. } => self.trust_asked = Some(digest.clone()),
            Event::SessionEnded { .. } => {
                self.status = SessionState::Ended;
                self.requires = None;
                self.queue.clear();
                self.turn = None;
            }
            Event::TurnQueued { input, front, budgets, mode, model, thinking, sampling, tools } => {
                if let Some(turn_id) = envelope.turn_id {
                    let (input, model, tools) = (input.clone(), model.clone(), tools.clone());
                    let (budgets, mode, thinking, sampling) = (*budgets, *mode, *thinking, *sampling);
                    let queued =
                        QueuedInput { turn_id, input, budgets, mode, model, thinking, sampling, tools };
                    if *front {
                        self.queue.push_front(queued);
                    } else {
                        self.queue.push_back(queued);
                    }
                }
            }
            Event::TurnStarted { model, mode, budgets, thinking, sampling, tools } => {
                if let Some(turn_id) = envelope.turn_id {
                    self.queue.retain(|queued| queued.turn_id != turn_id);
                    let turn = Turn::new(turn_id, model.clone(), *mode, *budgets, envelope.at_ms);
                    let tools = tools.clone().unwrap_or_else(|| self.spec.tools.clone());
                    let (thinking, sampling) = (*thinking, *sampling);
                    self.turn = Some(Turn { tools, thinking, sampling, ..turn });
                    if std::mem::take(&mut self.is_stale) {
                        self.system = None;
                    }
                }
            }
            Event::Notice { kind, .. } if kind == HISTORY_LOST => {
                if let Some(turn) = &mut self.turn {
                    turn.journal_truncated = true;
                }
            }
            Event::TurnCompleted { result } => {
                self.worked_ms = self.worked_ms.saturating_add(result.duration_ms);
                self.turn = None;
            }
            Event::HistoryRepaired { kept_messages, messages, .. } => {
                self.transcript.truncate(usize::try_from(*kept_messages).unwrap_or(usize::MAX));
                // The provider stored the history before its repair.
                self.continues = None;
                messages.iter().for_each(|message| self.transcript.push(message.clone()));
            }
            Event::HelperStarted { purpose, model, model_snapshot, max_usage } => {
                let (token, purpose, model) = (envelope.seq, *purpose, model.clone());
                self.title_tries += u32::from(purpose == Purpose::Title);
                self.helper = Some(Helper {
                    token,
                    purpose,
                    model,
                    model_snapshot: *model_snapshot,
                    max_usage: *max_usage,
                });
            }
            Event::HelperCompleted { .. } => self.helper = None,
            Event::UsageBooked { purpose: Some(_), .. } => {}
            Event::UsageBooked { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.unanswered_attempts += 1;
                    // That attempt has ended: it must not be booked twice.
                    if matches!(turn.activity, Activity::Calling { .. }) {
                        turn.activity = Activity::Waiting { token: envelope.seq, wait: None };
                    }
                }
            }
            Event::MessageCompleted {
                item,
                model,
                stop_reason,
                usage,
                duration_ms,
                response_id,
                superseded,
                ..
            } => {
                self.message_completed(item, model.as_ref(), *superseded);
                if item.role == Some(Role::Assistant) && item.status == ItemStatus::Completed {
                    // The provider cannot continue from an answer that left nothing in the transcript.
                    self.continues =
                        model.clone().zip(response_id.clone()).filter(|_| !item.content.is_empty());
                }
                if let (Some(_), Some(turn)) = (usage, &mut self.turn) {
                    turn.stop_reason = *stop_reason;
                    turn.failures = 0;
                    (turn.overloads, turn.unreached) = (0, 0);
                    // The answer is requested again with a higher limit.
                    turn.output_limit_raised |= *superseded && *stop_reason == Some(StopReason::MaxTokens);
                    if *stop_reason != Some(StopReason::MaxTokens) {
                        turn.continuations = 0;
                    }
                }
                if let Some(usage) = usage.filter(|usage| !*superseded && usage.all_tokens() > 0) {
                    self.context_tokens = usage.all_tokens();
                }
                if let (Some(ms), Some(turn)) = (duration_ms, &mut self.turn) {
                    turn.model_ms += ms;
                }
            }
            Event::MediaWithheld { .. } => {
                self.transcript.change(withhold);
                // The conversation stored by the provider may contain the refused media.
                self.continues = None;
            }
            Event::ToolBackground { .. } => self.apply_background(envelope),
            _ => self.apply_to_turn(envelope),
        }
    }

    /// Session, turn and model receive the same usage record, so that their sums agree.
    fn book(&mut self, booking: &UsageRecord, turn_id: Option<TurnId>) {
        self.spent.book(booking);
        // The usage of a helper call counts for the session only.
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn_id == Some(turn.id)) {
            turn.spent.book(booking);
            turn.usage_by_model.entry(booking.model.clone()).or_default().book(booking);
        }
    }

    fn apply_to_turn(&mut self, envelope: &Envelope) {
        if let Event::ToolProgress { call_id, text, .. } = &envelope.event {
            self.heard_command(*call_id, text);
        }
        let Some(turn) = &mut self.turn else { return };
        match &envelope.event {
            Event::TurnPhase { phase: Phase::ModelCall, step } => {
                if turn.step == *step {
                    turn.attempts += 1;
                } else {
                    turn.attempts = 1;
                    (turn.reduced_output_limit, turn.is_fresh) = (None, false);
                    turn.discarded_items.clear();
                }
                turn.step = *step;
                turn.model_calls = *step + turn.unanswered_attempts;
                turn.hold = None;
                turn.activity = Activity::Calling { token: envelope.seq, partial: None };
            }
            Event::TurnPhase { .. } => turn.hold = None,
            Event::TurnResumed { resumes, delay_ms } => {
                turn.resumes = *resumes;
                turn.hold = (*delay_ms > 0).then_some(Hold::Wait { token: envelope.seq });
            }
            Event::QuestionRequested { question } => ask(turn, question, envelope),
            Event::QuestionResolved { request_id, kind, .. } => {
                if *kind == QuestionKind::Resume {
                    turn.hold = None;
                }
                answered(turn, RequestId::Question(*request_id), envelope);
            }
            Event::TurnSteered { input } => turn.steered.push_back(input.clone()),
            Event::TurnAborting { ending, subtype } => {
                if !turn.aborting {
                    turn.ends_as = *subtype;
                }
                turn.aborting = true;
                turn.ending |= ending;
                if envelope.origin.is_some() {
                    turn.aborted_by.clone_from(&envelope.origin);
                }
            }
            Event::Retry { attempt, delay_ms, reason, kind, max_output_tokens, .. } => {
                turn.failures = turn.failures.saturating_add(1);
                let is = |kinds: &[FaultKind]| kinds.iter().any(|known| known.name() == kind);
                turn.overloads = if is(&[FaultKind::Overloaded]) { turn.overloads + 1 } else { 0 };
                turn.unreached = if is(&[FaultKind::Unreachable]) { turn.unreached + 1 } else { 0 };
                turn.is_fresh = is(&[FaultKind::Interrupted, FaultKind::Idle, FaultKind::Unreachable]);
                turn.reduced_output_limit = max_output_tokens.or(turn.reduced_output_limit);
                let (reason, attempt) = (reason.clone(), *attempt);
                let wait = Backoff { left_ms: *delay_ms, told_at: envelope.at_ms, reason, attempt };
                turn.activity = Activity::Waiting { token: envelope.seq, wait: Some(wait) };
            }
            Event::Heartbeat { reason, attempt, remaining_ms } => {
                let (reason, attempt) = (reason.clone(), *attempt);
                let wait = Backoff { left_ms: *remaining_ms, told_at: envelope.at_ms, reason, attempt };
                turn.hold = None;
                turn.activity = Activity::Waiting { token: envelope.seq, wait: Some(wait) };
            }
            Event::ModelSwitched { from, to, .. } => {
                turn.tried_models.push(from.clone());
                turn.model.clone_from(to);
                (turn.failures, turn.overloads, turn.unreached) = (0, 0, 0);
                (turn.reduced_output_limit, turn.is_fresh) = (None, false);
            }
            Event::MessageTombstone { .. } => {
                turn.discarded_items.retain(|item_id| Some(*item_id) != envelope.item_id)
            }
            Event::Error { kind, message, causes } => turn.errors.push(TurnError {
                kind: kind.clone(),
                message: message.clone(),
                causes: causes.clone(),
            }),
            Event::MessageStarted { .. } => {
                if let (Activity::Calling { partial, .. }, Some(item_id)) =
                    (&mut turn.activity, envelope.item_id)
                {
                    *partial =
                        Some(Partial { item_id, first_seq: envelope.seq, content: Vec::new(), bytes: 0 });
                }
            }
            Event::MessageBlockStarted { block, .. } => {
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity {
                    match block {
                        BlockKind::Text => partial.content.push(Block::Text { text: String::new() }),
                        BlockKind::Thinking => {
                            partial.content.push(Block::Thinking { text: String::new(), signature: None });
                        }
                        BlockKind::ToolCall { .. } => {}
                    }
                }
            }
            Event::MessageTextDelta { text, .. } => {
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity {
                    partial.bytes += text.len();
                    if let Some(Block::Text { text: sum }) = partial.content.last_mut() {
                        sum.push_str(text);
                    }
                }
            }
            Event::MessageThinkingDelta { text, .. } => {
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity {
                    partial.bytes += text.len();
                    if let Some(Block::Thinking { text: sum, .. }) = partial.content.last_mut() {
                        sum.push_str(text);
                    }
                }
            }
            Event::MessageToolInputDelta { json, .. } => {
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity {
                    partial.bytes += json.len();
                }
            }
            Event::ToolRequested { call_id, .. } => {
                let found = self.transcript.last().and_then(|message| {
                    message.content.iter().find_map(|block| match block {
                        Block::ToolCall(call) if call.call_id == *call_id => Some(call.clone()),
                        _ => None,
                    })
                });
                let (Some(call), Some(item_id)) = (found, envelope.item_id) else { return };
                let call = Call {
                    call: Arc::new(call),
                    item_id,
                    first_seq: envelope.seq,
                    edited: None,
                    first: None,
                    stage: Stage::Requested,
                };
                match &mut turn.activity {
                    Activity::Tools { calls } => calls.push(call),
                    other => *other = Activity::Tools { calls: vec![call] },
                }
            }
            Event::PermissionRequested { request, read_only, change, sandbox } => {
                let prepared = Arc::new(PreparedCall {
                    subject: request.subject.clone(),
                    summary: request.summary.clone(),
                    diff: None,
                    read_only: *read_only,
                    change: change.clone(),
                    sandbox: *sandbox,
                });
                turn.waiting_since.get_or_insert(envelope.at_ms);
                let stage = Stage::Awaiting {
                    request_id: request.request_id,
                    prepared,
                    suggestions: request.suggestions.clone(),
                    deadline: request
                        .deadline_ms
                        .map(|at| Deadline { at, on_timeout: request.on_timeout.unwrap_or_default() }),
                    read_only_command: request.read_only_command,
                    expired: false,
                    folder: request.cwd.clone(),
                    digest: request.digest.clone(),
                };
                set_stage(turn, request.call_id, stage);
            }
            Event::PermissionResolved { request_id, call_id, updated_input, .. } => {
                let session_id = self.session_id;
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                {
                    // A second run keeps the arguments of the first: they were settled before.
                    if call.first.is_none() {
                        call.edited.clone_from(updated_input);
                    }
                    settled(call, session_id, &envelope.event);
                }
                answered(turn, RequestId::Permission(*request_id), envelope);
                if let Event::PermissionResolved {
                    decision: Decision::Allow,
                    scope: Scope::Session,
                    grant: Some(grant),
                    ..
                } = &envelope.event
                {
                    self.add_rule(RuleKind::Allow, grant);
                }
            }
            Event::PermissionExpired { call_id, .. } => {
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let Stage::Awaiting { expired, .. } = &mut call.stage
                {
                    *expired = true;
                }
            }
            Event::ToolStatus { call_id, prepared, allowed_by } => {
                let (prepared, allowed_by) = (Arc::new(prepared.clone()), allowed_by.clone());
                let stage = Stage::Ready { prepared, allowed_by, bound: None };
                set_stage(turn, *call_id, stage);
            }
            Event::ToolStarted { call_id, .. } => {
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let Stage::Ready { prepared, .. } = &call.stage
                {
                    let (prepared, said) = (Arc::clone(prepared), OutputExcerpt::default());
                    call.stage = Stage::Running { prepared, started_seq: envelope.seq, said };
                }
            }
            Event::ToolBlocked {
                call_id,
                blocked,
                status,
                output,
                output_blob,
                code,
                detail,
                duration_ms,
                cwd,
                ..
            } => {
                turn.tools_ms += duration_ms;
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                {
                    call.first = Some(Arc::new(FirstRun {
                        blocked: blocked.clone(),
                        status: *status,
                        output: output.clone(),
                        output_blob: output_blob.clone(),
                        code: code.clone(),
                        detail: detail.clone(),
                        duration_ms: *duration_ms,
                        cwd: cwd.clone(),
                    }));
                }
            }
            Event::ToolProgress { call_id, text, .. } => {
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let Stage::Running { said, .. } = &mut call.stage
                {
                    said.push(text);
                }
            }
            Event::ToolCompleted {
                call_id,
                status,
                output,
                attachments,
                duration_ms,
                reads,
                cwd,
                background_read,
                ..
            } => {
                // The duration of a first run is already counted.
                if let Activity::Tools { calls } = &turn.activity
                    && calls.iter().any(|call| {
                        call.call.call_id == *call_id && (call.first.is_none() || call.has_begun())
                    })
                {
                    turn.tools_ms += duration_ms;
                }
                if let Some(cwd) = cwd {
                    self.cwd = PathBuf::from(cwd);
                }
                if !reads.is_empty() {
                    let known = Arc::make_mut(&mut self.reads);
                    for read in reads {
                        let read = read.and_before(known.get(&read.path));
                        known.insert(read.path.clone(), read);
                    }
                }
                if let Some(read) = background_read {
                    self.record_background_read(*read);
                }
                self.tool_completed(*call_id, *status, output, attachments);
            }
            _ => {}
        }
    }

    fn add_rule(&mut self, kind: RuleKind, rule: &str) {
        let rules = Arc::make_mut(&mut self.rules).of_mut(kind);
        if !rules.iter().any(|known| known == rule) {
            rules.push(rule.to_string());
        }
    }

    fn message_completed(&mut self, item: &Item, model: Option<&String>, superseded: bool) {
        match item.kind {
            ItemKind::UserMessage | ItemKind::Notice => {
                match &mut self.turn {
                    Some(turn) if item.kind == ItemKind::Notice => {
                        turn.continuations += 1;
                        turn.continues_previous = true;
                    }
                    Some(turn) => _ = turn.steered.pop_front(),
                    None => {}
                }
                let content = match item.content.as_slice() {
                    [] => vec![Block::Text { text: item.text.clone().unwrap_or_default() }],
                    content => content.to_vec(),
                };
                self.transcript.push(Message::new(Role::User, content));
            }
            ItemKind::AssistantMessage if item.status == ItemStatus::Interrupted => {
                if let Some(Turn {
                    activity: Activity::Calling { partial, .. },
                    discarded_items: orphans,
                    ..
                }) = &mut self.turn
                {
                    *partial = None;
                    if superseded {
                        orphans.push(item.item_id);
                    }
                }
            }
            ItemKind::AssistantMessage => {
                let text = item.text.clone().unwrap_or_default();
                if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    self.last_line = line.trim().chars().take(160).collect();
                }
                if let Some(turn) = &mut self.turn {
                    if std::mem::take(&mut turn.continues_previous) {
                        turn.last_text.push_str(&text);
                    } else {
                        turn.last_text = text;
                    }
                    turn.discarded_items.clear();
                    turn.activity = Activity::Tools { calls: Vec::new() };
                }
                if !item.content.is_empty() {
                    let message = Message::new(Role::Assistant, item.content.clone());
                    self.transcript.push(Message { model: model.cloned(), ..message });
                }
            }
            ItemKind::ToolCall => {}
        }
    }

    fn tool_completed(
        &mut self,
        call_id: CallId,
        status: ToolStatus,
        output: &str,
        attachments: &[Attachment],
    ) {
        let Some(turn) = &mut self.turn else { return };
        let Activity::Tools { calls } = &mut turn.activity else { return };
        let Some(call) = calls.iter_mut().find(|call| call.call.call_id == call_id) else { return };
        call.stage = Stage::Done {
            output: output.to_string(),
            is_error: status != ToolStatus::Completed,
            attachments: attachments.to_vec(),
        };
        if status == ToolStatus::Denied {
            turn.denials.push(Denial {
                tool: call.call.tool.clone(),
                call_id,
                input: call.call.input.clone(),
            });
        }
        // Exactly one result per call, in call order, directly after the assistant's message.
        if calls.iter().all(Call::is_done) {
            let content = calls
                .iter()
                .filter_map(|call| match &call.stage {
                    Stage::Done { output, is_error, attachments } => Some(Block::ToolResult {
                        call_id: call.call.call_id,
                        provider_id: call.call.provider_id.clone(),
                        content: output.clone(),
                        is_error: *is_error,
                        attachments: attachments.clone(),
                    }),
                    _ => None,
                })
                .collect();
            self.transcript.push(Message::new(Role::User, content));
        }
    }
}

/// Makes an allowed call ready to start, with its verdict and bound to the request that the user saw.
fn settled(call: &mut Call, session_id: SessionId, event: &Event) {
    let Event::PermissionResolved { request_id, decision: Decision::Allow, prepared: edited, rule, .. } =
        event
    else {
        return;
    };
    let Stage::Awaiting { prepared, folder, digest: shown, .. } = &call.stage else { return };
    let bound = match &call.edited {
        Some(input) => Some(digest(session_id, folder, &call.call.tool, input)),
        // Older journals have no digest; then the answer is not bound to one.
        None => Some(shown.clone()).filter(|shown| !shown.is_empty()),
    };
    call.stage = Stage::Ready {
        prepared: edited.clone().map_or_else(|| Arc::clone(prepared), Arc::new),
        allowed_by: rule.clone().unwrap_or_else(|| request_id.to_string()),
        bound: bound.map(|digest| (folder.clone(), digest)),
    };
}

/// Applies a new question, about a call or about the whole turn.
fn ask(turn: &mut Turn, question: &Question, envelope: &Envelope) {
    turn.waiting_since.get_or_insert(envelope.at_ms);
    let request_id = question.request_id;
    let Some(call_id) = question.call_id else {
        turn.hold = Some(Hold::Paused { request_id });
        return;
    };
    if let Activity::Tools { calls } = &mut turn.activity
        && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == call_id)
        && let Stage::Running { started_seq, .. } = call.stage
    {
        let said = question.output.clone().unwrap_or_default();
        call.stage = Stage::Unknown { request_id, started_seq, said };
    }
}

/// Applies a user's answer: without other pending requests, the waiting time ends.
fn answered(turn: &mut Turn, request: RequestId, envelope: &Envelope) {
    let waits = |call: &Call| match call.stage {
        Stage::Awaiting { request_id, .. } => request != RequestId::Permission(request_id),
        Stage::Unknown { request_id, .. } => request != RequestId::Question(request_id),
        _ => false,
    };
    let calls: &[Call] = match &turn.activity {
        Activity::Tools { calls } => calls,
        _ => &[],
    };
    let open = calls.iter().any(waits) || matches!(turn.hold, Some(Hold::Paused { .. }));
    if !open && let Some(since) = turn.waiting_since.take() {
        turn.permission_ms += envelope.at_ms.since(since);
    }
}

fn set_stage(turn: &mut Turn, call_id: CallId, stage: Stage) {
    if let Activity::Tools { calls } = &mut turn.activity
        && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == call_id)
    {
        call.stage = stage;
    }
}
