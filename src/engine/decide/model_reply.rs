//! The model's answer: it is streamed into events, and its end decides the next action.

use std::collections::HashMap;

use crate::decide::output_limit::{TruncatedAnswer, drop_cut_call};
use crate::decide::plan::PlanBuilder;
use crate::decide::usage_estimate::ReplyCost;
use crate::input::OutsideUsage;
use crate::state::{Activity, CallStage, CallState};
use types::event::{Event, Phase, Purpose, UsageReason};
use types::ids::{CallId, ItemId, Seq};
use types::message::{Block, ToolCall};
use types::model::{Delta, ModelReply, ReplyBlock, StopReason};
use types::session::{ItemStatus, Subtype, TurnError};
use types::usage::{ModelSnapshot, NestedUsage};

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
    pub(super) fn awaits_model_call(&self, token: Seq) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| {
            let is_current_call =
                matches!(turn.activity, Activity::Calling { token: expected, .. } if expected == token);
            is_current_call && !turn.stop.is_aborting
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
        let (model, attempt) = (turn.settings.model.clone(), turn.model_call.attempts);
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
        let received = self.state.partial().map_or(0, |partial| partial.bytes);
        let Some(turn) = &self.state.turn else { return };
        let (turn_id, model) = (turn.id, turn.settings.model.clone());
        let uncalibrated_tokens = turn.model_call.uncalibrated_tokens;
        for text in std::mem::take(&mut reply.notices) {
            self.push_turn(Event::Notice { kind: "model".into(), text });
        }
        if reply.is_restated
            && let Some(partial) = self.state.partial().cloned()
        {
            // Clients have received reasoning as the text of this message, so another one has the answer.
            self.interrupt_message(&partial, true);
        }
        let Some((item_id, first_seq)) = self.open_message() else { return };
        let content = self.content_blocks(std::mem::take(&mut reply.content));
        let (mut text, mut calls) = (String::new(), Vec::new());
        for block in &content {
            match block {
                Block::Text { text: part } => text.push_str(part),
                Block::ToolCall(call) => calls.push(call.clone()),
                _ => {}
            }
        }
        let has_said = !content.is_empty();
        let longer = !candidate && cut.is_some() && calls.is_empty() && self.can_raise_limit();
        let ReplyCost { usage, cost_usd_micros, is_estimated: estimated } =
            self.reply_cost(&reply, received, cost_usd_micros, &model_snapshot);
        let is_reasoning = |block: &Block| matches!(block, Block::Thinking { text, .. } if !text.is_empty());
        let reasoning_item_id = content.iter().any(is_reasoning).then(|| self.mint.item());
        let status = if longer || candidate { ItemStatus::Interrupted } else { ItemStatus::Completed };
        let item = self.answer_item((item_id, turn_id), first_seq, status, text, content);
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

    /// The blocks of an answer. Calls that were announced while it streamed keep their ids.
    fn content_blocks(&mut self, content: Vec<ReplyBlock>) -> Vec<Block> {
        let announced: HashMap<String, CallId> = self
            .state
            .calls()
            .iter()
            .map(|call| (call.call.provider_id.clone(), call.call.call_id))
            .collect();
        let block = |block| match block {
            ReplyBlock::Text(text) => Block::Text { text },
            ReplyBlock::Thinking { text, signature } => Block::Thinking { text, signature },
            ReplyBlock::RedactedThinking(data) => Block::RedactedThinking { data },
            ReplyBlock::ToolCall { provider_id, tool, input } => {
                let (input, input_error) = match input {
                    Ok(input) => (input, None),
                    Err((raw, why)) => (serde_json::Value::String(raw), Some(why)),
                };
                let call_id = announced.get(&provider_id).copied();
                let call_id = call_id.unwrap_or_else(|| self.mint.call());
                Block::ToolCall(ToolCall { call_id, provider_id, tool, input, input_error })
            }
        };
        content.into_iter().map(block).collect()
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
    pub(super) fn go_on_with_calls(&mut self) {
        let is_open = |call: &CallState| call.stage == CallStage::Requested;
        if self.state.calls().iter().any(is_open) {
            self.prepare_open_calls();
        } else {
            self.advance_tools();
        }
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
}
