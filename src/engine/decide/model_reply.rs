//! The model's answer: it is streamed into events, and its end decides the next action.

use std::collections::HashMap;

use crate::decide::message::PlainMessage;
use crate::decide::output_limit::{TruncatedAnswer, drop_cut_call};
use crate::decide::plan::PlanBuilder;
use crate::decide::retry::{MAX_SUMMARY_OVERFLOWS, RetryDecision};
use crate::decide::usage_estimate::{estimate, settle};
use crate::input::OutsideUsage;
use crate::state::partial::PartialAnswer;
use crate::state::{Activity, CONTEXT_OVERFLOW, CallStage, CallState};
use types::event::{Event, Phase, Purpose, UsageReason};
use types::ids::{CallId, ItemId, Seq};
use types::message::{Block, Role, ToolCall};
use types::model::{Delta, FaultKind, ModelFault, ModelReply, ReplyBlock, StopReason};
use types::session::{Item, ItemKind, ItemStatus, Subtype, TurnError};
use types::usage::{ModelSnapshot, NestedUsage, Usage};

/// Maximum bytes of one delta, so that a wire event stays under 64 KiB even when it is escaped.
const DELTA_BYTES: usize = 8 * 1024;

/// Converts deltas to events. Adjacent deltas of the same kind and block are joined up to [`DELTA_BYTES`].
fn join_deltas(deltas: Vec<Delta>) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::with_capacity(deltas.len().min(16));
    let (mut signature, mut data) = (None, None);
    for delta in deltas {
        match delta {
            Delta::ThinkingSealed { signature: seal, data: whole, .. } => (signature, data) = (seal, whole),
            Delta::BlockStarted { index, kind } => {
                events.push(Event::MessageBlockStarted { index, block: kind });
            }
            Delta::BlockCompleted { index } => {
                let (signature, data) = (signature.take(), data.take());
                events.push(Event::MessageBlockCompleted { index, signature, data });
            }
            // `add_deltas` handles these two kinds.
            Delta::Silence { .. } | Delta::CallCompleted { .. } => {}
            Delta::Text { index, text } => match events.last_mut() {
                Some(Event::MessageTextDelta { index: last, text: sum })
                    if *last == index && sum.len() + text.len() <= DELTA_BYTES =>
                {
                    sum.push_str(&text);
                }
                _ => events
                    .extend(split_text(text).into_iter().map(|text| Event::MessageTextDelta { index, text })),
            },
            Delta::Thinking { index, text } => match events.last_mut() {
                Some(Event::MessageThinkingDelta { index: last, text: sum })
                    if *last == index && sum.len() + text.len() <= DELTA_BYTES =>
                {
                    sum.push_str(&text);
                }
                _ => events.extend(
                    split_text(text).into_iter().map(|text| Event::MessageThinkingDelta { index, text }),
                ),
            },
            Delta::ToolInput { index, json } => match events.last_mut() {
                Some(Event::MessageToolInputDelta { index: last, json: sum })
                    if *last == index && sum.len() + json.len() <= DELTA_BYTES =>
                {
                    sum.push_str(&json);
                }
                _ => events.extend(
                    split_text(json).into_iter().map(|json| Event::MessageToolInputDelta { index, json }),
                ),
            },
        }
    }
    events
}

/// Cuts a text into parts of at most [`DELTA_BYTES`], never inside a character.
pub(crate) fn split_text(text: String) -> Vec<String> {
    if text.len() <= DELTA_BYTES {
        return vec![text];
    }
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while rest.len() > DELTA_BYTES {
        let (part, tail) = rest.split_at(rest.floor_char_boundary(DELTA_BYTES));
        parts.push(part.to_string());
        rest = tail;
    }
    parts.push(rest.to_string());
    parts
}

