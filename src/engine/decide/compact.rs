//! Compaction: before a model call the stages of [`crate::window`] run until the request fits. If they do not
//! suffice, a model summarises the conversation; its call is repeated after failures like any model call of the turn.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::decide::retry::MAX_SUMMARY_OVERFLOWS;
use crate::input::Refusal;
use crate::output::Effect;
use crate::request::build::append_normalized;
use crate::request::tokens;
use crate::state::{CONTEXT_OVERFLOW, OpenCompaction, QueuedInput};
use crate::window::StageEdit;
use crate::window::collapse::collapse;
use crate::window::history::History;
use crate::window::microcompact::microcompact;
use crate::window::shorten::shorten;
use crate::window::size::{ResultLimits, WindowSize};
use crate::window::snip::snip;
use crate::window::summary::{summary_message, summary_messages};
use types::compaction::{CompactRequest, CompactStage, CompactTrigger, WindowEdit};
use types::event::{Event, Origin, Phase, Purpose, UsageReason};
use types::message::Message;
use types::model::{ModelReply, ModelRequest, ReplyBlock};
use types::outcome::AcceptedState;
use types::session::{SessionState, Subtype, TurnError};
use types::thinking::Thinking;
use types::turn_options::TurnOptions;
use types::usage::ModelSnapshot;

/// Maximum tokens of a summary, if the model does not think before it answers.
const SUMMARY_TOKENS: u32 = 8_000;
/// Minimum estimated tokens of one message that a summary replaces alone: a summary of a shorter one saves little.
const MIN_SUMMARISED_TOKENS: u64 = 2_000;
/// Divisor of the estimate: the quotient is a safe lower bound of a request's length. If it exceeds the
/// window, the request cannot fit.
const CERTAIN_PART: u64 = 2;
/// Part of the usable window that the request for a summary may fill, in percent. The rest is a reserve
/// for a wrong estimate.
const SUMMARY_REQUEST_PERCENT: u64 = 85;
/// Divisor of the usable window: maximum length of a summary, and of the restored files.
const SUMMARY_PART: u64 = 8;
/// Maximum length of the request after a summary, in percent of its length before.
const MAX_LEFT_PERCENT: u64 = 90;

/// The stable code of a summary that is about as long as the conversation.
const NO_SAVING: &str = "no_saving";

/// The limits of the stages for one model call.
struct StageLimits {
    /// Tokens of the request at which no further stage runs.
    target: u64,
    /// Minimum tokens that an edit must save.
    min_saving: u64,
    /// Tokens of the newest messages that the stages do not change.
    recent: u64,
    /// Tokens of the most recently read files that the stages do not change.
    files: u64,
    results: ResultLimits,
}

