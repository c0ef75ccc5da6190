//! Properties of texts: messages, answers, titles, and helper calls outside the turns.

use crate::property;
use crate::reference_model::ReferenceModel;
use engine::Input;
use types::event::{Envelope, Event, Purpose, TitledBy, UsageReason};
use types::ids::Seq;
use types::message::Block;
use types::model::{FaultKind, StopReason};
use types::session::{Item, ItemKind, ItemStatus, Subtype};

impl ReferenceModel {
    /// Checks that a title comes from the source that its event names.
    pub(super) fn check_title(
        &mut self,
        title: &str,
        by: Option<TitledBy>,
        input: &Input,
    ) -> Result<(), String> {
        match by {
            None => property!(matches!(input, Input::Update(_)), "a client's title is a client's"),
            Some(TitledBy::Prompt) => {
                property!(self.titled_by.is_none(), "the prompt is only the first word")
            }
            Some(TitledBy::Model) => {
                property!(self.helper.is_some(), "a model's title is the answer to a request for one");
                property!(
                    self.titled_by == Some(TitledBy::Prompt),
                    "who gave a title knows better than a model"
                );
                property!(
                    !title.trim().is_empty() && title.lines().count() == 1,
                    "a title is a line: {title:?}"
                );
                property!(title.chars().count() <= 60, "a title is short: {title:?}");
            }
        }
        self.titled_by = by;
        Ok(())
    }

