//! The summary of a conversation by a model, the last stage of a compaction.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decide::compact::{SUMMARY_PART, saved_tokens};
use crate::decide::plan::PlanBuilder;
use crate::decide::retry::MAX_SUMMARY_OVERFLOWS;
use crate::decide::usage_estimate::ReplyCost;
use crate::output::Effect;
use crate::request::build::append_normalized;
use crate::request::tokens;
use crate::state::OpenCompaction;
use crate::window::history::History;
use crate::window::size::WindowSize;
use crate::window::summary::{summary_message, summary_messages};
use types::compaction::{CompactStage, CompactTrigger, WindowEdit};
use types::event::{Event, Phase, Purpose, UsageReason};
use types::message::Message;
use types::model::{ModelReply, ModelRequest, ReplyBlock};
use types::session::{Subtype, TurnError};
use types::thinking::Thinking;
use types::usage::ModelSnapshot;

/// The stable code of a summary that is about as long as the conversation.
const NO_SAVING: &str = "no_saving";
/// Maximum length of the request after a summary, in percent of its length before.
const MAX_LEFT_PERCENT: u64 = 90;
/// Part of the usable window that the request for a summary may fill, in percent. The rest is a reserve
/// for a wrong estimate.
const SUMMARY_REQUEST_PERCENT: u64 = 85;
/// Minimum estimated tokens of one message that a summary replaces alone: a summary of a shorter one saves little.
const MIN_SUMMARISED_TOKENS: u64 = 2_000;
/// Maximum tokens of a summary, if the model does not think before it answers.
const SUMMARY_TOKENS: u32 = 8_000;

