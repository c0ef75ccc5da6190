//! Remembering: the only code that changes the state. It cannot refuse a fact.

use std::path::PathBuf;
use std::sync::Arc;

use super::state::{Activity, Call, Engine, Partial, Queued, Settings, Stage, State, Turn};
use crate::types::event::{Envelope, Event, Phase};
use crate::types::ids::SessionId;
use crate::types::message::{Block, Message, Role};
use crate::types::model::BlockKind;
use crate::types::permission::{Decision, Scope};
use crate::types::session::{Denial, Item, ItemKind, ItemStatus, SessionState};
use crate::types::tool::{Prepared, ToolStatus};

impl Engine {
    /// Takes a committed fact into the state.
    pub fn apply(&mut self, fact: &Envelope) {
        self.state.apply(fact);
    }

    /// The same fold, from the journal: this is what a restart is.
    pub fn replay<'a>(
        session_id: SessionId,
        settings: Arc<Settings>,
        journal: impl IntoIterator<Item = &'a Envelope>,
    ) -> Self {
        let mut engine = Engine::new(session_id, settings);
        for fact in journal {
            engine.apply(fact);
        }
        engine
    }
}

impl State {
    pub fn apply(&mut self, fact: &Envelope) {
        self.next_seq = self.next_seq.max(fact.seq + 1);
        if fact.event.is_fact() {
            self.updated_at = fact.at_ms;
        }
        match &fact.event {
            Event::SessionCreated(spec) => {
                self.cwd = PathBuf::from(&spec.cwd);
                self.spec = spec.clone();
            }
            Event::SessionUpdated { title, model, mode } => {
                if let Some(title) = title {
                    self.spec.title.clone_from(title);
                }
                if let Some(model) = model {
                    self.spec.model.clone_from(model);
                }
                if let Some(mode) = mode {
                    self.spec.mode = *mode;
                }
            }
            Event::SessionStatus { state, requires } => {
                self.status = *state;
                self.requires = *requires;
            }
            Event::SessionContext { system, .. } => self.system = Some(Arc::from(system.as_str())),
            Event::SessionEnded { .. } => {
                self.status = SessionState::Ended;
                self.requires = None;
                self.queue.clear();
                self.turn = None;
            }
            Event::TurnQueued { input, front, budgets } => {
                if let Some(turn_id) = fact.turn_id {
                    let queued = Queued { turn_id, input: input.clone(), budgets: *budgets };
                    if *front {
                        self.queue.push_front(queued);
                    } else {
                        self.queue.push_back(queued);
                    }
                }
            }
            Event::TurnStarted { model, budgets, .. } => {
                if let Some(turn_id) = fact.turn_id {
                    self.queue.retain(|queued| queued.turn_id != turn_id);
                    self.turn = Some(Turn::new(turn_id, model.clone(), *budgets, fact.at_ms));
                }
            }
            Event::TurnCompleted { .. } => self.turn = None,
            Event::MessageCompleted {
                item, model, stop_reason, usage, cost_usd_micros, duration_ms, ..
            } => {
                self.message_completed(item);
                if let (Some(usage), Some(turn)) = (usage, &mut self.turn) {
                    self.usage.add(usage);
                    self.cost_usd_micros = add_cost(self.cost_usd_micros, *cost_usd_micros);
                    turn.usage.add(usage);
                    let model = model.clone().unwrap_or_else(|| turn.model.clone());
                    turn.usage_by_model.entry(model).or_default().add(usage);
                    turn.cost_usd_micros = add_cost(turn.cost_usd_micros, *cost_usd_micros);
                    turn.stop_reason = *stop_reason;
                    turn.failures = 0;
                }
                if let (Some(ms), Some(turn)) = (duration_ms, &mut self.turn) {
                    turn.model_ms += ms;
                }
            }
            _ => self.apply_to_turn(fact),
        }
    }

