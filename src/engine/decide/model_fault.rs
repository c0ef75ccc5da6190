//! The end of a model call without an answer: repeat it, or end the turn.

use crate::decide::message::PlainMessage;
use crate::decide::plan::PlanBuilder;
use crate::decide::retry::{MAX_SUMMARY_OVERFLOWS, RetryDecision};
use crate::decide::usage_estimate::{estimate, settle};
use crate::state::CONTEXT_OVERFLOW;
use crate::state::partial::PartialAnswer;
use types::event::{Event, Phase, UsageReason};
use types::ids::Seq;
use types::message::{Block, Role};
use types::model::{FaultKind, ModelFault};
use types::session::{ItemKind, ItemStatus, Subtype, TurnError};
use types::usage::{ModelSnapshot, Usage};

impl PlanBuilder<'_> {
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
        let Some((step, failures)) =
            self.state.turn.as_ref().map(|turn| (turn.step, turn.model_call.failures))
        else {
            return;
        };
        match reaction {
            RetryDecision::Retry { max, delay_ms, max_output_tokens } => {
                let kind = match max_output_tokens {
                    Some(_) => CONTEXT_OVERFLOW,
                    None => fault.kind.name(),
                };
                self.retry_later(fault, kind, (max, delay_ms), max_output_tokens);
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
                let max = failures.saturating_add(MAX_SUMMARY_OVERFLOWS);
                self.retry_later(fault, CONTEXT_OVERFLOW, (max, 0), None);
            }
            RetryDecision::Compact { limit } => self.compact_after_overflow(step, limit),
            RetryDecision::GiveUp(error) if self.state.compacting().is_some() => self.summary_failed(error),
            RetryDecision::GiveUp(error) => {
                // Only the continuation of an answer did not fit, so the answer so far stays valid.
                let is_rest = self.state.turn.as_ref().is_some_and(|turn| turn.model_call.continuations > 0);
                let is_full = is_rest && error.kind == CONTEXT_OVERFLOW;
                self.finish_turn(
                    if is_full { Subtype::MaxOutputTokens } else { Subtype::LlmError },
                    vec![error],
                );
            }
        }
    }

    /// Schedules the next attempt of a model call. `wait` has the maximum number of attempts and the delay in
    /// milliseconds.
    fn retry_later(
        &mut self,
        fault: &ModelFault,
        kind: &str,
        wait: (u32, u64),
        max_output_tokens: Option<u32>,
    ) {
        let failures = self.state.turn.as_ref().map_or(0, |turn| turn.model_call.failures);
        let (max, delay_ms) = wait;
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

    /// Completes an answer whose stream broke off after complete calls. Those calls may have run, so
    /// the answer is kept and not requested again. Returns `false` if there is no complete call.
    pub fn keep_streamed_calls(&mut self, model_snapshot: ModelSnapshot, reported: Option<&Usage>) -> bool {
        let Some(partial) = self.state.partial().cloned() else { return false };
        let Some(turn) = self.state.turn.as_ref().filter(|turn| !turn.calls.is_empty()) else { return false };
        let (turn_id, model) = (turn.id, turn.settings.model.clone());
        let usage = self.lost_usage(Some(&partial), reported, &model_snapshot);
        let mut content = partial.valid_content();
        let text = content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text: String = text.collect();
        content.extend(self.state.calls().iter().map(|call| Block::ToolCall((*call.call).clone())));
        let item = self.answer_item(
            (partial.item_id, turn_id),
            partial.first_seq,
            ItemStatus::Completed,
            text,
            content,
        );
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
