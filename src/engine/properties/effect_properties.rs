//! Properties of effects, of refusals, and of the state between two inputs.

use std::collections::HashSet;

use crate::property;
use crate::reference_model::ReferenceModel;
use crate::request::{check_continuation, is_valid, message_text};
use engine::{Effect, Engine, Input, Plan};
use types::compaction::CompactStage;
use types::event::{Event, Phase};
use types::ids::{CallId, PermissionId, RequestId, Seq};
use types::message::Block;
use types::model::ModelRequest;
use types::session::{Requires, SessionState};
use types::thinking::Thinking;
use types::time::Timestamp;

impl ReferenceModel {
    /// Checks a plan; an error names the violated property.
    pub fn check_plan(&mut self, input: &Input, plan: &Plan) -> Result<(), String> {
        self.judged_again = match input {
            Input::RulesChecked { verdicts, .. } => verdicts.iter().map(|(call_id, _)| *call_id).collect(),
            _ => HashSet::new(),
        };
        self.rechecked.retain(|call_id| !self.judged_again.contains(call_id));
        for entry in &plan.events {
            self.check_event(entry, input)?;
        }
        self.plan_ends();
        self.check_summaries(plan)?;
        for effect in &plan.effects {
            self.check_effect(effect, plan)?;
        }
        self.check_invariants()
    }

    /// Checks that the summaries of a plan agree with its events.
    fn check_summaries(&self, plan: &Plan) -> Result<(), String> {
        let first_new = plan.events.first().map_or(Seq::MAX, |entry| entry.envelope.seq);
        for change in &plan.items {
            let item = self.items.get(&change.first_seq);
            property!(item.is_some_and(|(kind, _)| *kind == change.kind), "an item row belongs to an item");
            property!(
                (first_new..=self.last_seq).contains(&change.last_seq),
                "an item row names a new event"
            );
            let last = plan.items.iter().rev().find(|other| other.first_seq == change.first_seq);
            property!(
                last.map(|last| last.status) == item.map(|(_, status)| *status),
                "item rows are up to date"
            );
        }
        let raised_or_settled: Vec<_> = plan
            .events
            .iter()
            .filter_map(|entry| match &entry.envelope.event {
                Event::PermissionRequested { request, .. } => {
                    Some((RequestId::Permission(request.request_id), entry.envelope.seq, false))
                }
                Event::PermissionResolved { request_id, .. } => {
                    Some((RequestId::Permission(*request_id), entry.envelope.seq, true))
                }
                Event::QuestionRequested { question } => {
                    Some((RequestId::Question(question.request_id), entry.envelope.seq, false))
                }
                Event::QuestionResolved { request_id, .. }
                | Event::FeedbackCompleted { request_id: Some(request_id), .. } => {
                    Some((RequestId::Question(*request_id), entry.envelope.seq, true))
                }
                Event::FeedbackRequested { request_id, .. } => {
                    Some((RequestId::Question(*request_id), entry.envelope.seq, false))
                }
                _ => None,
            })
            .collect();
        let rows = plan.requests.iter().map(|change| (change.request_id, change.seq, change.settled));
        property!(rows.eq(raised_or_settled), "request rows are the request events");
        Ok(())
    }