impl PlanBuilder<'_> {
    /// Whether the engine still waits for the model call `token`.
    fn awaits_model_call(&self, token: Seq) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| {
            let is_current_call =
                matches!(turn.activity, Activity::Calling { token: expected, .. } if expected == token);
            is_current_call && !turn.aborting
        })
    }

    /// Adds the deltas of an answer. Adjacent deltas of the same block that arrived together become one event.
    pub fn add_deltas(&mut self, token: Seq, deltas: Vec<Delta>) {
        if deltas.is_empty() || !self.awaits_model_call(token) {
            return;
        }
        let is_silence = |delta: &Delta| matches!(delta, Delta::Silence { .. });
        let (silences, deltas): (Vec<Delta>, Vec<Delta>) = deltas.into_iter().partition(is_silence);
        for silence in silences {
            if let Delta::Silence { ms: silent_ms } = silence {
                self.push_turn(Event::StreamIdle { silent_ms });
            }
        }
        // A summary is not a part of the conversation before it is complete, so clients receive no deltas of it.
        if deltas.is_empty() || self.state.compacting().is_some() {
            return;
        }
        let Some((item_id, _)) = self.open_message() else { return };
        let mut complete = Vec::new();
        let deltas = deltas.into_iter().filter_map(|delta| match delta {
            Delta::CallCompleted { provider_id, tool, input, .. } => {
                complete.push((provider_id, tool, input));
                None
            }
            other => Some(other),
        });
        for event in join_deltas(deltas.collect()) {
            self.push_item(item_id, event);
        }
        // A budget that this answer exceeds aborts the turn, and then no call of it may start.
        self.check_stream();
        self.request_early(complete);
    }

    /// Returns the item of the answer and the seq of its first event. Starts the message if it has not begun.
    fn open_message(&mut self) -> Option<(ItemId, Seq)> {
        if let Some(partial) = self.state.partial() {
            return Some((partial.item_id, partial.first_seq));
        }
        let turn = self.state.turn.as_ref()?;
        let (model, attempt) = (turn.model.clone(), turn.attempts);
        let item_id = self.mint.item();
        Some((item_id, self.push_item(item_id, Event::MessageStarted { model, attempt })))
    }

    pub fn model_done(
        &mut self,
        token: Seq,
        mut reply: ModelReply,
        cost_usd_micros: Option<u64>,
        model_snapshot: ModelSnapshot,
        duration_ms: u64,
    ) {
        if !self.awaits_model_call(token) {
            return;
        }
        if self.state.compacting().is_some() {
            self.summary_done(reply, cost_usd_micros, model_snapshot);
            return;
        }
        let candidate = self.is_candidate(&reply);
        let cut = (reply.stop_reason == StopReason::MaxTokens).then(|| drop_cut_call(&mut reply.content));
        let early: HashMap<String, CallId> = self
            .state
            .calls()
            .iter()
            .map(|call| (call.call.provider_id.clone(), call.call.call_id))
            .collect();
        let received = self.state.partial().map_or(0, |partial| partial.bytes);
        let Some(turn) = &self.state.turn else { return };
        let (turn_id, model) = (turn.id, turn.model.clone());
        let uncalibrated_tokens = turn.uncalibrated_tokens;
        for text in reply.notices {
            self.push_turn(Event::Notice { kind: "model".into(), text });
        }
        if reply.is_restated
            && let Some(partial) = self.state.partial().cloned()
        {
            // Clients have received reasoning as the text of this message, so another one has the answer.
            self.interrupt_message(&partial, true);
        }
        let Some((item_id, first_seq)) = self.open_message() else { return };
        let mut text = String::new();
        let mut calls = Vec::new();
        let content: Vec<Block> = reply
            .content
            .into_iter()
            .map(|block| match block {
                ReplyBlock::Text(part) => {
                    text.push_str(&part);
                    Block::Text { text: part }
                }
                ReplyBlock::Thinking { text, signature } => Block::Thinking { text, signature },
                ReplyBlock::RedactedThinking(data) => Block::RedactedThinking { data },
                ReplyBlock::ToolCall { provider_id, tool, input } => {
                    let (input, input_error) = match input {
                        Ok(input) => (input, None),
                        Err((raw, why)) => (serde_json::Value::String(raw), Some(why)),
                    };
                    let call_id = early.get(&provider_id).copied();
                    let call_id = call_id.unwrap_or_else(|| self.mint.call());
                    let call = ToolCall { call_id, provider_id, tool, input, input_error };
                    calls.push(call.clone());
                    Block::ToolCall(call)
                }
            })
            .collect();
        let has_said = !content.is_empty();
        let longer = !candidate && cut.is_some() && calls.is_empty() && self.can_raise_limit();
        // Some servers report no usage, which differs from zero usage. A cached answer has no usage.
        let estimated = reply.usage.all_tokens() == 0 && !reply.cache_hit;
        let request = if estimated { self.build_request().ok() } else { None };
        let (usage, cost_usd_micros) = match request {
            Some(request) => {
                let usage = estimate(&request, received, &model_snapshot);
                (usage, model_snapshot.cost_usd_micros(&usage))
            }
            None => (reply.usage, cost_usd_micros),
        };
        let seq = self.state.next_seq;
        let is_reasoning = |block: &Block| matches!(block, Block::Thinking { text, .. } if !text.is_empty());
        let reasoning_item_id = content.iter().any(is_reasoning).then(|| self.mint.item());
        let item = Item {
            item_id,
            turn_id,
            kind: ItemKind::AssistantMessage,
            status: if longer || candidate { ItemStatus::Interrupted } else { ItemStatus::Completed },
            first_seq,
            last_seq: seq,
            text: Some(text),
            role: Some(Role::Assistant),
            content,
            call: None,
            command: None,
            truncated_fields: Vec::new(),
        };
        self.push_item(
            item_id,
            Event::MessageCompleted {
                item,
                reasoning_item_id,
                model: Some(model),
                stop_reason: Some(reply.stop_reason),
                usage: Some(usage),
                estimated,
                cost_usd_micros,
                model_snapshot: Some(model_snapshot),
                duration_ms: Some(duration_ms),
                response_id: reply.response_id,
                superseded: longer || candidate,
                cache_hit: reply.cache_hit,
                uncalibrated_tokens,
                cut_short: false,
                candidate,
            },
        );
        self.book_nested(reply.nested);
        self.warn_of_budgets();
        if longer {
            self.request_longer_answer(item_id);
            return;
        }
        if candidate {
            self.candidate_done(reply.stop_reason);
            return;
        }
        self.continue_after_answer(calls, reply.stop_reason, has_said, cut);
    }

    /// Continues after a complete answer. If the answer has complete calls, they run whatever its stop reason is.
    pub fn continue_after_answer(
        &mut self,
        calls: Vec<ToolCall>,
        stop_reason: StopReason,
        has_said: bool,
        cut: Option<TruncatedAnswer>,
    ) {
        if !calls.is_empty() {
            self.request_tools(calls);
        } else if self.deliver_steered() || (stop_reason == StopReason::Pause && has_said) {
            self.call_model();
        } else if stop_reason == StopReason::Pause {
            // Another request would be the same as this one, and could get the same answer in an endless loop.
            let text = "the provider paused its answer before any text";
            self.finish_turn(Subtype::LlmError, vec![TurnError::new("paused", text)]);
        } else if let Some(cut) = cut {
            self.request_continuation(cut);
        } else {
            self.finish_answered();
        }
    }

    fn request_tools(&mut self, calls: Vec<ToolCall>) {
        let step = self.state.turn.as_ref().map_or(0, |turn| turn.step);
        for call in calls {
            if self.state.call(call.call_id).is_some() {
                continue;
            }
            let item_id = self.mint.item();
            let ToolCall { call_id, tool, input, .. } = call;
            self.push_call(item_id, call_id, tool, input, None);
        }
        self.push_phase(Phase::ToolExecution, step);
        self.go_on_with_calls();
    }

    /// Prepares the calls that are not prepared yet. If all are prepared, starts those that may start.
    fn go_on_with_calls(&mut self) {
        let is_open = |call: &CallState| call.stage == CallStage::Requested;
        if self.state.calls().iter().any(is_open) {
            self.prepare_open_calls();
        } else {
            self.advance_tools();
        }
    }

    /// Completes an answer whose stream broke off after complete calls. Those calls may have run, so
    /// the answer is kept and not requested again. Returns `false` if there is no complete call.
    pub fn keep_streamed_calls(&mut self, model_snapshot: ModelSnapshot, reported: Option<&Usage>) -> bool {
        let Some(partial) = self.state.partial().cloned() else { return false };
        let Some(turn) = self.state.turn.as_ref().filter(|turn| !turn.calls.is_empty()) else { return false };
        let (turn_id, model) = (turn.id, turn.model.clone());
        let usage = self.lost_usage(Some(&partial), reported, &model_snapshot);
        let mut content = partial.valid_content();
        let text = content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text: String = text.collect();
        content.extend(self.state.calls().iter().map(|call| Block::ToolCall((*call.call).clone())));
        let item = Item {
            item_id: partial.item_id,
            turn_id,
            kind: ItemKind::AssistantMessage,
            status: ItemStatus::Completed,
            first_seq: partial.first_seq,
            last_seq: self.state.next_seq,
            text: Some(text),
            role: Some(Role::Assistant),
            content,
            call: None,
            command: None,
            truncated_fields: Vec::new(),
        };
        let mut completed = Event::message(item);
        if let Event::MessageCompleted { model: of, cut_short, .. } = &mut completed {
            (*of, *cut_short) = (Some(model), true);
        }
        self.push_item(partial.item_id, completed);
        if let Some(usage) = usage {
            self.push_lost_attempt(usage, model_snapshot);
        }
        true
    }

    pub fn model_failed(&mut self, token: Seq, fault: &ModelFault, model_snapshot: ModelSnapshot) {
        if !self.awaits_model_call(token) {
            return;
        }
        if self.keep_streamed_calls(model_snapshot, fault.usage.as_deref()) {
            let text = format!("the answer broke off ({}); it ends with its complete calls", fault.message);
            self.push_turn(Event::Notice { kind: "answer_cut_short".into(), text });
            let step = self.state.turn.as_ref().map_or(0, |turn| turn.step);
            self.push_phase(Phase::ToolExecution, step);
            self.go_on_with_calls();
            return;
        }
        let partial = self.state.partial().cloned();
        let reaction = self.decide_retry(fault);
        if let Some(partial) = &partial {
            self.interrupt_message(partial, !matches!(reaction, RetryDecision::GiveUp(_)));
        }
        // The provider may charge for a begun answer, and also for silence, because the model may have
        // been thinking.
        if partial.is_some() || fault.usage.is_some() || fault.kind == FaultKind::Idle {
            self.book_lost_attempt(partial.as_ref(), fault.usage.as_deref(), model_snapshot);
        }
        if self.awaits_second_answer() && !matches!(reaction, RetryDecision::Retry { .. }) {
            self.use_first_answer();
            return;
        }
        let Some((step, failures)) = self.state.turn.as_ref().map(|turn| (turn.step, turn.failures)) else {
            return;
        };
        match reaction {
            RetryDecision::Retry { max, delay_ms, max_output_tokens } => {
                let kind = match max_output_tokens {
                    Some(_) => CONTEXT_OVERFLOW,
                    None => fault.kind.name(),
                };
                let token = self.push_turn(Event::Retry {
                    attempt: failures.saturating_add(1),
                    max,
                    delay_ms,
                    reason: fault.message.clone(),
                    kind: kind.into(),
                    max_output_tokens,
                });
                self.start_backoff(token, delay_ms);
            }
            RetryDecision::Switch { .. } | RetryDecision::Withhold if self.calls_summary_model() => {
                self.summary_failed(TurnError::new(fault.kind.name(), fault.message.as_str()));
            }
            RetryDecision::Switch { to, reason } => {
                self.switch_model(to, reason, &fault.message);
                self.call_model_step(step);
            }
            RetryDecision::Withhold => {
                self.withhold_media(&fault.message);
                self.call_model_step(step);
            }
            RetryDecision::Compact { .. } if self.state.compacting().is_some() => {
                // The next attempt shortens the summary request further.
                let token = self.push_turn(Event::Retry {
                    attempt: failures.saturating_add(1),
                    max: failures.saturating_add(MAX_SUMMARY_OVERFLOWS),
                    delay_ms: 0,
                    reason: fault.message.clone(),
                    kind: CONTEXT_OVERFLOW.into(),
                    max_output_tokens: None,
                });
                self.start_backoff(token, 0);
            }
            RetryDecision::Compact { limit } => self.compact_after_overflow(step, limit),
            RetryDecision::GiveUp(error) if self.state.compacting().is_some() => self.summary_failed(error),
            RetryDecision::GiveUp(error) => {
                // Only the continuation of an answer did not fit, so the answer so far stays valid.
                let is_rest = self.state.turn.as_ref().is_some_and(|turn| turn.continuations > 0);
                let is_full = is_rest && error.kind == CONTEXT_OVERFLOW;
                self.finish_turn(
                    if is_full { Subtype::MaxOutputTokens } else { Subtype::LlmError },
                    vec![error],
                );
            }
        }
    }

    /// Closes a message that stays incomplete: it is kept, marked, and never sent to a model.
    /// `superseded` says that the model is asked again and its next answer replaces this message.
    pub fn interrupt_message(&mut self, partial: &PartialAnswer, superseded: bool) {
        let content = partial.content();
        let texts = content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect();
        let message = PlainMessage {
            item_id: partial.item_id,
            kind: ItemKind::AssistantMessage,
            status: ItemStatus::Interrupted,
            first_seq: partial.first_seq,
            role: Role::Assistant,
            text,
            content,
            model: Some(self.turn_model()),
            command: None,
            superseded,
        };
        self.push_plain_message(message);
    }

    /// Books a model call that was sent but gave no answer. The amount is the usage that the provider
    /// `reported`, plus an upper estimate of the rest.
    pub fn book_lost_attempt(
        &mut self,
        partial: Option<&PartialAnswer>,
        reported: Option<&Usage>,
        model_snapshot: ModelSnapshot,
    ) {
        if let Some(usage) = self.lost_usage(partial, reported, &model_snapshot) {
            self.push_lost_attempt(usage, model_snapshot);
        }
    }

    /// The usage of a model call that was sent but gave no complete answer.
    fn lost_usage(
        &self,
        partial: Option<&PartialAnswer>,
        reported: Option<&Usage>,
        model_snapshot: &ModelSnapshot,
    ) -> Option<Usage> {
        let request = self.build_request().ok()?;
        let received = partial.map_or(0, |partial| partial.bytes);
        Some(settle(estimate(&request, received, model_snapshot), reported))
    }

    /// Books use inside an answer that is not part of the answer's own usage, under its model.
    pub fn book_nested(&mut self, nested: Vec<NestedUsage>) {
        for NestedUsage { model, usage, model_snapshot } in nested {
            self.push_turn(Event::UsageBooked {
                model,
                usage,
                cost_usd_micros: model_snapshot.cost_usd_micros(&usage),
                model_snapshot: Some(model_snapshot),
                reason: UsageReason::Helper,
                purpose: Some(Purpose::Nested),
                estimated: false,
            });
        }
    }

    /// Books a call that the daemon made outside the conversation. A call for a server counts for the turn that the server
    /// works for.
    pub fn book_outside_usage(&mut self, booking: OutsideUsage) {
        let OutsideUsage { purpose, model, usage, cost_usd_micros, model_snapshot, is_lost } = booking;
        let booked = Event::UsageBooked {
            model,
            usage,
            cost_usd_micros,
            model_snapshot: Some(model_snapshot),
            reason: if is_lost { UsageReason::LostAttempt } else { UsageReason::Helper },
            purpose: Some(purpose),
            estimated: is_lost,
        };
        match purpose {
            Purpose::Mcp => self.push_turn(booked),
            _ => self.push_session(booked),
        };
    }

    fn push_lost_attempt(&mut self, usage: Usage, model_snapshot: ModelSnapshot) {
        self.push_turn(Event::UsageBooked {
            model: self.called_model(),
            usage,
            cost_usd_micros: model_snapshot.cost_usd_micros(&usage),
            model_snapshot: Some(model_snapshot),
            reason: UsageReason::LostAttempt,
            purpose: None,
            estimated: true,
        });
    }
}
