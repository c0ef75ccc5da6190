//! Properties of turns: their order, phases, retries, and results.

use crate::property;
use crate::reference_model::ReferenceModel;
use crate::setup;
use crate::watches::{CommandWatch, TurnWatch};
use engine::CONTEXT_OVERFLOW;
use engine::Input;
use std::collections::BTreeSet;
use types::compaction::{CompactStage, CompactTrigger};
use types::event::{Envelope, Event, FeedbackBy, Phase, Purpose};
use types::ledger::ModelUsage;
use types::message::Block;
use types::session::{Item, ItemKind, ItemStatus, Subtype, TurnError, TurnResult};
use types::time::Timestamp;
use types::usage::Usage;

impl ReferenceModel {
    pub(super) fn check_turn_event(&mut self, envelope: &Envelope, input: &Input) -> Result<(), String> {
        match &envelope.event {
            Event::TurnQueued { front, .. } => {
                property!(self.turn.is_some(), "only behind a running turn is there a queue");
                let id = envelope.turn_id.ok_or("a queued turn has an id")?;
                property!(self.turns.insert(id), "turn ids are new");
                self.promised_items.extend(envelope.item_id.map(|item_id| (id, item_id)));
                if *front { self.queue.push_front(id) } else { self.queue.push_back(id) }
            }
            Event::TurnDequeued { .. } => {
                let id = envelope.turn_id.ok_or("a queued turn has an id")?;
                let index =
                    self.queue.iter().position(|queued| *queued == id).ok_or("a queued turn is removed")?;
                self.queue.remove(index);
            }
            Event::TurnQueueUpdated { input: new } => {
                let id = envelope.turn_id.ok_or("a queued turn has an id")?;
                property!(self.queue.contains(&id) && !new.is_empty(), "a queued turn gets another input");
            }
            Event::ClockChanged { by_ms } => {
                let turn = self.turn.as_mut().ok_or("a change of the clock matters to a turn")?;
                turn.started_at = turn.started_at.moved(*by_ms);
                self.deadlines.values_mut().for_each(|(at, ..)| *at = at.moved(*by_ms));
            }
            Event::JobEvent { event } => {
                property!(event.seq > self.job_seq, "an event of the job is recorded once, and in order");
                self.job_seq = event.seq;
            }
            Event::TurnSteered { .. } => self.steered_items.push_back(envelope.item_id),
            Event::TurnQueueMoved { before } => {
                let id = envelope.turn_id.ok_or("a queued turn has an id")?;
                let old = self.queue.clone();
                self.queue.retain(|queued| *queued != id);
                property!(self.queue.len() + 1 == old.len(), "a queued turn is moved");
                let index = match before {
                    Some(before) => self.queue.iter().position(|queued| queued == before),
                    None => Some(self.queue.len()),
                };
                self.queue.insert(index.ok_or("a turn moves before a queued one")?, id);
                property!(self.queue != old, "a move changes the order");
            }
            Event::TurnStarted { options } => {
                let mode = options.mode.ok_or("a turn tells its mode")?;
                self.has_failed = false;
                (self.turn_mode, self.aborted_by) = (mode, None);
                let had_own = self.own_prompt.is_some();
                self.own_prompt = options.change_system_prompt().then_some(false);
                self.prompt_may_differ |= had_own || self.own_prompt.is_some();
                property!(self.turn.is_none(), "turns never overlap");
                let id = envelope.turn_id.ok_or("a turn has an id")?;
                match self.queue.pop_front() {
                    Some(next) => property!(next == id, "turns start in the order of the queue"),
                    None => property!(self.turns.insert(id), "turn ids are new"),
                }
                self.turn = Some(TurnWatch {
                    id,
                    started_at: envelope.at_ms,
                    budgets: options.budgets.ok_or("a turn tells its limits")?,
                    thinking: options.thinking,
                    sampling: options.sampling(),
                    warned: BTreeSet::new(),
                    aborting: false,
                    ending: false,
                    ends_as: Subtype::Aborted,
                    step: 0,
                    may_repeat: false,
                    retries: 0,
                    waits_ms: 0,
                    model: options.model.clone().ok_or("a turn tells its model")?,
                    tried: BTreeSet::new(),
                    orphans: BTreeSet::new(),
                    paused: false,
                    cut: false,
                    go_ons: 0,
                    raised: false,
                    joins: false,
                    resumes: 0,
                    parked: false,
                    woken: None,
                    lost: 0,
                    summaries: 0,
                    model_calls: 0,
                    waits: false,
                    usage: Usage::default(),
                    cost: Some(0),
                    at_least: 0,
                    text: String::new(),
                    stop: None,
                    errors: Vec::new(),
                    denied: Vec::new(),
                    calls: Vec::new(),
                    results: Vec::new(),
                    command: options.command.as_ref().map(|command| command.name.clone()),
                    has_schema: options.output_schema.is_some(),
                    rejected: 0,
                    candidates: Vec::new(),
                    feedback_id: None,
                    chosen: None,
                });
            }
            Event::TurnCompleted { result } => {
                self.has_failed = result.errors.iter().any(|error| error.kind == "resumed_too_often");
                let turn = self.turn.take().ok_or("only a running turn ends")?;
                let is_left = |it: &&CommandWatch| turn.ending || it.turn_id == Some(turn.id);
                property!(
                    !turn.aborting || !self.running_commands().any(|it| is_left(&it)),
                    "what an aborted turn started is gone before it ends"
                );
                self.check_turn_result(&turn, result, envelope.at_ms)?;
            }
            _ => {}
        }
        let resumable = matches!(input, Input::Recovered(_));
        if let Event::UsageBooked { purpose: Some(Purpose::Compaction), usage, cost_usd_micros, .. } =
            &envelope.event
        {
            property!(self.compacting.is_some(), "only a summary that was requested is booked");
            let turn = self.turn.as_mut().ok_or("a summary belongs to a turn")?;
            self.usage.add(usage);
            turn.add_usage(usage, *cost_usd_micros);
            self.calls_made += 1;
            self.at_least += cost_usd_micros.unwrap_or(0);
            (turn.summaries, turn.model_calls) = (turn.summaries + 1, turn.model_calls + 1);
            return Ok(());
        }
        if let Event::UsageBooked { purpose: Some(_), .. } = &envelope.event {
            property!(envelope.turn_id.is_none(), "what a helper took is the session's and no turn's");
            return Ok(());
        }
        if let (Event::UsageBooked { usage, .. }, Some(_)) = (&envelope.event, &self.turn) {
            self.usage.add(usage);
        }
        let retry = self.setup.settings.retry;
        let fallback_models = self.setup.settings.models.clone();
        let limits_money = self.setup.budgets.limits_money();
        let max_resumes = retry.resumes;
        let Some(turn) = &mut self.turn else { return Ok(()) };
        // A clean shutdown counts only for the first event after it. All events of one decision have the same time.
        let was_parked = turn.parked && turn.woken.is_none_or(|at| at == envelope.at_ms);
        match &envelope.event {
            Event::TurnParked {} => (turn.parked, turn.woken) = (true, None),
            _ if envelope.turn_id == Some(turn.id) => _ = turn.woken.get_or_insert(envelope.at_ms),
            _ => {}
        }
        match &envelope.event {
            Event::TurnPhase { phase: Phase::ModelCall, .. } => {
                let step = &envelope.step.ok_or("a model call has a step")?;
                property!(
                    self.compacting.is_none(),
                    "a model call follows a compaction, never interrupts one"
                );
                turn.waits = false;
                let (spent, elapsed) = (turn.at_least, envelope.at_ms.since(turn.started_at));
                let within = |limit: Option<u64>, used: u64| limit.is_none_or(|limit| used < limit);
                let calls_made = *step - 1 + turn.lost + turn.summaries;
                property!(
                    within(turn.budgets.model_calls, calls_made),
                    "no more model calls than the budget"
                );
                property!(within(turn.budgets.usd_micros, spent), "no model call without money");
                property!(
                    within(turn.budgets.output_tokens, turn.usage.output_tokens),
                    "no call without tokens"
                );
                property!(within(turn.budgets.wall_time_ms, elapsed), "no model call without time");
                turn.model_calls = step + turn.lost + turn.summaries;
                if *step == turn.step + 1 {
                    turn.retries = 0;
                    turn.orphans.clear();
                } else {
                    let again = turn.may_repeat || resumable;
                    property!(
                        *step == turn.step && *step > 0 && again,
                        "a step is repeated after a failure only"
                    );
                }
                (turn.step, turn.may_repeat) = (*step, false);
                (self.message, self.asked_before) = (Vec::new(), false);
            }
            Event::TurnPhase { .. } => turn.waits = false,
            Event::UsageBooked { usage, cost_usd_micros, estimated, .. } => {
                property!(*estimated && usage.input_tokens > 0, "what was sent was not free");
                turn.add_usage(usage, *cost_usd_micros);
                self.calls_made += 1;
                self.at_least += cost_usd_micros.unwrap_or(0);
                turn.lost += 1;
                property!(self.streaming.is_none(), "a lost message is closed before it is booked");
                turn.may_repeat = true;
            }
            Event::QuestionResolved { call_id: None, .. } => turn.may_repeat = true,
            Event::TurnResumed { resumes, delay_ms } => {
                property!(
                    (*delay_ms == 0) == (*resumes == 1 || was_parked),
                    "the first resume, and one after a stop in good order, is at once; the others wait"
                );
                (turn.waits, turn.may_repeat) = (*delay_ms > 0, true);
                property!(resumable, "turns resume after restarts");
                property!(
                    *resumes == turn.resumes + u32::from(!was_parked) && *resumes <= max_resumes,
                    "resumes are counted and limited"
                );
                turn.resumes = *resumes;
            }
            Event::TurnAborting { ending, subtype } => {
                property!(!turn.aborting || (*ending && !turn.ending), "an abort is told once");
                if !turn.aborting {
                    turn.ends_as = *subtype;
                }
                self.aborted_by = envelope.origin.clone().or(self.aborted_by.take());
                (turn.aborting, turn.ending) = (true, turn.ending || *ending);
            }
            Event::BudgetWarning { budget, used, limit } => {
                property!(turn.warned.insert(*budget), "a limit is warned of once in a turn");
                property!(used * 100 >= limit * 80, "a warning comes at 80 %: {used} of {limit}");
            }
            Event::CompactStarted { trigger: CompactTrigger::Overflow, .. } => turn.may_repeat = true,
            Event::CompactCompleted { stage: CompactStage::Autocompact, .. } => turn.retries = 0,
            Event::CommandCompleted { name, text, .. } if turn.command.as_ref() == Some(name) => {
                property!(turn.step == 0, "a command's own turn calls no model");
                turn.text.clone_from(text);
            }
            Event::TurnOutputRejected { attempt, max, errors, .. } => {
                turn.rejected += 1;
                property!(turn.has_schema && !errors.is_empty(), "only a schema rejects an answer");
                property!(*attempt == turn.rejected && attempt <= max, "corrections are limited");
            }
            Event::Retry { attempt, max, delay_ms, max_output_tokens, kind, .. } => {
                turn.retries += 1;
                let is_overflow = kind == CONTEXT_OVERFLOW && self.compacting.is_some();
                let endless = *max == 0 && self.setup.background;
                let shorter = max_output_tokens.is_some() && *max == attempt + 1;
                let limited = endless || shorter || is_overflow || (attempt < max && *max <= retry.attempts);
                property!(*attempt == turn.retries && limited, "attempts are limited");
                property!(
                    self.setup.background || *delay_ms <= retry.max_retry_after.millis().max(retry.max_ms),
                    "an attended session does not wait for ever"
                );
                (turn.may_repeat, turn.waits_ms) = (true, *delay_ms);
            }
            Event::Heartbeat { remaining_ms, .. } => {
                property!(*remaining_ms > 0 && *remaining_ms <= turn.waits_ms, "a wait only gets shorter");
                (turn.may_repeat, turn.waits, turn.waits_ms) = (true, false, *remaining_ms);
            }
            Event::ModelSwitched { from, to, .. } => {
                property!(
                    *from == turn.model && from != to,
                    "a turn goes on with another model than its own"
                );
                property!(
                    turn.tried.insert(from.clone()) && !turn.tried.contains(to),
                    "no model twice in a turn"
                );
                let expected_models = [
                    &fallback_models.fallback,
                    &fallback_models.backup,
                    &fallback_models.large_context,
                    &fallback_models.vision,
                ];
                property!(
                    expected_models.iter().any(|expected_models| expected_models.as_ref() == Some(to)),
                    "only the user says who stands in"
                );
                let limits_money = limits_money || turn.budgets.limits_money();
                property!(
                    !limits_money || setup::model_capabilities(to).has_price,
                    "a limit on money holds for every model"
                );
                turn.model.clone_from(to);
                (turn.retries, turn.may_repeat) = (0, true);
            }
            Event::MediaWithheld { count, .. } => {
                turn.may_repeat = true;
                // The provider refused a summary request, which is not part of the conversation.
                if self.compacting.is_some() {
                    property!(*count > 0, "what is withheld was shown");
                    self.sent = None;
                    return Ok(());
                }
                // The request is sent again with another beginning, so do not compare it with the last request.
                let refused_request = self.sent.take().ok_or("what is refused was sent")?;
                let shown = refused_request.messages.iter().flat_map(|message| &message.content);
                let shown: Vec<_> = shown.flat_map(Block::media_refs).map(|(_, blob)| blob.blob_id).collect();
                property!(
                    shown.len() == *count as usize && *count > 0,
                    "what is withheld was shown: {count}"
                );
                shown
                    .into_iter()
                    .for_each(|blob_id| _ = self.withheld.entry(blob_id).or_insert(envelope.seq));
            }
            Event::FeedbackRequested { request_id, item_ids } => {
                let offered: Vec<_> = turn.candidates.iter().map(|item| item.item_id).collect();
                property!(offered.len() == 2 && offered == *item_ids, "two answers are offered");
                property!(turn.feedback_id.replace(*request_id).is_none(), "one choice at a time");
            }
            Event::FeedbackCompleted { request_id, by, .. } => {
                let item_id = envelope.item_id;
                property!(*request_id == turn.feedback_id.take(), "an open choice is settled");
                self.seen.insert(format!("feedback {by:?}"));
                let chosen = turn.candidates.iter().find(|item| Some(item.item_id) == item_id).cloned();
                property!(chosen.is_some() == (*by != FeedbackBy::Abort), "only an abort chooses none");
                let item_text = |item: &Item| item.text.clone().unwrap_or_default();
                for rejected in turn.candidates.iter().filter(|item| Some(item.item_id) != item_id) {
                    let is_said =
                        |word: &&str| chosen.as_ref().is_some_and(|it| item_text(it).contains(word));
                    let text = item_text(rejected);
                    let cut_words =
                        text.split_whitespace().filter(|word| word.ends_with('.') && !is_said(word));
                    self.cut.extend(cut_words.map(String::from));
                }
                turn.orphans.extend(turn.candidates.drain(..).map(|item| item.item_id));
                turn.chosen = chosen;
            }
            Event::MessageTombstone { .. } => {
                let orphan = envelope.item_id.is_some_and(|item_id| turn.orphans.remove(&item_id));
                property!(orphan, "only an answer that was superseded counts no more");
            }
            Event::Error { kind, message, causes } => {
                self.items.insert(envelope.seq, (ItemKind::Error, ItemStatus::Completed));
                let (kind, message, causes) = (kind.clone(), message.clone(), causes.clone());
                turn.errors.push(TurnError { kind, message, causes });
            }
            _ => {}
        }
        Ok(())
    }

