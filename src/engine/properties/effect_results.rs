//! Results of effects that return to the engine: model answers and tool results, in any order, and late.

use crate::generators;
use crate::generators::{GeneratedAnswer, context, inspection, model_snapshot, prepared_calls, tool_done};
use crate::property;
use crate::script::{EffectOutcome, FileState, ModelFailure, ModelStep, ToolStep};
use crate::simulator::{OutstandingEffect, Simulator, choose};
use engine::{Effect, Input, Plan, RequestAnswer};
use types::ids::Seq;
use types::model::{Delta, ModelFault, Overflow};
use types::permission::Decision;
use types::permission_request::PermissionAnswer;
use types::question::Choice;
use types::tool::{ToolProgress, ToolStatus};

impl Simulator {
    pub(super) fn discard_effect(&mut self, out: OutstandingEffect) {
        let late = match out {
            OutstandingEffect::Context => context(&self.engine),
            OutstandingEffect::Check { turn_id } => generators::context_comparison(turn_id, 0),
            OutstandingEffect::Model { token, .. } => {
                Input::Deltas { token, deltas: vec![Delta::Text { index: 0, text: "too late".into() }] }
            }
            OutstandingEffect::Timer { token } => Input::TimerFired { token },
            OutstandingEffect::Prepare { turn_id, mode, calls } => prepared_calls(turn_id, mode, &calls, &[]),
            OutstandingEffect::CheckRules { turn_id, mode, calls } => {
                generators::checked_rules(turn_id, mode, &calls, 0)
            }
            OutstandingEffect::Tool { call_id } => tool_done(call_id, ToolStatus::Cancelled, false),
            OutstandingEffect::Inspect { call_id } => inspection(call_id, FileState::New),
            OutstandingEffect::Stop => return,
        };
        self.late.push(late);
    }

    /// Reports found MCP servers, or none, before a turn gets its context.
    fn deliver_mcp_tools(&mut self, chance: &EffectOutcome) -> Result<(), String> {
        if !chance.wait_ms.is_multiple_of(3) {
            return Ok(());
        }
        self.feed(generators::mcp_change(usize::from(chance.wait_ms / 3 % 4))).map(|_| ())
    }

    /// Delivers the result or the progress of an outstanding effect.
    pub(super) fn deliver_result(&mut self, pick: usize, chance: &EffectOutcome) -> Result<(), String> {
        let all = self.outstanding.len() + self.helpers.len();
        if all == 0 {
            return Ok(());
        }
        self.clock += i64::from(chance.wait_ms);
        let index = pick % all;
        if index >= self.outstanding.len() {
            let token = self.helpers.swap_remove(index - self.outstanding.len());
            let input = self.helper_done(token, chance);
            self.late.push(input.clone());
            self.feed(input)?;
            return Ok(());
        }
        match self.outstanding.swap_remove(index) {
            OutstandingEffect::Context => {
                self.deliver_mcp_tools(chance)?;
                self.late.push(context(&self.engine));
                self.feed(context(&self.engine))?;
            }
            OutstandingEffect::Check { turn_id } => {
                self.deliver_mcp_tools(chance)?;
                let input = generators::context_comparison(turn_id, chance.wait_ms);
                self.late.push(input.clone());
                self.feed(input)?;
            }
            OutstandingEffect::Model { token, answer } => {
                let answer = answer.unwrap_or_else(|| generators::answer(chance, || self.next()));
                self.deliver_model_step(token, answer, chance.model)?;
            }
            OutstandingEffect::Timer { token } => {
                self.late.push(Input::TimerFired { token });
                self.feed(Input::TimerFired { token })?;
            }
            OutstandingEffect::Prepare { turn_id, mode, calls } => {
                let input = prepared_calls(turn_id, mode, &calls, &chance.preparations);
                self.late.push(input.clone());
                self.feed(input)?;
            }
            OutstandingEffect::CheckRules { turn_id, mode, calls } => {
                let input = generators::checked_rules(turn_id, mode, &calls, chance.wait_ms);
                self.late.push(input.clone());
                self.feed(input)?;
            }
            OutstandingEffect::Tool { call_id } => match chance.tool {
                ToolStep::Progress(0) => {
                    self.outstanding.push(OutstandingEffect::Tool { call_id });
                    self.feed(generators::files_read(call_id))?;
                }
                ToolStep::Progress(size) => {
                    self.outstanding.push(OutstandingEffect::Tool { call_id });
                    let text = "out é".repeat(usize::from(size) * usize::from(size) * 600);
                    let stream = if chance.wait_ms % 5 == 4 { ToolProgress::NOTE } else { "stdout" };
                    self.feed(Input::Progress { call_id, progress: ToolProgress { stream, text } })?;
                    // Tools ask rarely in these scripts. Otherwise the scripts would not reach the rarest results.
                    match (size, chance.wait_ms % 8) {
                        (3, 0..2) => {
                            _ = self.feed(Input::ToolAsks {
                                call_id,
                                questions: vec![generators::user_question()],
                            })?;
                        }
                        (3, 2) => _ = self.feed(Input::ToolStoppedAsking { call_id })?,
                        _ => {}
                    }
                }
                ToolStep::Done(ToolStatus::Completed) if self.watch.calls[&call_id].is_background => {
                    self.late.push(generators::background_start(call_id));
                    self.feed(generators::background_start(call_id))?;
                }
                ToolStep::Blocked => {
                    let input = generators::tool_blocked(call_id);
                    self.late.push(input.clone());
                    self.feed(input)?;
                }
                ToolStep::Done(status) => {
                    let is_long = chance.wait_ms.is_multiple_of(4);
                    self.late.push(tool_done(call_id, status, is_long));
                    self.late.push(generators::files_read(call_id));
                    let progress = ToolProgress { stream: "stderr", text: "late".into() };
                    self.late.push(Input::Progress { call_id, progress });
                    self.feed(tool_done(call_id, status, is_long))?;
                }
            },
            OutstandingEffect::Inspect { call_id } => {
                let input = inspection(call_id, chance.inspection);
                self.late.push(input.clone());
                self.feed(input)?;
                // Report that no effect of the turn runs any more.
                if self.engine.is_aborting() && self.outstanding.is_empty() {
                    self.outstanding.push(OutstandingEffect::Stop);
                }
            }
            OutstandingEffect::Stop => {
                // Drop the effects that did not end by themselves.
                for out in std::mem::take(&mut self.outstanding) {
                    self.discard_effect(out);
                }
                let turn = self.watch.turn.as_ref().map(|turn| (turn.id, turn.ending));
                self.end_commands(|it| turn.is_some_and(|(id, all)| all || it.turn_id == Some(id)))?;
                self.feed(Input::Stopped { model_snapshot: model_snapshot() })?;
                self.late.push(Input::Stopped { model_snapshot: model_snapshot() });
            }
        }
        Ok(())
    }