    fn apply_to_turn(&mut self, fact: &Envelope) {
        let Some(turn) = &mut self.turn else { return };
        match &fact.event {
            Event::TurnPhase { phase: Phase::ModelCall, step } => {
                turn.step = *step;
                turn.model_calls = *step;
                turn.activity = Activity::Calling { token: fact.seq, partial: None };
            }
            Event::TurnPhase { .. } => {}
            Event::TurnResumed { resumes } => turn.resumes = *resumes,
            Event::TurnSteered { input } => turn.steered.push_back(input.clone()),
            Event::TurnAborting { ending } => {
                turn.aborting = true;
                turn.ending |= ending;
            }
            Event::Retry { .. } => {
                turn.failures += 1;
                turn.activity = Activity::Waiting { token: fact.seq };
            }
            Event::Error { kind, message } => turn
                .errors
                .push(crate::types::session::TurnError { kind: kind.clone(), message: message.clone() }),
            Event::MessageStarted { .. } => {
                if let (Activity::Calling { partial, .. }, Some(item_id)) = (&mut turn.activity, fact.item_id)
                {
                    *partial = Some(Partial { item_id, first_seq: fact.seq, content: Vec::new() });
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
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity
                    && let Some(Block::Text { text: sum }) = partial.content.last_mut()
                {
                    sum.push_str(text);
                }
            }
            Event::MessageThinkingDelta { text, .. } => {
                if let Activity::Calling { partial: Some(partial), .. } = &mut turn.activity
                    && let Some(Block::Thinking { text: sum, .. }) = partial.content.last_mut()
                {
                    sum.push_str(text);
                }
            }
            Event::ToolRequested { call_id, .. } => {
                let found = self.transcript.last().and_then(|message| {
                    message.content.iter().find_map(|block| match block {
                        Block::ToolCall(call) if call.call_id == *call_id => Some(call.clone()),
                        _ => None,
                    })
                });
                let (Some(call), Some(item_id)) = (found, fact.item_id) else { return };
                let call =
                    Call { call: Arc::new(call), item_id, first_seq: fact.seq, stage: Stage::Requested };
                match &mut turn.activity {
                    Activity::Tools { calls } => calls.push(call),
                    other => *other = Activity::Tools { calls: vec![call] },
                }
            }
            Event::PermissionRequested { request, read_only } => {
                let prepared = Arc::new(Prepared {
                    subject: request.subject.clone(),
                    summary: request.summary.clone(),
                    diff: None,
                    read_only: *read_only,
                });
                turn.waiting_since.get_or_insert(fact.at_ms);
                let stage = Stage::Awaiting {
                    request_id: request.request_id,
                    prepared,
                    suggestions: request.suggestions.clone(),
                };
                set_stage(turn, request.call_id, stage);
            }
            Event::PermissionResolved { request_id, call_id, decision, scope, grant, .. } => {
                if let (Decision::Allow, Scope::Session, Some(grant)) = (decision, scope, grant) {
                    Arc::make_mut(&mut self.grants).push(grant.clone());
                }
                let Activity::Tools { calls } = &mut turn.activity else { return };
                let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id) else { return };
                if let (Decision::Allow, Stage::Awaiting { prepared, .. }) = (decision, &call.stage) {
                    call.stage =
                        Stage::Ready { prepared: Arc::clone(prepared), allowed_by: request_id.to_string() };
                }
                let open = calls.iter().any(|call| {
                    matches!(call.stage, Stage::Awaiting { request_id: other, .. } if other != *request_id)
                });
                if !open && let Some(since) = turn.waiting_since.take() {
                    turn.permission_ms += fact.at_ms.since(since);
                }
            }
            Event::ToolStatus { call_id, prepared, allowed_by } => {
                let stage =
                    Stage::Ready { prepared: Arc::new(prepared.clone()), allowed_by: allowed_by.clone() };
                set_stage(turn, *call_id, stage);
            }
            Event::ToolStarted { call_id, .. } => {
                if let Activity::Tools { calls } = &mut turn.activity
                    && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let Stage::Ready { prepared, .. } = &call.stage
                {
                    call.stage = Stage::Running { prepared: Arc::clone(prepared), started_seq: fact.seq };
                }
            }
            Event::ToolCompleted { call_id, status, output, duration_ms, reads, cwd, .. } => {
                turn.tools_ms += duration_ms;
                if let Some(cwd) = cwd {
                    self.cwd = PathBuf::from(cwd);
                }
                if !reads.is_empty() {
                    let known = Arc::make_mut(&mut self.reads);
                    for read in reads {
                        known.insert(read.path.clone(), read.clone());
                    }
                }
                self.tool_completed(*call_id, *status, output);
            }
            _ => {}
        }
    }

    fn message_completed(&mut self, item: &Item) {
        match item.kind {
            ItemKind::UserMessage => {
                if let Some(turn) = &mut self.turn {
                    turn.steered.pop_front();
                }
                let text = item.text.clone().unwrap_or_default();
                Arc::make_mut(&mut self.transcript).push(Arc::new(Message::user(text)));
            }
            ItemKind::AssistantMessage if item.status == ItemStatus::Interrupted => {
                if let Some(Turn { activity: Activity::Calling { partial, .. }, .. }) = &mut self.turn {
                    *partial = None;
                }
            }
            ItemKind::AssistantMessage => {
                let text = item.text.clone().unwrap_or_default();
                if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    self.last_line = line.trim().chars().take(160).collect();
                }
                if let Some(turn) = &mut self.turn {
                    turn.last_text = text;
                    turn.activity = Activity::Tools { calls: Vec::new() };
                }
                if !item.content.is_empty() {
                    let message = Message { role: Role::Assistant, content: item.content.clone() };
                    Arc::make_mut(&mut self.transcript).push(Arc::new(message));
                }
            }
            ItemKind::ToolCall => {}
        }
    }

    fn tool_completed(&mut self, call_id: crate::types::ids::CallId, status: ToolStatus, output: &str) {
        let Some(turn) = &mut self.turn else { return };
        let Activity::Tools { calls } = &mut turn.activity else { return };
        let Some(call) = calls.iter_mut().find(|call| call.call.call_id == call_id) else { return };
        call.stage = Stage::Done { output: output.to_string(), is_error: status != ToolStatus::Completed };
        if status == ToolStatus::Denied {
            turn.denials.push(Denial {
                tool: call.call.tool.clone(),
                call_id,
                input: call.call.input.clone(),
            });
        }
        // Exactly one result a call, in call order, directly after the assistant's message (Q13).
        if calls.iter().all(Call::is_done) {
            let content = calls
                .iter()
                .filter_map(|call| match &call.stage {
                    Stage::Done { output, is_error } => Some(Block::ToolResult {
                        call_id: call.call.call_id,
                        provider_id: call.call.provider_id.clone(),
                        content: output.clone(),
                        is_error: *is_error,
                    }),
                    _ => None,
                })
                .collect();
            Arc::make_mut(&mut self.transcript).push(Arc::new(Message { role: Role::User, content }));
        }
    }
}

fn set_stage(turn: &mut Turn, call_id: crate::types::ids::CallId, stage: Stage) {
    if let Activity::Tools { calls } = &mut turn.activity
        && let Some(call) = calls.iter_mut().find(|call| call.call.call_id == call_id)
    {
        call.stage = stage;
    }
}

/// An unknown price makes the sum unknown: never 0 (M5).
fn add_cost(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    Some(sum?.saturating_add(more?))
}