    fn check_effect(&mut self, effect: &Effect, plan: &Plan) -> Result<(), String> {
        let event_at = |seq: Seq| {
            plan.events.iter().find(|entry| entry.envelope.seq == seq).map(|entry| &entry.envelope.event)
        };
        if let Effect::StopAll = effect {
            let is_abort_written =
                plan.events.iter().any(|entry| matches!(entry.envelope.event, Event::TurnAborting { .. }));
            property!(is_abort_written, "everything is stopped when an abort was written");
            return Ok(());
        }
        if let Effect::StopCommands { calls, .. } = effect {
            let is_running = |call_id: &CallId| self.running_commands().any(|it| it.call_id == *call_id);
            property!(
                !calls.is_empty() && calls.iter().all(is_running),
                "only a command that runs is stopped"
            );
            return Ok(());
        }
        if let Effect::AskHelper { token, request } = effect {
            property!(
                matches!(event_at(*token), Some(Event::HelperStarted { .. })),
                "a helper is written before it is asked"
            );
            is_valid(request, false)?;
            property!(
                request.tools.is_empty() && request.messages.len() == 1,
                "a helper is shown little and does nothing"
            );
            property!(
                request.thinking == Some(Thinking::Off) && request.max_output_tokens.is_some(),
                "a helper is brief"
            );
            property!(message_text(&request.messages[0]).len() < 5_000, "a helper is shown the beginning");
            return Ok(());
        }
        property!(self.turn.is_some(), "without a turn nothing is done");
        if let Effect::StopCall(call_id) = effect {
            let is_looked_at = self.calls.get(call_id).is_some_and(|call| call.is_edit && call.runs > 0);
            property!(self.running.contains(call_id) || is_looked_at, "a call that runs can be stopped");
            return Ok(());
        }
        if let Effect::AnswerTool { call_id, answers } = effect {
            let call = self.calls.get(call_id);
            let is_running = call.is_some_and(|call| call.started.is_some() && call.status.is_none());
            property!(answers.is_none() || is_running, "only a running tool gets answers");
            return Ok(());
        }
        if let Effect::Inspect { call, prepared } = effect {
            let call = &self.calls[&call.call_id];
            property!(
                call.started.is_some() && call.status.is_none(),
                "a change that had begun is looked at"
            );
            property!(call.is_edit && !prepared.read_only, "only a change of a file is looked at");
            property!(
                call.runs > 0 && (!self.is_held() || self.is_aborting()),
                "what never ran needs no look"
            );
            return Ok(());
        }
        property!(!self.is_aborting(), "nothing begins during an abort: {effect:?}");
        property!(
            !self.is_held() || matches!(effect, Effect::Sleep { .. }),
            "nothing begins while a turn is held"
        );
        match effect {
            Effect::CheckContext { turn_id } => {
                property!(self.has_prompt(), "a prompt that exists is checked");
                property!(
                    self.turn.as_ref().map(|turn| turn.id) == Some(*turn_id),
                    "a check is for its turn"
                );
            }
            Effect::GatherContext => property!(!self.has_prompt(), "the system prompt is put together once"),
            Effect::CallModel { token, request } => {
                let written_event = event_at(*token);
                if let Some((_, CompactStage::Autocompact, _)) = self.compacting {
                    property!(
                        matches!(written_event, Some(Event::TurnPhase { phase: Phase::CompactCheck, .. })),
                        "a summary is written before it is requested"
                    );
                    property!(
                        request.is_helper_call && self.has_prompt(),
                        "a summary is no part of the conversation"
                    );
                    return is_valid(request, false);
                }
                property!(
                    matches!(written_event, Some(Event::TurnPhase { phase: Phase::ModelCall, .. })),
                    "a model call is written before it is made"
                );
                property!(self.has_prompt(), "the model is asked after the system prompt is there");
                property!(self.running.is_empty(), "the model is not asked while tools run");
                self.check_model_request(request)?;
            }
            Effect::Sleep { token, delay_ms } => {
                let beat = self.setup.settings.retry.heartbeat.millis();
                let is_wait_written = match event_at(*token) {
                    Some(Event::TurnResumed { delay_ms: ms, .. }) => ms == delay_ms,
                    Some(Event::Retry { delay_ms: ms, .. } | Event::Heartbeat { remaining_ms: ms, .. }) => {
                        *delay_ms == beat.min(*ms)
                    }
                    _ => false,
                };
                property!(is_wait_written, "a wait is written before it begins");
            }
            Effect::Prepare { calls, .. } => {
                let unseen: Vec<CallId> = self
                    .message
                    .iter()
                    .map(|call| call.call_id)
                    .filter(|id| {
                        let call = &self.calls[id];
                        call.status.is_none()
                            && !call.allowed
                            && call.permission_id.is_none()
                            && !call.asks_user
                    })
                    .collect();
                let prepared_calls: Vec<CallId> = calls.iter().map(|call| call.call_id).collect();
                let is_early =
                    self.streaming.is_some() && prepared_calls.iter().all(|id| unseen.contains(id));
                property!(
                    prepared_calls == unseen || is_early,
                    "all calls of a message are looked at together"
                );
            }
            Effect::CheckRules { calls, .. } => {
                let waits = |id: &CallId| self.calls[id].allowed && self.calls[id].status.is_none();
                property!(
                    calls
                        .iter()
                        .all(|(call, _)| waits(&call.call_id) && !self.running.contains(&call.call_id)),
                    "only calls that wait are judged again"
                );
                self.rechecked.extend(calls.iter().map(|(call, _)| call.call_id));
            }
            Effect::RunTool { call, prepared } => {
                let edited = self.calls[&call.call_id].edited.as_ref();
                let requested_call = self.message.iter().find(|it| it.call_id == call.call_id);
                property!(
                    Some(&call.input) == edited.or(requested_call.map(|it| &it.input)),
                    "a call runs with the model's arguments, or with a person's"
                );
                let is_second_run = self.calls[&call.call_id].blocked.is_some();
                property!(
                    prepared.sandbox.is_some_and(|held| held.unsandboxed) == is_second_run,
                    "outside runs what may, and nothing else"
                );
                self.check_tool_start(call.call_id, prepared.read_only)?;
            }
            Effect::AskHelper { .. }
            | Effect::StopAll
            | Effect::StopCall(_)
            | Effect::StopCommands { .. }
            | Effect::AnswerTool { .. }
            | Effect::RunSubagent { .. }
            | Effect::FollowSubagent { .. }
            | Effect::StopSubagents
            | Effect::Inspect { .. } => {}
        }
        Ok(())
    }

