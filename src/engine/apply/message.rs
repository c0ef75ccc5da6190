//! Events of messages: their streamed parts and their completion.

use std::sync::Arc;

use crate::apply::turn::end_wait;
use crate::state::partial::PartialAnswer;
use crate::state::transcript::last_line_of;
use crate::state::{Activity, Candidate, ModelAttempts, State, TokenRatio, Turn};
use types::event::{Envelope, Event};
use types::ids::RequestId;
use types::message::{Block, Message, Role};
use types::model::StopReason;
use types::session::{Item, ItemKind, ItemStatus};

impl State {
    /// Events of a message that is streaming.
    pub(super) fn apply_stream_event(&mut self, envelope: &Envelope) {
        let Some(Turn { activity: Activity::Calling { partial, .. }, .. }) = &mut self.turn else { return };
        match (&envelope.event, partial, envelope.item_id) {
            (Event::MessageStarted { .. }, partial, Some(item_id)) => {
                *partial = Some(PartialAnswer::new(item_id, envelope.seq));
            }
            (Event::MessageBlockStarted { block, .. }, Some(partial), _) => partial.begin_block(block),
            (Event::MessageTextDelta { text, .. }, Some(partial), _) => partial.push_text(text),
            (Event::MessageThinkingDelta { text, .. }, Some(partial), _) => partial.push_thinking(text),
            (Event::MessageBlockCompleted { signature, data, .. }, Some(partial), _) => {
                partial.seal_thinking(signature.as_deref(), data.as_deref());
            }
            (Event::MessageToolInputDelta { json, .. }, Some(partial), _) => partial.bytes += json.len(),
            _ => {}
        }
    }

    /// Events that complete a message, or mark it as discarded.
    pub(super) fn apply_message_event(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::MessageCompleted {
                item,
                model,
                stop_reason,
                usage,
                duration_ms,
                response_id,
                superseded,
                uncalibrated_tokens,
                estimated,
                cache_hit,
                cut_short,
                candidate,
                ..
            } => {
                let is_measured = !*estimated && !*cache_hit;
                if let (Some(uncalibrated), Some(model), false) = (uncalibrated_tokens, model, *cache_hit) {
                    self.has_wrong_guess = false;
                    if self.is_longest_request(model, *uncalibrated) {
                        Arc::make_mut(&mut self.answered_tokens).insert(model.clone(), *uncalibrated);
                    }
                    if let Some(turn) = &mut self.turn {
                        turn.compaction.is_shortened = false;
                    }
                }
                if let (Some(usage), Some(uncalibrated), Some(model)) = (usage, uncalibrated_tokens, model)
                    && let Some(ratio) = TokenRatio::from_call(usage, *uncalibrated).filter(|_| is_measured)
                {
                    Arc::make_mut(&mut self.token_ratios).insert(model.clone(), ratio);
                }
                if let Some(turn) = self.turn.as_mut().filter(|_| *cut_short) {
                    // The next request belongs to another step, so its failures are counted from zero.
                    (turn.model_call.failures, turn.model_call.overloads) = (0, 0);
                }
                // A candidate stays visible to clients until a client chooses an answer, so do not list
                // it as discarded yet.
                self.message_completed(item, model.as_ref(), *superseded && !*candidate);
                if let (true, Some(turn), Some(stop_reason)) = (*candidate, &mut self.turn, stop_reason) {
                    // A step number counts one model call. The first candidate is an additional call,
                    // so count it here.
                    if turn.candidates.is_empty() {
                        turn.model_call.unanswered_attempts += 1;
                    }
                    Arc::make_mut(&mut turn.candidates).push(Candidate {
                        item: item.clone(),
                        model: model.clone(),
                        stop_reason: *stop_reason,
                        usage: *usage,
                        response_id: response_id.clone(),
                    });
                }
                if item.role == Some(Role::Assistant) && item.status == ItemStatus::Completed {
                    // The provider cannot continue from an empty answer, because the transcript does
                    // not contain it.
                    self.continues =
                        model.clone().zip(response_id.clone()).filter(|_| !item.content.is_empty());
                }
                if let (Some(_), Some(turn)) = (stop_reason, &mut self.turn) {
                    turn.outcome.stop_reason = *stop_reason;
                }
                if let (Some(_), Some(turn)) = (usage, &mut self.turn) {
                    (turn.model_call.failures, turn.model_call.overloads) = (0, 0);
                    // The answer is requested again with a higher limit.
                    turn.model_call.output_limit_raised |=
                        *superseded && *stop_reason == Some(StopReason::MaxTokens);
                    if *stop_reason != Some(StopReason::MaxTokens) {
                        turn.model_call.continuations = 0;
                    }
                }
                if let Some(usage) = usage.filter(|usage| !*superseded && usage.all_tokens() > 0) {
                    self.context_tokens = usage.all_tokens();
                }
                if let (Some(ms), Some(turn)) = (duration_ms, &mut self.turn) {
                    turn.totals.model_ms += ms;
                }
            }
            Event::FeedbackRequested { request_id, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.totals.waiting_since.get_or_insert(envelope.at_ms);
                    turn.activity = Activity::Choosing { request_id: *request_id };
                }
            }
            Event::FeedbackCompleted { request_id, context_tokens, .. } => {
                if envelope.item_id.is_some() {
                    self.context_tokens = *context_tokens;
                }
                if let Some(turn) = &mut self.turn {
                    // Failures of the second answer do not count for the next request.
                    (turn.model_call.failures, turn.model_call.overloads) = (0, 0);
                }
                if let Some(turn) = &mut self.turn {
                    turn.candidates = Arc::default();
                    if let Some(request_id) = request_id {
                        end_wait(turn, &self.subagents, Some(RequestId::Question(*request_id)), envelope);
                    }
                }
            }
            Event::MessageTombstone { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.model_call.discarded_items.retain(|item_id| Some(*item_id) != envelope.item_id);
                }
            }
            _ => {}
        }
    }

    fn message_completed(&mut self, item: &Item, model: Option<&String>, superseded: bool) {
        match item.kind {
            ItemKind::UserMessage | ItemKind::Notice => {
                // The message contains these texts.
                if item.kind == ItemKind::UserMessage && !self.hooks.context.is_empty() {
                    Arc::make_mut(&mut self.hooks).context.clear();
                }
                match &mut self.turn {
                    Some(turn) if item.kind == ItemKind::Notice => {
                        turn.model_call.continuations += 1;
                        turn.model_call.continues_previous = true;
                    }
                    Some(turn) if turn.is_expanding => {
                        turn.is_expanding = false;
                        turn.calls.clear();
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
                    model_call: ModelAttempts { discarded_items: orphans, .. },
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
                if let Some(line) = last_line_of(&text) {
                    self.last_line = line;
                }
                if let Some(turn) = &mut self.turn {
                    if std::mem::take(&mut turn.model_call.continues_previous) {
                        turn.outcome.last_text = [&*turn.outcome.last_text, &text].concat().into();
                    } else {
                        turn.outcome.last_text = text.into();
                    }
                    turn.model_call.discarded_items.clear();
                    turn.forget_settled_calls();
                    turn.activity = Activity::Tools;
                }
                if !item.content.is_empty() {
                    let message = Message::new(Role::Assistant, item.content.clone());
                    self.transcript.push(Message { model: model.cloned(), ..message });
                }
                // Calls that started while the answer was streaming may all be done.
                self.settle_results();
            }
            ItemKind::ToolCall
            | ItemKind::Plan
            | ItemKind::Compaction
            | ItemKind::Reasoning
            | ItemKind::Error => {}
        }
    }
}
