//! Recovery after a restart: pending requests stay pending, model calls are repeated, and a call that may have
//! run is never repeated without a decision.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::decide::question::unknown;
use crate::input::Recovery;
use crate::output::Effect;
use crate::request::model_texts;
use crate::request::repair_history::repair;
use crate::state::{Activity, CallStage, CallState, Hold};
use types::event::{Event, SettledBy};
use types::ids::{CallId, Seq};
use types::message::Message;
use types::permission::OnTimeout;
use types::question::Choice;
use types::session::{OnRestart, Subtype, TurnError};
use types::tool::{Inspection, PreparedCall, Subject, ToolOutcome};

/// Stable code of a turn that was resumed too often; it leaves the session `failed`.
pub(crate) const RESUMED_TOO_OFTEN: &str = "resumed_too_often";

impl PlanBuilder<'_> {
    /// Recovers the session: inspects the open parts of the turn and continues it. No effect of the session
    /// runs.
    pub fn recovered(&mut self, recovery: Recovery) {
        self.repair_history();
        // Read this first, because the following events clear the flag of the clean shutdown.
        let was_parked = self.state.turn.as_ref().is_some_and(|turn| turn.restart.parked);
        self.close_lost_commands();
        self.drop_helper();
        if !self.is_aborting() {
            self.follow_background_subagents();
        }
        let Some(turn) = self.state.turn.clone() else {
            // A crash cannot separate a turn's end and the next turn's start, because they are one
            // transaction. So only an ended session has a queue without a turn.
            if self.state.subagents.iter().any(|it| !it.background) {
                self.end_subagents();
            }
            return;
        };
        if turn.stop.is_aborting {
            // An aborted turn ends as aborted once the files of its interrupted edits are inspected.
            let ends = self.end_subagents();
            if !self.inspect_edits() && !ends {
                self.finish_stop(recovery.model_snapshot);
            }
            return;
        }
        if self.keep_streamed_calls(recovery.model_snapshot, None) {
            // The answer ends with its complete calls, and the turn continues with those calls.
        } else if let Activity::Calling { partial, .. } = &turn.activity {
            if let Some(partial) = partial {
                self.interrupt_message(partial, turn.restart.resumes < self.engine.settings.retry.resumes);
            }
            self.book_lost_attempt(partial.as_ref(), None, recovery.model_snapshot);
        }
        if self.paused_by().is_some() {
            return;
        }
        self.give_up_fetches();
        self.settle_kills();
        let lost: Vec<CallState> = self.state.calls().iter().filter(|call| is_lost(call)).cloned().collect();
        match self.unknown_outcome_policy() {
            UnknownOutcomePolicy::Fail if !lost.is_empty() => {
                self.give_up_unknown(&lost);
                return;
            }
            about => lost.iter().for_each(|call| self.treat_unknown(call, "", about)),
        }
        if !self.can_continue_without_user() {
            return;
        }
        let policy = self.state.spec.on_restart.unwrap_or(self.engine.settings.on_restart);
        if policy == OnRestart::Pause {
            self.ask_to_resume();
            return;
        }
        self.resume(turn.restart.resumes, was_parked);
    }

    /// Parks the session for a clean shutdown. `turn.parked` records that the turn did not cause the
    /// stop, so its resume is not counted. `helped` says that a helper call was running.
    pub fn park_session(&mut self, helped: bool) {
        if helped {
            self.drop_helper();
        } else {
            self.drop_unsent_helper();
        }
        if self.state.turn.is_some() && !self.is_aborting() {
            self.push_turn(Event::TurnParked {});
        }
    }

    /// Repairs an invalid history and reports the changes.
    pub fn repair_history(&mut self) {
        let transcript: Vec<_> = self.state.transcript.iter().cloned().collect();
        // While an answer is streaming, its message is not in the transcript. Calls of a slash command have none.
        let has_message = !self.is_streaming() && !self.is_expanding();
        let open = has_message && self.state.calls().iter().any(|call| !call.is_done());
        let settled = transcript.len() - usize::from(open && !transcript.is_empty());
        let (settled, open) = transcript.split_at(settled);
        let Some(repaired) = repair(settled) else { return };
        let same = settled.iter().zip(&repaired.messages).take_while(|(old, new)| ***old == **new);
        let kept_count = same.count();
        let mut messages: Vec<Message> = repaired.messages.into_iter().skip(kept_count).collect();
        messages.extend(open.iter().map(|message| (**message).clone()));
        self.push_session(Event::HistoryRepaired {
            kept_messages: kept_count as u64,
            messages,
            changes: repaired.changes,
        });
    }

    /// Whether the turn can continue without a decision of the user.
    fn can_continue_without_user(&self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        if matches!(turn.activity, Activity::Choosing { .. }) {
            return false;
        }
        let calls = self.state.calls();
        let moves = |call: &CallState| matches!(call.stage, CallStage::Requested | CallStage::Running { .. });
        calls.is_empty()
            || matches!(turn.restart.hold, Some(Hold::Wait { .. }))
            || calls.iter().all(CallState::is_done)
            || calls.iter().any(moves)
            || !self.startable_calls().is_empty()
    }

    /// Counts a resume and continues, at once or after a wait. A turn that was resumed too often ends. A resume
    /// after a clean shutdown is not counted and does not wait.
    fn resume(&mut self, resumes: u32, was_parked: bool) {
        let retry = &self.engine.settings.retry;
        if was_parked {
            self.push_turn(Event::TurnResumed { resumes, delay_ms: 0 });
            self.continue_turn();
            return;
        }
        if resumes >= retry.resumes {
            let message =
                format!("the daemon stopped {} times during this turn; it is not resumed again", resumes + 1);
            let error = TurnError::new(RESUMED_TOO_OFTEN, message);
            // Every call needs its result before the turn ends, or every later request is invalid.
            self.close_after_restart();
            self.finish_turn(Subtype::ErrorDuringExecution, vec![error]);
            return;
        }
        let delay_ms = match resumes {
            0 => 0,
            again => retry.resume_base_ms.saturating_mul(1 << (again - 1).min(20)),
        };
        let token = self.push_turn(Event::TurnResumed { resumes: resumes + 1, delay_ms });
        if delay_ms == 0 {
            self.continue_turn();
        } else {
            self.add_effect(Effect::Sleep { token, delay_ms });
        }
    }

    /// Handles the end of the wait before a resume.
    pub fn end_resume_wait(&mut self, token: Seq) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        if turn.stop.is_aborting || turn.restart.hold != Some(Hold::Wait { token }) {
            return false;
        }
        if !self.state.calls().is_empty() {
            // This phase event ends the hold for readers of the journal. A model call needs none,
            // because its own event ends the hold.
            self.push_phase(types::event::Phase::ToolExecution, turn.step);
        }
        self.continue_turn();
        true
    }

    /// Continues the turn from its last activity.
    pub fn continue_turn(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let step = turn.step;
        match turn.activity.clone() {
            Activity::Context if turn.is_expanding => {
                let calls = turn.calls.clone();
                self.go_on_with_tools(&calls);
            }
            Activity::Context => self.prepare_context(step),
            Activity::Calling { .. } | Activity::Waiting { .. } => {
                if !self.continue_backoff() {
                    if !self.awaits_second_answer() {
                        self.deliver_steered();
                    }
                    self.call_model_step(step);
                }
            }
            Activity::Choosing { .. } => {}
            Activity::Tools if !turn.calls.is_empty() => {
                let calls = turn.calls.clone();
                self.go_on_with_tools(&calls);
            }
            Activity::Tools => {
                self.deliver_steered();
                self.call_model();
            }
        }
    }

    fn go_on_with_tools(&mut self, calls: &[CallState]) {
        if self.check_time() {
            return;
        }
        // Calls that were running and may be repeated run again: their start is already in the journal.
        for call in calls {
            if let CallStage::Running { prepared, .. } = &call.stage
                && can_be_repeated(prepared)
                && !prepared.is_task()
            {
                let (call, prepared) = (call.effective_call(), Arc::clone(prepared));
                self.add_effect(Effect::RunTool { call, prepared });
            }
        }
        self.follow_subagents();
        self.inspect_edits();
        self.prepare_open_calls();
        // Calls that were allowed while their answer was streaming need not wait for the others.
        self.advance_tools();
    }

    /// Completes calls that were ending background commands, because the restart has ended those commands.
    fn settle_kills(&mut self) {
        for call in self.state.calls().to_vec() {
            if matches!(&call.stage, CallStage::Running { prepared, .. } if is_kill(prepared)) {
                self.complete(call.call.call_id, ToolOutcome::completed(model_texts::KILLED_BY_RESTART), 0);
            }
        }
    }

    /// Fails interrupted fetches. A fetch is not repeated without permission, and it needs no question,
    /// because it changed nothing on this machine.
    fn give_up_fetches(&mut self) {
        for call in self.state.calls().to_vec() {
            if matches!(&call.stage, CallStage::Running { prepared, .. } if is_fetch(prepared)) {
                let outcome = ToolOutcome::failed("interrupted", model_texts::FETCH_LOST);
                self.complete(call.call.call_id, outcome, 0);
            }
        }
    }

    /// Inspects the files that interrupted calls were to change. Returns whether there are such calls.
    fn inspect_edits(&mut self) -> bool {
        let edits: Vec<_> = self
            .state
            .calls()
            .iter()
            .filter_map(|call| match &call.stage {
                CallStage::Running { prepared, .. } if is_edit(prepared) => {
                    Some((call.effective_call(), Arc::clone(prepared)))
                }
                _ => None,
            })
            .collect();
        let any = !edits.is_empty();
        for (call, prepared) in edits {
            self.add_effect(Effect::Inspect { call, prepared });
        }
        any
    }

    /// Uses the file's content to determine whether its change took effect.
    pub fn apply_inspection(&mut self, call_id: CallId, inspection: Inspection) {
        let Some(call) = self.state.call(call_id).cloned() else { return };
        let CallStage::Running { prepared, .. } = &call.stage else { return };
        if !is_edit(prepared) {
            return;
        }
        match inspection {
            Inspection::Done { records, changes } => {
                let outcome =
                    ToolOutcome { reads: records, changes, ..ToolOutcome::completed(model_texts::EDIT_DONE) };
                self.complete(call_id, outcome, 0);
            }
            Inspection::Partly { records, changes, text } => {
                let result_text = format!("{}{text}", model_texts::EDIT_PARTLY_DONE);
                let outcome = ToolOutcome {
                    reads: records,
                    changes,
                    ..ToolOutcome::failed("partly_done", result_text)
                };
                self.complete(call_id, outcome, 0);
            }
            Inspection::NotDone => {
                let outcome = ToolOutcome::failed("not_done", model_texts::EDIT_NOT_DONE);
                self.complete(call_id, outcome, 0);
            }
            Inspection::Conflict(_) if self.is_aborting() => {}
            Inspection::Conflict(why) => match self.unknown_outcome_policy() {
                UnknownOutcomePolicy::Fail => {
                    self.give_up_unknown(&[call]);
                    return;
                }
                about => self.treat_unknown(&call, &format!(": {why}"), about),
            },
        }
        if !self.is_aborting() {
            self.advance_tools();
        }
    }

    /// The handling of a call with unknown outcome: an attended session asks the user, an unattended one
    /// follows its policy.
    fn unknown_outcome_policy(&self) -> UnknownOutcomePolicy {
        match self.engine.settings.unattended.on_timeout {
            _ if !self.state.spec.background => UnknownOutcomePolicy::Ask,
            OnTimeout::Pause => UnknownOutcomePolicy::Ask,
            OnTimeout::Deny | OnTimeout::AllowReadOnly => UnknownOutcomePolicy::Tell,
            OnTimeout::Fail => UnknownOutcomePolicy::Fail,
        }
    }

    fn treat_unknown(&mut self, call: &CallState, why: &str, about: UnknownOutcomePolicy) {
        let CallStage::Running { output, .. } = &call.stage else { return };
        match about {
            UnknownOutcomePolicy::Tell => self.complete(call.call.call_id, unknown(&output.text()), 0),
            UnknownOutcomePolicy::Ask | UnknownOutcomePolicy::Fail => self.ask_about(call, why),
        }
    }

    /// Ends a turn that cannot ask the user and must not continue. The model learns the reason with the
    /// next submit.
    fn give_up_unknown(&mut self, lost: &[CallState]) {
        self.close_after_restart();
        let names: Vec<&str> = lost.iter().map(|call| call.call.tool.as_str()).collect();
        let message = format!(
            "the daemon stopped while {} may have been running; the outcome is unknown. \
             Check, then submit again: the model is told",
            names.join(", ")
        );
        let error = TurnError::new("unknown_outcome", message);
        self.finish_turn(Subtype::ErrorDuringExecution, vec![error]);
    }

    /// Gives every open call the result that fits a turn ended by a restart.
    fn close_after_restart(&mut self) {
        self.end_subagents();
        for call in self.state.calls().to_vec() {
            let call_id = call.call.call_id;
            match &call.stage {
                CallStage::Done { .. } => {}
                CallStage::Unknown { .. } => self.settle_unknown(call_id, Choice::Abort, SettledBy::Abort),
                CallStage::Running { prepared, .. } if prepared.is_task() => {
                    self.withdraw_call(&call, model_texts::LOST_RESTART);
                }
                CallStage::Running { prepared, output, .. } if !prepared.read_only => {
                    self.complete(call_id, unknown(&output.text()), 0);
                }
                CallStage::Running { .. } => self.withdraw_call(&call, model_texts::LOST_RESTART),
                CallStage::Requested
                | CallStage::Awaiting { .. }
                | CallStage::Asking(_)
                | CallStage::Ready { .. } => {
                    self.withdraw_call(&call, model_texts::NOT_RUN_RESTART);
                }
            }
        }
    }
}

/// The handling of a call whose outcome is unknown.
#[derive(Clone, Copy)]
enum UnknownOutcomePolicy {
    /// The user decides, and the turn waits.
    Ask,
    /// The model receives a result that explains this, and the turn continues.
    Tell,
    /// The turn ends.
    Fail,
}

/// Whether a call may have been running, and no file shows its outcome.
fn is_lost(call: &CallState) -> bool {
    matches!(
        &call.stage,
        CallStage::Running { prepared, .. }
            if !can_be_repeated(prepared) && !is_edit(prepared) && !prepared.is_task()
    )
}

/// Whether a call can run twice: it changes nothing, or it sets a value of the session to the same value again.
fn can_be_repeated(prepared: &PreparedCall) -> bool {
    prepared.read_only || matches!(prepared.subject, Subject::Session { .. })
}

fn is_fetch(prepared: &PreparedCall) -> bool {
    matches!(prepared.subject, Subject::Web { .. })
}

fn is_kill(prepared: &PreparedCall) -> bool {
    !prepared.read_only && matches!(prepared.subject, Subject::Background { .. })
}

fn is_edit(prepared: &PreparedCall) -> bool {
    !prepared.read_only && prepared.subject.changes_files()
}