impl PlanBuilder<'_> {
    /// Adds a turn that only compacts the conversation. It runs now, or after the running turn.
    pub fn compact(&mut self, request: CompactRequest, origin: Option<Origin>) -> Result<(), Refusal> {
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        if self.state.archived {
            return Err(Refusal::Archived);
        }
        self.origin = origin;
        let turn_id = self.mint.turn();
        let options = TurnOptions { compact: Some(request), ..TurnOptions::default() };
        if self.state.turn.is_none() {
            let (queued_at, origin) = (self.now.at, self.origin.clone());
            let (input, item_id) = (Vec::new(), None);
            let turn = QueuedInput { turn_id, item_id, input, options, queued_at, front: false, origin };
            let seq = self.begin_turn(&turn);
            self.reply_submitted((turn_id, None), AcceptedState::Running, seq);
            return Ok(());
        }
        let options = Box::new(TurnOptions { budgets: Some(self.state.spec.budgets), ..options });
        let queued = Event::TurnQueued { input: Vec::new(), front: true, options };
        let seq = self.push(None, Some(turn_id), queued);
        self.reply_submitted((turn_id, None), AcceptedState::Queued, seq);
        Ok(())
    }

    /// The context window of the turn's model, if it is known.
    pub fn window_size(&self) -> Option<WindowSize> {
        self.window_size_of(&self.turn_model())
    }

    fn window_size_of(&self, model: &str) -> Option<WindowSize> {
        let known = self.engine.settings.known.capabilities(model);
        let usual = known.max_output_tokens.map(|most| most.min(self.engine.output_tokens()));
        WindowSize::new(known.context_window, self.output_limit(), usual)
    }

    /// The limits of tool results in the window of the turn's model.
    pub fn result_limits(&self) -> ResultLimits {
        ResultLimits::new(self.engine, self.window_size())
    }

    /// Makes the next request fit the window. Returns `false` if a summary was requested: the model call follows once
    /// the summary is complete.
    pub fn fit_window(&mut self, step: u64) -> bool {
        let settings = self.engine.compaction();
        let Some(size) = self.window_size() else { return true };
        if self.state.spec.ablation.compaction || self.sent_tokens() < size.threshold(&settings) {
            return true;
        }
        let limits = StageLimits {
            target: size.target(&settings),
            min_saving: size.min_saving(),
            recent: size.recent(&settings),
            files: size.usable() / SUMMARY_PART,
            results: self.result_limits(),
        };
        self.run_stages(CompactTrigger::Auto, &limits);
        let is_tried = self.state.turn.as_ref().is_none_or(|turn| turn.compacted_step == step);
        if self.sent_tokens() < size.threshold(&settings) || is_tried || !self.may_summarise() {
            return true;
        }
        !self.start_summary(CompactTrigger::Auto, step)
    }

    /// The error of a request that cannot fit the window, even if its tokens are twice as long as usual. A wrong
    /// estimate alone never ends a turn.
    pub fn cannot_fit_error(&self) -> Option<TurnError> {
        let size = self.window_size()?;
        let fixed = tokens::system_tokens(&self.state) + tokens::tools_tokens(&self.offered_tools());
        let all = fixed + tokens::texts_tokens(self.state.transcript.iter());
        if all / CERTAIN_PART <= size.usable() {
            return None;
        }
        let message = format!(
            "the request has about {all} tokens ({fixed} of them system prompt and tools), and {} fit the window of {} \
             with its answer: use a model with a larger window, fewer tools (--tools), or a shorter input",
            size.usable(),
            self.turn_model()
        );
        Some(TurnError::new(CONTEXT_OVERFLOW, message))
    }

    /// Whether the session may request a summary by itself.
    fn may_summarise(&self) -> bool {
        let settings = self.engine.compaction();
        let ablation = &self.state.spec.ablation;
        let is_off = !settings.auto || ablation.auto_compaction || ablation.compaction;
        !is_off && self.state.compaction_failures < settings.max_failures
    }

    /// Whether the request can be made shorter after the provider refused it as too long.
    pub fn can_compact_after_overflow(&self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        match &turn.compaction {
            Some(compaction) => {
                compaction.overflows < MAX_SUMMARY_OVERFLOWS && self.can_shorten_summary(compaction)
            }
            // If an answer is being continued, the answer so far stays valid. The turn then ends
            // without compaction.
            None if turn.continuations > 0 => false,
            None => {
                turn.compacted_step != turn.step
                    && self.may_summarise()
                    && self
                        .can_replace(self.summary_count(CompactTrigger::Overflow), CompactTrigger::Overflow)
            }
        }
    }

    /// Whether the next attempt at a summary would send fewer messages than this one.
    fn can_shorten_summary(&self, compaction: &OpenCompaction) -> bool {
        let messages = |compaction: &OpenCompaction| {
            let conversation = self.conversation_request(Vec::new()).ok()?;
            Some(self.summary_request(conversation, compaction).messages)
        };
        let next = OpenCompaction { overflows: compaction.overflows + 1, ..compaction.clone() };
        messages(&next) != messages(compaction)
    }

    /// Makes the request of this step shorter, because the provider refused it, and sends it again.
    pub fn compact_after_overflow(&mut self, step: u64, limit: Option<u64>) {
        let settings = self.engine.compaction();
        let used = self.sent_tokens().max(1);
        let size = self.window_size();
        // Prefer the limit that the provider reported. Without one, assume that the estimate reached the limit.
        let usable = limit.or(size.map(WindowSize::usable)).unwrap_or(used).min(used);
        let limits = StageLimits {
            target: usable / 2,
            min_saving: 1,
            recent: settings.keep_recent_tokens.min(usable / 4),
            files: usable / SUMMARY_PART,
            results: self.result_limits(),
        };
        self.run_stages(CompactTrigger::Overflow, &limits);
        let is_shorter = self.sent_tokens() < usable.saturating_mul(3) / 4;
        if is_shorter || !self.start_summary(CompactTrigger::Overflow, step) {
            self.call_model_step(step);
        }
    }

    /// Runs the stages that need no model, in order, until the request has at most the wanted length.
    fn run_stages(&mut self, trigger: CompactTrigger, limits: &StageLimits) {
        let settings = self.engine.compaction();
        let stages = [
            (CompactStage::ToolResults, settings.tool_results),
            (CompactStage::Snip, settings.snip),
            (CompactStage::Microcompact, settings.microcompact),
            (CompactStage::Collapse, settings.collapse),
        ];
        let ratio = self.state.token_ratio(&self.turn_model());
        for (stage, _) in stages.into_iter().filter(|(_, is_on)| *is_on) {
            let used = self.sent_tokens();
            if used <= limits.target {
                return;
            }
            let messages: Vec<Arc<Message>> = self.state.transcript.iter().cloned().collect();
            let history = History::new(&messages, ratio.uncalibrated(limits.recent));
            let excess = ratio.uncalibrated(used - limits.target);
            let found = match stage {
                CompactStage::ToolResults => shorten(&history, limits.results),
                CompactStage::Snip => snip(&history),
                CompactStage::Microcompact => {
                    microcompact(&history, excess, ratio.uncalibrated(limits.files))
                }
                CompactStage::Collapse => collapse(&history, excess),
                CompactStage::Autocompact => None,
            };
            let Some(found) = found else { continue };
            let saved = ratio.tokens(saved_tokens(&messages, &found.edit));
            if saved >= limits.min_saving.max(1) {
                self.apply_stage(stage, trigger, used, found, saved);
            }
        }
    }

    fn apply_stage(
        &mut self,
        stage: CompactStage,
        trigger: CompactTrigger,
        tokens_before: u64,
        found: StageEdit,
        saved: u64,
    ) {
        let item_id = self.mint.item();
        self.plan.blobs.extend(found.blobs);
        self.push_item(item_id, Event::CompactStarted { stage, trigger, tokens_before, messages: None });
        let (tokens_after, edit) = (tokens_before.saturating_sub(saved), Some(found.edit));
        let completed =
            Event::CompactCompleted { stage, trigger, tokens_before, tokens_after, error: None, edit };
        self.push_item(item_id, completed);
    }

    /// Number of messages, from the oldest, that a summary would replace. The newest messages stay, unless a user
    /// asked for the summary.
    fn summary_count(&self, trigger: CompactTrigger) -> usize {
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
    fn can_replace(&self, count: usize, trigger: CompactTrigger) -> bool {
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
        let Some(turn) = self.state.turn.as_ref().filter(|turn| !turn.has_failed_summary) else {
            return self.turn_model();
        };
        let limits_money = turn.budgets.limits_money() || self.state.spec.budgets.limits_money();
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
        let request = self.state.turn.as_ref().and_then(|turn| turn.options.compact.as_ref());
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
        let estimated = reply.usage.all_tokens() == 0 && !reply.cache_hit;
        let request = if estimated { self.build_request().ok() } else { None };
        let bytes: usize = reply.content.iter().map(text_bytes).sum();
        let usage = match request {
            Some(request) => super::usage_estimate::estimate(&request, bytes, &model_snapshot),
            None => reply.usage,
        };
        let cost_usd_micros = if estimated { model_snapshot.cost_usd_micros(&usage) } else { cost };
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

/// Uncalibrated tokens that an edit saves.
fn saved_tokens(messages: &[Arc<Message>], edit: &WindowEdit) -> u64 {
    match edit {
        WindowEdit::Results { results } => {
            let new: HashMap<_, _> =
                results.iter().map(|it| (it.call_id, tokens::text_tokens(&it.content))).collect();
            let blocks = messages.iter().flat_map(|message| &message.content);
            let saved = blocks.filter_map(|block| match block {
                types::message::Block::ToolResult { call_id, .. } => {
                    Some(tokens::block_tokens(block).saturating_sub(*new.get(call_id)?))
                }
                _ => None,
            });
            saved.sum()
        }
        WindowEdit::Messages { from, count, messages: new } => {
            let place = |number: &u64| usize::try_from(*number).unwrap_or(usize::MAX);
            let old = messages.iter().skip(place(from)).take(place(count));
            let new: u64 = new.iter().map(tokens::message_tokens).sum();
            tokens::messages_tokens(old).saturating_sub(new)
        }
    }
}