    fn check_model_request(&mut self, request: &ModelRequest) -> Result<(), String> {
        let paused = self.turn.as_ref().is_some_and(|turn| turn.paused);
        is_valid(request, paused)?;
        let thinking = self.turn.as_ref().and_then(|turn| turn.thinking);
        property!(request.thinking == thinking, "a turn thinks as it began: {thinking:?}");
        let sampling = self.turn.as_ref().map(|turn| turn.sampling).unwrap_or_default();
        property!(request.sampling == sampling, "a turn chooses its words as it began: {sampling:?}");
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        property!(
            !blocks.flat_map(Block::media_refs).any(|(_, blob)| self.withheld.contains_key(&blob.blob_id)),
            "what a provider refused is not shown again"
        );
        // A change of the prompt or of the model may change earlier parts of the request.
        if let Some(before) =
            self.sent.as_ref().filter(|before| before.thinking == thinking && before.model == request.model)
        {
            let may_differ = std::mem::take(&mut self.tools_may_differ);
            property!(may_differ || before.tools == request.tools, "the tools change only between turns");
            check_continuation(before, request)?;
        }
        if let Some(before) = &self.sent {
            let may_differ = std::mem::take(&mut self.prompt_may_differ);
            property!(
                may_differ || before.system == request.system,
                "the system prompt changes between turns only"
            );
        }
        let all: Vec<String> = request.messages.iter().map(|message| message_text(message)).collect();
        for cut in &self.cut {
            property!(
                !all.iter().any(|text| text.contains(cut)),
                "words that were cut short are never sent: {cut}"
            );
        }
        // A rewind may have removed messages that a compaction replaced.
        for (_, user_text) in self.user_texts.iter().skip(self.compacted) {
            property!(
                all.iter().any(|text| text.contains(user_text)),
                "what people said is sent: {user_text}"
            );
        }
        self.sent = Some(request.clone());
        Ok(())
    }

    fn check_tool_start(&mut self, call_id: CallId, read_only: bool) -> Result<(), String> {
        let call = self.calls.get_mut(&call_id).ok_or("what runs was requested")?;
        property!(call.started.is_some(), "what runs was written before");
        property!(call.status.is_none(), "what has its result does not run");
        property!(call.read_only == Some(read_only), "what runs is what was judged");
        property!(read_only || call.runs == 0, "what may have an effect runs once");
        property!(!self.running.contains(&call_id), "a call runs at most once at a time");
        call.runs += 1;
        self.running.push(call_id);
        let limit = self.setup.settings.parallel_tools;
        property!(self.running.len() <= limit, "no more than {limit} tools run in parallel");
        let alone = self.running.len() == 1 || !self.running.iter().any(|id| self.is_exclusive(*id));
        property!(alone, "a call with effects runs alone");
        let exclusive = self.is_exclusive(call_id);
        for earlier in self.message.iter().take_while(|other| other.call_id != call_id) {
            let is_done = self.calls[&earlier.call_id].status.is_some();
            property!(
                is_done || !(exclusive || self.is_exclusive(earlier.call_id)),
                "calls with effects keep their place"
            );
        }
        Ok(())
    }

    /// Whether a call must run alone: it may have side effects, it is not prepared yet, or the session
    /// is in safe mode.
    fn is_exclusive(&self, call_id: CallId) -> bool {
        self.setup.safe_mode || self.calls[&call_id].read_only != Some(true)
    }

    /// Whether a request stays pending after its deadline.
    fn is_paused_by_deadline(&self) -> bool {
        self.deadlines.iter().any(|(id, (.., expired))| *expired && !self.requests[id].2)
    }

