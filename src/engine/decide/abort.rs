//! Stopping: abort and kill.

use crate::decide::plan::PlanBuilder;
use crate::decide::question::unknown;
use crate::input::Refusal;
use crate::output::Effect;
use crate::request::model_texts;
use crate::state::{Activity, CallStage, CallState};
use types::background::KilledBy;
use types::event::{DequeueReason, Event, SettledBy};
use types::ids::{CallId, TurnId};
use types::permission::{Decision, Scope};
use types::question::Choice;
use types::session::{SessionState, Subtype};
use types::tool::{ToolOutcome, ToolStatus};
use types::usage::ModelSnapshot;

impl PlanBuilder<'_> {
    /// Accepts an abort. If nothing runs, or an abort is in progress, there is nothing to decide.
    pub fn abort(&mut self, turn_id: Option<TurnId>, call_id: Option<CallId>) -> Result<(), Refusal> {
        let current = self.state.turn.as_ref().map(|turn| turn.id);
        let command = call_id.and_then(|call_id| self.state.running_command(call_id));
        if let Some(command) = command
            && (turn_id.is_none() || turn_id == current || turn_id == command.turn_id)
        {
            let call_id = command.known.call_id;
            self.stop_commands(KilledBy::Abort, |it| it.known.call_id == call_id);
            return Ok(());
        }
        if let Some(turn_id) =
            turn_id.filter(|id| call_id.is_none() && self.state.queue_position(*id).is_some())
        {
            self.dequeue(turn_id, DequeueReason::Aborted);
            return Ok(());
        }
        if turn_id.is_some() && turn_id != current {
            // If no turn runs, the named turn has ended. A repeated abort then succeeds without effect.
            return if current.is_none() { Ok(()) } else { Err(Refusal::StaleTurn { current }) };
        }
        if current.is_none() && call_id.is_none() && !self.state.subagents.is_empty() {
            self.add_effect(Effect::StopSubagents);
        }
        if current.is_none() || self.is_aborting() {
            return Ok(());
        }
        match call_id {
            Some(call_id) => self.abort_call(call_id),
            None => {
                self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::Aborted });
                self.stop_turn();
                Ok(())
            }
        }
    }

    fn abort_call(&mut self, call_id: CallId) -> Result<(), Refusal> {
        let Some(call) = self.state.call(call_id).cloned() else { return Err(Refusal::NoSuchCall) };
        match &call.stage {
            CallStage::Done { .. } => {}
            // The call was interrupted by a restart and does not run again yet, so there is no effect to stop.
            CallStage::Running { .. }
                if self.state.turn.as_ref().is_some_and(|turn| turn.restart.hold.is_some()) =>
            {
                self.withdraw_call(&call, model_texts::ABORTED);
            }
            CallStage::Running { .. } => self.add_effect(Effect::StopCall(call_id)),
            CallStage::Unknown { .. } => {
                self.settle_unknown(call_id, Choice::Abort, SettledBy::Abort);
                self.advance_tools();
            }
            CallStage::Requested
            | CallStage::Awaiting { .. }
            | CallStage::Asking(_)
            | CallStage::Ready { .. } => {
                self.withdraw_call(&call, model_texts::ABORTED_UNSTARTED);
                self.advance_tools();
            }
        }
        Ok(())
    }

    pub fn kill(&mut self) {
        if self.state.status == SessionState::Ended {
            return;
        }
        if self.state.turn.is_none() {
            self.end_session();
            self.stop_commands(KilledBy::Session, |_| true);
            if !self.state.subagents.is_empty() {
                self.add_effect(Effect::StopSubagents);
            }
        } else if !self.state.turn.as_ref().is_some_and(|turn| turn.stop.is_ending) {
            self.push_turn(Event::TurnAborting { ending: true, subtype: Subtype::Aborted });
            self.stop_turn();
        }
    }

    /// Writes the last event of a session; only events of its background commands may follow.
    pub fn end_session(&mut self) {
        self.drop_helper();
        self.push_session(Event::SessionEnded { reason: "killed".into() });
    }

    /// Whether a limit ends the turn, and not a user.
    fn is_stopped_by_limit(&self) -> bool {
        let ends_as = self.state.turn.as_ref().map(|turn| turn.stop.ends_as);
        !matches!(ends_as, None | Some(Subtype::Aborted | Subtype::PermissionDenied))
    }

    /// Stops all effects of the turn that is being aborted.
    pub fn stop_turn(&mut self) {
        self.add_effect(Effect::StopAll);
        if !self.state.subagents.is_empty() {
            self.add_effect(Effect::StopSubagents);
        }
        self.stop_aborted_commands();
    }

    /// Ends a call that never ran: settles its request, and gives the call a result with `text`.
    pub fn withdraw_call(&mut self, call: &CallState, text: &str) {
        let outcome = ToolOutcome { status: ToolStatus::Cancelled, ..ToolOutcome::failed("aborted", text) };
        self.close_call(call, outcome);
    }

    /// Ends a call with this result and settles its request.
    fn close_call(&mut self, call: &CallState, outcome: ToolOutcome) {
        let call_id = call.call.call_id;
        if let CallStage::Awaiting { request_id, .. } = call.stage {
            self.push_item(
                call.item_id,
                Event::PermissionResolved {
                    request_id,
                    call_id,
                    decision: Decision::Deny,
                    scope: Scope::Once,
                    grant: None,
                    feedback: None,
                    by: SettledBy::Abort,
                    rule: None,
                    updated_input: None,
                    prepared: None,
                    stop: false,
                    child_session_id: None,
                },
            );
        }
        self.withdraw_questions(call);
        if !call.has_begun() && self.finish_with_first_run(call_id, "aborted", model_texts::OUTSIDE_ABORTED) {
            return;
        }
        self.complete(call_id, outcome, 0);
    }

    /// Closes all open parts of the turn and ends it. Precondition: no effect of the turn runs.
    pub fn finish_stop(&mut self, model_snapshot: ModelSnapshot) {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.stop.is_aborting) else { return };
        let ends_as = turn.stop.ends_as;
        // The events that follow name the client that aborted as their origin.
        self.origin = turn.stop.aborted_by.clone();
        if self.keep_streamed_calls(model_snapshot, None) {
            // The answer ends with its complete calls. The loop below gives them their results.
        } else if let Some(Activity::Calling { partial, .. }) =
            self.state.turn.as_ref().map(|turn| turn.activity.clone())
        {
            if let Some(partial) = &partial {
                self.interrupt_message(partial, false);
            }
            // The provider charges for a request that was sent and partly answered.
            self.book_lost_attempt(partial.as_ref(), None, model_snapshot);
        }
        self.settle_paused(Choice::Abort, SettledBy::Abort);
        self.withdraw_feedback();
        self.close_lost_subagents();
        if self.is_stopped_by_limit() {
            self.keep_first_answer();
        }
        let lost = self.state.turn.as_ref().is_some_and(|turn| turn.restart.journal_truncated);
        for call in self.state.calls().to_vec() {
            match call.stage {
                CallStage::Done { .. } => {}
                // After a truncated journal, the lost end may contain the start of this call, so its
                // outcome is unknown.
                CallStage::Running { .. }
                | CallStage::Requested
                | CallStage::Awaiting { .. }
                | CallStage::Ready { .. }
                    if lost =>
                {
                    self.close_call(&call, unknown(""));
                }
                // The call no longer runs, but no result was reported.
                CallStage::Running { .. } if self.is_stopped_by_limit() => {
                    self.withdraw_call(&call, model_texts::STOPPED_BY_LIMIT);
                }
                CallStage::Running { .. } => self.withdraw_call(&call, model_texts::ABORTED),
                CallStage::Unknown { .. } => {
                    self.settle_unknown(call.call.call_id, Choice::Abort, SettledBy::Abort);
                }
                CallStage::Requested
                | CallStage::Awaiting { .. }
                | CallStage::Asking(_)
                | CallStage::Ready { .. } => {
                    self.withdraw_call(&call, model_texts::ABORTED_UNSTARTED);
                }
            }
        }
        let errors = self.budget_error(ends_as).into_iter().collect();
        self.finish_turn(ends_as, errors);
    }
}
