//! Binary feedback: the model answers twice, and a client chooses the answer that the turn continues with. Both
//! candidates stay in the journal, and the chosen one is copied into the conversation. Calls of the chosen answer
//! need permission like all others.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::input::Refusal;
use crate::output::Reply;
use crate::state::{Activity, Candidate};
use types::event::{Event, FeedbackBy, TombstoneReason};
use types::ids::{ItemId, QuestionId};
use types::message::Block;
use types::model::{ModelReply, StopReason};
use types::session::{Item, ItemStatus};
use types::usage::Usage;

/// The stop reasons of answers that can be compared: the model itself ended them.
fn is_comparable(stop_reason: StopReason) -> bool {
    matches!(stop_reason, StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence)
}

/// Whether two answers have the same content. Reasoning and ids do not count.
fn are_equal(one: &Item, other: &Item) -> bool {
    let parts = |item: &Item| -> Vec<(String, serde_json::Value)> {
        let part = |block: &Block| match block {
            Block::Text { text } => Some((String::new(), text.trim().into())),
            Block::ToolCall(call) => Some((call.tool.clone(), call.input.clone())),
            _ => None,
        };
        item.content.iter().filter_map(part).collect()
    };
    parts(one) == parts(other)
}

impl PlanBuilder<'_> {
    /// Whether this answer is one of two candidates. A second answer is always a candidate, so it is
    /// never used before the user saw it.
    pub fn is_candidate(&self, reply: &ModelReply) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        if !turn.candidates.is_empty() {
            return true;
        }
        let spec = &self.state.spec;
        spec.binary_feedback
            && !spec.background
            && turn.calls.is_empty()
            && !turn.model_call.continues_previous
            && !reply.cache_hit
            && !reply.content.is_empty()
            && is_comparable(reply.stop_reason)
    }

    /// Continues after a candidate was recorded: with the model's second answer, or with the choice.
    pub fn candidate_done(&mut self, stop_reason: StopReason) {
        let Some(turn) = &self.state.turn else { return };
        let step = turn.step;
        let candidates = Arc::clone(&turn.candidates);
        match candidates.as_slice() {
            [_] => self.ask_second_answer(step),
            [first, second] if !is_comparable(stop_reason) || second.item.content.is_empty() => {
                self.use_candidate(first, None, FeedbackBy::Single);
            }
            [first, second] if are_equal(&first.item, &second.item) => {
                self.use_candidate(first, None, FeedbackBy::Equal);
            }
            all => {
                let request_id = self.mint.question();
                let item_ids = all.iter().map(|candidate| candidate.item.item_id).collect();
                self.push_turn(Event::FeedbackRequested { request_id, item_ids });
            }
        }
    }

    /// Sends the request of this step once more. If no budget is left for it, the turn uses the first answer.
    pub fn ask_second_answer(&mut self, step: u64) {
        if self.over_budget(step).is_some() || self.send_request(step).is_err() {
            self.use_first_answer();
        }
    }

    /// Whether the running model call is for a second answer.
    pub fn awaits_second_answer(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.candidates.len() == 1)
    }

    /// Continues with the first answer, because there is no second one.
    pub fn use_first_answer(&mut self) {
        let first = self.state.turn.as_ref().and_then(|turn| turn.candidates.first().cloned());
        if let Some(first) = first {
            self.use_candidate(&first, None, FeedbackBy::Single);
        }
    }

    /// Handles a client's choice; the first one counts.
    pub fn choose_answer(&mut self, request_id: QuestionId, item_id: ItemId) -> Result<(), Refusal> {
        let turn = self.state.turn.as_ref().filter(|turn| !turn.stop.is_aborting);
        let turn = turn.filter(|turn| turn.activity == Activity::Choosing { request_id });
        let candidates = Arc::clone(&turn.ok_or(Refusal::NotPending)?.candidates);
        let chosen = candidates.iter().find(|candidate| candidate.item.item_id == item_id);
        let chosen = chosen.ok_or(Refusal::NoSuchAnswer)?;
        // The next event records the choice.
        self.reply = Reply::QuestionAnswered(self.state.next_seq);
        self.use_candidate(chosen, Some(request_id), FeedbackBy::Answer);
        Ok(())
    }

    /// Settles an open request without a choice, because the turn ends.
    pub fn withdraw_feedback(&mut self) {
        let activity = self.state.turn.as_ref().map(|turn| turn.activity.clone());
        if let Some(Activity::Choosing { request_id }) = activity {
            let (request_id, by) = (Some(request_id), FeedbackBy::Abort);
            self.push_turn(Event::FeedbackCompleted { request_id, by, context_tokens: 0 });
        }
    }

    /// Makes the first candidate the turn's answer, because a limit ends the turn during the second
    /// one. A candidate with calls is left out, because its calls cannot run any more.
    pub fn keep_first_answer(&mut self) {
        let first = self.state.turn.as_ref().and_then(|turn| turn.candidates.first().cloned());
        let has_calls = |item: &Item| item.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
        if let Some(first) = first.filter(|first| !has_calls(&first.item)) {
            self.copy_candidate(&first, None, FeedbackBy::Single);
        }
    }

    /// Makes a candidate the answer of this step, and continues the turn with it.
    fn use_candidate(&mut self, chosen: &Candidate, request_id: Option<QuestionId>, by: FeedbackBy) {
        self.copy_candidate(chosen, request_id, by);
        let calls = chosen.item.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call.clone()),
            _ => None,
        });
        self.continue_after_answer(calls.collect(), chosen.stop_reason, true, None);
    }

    /// Settles the choice and copies a candidate into the conversation.
    fn copy_candidate(&mut self, chosen: &Candidate, request_id: Option<QuestionId>, by: FeedbackBy) {
        let item_id = chosen.item.item_id;
        let others = self.state.turn.as_ref().map(|turn| Arc::clone(&turn.candidates)).unwrap_or_default();
        let context_tokens = chosen.usage.as_ref().map_or(0, Usage::all_tokens);
        self.push_item(item_id, Event::FeedbackCompleted { request_id, by, context_tokens });
        for other in others.iter() {
            let is_chosen = other.item.item_id == item_id;
            let reason = if is_chosen { TombstoneReason::Chosen } else { TombstoneReason::NotChosen };
            self.push_item(other.item.item_id, Event::MessageTombstone { reason });
        }
        // Copy the candidate into a new item, because its own item has already ended.
        let (item_id, seq) = (self.mint.item(), self.state.next_seq);
        let (first_seq, last_seq, status) = (seq, seq, ItemStatus::Completed);
        let item = Item { item_id, first_seq, last_seq, status, ..chosen.item.clone() };
        let mut completed = Event::message(item);
        if let Event::MessageCompleted { model, stop_reason, response_id, .. } = &mut completed {
            model.clone_from(&chosen.model);
            *stop_reason = Some(chosen.stop_reason);
            response_id.clone_from(&chosen.response_id);
        }
        self.push_item(item_id, completed);
    }
}
