//! Which judged calls start now: a change never runs in parallel.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::output::Effect;
use crate::request::model_texts;
use crate::state::{Activity, CallStage, CallState};
use types::event::Event;
use types::ids::{CallId, ItemId, TurnId};
use types::message::ToolCall;
use types::permission::{Mode, Verdict, VerdictKind};
use types::session::Subtype;
use types::tool::{Access, PreparedCall, ToolOutcome};

/// A call that may start now.
#[derive(Clone)]
pub(crate) struct StartableCall {
    pub call: Arc<ToolCall>,
    pub item_id: ItemId,
    pub prepared: Arc<PreparedCall>,
    pub allowed_by: String,
    /// The folder and the digest that the user allowed.
    pub bound: Option<(String, String)>,
}

impl PlanBuilder<'_> {
    /// Calls that may start now, in order.
    pub fn startable_calls(&self) -> Vec<StartableCall> {
        let serial = self.state.safe_mode();
        let limit = self.engine.parallel_tools();
        let mut running =
            self.state.calls().iter().filter(|call| matches!(call.stage, CallStage::Running { .. })).count();
        let mut before: Vec<Access<'_>> = Vec::new();
        let mut start = Vec::new();
        for call in self.state.calls() {
            let (prepared, ready) = match &call.stage {
                CallStage::Done { .. } => continue,
                CallStage::Requested | CallStage::Asking(_) | CallStage::Unknown { .. } => (None, None),
                CallStage::Awaiting { prepared, .. } | CallStage::Running { prepared, .. } => {
                    (Some(prepared), None)
                }
                CallStage::Ready { prepared, allowed_by, bound, .. } => {
                    (Some(prepared), Some((Arc::clone(prepared), allowed_by.clone(), bound.clone())))
                }
            };
            let access = prepared.filter(|_| !serial).map_or(Access::Everything, |it| it.access());
            let free = !before.iter().any(|earlier| earlier.conflicts_with(&access));
            if let Some((prepared, allowed_by, bound)) = ready
                && free
                && running < limit
            {
                running += 1;
                start.push(StartableCall {
                    call: call.effective_call(),
                    item_id: call.item_id,
                    prepared,
                    allowed_by,
                    bound,
                });
            }
            before.push(access);
        }
        start
    }

    /// Refuses an allowed call whose digest differs from the one that the user saw, because its folder has
    /// changed since. The next call may become startable then. Returns `false` if no call was refused.
    fn refuse_stale(&mut self) -> bool {
        let moved = self.startable_calls().into_iter().find_map(|ready| {
            let (folder, digest) = ready.bound?;
            (self.state.digest(&ready.call) != digest).then_some((ready.call.call_id, folder))
        });
        let Some((call_id, then)) = moved else { return false };
        let now = self.state.cwd.to_string_lossy().into_owned();
        if !self.finish_with_first_run(
            call_id,
            "folder_changed",
            &model_texts::outside_folder_changed(&then, &now),
        ) {
            let outcome = ToolOutcome::failed("folder_changed", model_texts::folder_changed(&then, &now));
            self.complete(call_id, outcome, 0);
        }
        true
    }

    /// The startable calls whose verdict holds now. A call that was allowed before this decision has waited, so
    /// the rules may have changed: its verdict is asked for again, and it starts when the answer is here.
    fn checked_startable_calls(&mut self) -> Vec<StartableCall> {
        let (mut start, mut waited) = (Vec::new(), Vec::new());
        for mut ready in self.startable_calls() {
            let call_id = ready.call.call_id;
            let before = self.engine.state.call(call_id);
            let has_waited = before.is_some_and(|call| matches!(call.stage, CallStage::Ready { .. }));
            match self.checked.iter().find(|(checked, _)| *checked == call_id) {
                Some((_, allowed_by)) => {
                    ready.allowed_by.clone_from(allowed_by);
                    start.push(ready);
                }
                None if has_waited => waited.push((ready.call, ready.prepared)),
                None => start.push(ready),
            }
        }
        let is_asked = |effect: &Effect| matches!(effect, Effect::CheckRules { .. });
        if let Some(turn_id) = self.state.turn.as_ref().map(|turn| turn.id)
            && !waited.is_empty()
            && !self.plan.effects.iter().any(is_asked)
        {
            self.add_effect(Effect::CheckRules { turn_id, calls: waited });
        }
        start
    }

    /// Acts on new verdicts of calls that waited. A user's answer to this very call outlasts a rule that asks, but
    /// no rule that denies.
    pub fn rules_checked(&mut self, turn_id: TurnId, mode: Mode, verdicts: Vec<(CallId, Verdict)>) {
        let current = self.state.turn.as_ref().filter(|turn| turn.id == turn_id && !turn.stop.is_aborting);
        let Some(current) = current else { return };
        let waits = |call: &CallState| matches!(call.stage, CallStage::Ready { .. });
        if !verdicts.iter().any(|(call_id, _)| self.state.call(*call_id).is_some_and(waits)) {
            return;
        }
        // If a client changed the mode meanwhile, `advance_tools` asks again.
        let is_current = current.settings.mode == mode;
        for (call_id, verdict) in verdicts.into_iter().filter(|_| is_current) {
            let Some(call) = self.state.call(call_id).cloned() else { continue };
            let CallStage::Ready { prepared, allowed_by, answered, .. } = &call.stage else { continue };
            match verdict.verdict {
                VerdictKind::Allow if !answered => {
                    self.checked.push((call_id, verdict.rule.unwrap_or(verdict.reason)));
                }
                VerdictKind::Allow => self.checked.push((call_id, allowed_by.clone())),
                VerdictKind::Ask if *answered => self.checked.push((call_id, allowed_by.clone())),
                // The sandbox blocked the first run of this call, so its result exists.
                VerdictKind::Ask | VerdictKind::Deny if call.blocked_run.is_some() => {
                    let text = model_texts::denied_by_rule(&verdict.reason);
                    self.finish_with_first_run(call_id, "denied_by_rule", &text);
                }
                VerdictKind::Ask | VerdictKind::Deny => {
                    let prepared = PreparedCall::clone(prepared);
                    self.apply_verdict(&call, prepared, verdict, call.edited.clone());
                }
            }
        }
        self.advance_tools();
    }

    /// Starts the startable calls. Calls the model again once every call has its result. Does nothing
    /// while recovery holds the turn.
    pub fn advance_tools(&mut self) {
        if self.state.turn.as_ref().is_none_or(|turn| turn.restart.hold.is_some()) {
            return;
        }
        // A refusal can make another call startable, so repeat until neither check refuses anything.
        while self.refuse_stale() || self.refuse_over_limit() || self.refuse_subagent() {}
        if self.is_out_of_time() && !self.startable_calls().is_empty() {
            self.stop_for(Subtype::ErrorMaxTime);
            return;
        }
        let (startable, mut has_refused) = (self.checked_startable_calls(), false);
        let mut tasks = startable.iter().filter(|it| it.prepared.is_task()).count() as u64;
        for startable in startable {
            let StartableCall { call, item_id, prepared, allowed_by, .. } = startable.clone();
            let share = match prepared.is_task() {
                true => {
                    tasks -= 1;
                    let share = self.share_for_subagent(call.call_id, tasks + 1);
                    if share.is_none() {
                        has_refused = true;
                        continue;
                    }
                    share
                }
                false => None,
            };
            let attempt =
                if self.state.call(call.call_id).is_some_and(|it| it.blocked_run.is_some()) { 2 } else { 1 };
            self.push_item(
                item_id,
                Event::ToolStarted {
                    call_id: call.call_id,
                    tool: call.tool.clone(),
                    allowed_by,
                    read_only: prepared.read_only,
                    change: prepared.change.clone(),
                    sandbox: prepared.sandbox,
                    attempt,
                },
            );
            if let Some(share) = share {
                self.start_subagent(&startable, share);
                continue;
            }
            self.add_effect(Effect::RunTool { call, prepared });
        }
        if has_refused {
            // Another call may have waited for a call that was refused.
            self.advance_tools();
            return;
        }
        self.prepare_next();
        if self.is_expanding() {
            self.advance_expansion();
            return;
        }
        let all_done = self.state.turn.as_ref().is_some_and(|turn| {
            turn.activity == Activity::Tools
                && !turn.calls.is_empty()
                && turn.calls.iter().all(CallState::is_done)
        });
        if all_done {
            self.summarize_calls();
            self.remind_of_matches();
            self.remind_of_todos();
            self.remind_of_repetition();
            if self.stop_repetition() {
                return;
            }
            self.deliver_steered();
            self.call_model();
        }
    }
}