    pub(super) fn helper_done(&mut self, token: Seq, chance: &EffectOutcome) -> Input {
        let reply = generators::answer(chance, || self.next()).reply;
        let (outcome, began) = match chance.model {
            ModelStep::Fail(ModelFailure { kind, retry_after_ms, .. }) => {
                let usage = retry_after_ms.map(|_| Box::new(reply.usage));
                (
                    Err(ModelFault { usage, ..ModelFault::new(kind, "it failed") }),
                    chance.wait_ms.is_multiple_of(2),
                )
            }
            ModelStep::Finish | ModelStep::Stream(_) | ModelStep::Silence => (Ok(reply), true),
        };
        Input::HelperDone { token, outcome: Box::new(outcome), began, duration_ms: 3 }
    }

    fn deliver_model_step(
        &mut self,
        token: Seq,
        mut answer: GeneratedAnswer,
        step: ModelStep,
    ) -> Result<(), String> {
        let some = match step {
            ModelStep::Stream(some) => usize::from(some),
            ModelStep::Finish => usize::MAX,
            ModelStep::Fail(_) | ModelStep::Silence => 0,
        };
        let deltas: Vec<Delta> = answer.deltas.drain(..some.min(answer.deltas.len())).collect();
        match step {
            ModelStep::Stream(_) => {
                self.outstanding.push(OutstandingEffect::Model { token, answer: Some(answer) });
                self.feed(Input::Deltas { token, deltas })?;
            }
            ModelStep::Finish => {
                // Some deltas arrive together with the end of the answer.
                let with_end = usize::try_from(self.next()).unwrap_or(0) % (deltas.len() + 1);
                let (before, last) = deltas.split_at(deltas.len() - with_end);
                answer.reply.last = last.to_vec();
                self.feed(Input::Deltas { token, deltas: before.to_vec() })?;
                let completed = Input::ModelDone {
                    token,
                    reply: Box::new(answer.reply),
                    cost_usd_micros: answer.cost,
                    model_snapshot: model_snapshot(),
                    duration_ms: 3,
                };
                self.late.push(completed.clone());
                self.late.push(Input::Deltas { token, deltas });
                self.feed(completed)?;
            }
            ModelStep::Silence => {
                self.outstanding.push(OutstandingEffect::Model { token, answer: Some(answer) });
                self.feed(Input::Deltas { token, deltas: vec![Delta::Silence { ms: 30_000 }] })?;
            }
            ModelStep::Fail(ModelFailure { kind, retry_after_ms, overflow }) => {
                let overflow = overflow.map(|(limit, input)| Overflow { limit, input });
                // Some providers report usage before the stream breaks off, with or without a first delta.
                let usage = retry_after_ms.map(|_| Box::new(answer.reply.usage));
                // Every second refusal is about a picture, if the request has one.
                let error_text =
                    if self.next().is_multiple_of(2) { "it failed" } else { "no image is taken" };
                let fault =
                    ModelFault { retry_after_ms, overflow, usage, ..ModelFault::new(kind, error_text) };
                let failed =
                    Input::ModelFailed { token, fault, model_snapshot: model_snapshot(), duration_ms: 3 };
                self.late.push(failed.clone());
                self.feed(failed)?;
            }
        }
        Ok(())
    }

