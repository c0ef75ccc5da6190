//! Compaction: before a model call the stages of [`crate::window`] run until the request fits. If they do not
//! suffice, a model summarises the conversation; its call is repeated after failures like any model call of the turn.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::decide::retry::MAX_SUMMARY_OVERFLOWS;
use crate::input::Refusal;
use crate::request::tokens;
use crate::state::{CONTEXT_OVERFLOW, OpenCompaction, QueuedInput};
use crate::window::StageEdit;
use crate::window::collapse::collapse;
use crate::window::history::History;
use crate::window::microcompact::microcompact;
use crate::window::shorten::shorten;
use crate::window::size::{ResultLimits, WindowSize};
use crate::window::snip::snip;
use types::compaction::{CompactRequest, CompactStage, CompactTrigger, WindowEdit};
use types::event::{Event, Origin};
use types::message::Message;
use types::outcome::AcceptedState;
use types::session::{SessionState, TurnError};
use types::turn_options::TurnOptions;

/// Divisor of the estimate: the quotient is a safe lower bound of a request's length. If it exceeds the
/// window, the request cannot fit.
const CERTAIN_PART: u64 = 2;
/// Divisor of the usable window: maximum length of a summary, and of the restored files.
pub(super) const SUMMARY_PART: u64 = 8;

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

    pub(super) fn window_size_of(&self, model: &str) -> Option<WindowSize> {
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
        let is_tried = self.state.turn.as_ref().is_none_or(|turn| turn.compaction.last_step == step);
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
        match &turn.compaction.open {
            Some(compaction) => {
                compaction.overflows < MAX_SUMMARY_OVERFLOWS && self.can_shorten_summary(compaction)
            }
            // If an answer is being continued, the answer so far stays valid. The turn then ends
            // without compaction.
            None if turn.model_call.continuations > 0 => false,
            None => {
                turn.compaction.last_step != turn.step
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
}

/// Uncalibrated tokens that an edit saves.
pub(super) fn saved_tokens(messages: &[Arc<Message>], edit: &WindowEdit) -> u64 {
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