    /// Properties that hold between any two inputs.
    fn check_invariants(&self) -> Result<(), String> {
        let pending = self.requests.values().any(|(.., settled)| !settled);
        let (paused, has_unknown_outcome) = self.open_questions();
        let expected = match &self.turn {
            _ if self.status.0 == SessionState::Ended => (SessionState::Ended, None),
            None if self.archived => (SessionState::Archived, None),
            None if self.has_failed => (SessionState::Failed, None),
            None => (SessionState::Idle, None),
            Some(_) if self.is_repetition_open() => (SessionState::RequiresAction, Some(Requires::Question)),
            Some(_) if paused => (SessionState::Paused, Some(Requires::Question)),
            Some(_) if has_unknown_outcome && self.setup.background => {
                (SessionState::Paused, Some(Requires::UnknownOutcome))
            }
            Some(_) if has_unknown_outcome => (SessionState::RequiresAction, Some(Requires::UnknownOutcome)),
            Some(_) if self.is_paused_by_deadline() => (SessionState::Paused, Some(Requires::Permission)),
            Some(_) if pending => (SessionState::RequiresAction, Some(Requires::Permission)),
            Some(turn) if turn.feedback_id.is_some() || self.is_user_asked() => {
                (SessionState::RequiresAction, Some(Requires::Question))
            }
            Some(_) => (SessionState::Running, None),
        };
        property!(
            self.status == expected,
            "the status told is {:?}, the facts say {expected:?}",
            self.status
        );
        property!(self.turn.is_some() || self.queue.is_empty(), "nothing waits behind nothing");
        let is_compacting = self.compacting.is_some();
        if self.is_aborting() || self.is_held() || is_compacting || self.message.is_empty() {
            return Ok(());
        }
        let mut running = self.running.len();
        let (mut unfinished, mut barrier) = (false, false);
        for call_id in self.message.iter().map(|call| call.call_id) {
            let call = &self.calls[&call_id];
            if call.status.is_some() {
                continue;
            }
            let exclusive = self.is_exclusive(call_id);
            let free = if exclusive { !unfinished } else { !barrier };
            let is_waiting = call.allowed && call.started.is_none();
            let is_rechecked = self.rechecked.contains(&call_id);
            property!(
                !(is_waiting && !is_rechecked && free && running < self.setup.settings.parallel_tools),
                "what may run does not wait"
            );
            running += usize::from(is_waiting && free);
            unfinished = true;
            barrier |= exclusive;
        }
        property!(unfinished || self.streaming.is_some(), "when every call has its result, the turn goes on");
        Ok(())
    }

    /// Checks that the engine's state agrees with its events.
    pub fn check_state(&self, engine: &Engine) -> Result<(), String> {
        let view = engine.snapshot();
        property!(engine.next_seq() == self.last_seq + 1, "the next number follows the last");
        property!(engine.turn_id() == self.turn.as_ref().map(|turn| turn.id), "the engine knows its turn");
        property!(engine.is_aborting() == self.is_aborting(), "the engine knows of its abort");
        property!((view.state, view.requires) == self.status, "the snapshot has the status");
        property!(view.usage == self.usage, "the snapshot has the usage");
        let inspection = engine.inspect();
        let spent = inspection.spent;
        property!(spent.calls == self.calls_made, "every call is booked once");
        property!(spent.cost_at_least_usd_micros == self.at_least, "what is known of the cost is kept");
        property!(inspection.queue.iter().eq(self.queue.iter()), "the engine knows who waits");
        let rules = engine.rules();
        let count: usize = [&rules.allow, &rules.ask, &rules.deny].iter().map(|rules| rules.len()).sum();
        property!(count == self.rules.len(), "the engine knows its rules");
        let mode = if self.turn.is_some() { self.turn_mode } else { self.mode };
        property!((engine.mode(), view.mode) == (mode, self.mode), "the engine knows its mode");
        let pending_deadline = |(id, (at, _, expired)): (&PermissionId, &(Timestamp, _, bool))| {
            (!expired && !self.requests[id].2).then_some(*at)
        };
        let next = self.deadlines.iter().filter_map(pending_deadline).min().filter(|_| !self.is_aborting());
        let own_deadline = engine.next_deadline();
        let turn = self.turn.as_ref();
        let limit = turn.and_then(|turn| Some((turn.started_at, turn.budgets.wall_time_ms?)));
        let of_time = limit.map(|(from, ms)| [from.plus(ms), from.plus((ms * 80).div_ceil(100))]);
        let is_of_time = own_deadline.is_some_and(|deadline| {
            of_time.is_some_and(|times| times.contains(&deadline)) && next.is_none_or(|next| deadline <= next)
        });
        property!(
            own_deadline == next || is_of_time,
            "the engine knows its next deadline, also after a restart"
        );
        let running = self.running_commands().map(|it| it.call_id);
        property!(running.eq(engine.running_commands()), "the engine knows what runs in the background");
        let mut questions = engine.questions();
        questions.extend(inspection.user_questions.into_iter().map(|(id, _)| id));
        questions.sort();
        let open = self.questions.iter().filter(|(_, (_, settled))| !settled).map(|(id, _)| *id);
        property!(open.eq(questions), "the engine knows its open questions");
        let open: Vec<CallId> = self
            .message
            .iter()
            .map(|call| call.call_id)
            .filter(|id| self.calls.get(id).is_some_and(|call| call.status.is_none()))
            .collect();
        property!(engine.open_calls() == open, "the engine knows its open calls");
        let mut pending_ids: Vec<_> =
            engine.pending().into_iter().map(|pending| pending.request_id).collect();
        pending_ids.sort();
        let pending = self.requests.iter().filter(|(_, (.., settled))| !settled).map(|(id, _)| *id);
        property!(pending.eq(pending_ids), "the engine knows what is pending");
        Ok(())
    }
}