    /// Delivers an earlier result again. A late result must change nothing.
    pub(super) fn deliver_late_input(&mut self, pick: u8) -> Result<(), String> {
        // Prefer results of recently dropped effects, because they are the most likely to cause errors.
        let recent = &self.late[self.late.len().saturating_sub(if pick < 200 { 4 } else { usize::MAX })..];
        let Some(input) = choose(recent, pick).cloned() else { return Ok(()) };
        // A system prompt and the end of an abort carry no token. They are late if the engine does not
        // wait for them.
        let awaited = match &input {
            Input::ContextReady { .. } => !self.watch.has_prompt() && !self.watch.is_aborting(),
            Input::Stopped { .. } => self.watch.is_aborting(),
            // The result of an inspection is valid even if the turn was aborted.
            Input::Inspected { call_id, .. } => self.engine.open_calls().contains(call_id),
            // The engine prepares these calls again, because a client changed the mode meanwhile.
            Input::Prepared { .. } => self.watch.is_unjudged(),
            // A call that still waits may be checked twice.
            Input::RulesChecked { verdicts, .. } => {
                verdicts.iter().any(|(call_id, _)| self.engine.open_calls().contains(call_id))
            }
            // During a second run, only the result of the second run counts; the first run has already reported
            // its end.
            Input::ToolDone { call_id, .. } | Input::Progress { call_id, .. } => {
                self.watch.running.contains(call_id)
            }
            _ => false,
        };
        if awaited {
            return Ok(());
        }
        let mut plan = self.feed(input)?;
        // A call that waits may be judged once more: that changes nothing.
        if let Some(plan) = &mut plan {
            plan.effects.retain(|effect| !matches!(effect, Effect::CheckRules { .. }));
        }
        property!(plan == Some(Plan::default()), "what comes late changes nothing");
        Ok(())
    }

    /// Answers all requests, ends all model calls, and completes all tools until the session is idle.
    pub(super) fn finish_session(&mut self) -> Result<(), String> {
        let outcome = EffectOutcome::successful();
        for _ in 0..600 {
            if let Some(pending) = self.engine.pending().first()
                && !self.engine.is_aborting()
            {
                let request_id = pending.request_id;
                self.feed(Input::Answer(Box::new(RequestAnswer {
                    answer: PermissionAnswer::new(request_id, Decision::Allow),
                    edited: None,
                    origin: None,
                })))?;
            } else if let Some((request_id, items)) = self.engine.inspect().open_feedback
                && !self.engine.is_aborting()
            {
                self.feed(Input::ChooseAnswer { request_id, item_id: items[0], origin: None })?;
            } else if let Some((request_id, _)) = self.engine.inspect().user_questions.first()
                && !self.engine.is_aborting()
            {
                let (request_id, answers) = (*request_id, vec![generators::user_answer()]);
                self.feed(Input::AnswerUser { request_id, answers, origin: None })?;
            } else if let Some(request_id) = self.engine.questions().first().copied()
                && !self.engine.is_aborting()
            {
                self.feed(Input::AnswerQuestion { request_id, choice: Choice::Continue, origin: None })?;
            } else if self.outstanding.is_empty() && self.helpers.is_empty() {
                break;
            } else {
                self.deliver_result(0, &outcome)?;
            }
        }
        property!(self.watch.turn.is_none(), "every turn ends once everything has come home");
        property!(self.queued.is_empty() && self.watch.queue.is_empty(), "every queued turn starts");
        property!(self.watch.helper.is_none(), "every helper comes to its end");
        let open =
            self.watch.items.values().any(|(_, status)| *status == types::session::ItemStatus::Running);
        property!(!open, "no item stays open");
        for submitted_text in &self.submitted_texts {
            let user_texts = self.watch.user_texts.iter().chain(&self.watch.forgotten);
            let times = user_texts.filter(|(_, user_text)| user_text.contains(submitted_text)).count();
            let is_rewound = times == 0 && self.watch.seen.contains("session.rewound");
            property!(
                times == 1 || is_rewound,
                "what people said is taken in once: {submitted_text}, {times}"
            );
        }
        Ok(())
    }
}