    fn check_turn_result(
        &mut self,
        turn: &TurnWatch,
        result: &TurnResult,
        at: Timestamp,
    ) -> Result<(), String> {
        self.seen.insert(format!("turn {}", result.subtype.name()));
        for call_id in &turn.calls {
            property!(self.calls[call_id].status.is_some(), "a turn leaves no call open");
        }
        property!(self.streaming.is_none(), "a turn leaves no message open");
        property!(self.compacting.is_none(), "a turn leaves no compaction open");
        property!(self.running.is_empty(), "a turn leaves no tool running");
        property!(self.requests.values().all(|(.., settled)| *settled), "a turn leaves no request pending");
        property!(self.questions.values().all(|(_, settled)| *settled), "a turn leaves no question open");
        let stopped = matches!(result.subtype, Subtype::Aborted | Subtype::PermissionDenied);
        property!(!stopped || turn.aborting, "only stopped turns end as stopped");
        property!(!turn.aborting || result.subtype == turn.ends_as, "a stopped turn ends as it was told");
        property!(result.errors == turn.errors, "a result lists the errors of its turn");
        property!(
            result.usage == turn.usage && result.cost_usd_micros == turn.cost,
            "a result sums its turn up"
        );
        property!(result.cost_at_least_usd_micros == turn.at_least, "what is known of the cost is told");
        let mut by_model = ModelUsage::default();
        result.usage_by_model.values().for_each(|spent| by_model.add(spent));
        property!(by_model.usage == turn.usage, "models sum up");
        property!(
            (by_model.cost_usd_micros, by_model.cost_at_least_usd_micros) == (turn.cost, turn.at_least),
            "what the models cost is what the turn cost"
        );
        property!(result.tool_calls == turn.calls.len() as u64, "a result counts the calls of its turn");
        property!(
            result.cache_hit_tokens == turn.usage.cache_read_tokens,
            "a result tells the tokens that a cache gave"
        );
        if result.subtype == Subtype::ErrorRepeatedCall {
            property!(self.setup.background, "an attended session asks about a repeated call");
            property!(self.repeats_call(turn), "a turn ends for a call that was repeated");
        }
        let is_invalid = result.subtype == Subtype::StructuredOutputInvalid;
        property!(!is_invalid || turn.rejected == 3, "an answer may be corrected three times");
        property!(result.structured.is_none() || turn.has_schema, "only a schema gives a value");
        property!(by_model.lost_attempts == turn.lost, "lost attempts are told");
        property!(
            result.model_calls == turn.model_calls && result.text == turn.text,
            "a result tells calls and text"
        );
        property!(result.stop_reason == turn.stop, "a result tells why the model stopped");
        property!(result.duration_ms == at.since(turn.started_at), "a result tells how long it took");
        property!(
            result.permission_denials.iter().map(|denial| denial.call_id).eq(turn.denied.iter().copied()),
            "a result lists what was denied"
        );
        self.message.clear();
        self.asked_before = false;
        Ok(())
    }
}