    pub(super) fn check_helper_event(&mut self, envelope: &Envelope, input: &Input) -> Result<(), String> {
        let ended_well = std::mem::replace(
            &mut self.ended_well,
            matches!(&envelope.event, Event::TurnCompleted { result } if result.subtype == Subtype::Success),
        );
        match &envelope.event {
            Event::HelperStarted { model, model_snapshot, max_usage, .. } => {
                property!(
                    self.turn.is_none() && ended_well,
                    "a title is asked for when a turn has ended well"
                );
                property!(self.helper.is_none(), "one helper at a time is asked");
                let quick = self.setup.settings.quick.as_ref();
                property!(quick.is_some_and(|quick| quick.model == *model), "only the quick model is asked");
                property!(self.titled_by == Some(TitledBy::Prompt), "a session with a title needs none");
                self.title_tries += 1;
                property!(self.title_tries <= 3, "a title is asked for three times at max_usage");
                let budgets = self.setup.budgets;
                let left = |limit: Option<u64>, used: u64| limit.is_none_or(|limit| used < limit);
                property!(left(budgets.session_model_calls, self.calls_made), "no helper beyond the budget");
                property!(
                    !budgets.limits_money() || model_snapshot.price.is_some(),
                    "a limit on money holds for helpers"
                );
                property!(max_usage.input_tokens > 0 && max_usage.output_tokens > 0, "a request is not free");
                self.helper = Some((envelope.seq, *model_snapshot, *max_usage));
                self.helper_booked = false;
            }
            Event::UsageBooked {
                purpose: Some(Purpose::Title),
                usage,
                cost_usd_micros,
                reason,
                estimated,
                ..
            } => {
                let (_, model_snapshot, max_usage) =
                    self.helper.ok_or("only a helper that was asked is booked")?;
                let expected_cost = model_snapshot.cost_usd_micros(usage);
                property!(*cost_usd_micros == expected_cost, "a helper costs what its price was");
                let is_lost = *reason == UsageReason::LostAttempt;
                property!(
                    !is_lost || usage.output_tokens >= max_usage.output_tokens,
                    "a lost one is estimated from above"
                );
                property!(*estimated || !is_lost, "what was lost is an estimate");
                property!(!self.helper_booked, "a helper is booked once");
                self.helper_booked = true;
                self.usage.add(usage);
                self.calls_made += 1;
                self.at_least += cost_usd_micros.unwrap_or(0);
            }
            Event::HelperCompleted { .. } => {
                property!(self.helper.take().is_some(), "a helper ends once");
                if let Input::HelperDone { outcome, began, .. } = input {
                    let may_cost = outcome.as_ref().as_ref().map_or_else(
                        |fault| *began || fault.usage.is_some() || fault.kind == FaultKind::Idle,
                        |_| true,
                    );
                    property!(
                        self.helper_booked == may_cost,
                        "a helper's call is booked if it may be charged"
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn check_message_event(
        &mut self,
        envelope: &Envelope,
        delta_of: Option<Seq>,
    ) -> Result<(), String> {
        match &envelope.event {
            Event::MessageStarted { .. } => {
                property!(self.streaming.is_none() && self.turn.is_some(), "one message streams at a time");
                let item_id = envelope.item_id.ok_or("a message is an item")?;
                self.streaming = Some((item_id, envelope.seq, String::new()));
                self.items.insert(envelope.seq, (ItemKind::AssistantMessage, ItemStatus::Running));
            }
            Event::MessageBlockStarted { .. }
            | Event::MessageBlockCompleted { .. }
            | Event::MessageThinkingDelta { .. }
            | Event::MessageToolInputDelta { .. }
            | Event::MessageTextDelta { .. } => {
                let (item_id, first_seq, sum) =
                    self.streaming.as_mut().ok_or("a part belongs to a message")?;
                property!(envelope.item_id == Some(*item_id), "a part belongs to the message that streams");
                property!(
                    delta_of.is_none_or(|opener| opener == *first_seq),
                    "a delta belongs to its message"
                );
                let size = match &envelope.event {
                    Event::MessageTextDelta { text, .. } => {
                        sum.push_str(text);
                        text.len()
                    }
                    Event::MessageThinkingDelta { text, .. } => text.len(),
                    Event::MessageToolInputDelta { json, .. } => json.len(),
                    _ => 0,
                };
                property!(size <= 8 * 1024, "a part is small enough for one event");
            }
            Event::MessageCompleted {
                item,
                reasoning_item_id,
                usage,
                cost_usd_micros,
                stop_reason,
                superseded,
                cut_short,
                candidate,
                ..
            } => {
                let thinks =
                    |block: &Block| matches!(block, Block::Thinking { text, .. } if !text.is_empty());
                let is_answer = usage.is_some();
                property!(
                    reasoning_item_id.is_some() == (is_answer && item.content.iter().any(thinks)),
                    "the reasoning of an answer is an item"
                );
                if reasoning_item_id.is_some() {
                    self.items.insert(envelope.seq, (ItemKind::Reasoning, item.status));
                }
                let cut = item.status == ItemStatus::Interrupted;
                property!(
                    !superseded || (cut && !self.is_aborting()),
                    "only what is asked again is superseded"
                );
                self.items.insert(item.first_seq, (item.kind, item.status));
                match item.kind {
                    ItemKind::UserMessage => {
                        let promised = self.promised_items.remove(&item.turn_id);
                        let promised = promised.or_else(|| self.steered_items.pop_front().flatten());
                        property!(
                            promised.is_none_or(|promised| promised == item.item_id),
                            "an input becomes the item that its submit named"
                        );
                        self.user_texts.push((item.first_seq, item.text.clone().unwrap_or_default()));
                    }
                    ItemKind::Notice => {
                        let turn = self.turn.as_mut().ok_or("a model is told something in a turn")?;
                        turn.go_ons += 1;
                        property!(
                            turn.cut && turn.go_ons <= 3,
                            "an answer that was cut goes on, and not for ever"
                        );
                        (turn.cut, turn.joins) = (false, true);
                    }
                    ItemKind::AssistantMessage if *candidate => {
                        property!(self.setup.binary_feedback && cut, "only feedback has candidates");
                        let streamed = self.streaming.take().ok_or("an answer was begun")?.2;
                        property!(item.text.as_ref() == Some(&streamed), "deltas joined are the text");
                        let turn = self.turn.as_mut().ok_or("an answer belongs to a turn")?;
                        let usage = usage.as_ref().ok_or("a candidate has its usage")?;
                        self.usage.add(usage);
                        turn.add_usage(usage, *cost_usd_micros);
                        self.calls_made += 1;
                        self.at_least += cost_usd_micros.unwrap_or(0);
                        turn.stop = *stop_reason;
                        turn.summaries += u64::from(turn.candidates.is_empty());
                        (turn.retries, turn.go_ons, turn.may_repeat) = (0, 0, true);
                        turn.candidates.push(item.clone());
                    }
                    ItemKind::AssistantMessage
                        if self.turn.as_ref().is_some_and(|turn| turn.chosen.is_some()) =>
                    {
                        let turn = self.turn.as_mut().ok_or("an answer belongs to a turn")?;
                        let chosen = turn.chosen.take().ok_or("an answer was chosen")?;
                        property!(
                            item.content == chosen.content
                                && item.item_id != chosen.item_id
                                && usage.is_none(),
                            "the chosen answer is copied, and paid once"
                        );
                        turn.text = item.text.clone().unwrap_or_default();
                        turn.stop = *stop_reason;
                        (turn.cut, turn.paused, turn.joins) = (false, false, false);
                        turn.orphans.clear();
                        self.asked_before = false;
                        self.message = item
                            .content
                            .iter()
                            .filter_map(|block| match block {
                                Block::ToolCall(call) => Some(call.clone()),
                                _ => None,
                            })
                            .collect();
                    }
                    ItemKind::AssistantMessage => {
                        self.check_answer(envelope, item, *cut_short)?;
                        if let Some(turn) = self.turn.as_mut().filter(|_| *cut_short) {
                            self.seen.insert("answer cut short".into());
                            (turn.paused, turn.cut) = (false, false);
                        }
                        if let (Some(usage), Some(turn)) = (usage, &mut self.turn) {
                            self.usage.add(usage);
                            turn.add_usage(usage, *cost_usd_micros);
                            self.calls_made += 1;
                            self.at_least += cost_usd_micros.unwrap_or(0);
                            turn.stop = *stop_reason;
                            let is_cut = *stop_reason == Some(StopReason::MaxTokens);
                            property!(
                                *superseded || !cut,
                                "an answer that is told of is whole, or asked for again"
                            );
                            if *superseded {
                                property!(
                                    is_cut && !turn.raised,
                                    "a limit is raised once, where it was reached"
                                );
                                turn.raised = true;
                            } else {
                                turn.cut = is_cut;
                                turn.paused = *stop_reason == Some(StopReason::Pause);
                            }
                            turn.retries = 0;
                            turn.go_ons = if is_cut { turn.go_ons } else { 0 };
                        }
                        if let Some(turn) = self.turn.as_mut().filter(|_| *superseded) {
                            turn.orphans.insert(item.item_id);
                        }
                    }
                    ItemKind::ToolCall
                    | ItemKind::Plan
                    | ItemKind::Compaction
                    | ItemKind::Reasoning
                    | ItemKind::Error => {
                        return Err("a message is no other item".into());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_answer(&mut self, envelope: &Envelope, item: &Item, cut_short: bool) -> Result<(), String> {
        let (item_id, first_seq, streamed) = self.streaming.take().ok_or("an answer was begun")?;
        property!(
            envelope.item_id == Some(item_id) && item.first_seq == first_seq,
            "an answer ends where it began"
        );
        let text = item.text.clone().unwrap_or_default();
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        property!(
            text == streamed || cut_short && letters(&text) == letters(&streamed),
            "deltas joined are the text: {streamed:?}, {text:?}"
        );
        let blocks: String = item
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        property!(blocks == text, "the blocks joined are the text");
        if item.status == ItemStatus::Interrupted {
            self.cut.extend(text.split_whitespace().filter(|word| word.ends_with('.')).map(String::from));
            let calls = item.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
            property!(!calls, "a call of a message that was cut short is dropped");
            property!(self.message.is_empty(), "an answer with a complete call is kept");
            return Ok(());
        }
        property!(item.status == ItemStatus::Completed, "a message ends whole or cut short");
        let early = std::mem::take(&mut self.message);
        self.message = item
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some(call.clone()),
                _ => None,
            })
            .collect();
        property!(early.iter().all(|call| self.message.contains(call)), "a call that started early is kept");
        property!(
            !cut_short || early == self.message,
            "an answer that broke off ends with its complete calls"
        );
        self.asked_before = false;
        if let Some(turn) = &mut self.turn {
            let before = if turn.joins { std::mem::take(&mut turn.text) } else { String::new() };
            turn.text = before + &text;
            turn.joins = false;
            turn.orphans.clear();
        }
        Ok(())
    }
}