impl PlanBuilder<'_> {
    /// Number of messages, from the oldest, that a summary would replace. The newest messages stay, unless a user
    /// asked for the summary.
    pub(super) fn summary_count(&self, trigger: CompactTrigger) -> usize {
        let settings = self.engine.compaction();
        let messages: Vec<Arc<Message>> = self.state.transcript.iter().cloned().collect();
        let part = self.sent_tokens() / 4;
        let recent = match trigger {
            CompactTrigger::Manual => return messages.len(),
            CompactTrigger::Auto => self.window_size().map_or(part, |size| size.recent(&settings)),
            // The refusal shows that the known window is wrong, so use a quarter of the conversation's length.
            CompactTrigger::Overflow => part,
        };
        let recent = recent.min(settings.keep_recent_tokens);
        let ratio = self.state.token_ratio(&self.turn_model());
        History::new(&messages, ratio.uncalibrated(recent)).recent_from
    }

    /// Whether a summary of this many messages can be shorter than they are. Summarising a summary alone saves nothing.
    /// After a refusal the first input of a session may be all that can be replaced.
    pub(super) fn can_replace(&self, count: usize, trigger: CompactTrigger) -> bool {
        match (count, trigger) {
            (0, _) => false,
            (1, CompactTrigger::Auto) => false,
            (1, CompactTrigger::Overflow) => {
                let messages = &self.state.transcript;
                let first = messages.iter().next().map_or(0, |first| tokens::message_tokens(first));
                self.state.compactions == 0 && first >= MIN_SUMMARISED_TOKENS
            }
            _ => true,
        }
    }

    /// Requests a summary. Returns `false` if there is nothing to summarise.
    pub fn start_summary(&mut self, trigger: CompactTrigger, step: u64) -> bool {
        let count = self.summary_count(trigger);
        if !self.can_replace(count, trigger) {
            return false;
        }
        let (item_id, tokens_before) = (self.mint.item(), self.sent_tokens());
        let (stage, messages) = (CompactStage::Autocompact, Some(count as u64));
        self.push_item(item_id, Event::CompactStarted { stage, trigger, tokens_before, messages });
        self.call_summary(step);
        true
    }

    /// Calls the model for the summary (again), unless a budget is used up.
    pub fn call_summary(&mut self, step: u64) {
        if let Some((subtype, message)) = self.over_budget(step) {
            self.finish_turn(subtype, vec![TurnError::new("budget", message)]);
            return;
        }
        let phase = Phase::CompactCheck;
        let token = self.push_phase(phase, step);
        match self.build_request() {
            Ok(request) => self.add_effect(Effect::CallModel { token, request: Box::new(request) }),
            Err(message) => {
                self.finish_turn(Subtype::LlmError, vec![TurnError::new("unconfigured", message)])
            }
        }
    }

    /// The model that writes the summary: that of `[compaction]`, unless it failed in this turn or a limit on money
    /// cannot be enforced for it.
    pub fn summary_model(&self) -> String {
        let configured = self.engine.settings.compaction.model.clone();
        let Some(turn) = self.state.turn.as_ref().filter(|turn| !turn.compaction.has_failed_summary) else {
            return self.turn_model();
        };
        let limits_money = turn.settings.budgets.limits_money() || self.state.spec.budgets.limits_money();
        let is_priced = |model: &String| self.engine.settings.known.capabilities(model).has_price;
        configured.filter(|model| !limits_money || is_priced(model)).unwrap_or_else(|| self.turn_model())
    }

    /// The model that the running call asks.
    pub fn called_model(&self) -> String {
        if self.state.compacting().is_some() { self.summary_model() } else { self.turn_model() }
    }

    /// Whether the running call asks another model than the turn's for a summary.
    pub fn calls_summary_model(&self) -> bool {
        self.state.compacting().is_some() && self.summary_model() != self.turn_model()
    }

    /// The request for a summary. It begins like the request of the conversation, so that the provider's cache
    /// serves the beginning.
    pub fn summary_request(&self, conversation: ModelRequest, compaction: &OpenCompaction) -> ModelRequest {
        let thinks = conversation.thinking.is_some_and(|thinking| thinking != Thinking::Off);
        let name = self.summary_model();
        let model = name.parse().unwrap_or_else(|_| conversation.model.clone());
        let size = match model == conversation.model {
            true => self.window_size(),
            false => self.window_size_of(&name),
        };
        let most = conversation.max_output_tokens.unwrap_or(u32::MAX);
        let most = if thinks { most } else { most.min(SUMMARY_TOKENS) };
        let part = size.map_or(u64::MAX, |size| (size.usable() / SUMMARY_PART).max(256));
        let most = if thinks { most } else { most.min(u32::try_from(part).unwrap_or(u32::MAX)) };
        let ratio = self.state.token_ratio(&self.turn_model());
        let fixed = tokens::system_tokens(&self.state) + tokens::tools_tokens(&conversation.tools);
        let usable = size.map_or(compaction.tokens_before, WindowSize::usable);
        let usable = usable.saturating_mul(SUMMARY_REQUEST_PERCENT) / 100;
        // Each refusal of the provider halves the request, because the real window may be far smaller.
        let usable = usable >> compaction.overflows.min(MAX_SUMMARY_OVERFLOWS);
        let room = ratio.uncalibrated(usable).saturating_sub(fixed);
        let all: Vec<Arc<Message>> = self.state.transcript.iter().cloned().collect();
        let request = self.state.turn.as_ref().and_then(|turn| turn.settings.options.compact.as_ref());
        let instructions = request.and_then(|request| request.instructions.as_deref());
        let shown = summary_messages(&all, compaction.messages, instructions, room);
        let thinker = (conversation.thinking != Some(Thinking::Off)).then_some(name.as_str());
        ModelRequest {
            model,
            messages: append_normalized(Vec::new(), shown.iter(), thinker),
            max_output_tokens: Some(most).filter(|most| *most < u32::MAX),
            media: HashMap::new(),
            previous_response_id: None,
            is_helper_call: true,
            ..conversation
        }
    }

    /// Uses the model's answer as the summary, and continues the turn.
    pub fn summary_done(
        &mut self,
        reply: ModelReply,
        cost_usd_micros: Option<u64>,
        model_snapshot: ModelSnapshot,
    ) {
        let Some(compaction) = self.state.compacting().cloned() else { return };
        self.book_summary(&reply, cost_usd_micros, model_snapshot);
        self.book_nested(reply.nested);
        for text in reply.notices {
            self.push_turn(Event::Notice { kind: "model".into(), text });
        }
        let text = reply.content.iter().filter_map(|block| match block {
            ReplyBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let summary = text.collect::<Vec<_>>().join("\n");
        if summary.trim().is_empty() {
            self.end_summary(&compaction, Err(TurnError::new("empty_summary", "the model wrote no summary")));
            return;
        }
        let all: Vec<Arc<Message>> = self.state.transcript.iter().cloned().collect();
        let count = compaction.messages.min(all.len());
        let ratio = self.state.token_ratio(&self.turn_model());
        let room = self.window_size().map_or(compaction.tokens_before, WindowSize::usable) / SUMMARY_PART;
        let history = History::new(&all, 0);
        let message = summary_message(&history, count, &summary, ratio.uncalibrated(room));
        let edit = WindowEdit::Messages { from: 0, count: count as u64, messages: vec![message] };
        let before = ratio.tokens(tokens::request_tokens(&self.state, &self.offered_tools()));
        let after = before.saturating_sub(ratio.tokens(saved_tokens(&all, &edit)));
        if after.saturating_mul(100) > before.saturating_mul(MAX_LEFT_PERCENT) {
            let error = TurnError::new(NO_SAVING, "the summary is about as long as the conversation");
            self.end_summary(&compaction, Err(error));
            return;
        }
        // `tokens_before` may be a count reported by the provider, so scale it by the ratio of the two estimates.
        let left = u128::from(compaction.tokens_before) * u128::from(after) / u128::from(before.max(1));
        self.end_summary(&compaction, Ok((edit, u64::try_from(left).unwrap_or(u64::MAX))));
    }

    /// Ends the summary without a result, and continues the turn without it.
    pub fn summary_failed(&mut self, error: TurnError) {
        let Some(compaction) = self.state.compacting().cloned() else { return };
        let model = self.summary_model();
        if model == self.turn_model() {
            self.end_summary(&compaction, Err(error));
            return;
        }
        self.push_summary_end(&compaction, compaction.tokens_before, None, Some(error.kind));
        let text = format!(
            "{model} of [compaction] could not write the summary ({}): the session's model writes it",
            error.message
        );
        self.push_turn(Event::Notice { kind: "summary_model_failed".into(), text });
        if !self.start_summary(compaction.trigger, compaction.step) {
            self.call_model_step(compaction.step.max(1));
        }
    }

    fn end_summary(&mut self, compaction: &OpenCompaction, result: Result<(WindowEdit, u64), TurnError>) {
        let (tokens_after, edit, error) = match result {
            Ok((edit, after)) => (after, Some(edit), None),
            Err(error) => (compaction.tokens_before, None, Some(error)),
        };
        let code = error.as_ref().map(|error| error.kind.clone());
        self.push_summary_end(compaction, tokens_after, edit, code);
        if error.is_none() {
            self.remind_of_compaction();
        }
        if let Some(error) = &error {
            let text = format!("the conversation could not be compacted: {}", error.message);
            self.push_turn(Event::Notice { kind: "compaction_failed".into(), text });
        }
        if compaction.trigger == CompactTrigger::Manual {
            match error {
                // A short conversation needs no summary.
                Some(error) if error.kind != NO_SAVING => {
                    self.finish_turn(Subtype::ErrorDuringExecution, vec![error]);
                }
                _ => self.finish_turn(Subtype::Success, Vec::new()),
            }
            return;
        }
        self.deliver_steered();
        self.call_model_step(compaction.step.max(1));
    }

    fn push_summary_end(
        &mut self,
        compaction: &OpenCompaction,
        tokens_after: u64,
        edit: Option<WindowEdit>,
        error: Option<String>,
    ) {
        let OpenCompaction { stage, trigger, tokens_before, .. } = *compaction;
        let completed = Event::CompactCompleted { stage, trigger, tokens_before, tokens_after, error, edit };
        self.push_open_item(compaction, completed);
    }

    fn push_open_item(&mut self, compaction: &OpenCompaction, event: Event) {
        match compaction.item_id {
            Some(item_id) => _ = self.push_item(item_id, event),
            None => _ = self.push_turn(event),
        }
    }

    /// Closes a summary that the end of the turn interrupts.
    pub fn close_compaction(&mut self) {
        let Some(compaction) = self.state.compacting().cloned() else { return };
        self.push_summary_end(&compaction, compaction.tokens_before, None, Some("aborted".into()));
    }

    fn book_summary(&mut self, reply: &ModelReply, cost: Option<u64>, model_snapshot: ModelSnapshot) {
        let bytes: usize = reply.content.iter().map(text_bytes).sum();
        let ReplyCost { usage, cost_usd_micros, is_estimated: estimated } =
            self.reply_cost(reply, bytes, cost, &model_snapshot);
        self.push_turn(Event::UsageBooked {
            model: self.summary_model(),
            usage,
            cost_usd_micros,
            model_snapshot: Some(model_snapshot),
            reason: UsageReason::Helper,
            purpose: Some(Purpose::Compaction),
            estimated,
        });
    }
}

fn text_bytes(block: &ReplyBlock) -> usize {
    match block {
        ReplyBlock::Text(text) | ReplyBlock::Thinking { text, .. } => text.len(),
        ReplyBlock::RedactedThinking(_) | ReplyBlock::ToolCall { .. } => 0,
    }
}
