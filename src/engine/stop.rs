//! Stopping: abort, kill, and picking up after a restart.

use super::input::Refusal;
use super::plan::{Draft, Effect};
use super::state::{Activity, Call, Stage};
use super::words;
use crate::types::event::{Event, SettledBy};
use crate::types::ids::{CallId, TurnId};
use crate::types::permission::{Decision, Scope};
use crate::types::session::{SessionState, Subtype, TurnError};
use crate::types::tool::{ToolOutcome, ToolStatus};

impl Draft<'_> {
    /// Accepts an abort. Nothing runs, or an abort is under way: nothing to decide.
    pub fn abort(&mut self, turn_id: Option<TurnId>, call_id: Option<CallId>) -> Result<(), Refusal> {
        let current = self.state.turn.as_ref().map(|turn| turn.id);
        if turn_id.is_some() && turn_id != current {
            // The turn that was meant is over: aborting it again is the same as once.
            return if current.is_none() { Ok(()) } else { Err(Refusal::StaleTurn { current }) };
        }
        if current.is_none() || self.is_aborting() {
            return Ok(());
        }
        match call_id {
            Some(call_id) => self.abort_call(call_id),
            None => {
                self.push_turn(Event::TurnAborting { ending: false });
                self.effect(Effect::StopAll);
                Ok(())
            }
        }
    }

    fn abort_call(&mut self, call_id: CallId) -> Result<(), Refusal> {
        let Some(call) = self.state.call(call_id).cloned() else { return Err(Refusal::NoSuchCall) };
        match &call.stage {
            Stage::Done { .. } => {}
            Stage::Running { .. } => self.effect(Effect::StopCall(call_id)),
            Stage::Requested | Stage::Awaiting { .. } | Stage::Ready { .. } => {
                self.withdraw(&call, words::ABORTED_UNSTARTED);
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
            self.push_session(Event::SessionEnded { reason: "killed".into() });
        } else if !self.state.turn.as_ref().is_some_and(|turn| turn.ending) {
            self.push_turn(Event::TurnAborting { ending: true });
            self.effect(Effect::StopAll);
        }
    }

    /// Ends a call that never ran: its request is settled, its result says so.
    fn withdraw(&mut self, call: &Call, text: &str) {
        let call_id = call.call.call_id;
        if let Stage::Awaiting { request_id, .. } = call.stage {
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
                },
            );
        }
        let outcome = ToolOutcome { status: ToolStatus::Cancelled, ..ToolOutcome::failed("aborted", text) };
        self.complete(call_id, outcome, 0);
    }

    /// Nothing of the turn runs any more: close what is open and end it.
    pub fn stopped(&mut self) {
        if !self.is_aborting() {
            return;
        }
        if let Some(Activity::Calling { partial: Some(partial), .. }) =
            self.state.turn.as_ref().map(|turn| turn.activity.clone())
        {
            self.interrupt_message(&partial);
        }
        for call in self.state.calls().to_vec() {
            match call.stage {
                Stage::Done { .. } => {}
                // Its end was not heard, though nothing of it is left.
                Stage::Running { .. } => self.withdraw(&call, words::ABORTED),
                Stage::Requested | Stage::Awaiting { .. } | Stage::Ready { .. } => {
                    self.withdraw(&call, words::ABORTED_UNSTARTED);
                }
            }
        }
        self.finish(Subtype::Aborted, Vec::new());
    }

    /// After a restart: what was pending stays pending, what was asked is asked again, and what may
    /// have happened is never done again by itself (S3, S4, S7).
    pub fn recovered(&mut self) {
        let Some(turn) = self.state.turn.clone() else {
            // A crash between a turn's end and the next one's beginning cannot be: both are one
            // transaction. A queue without a turn is an ended session's.
            return;
        };
        if turn.aborting {
            self.stopped();
            return;
        }
        if let Activity::Tools { calls } = &turn.activity
            && !calls.is_empty()
        {
            self.recover_tools(calls);
            return;
        }
        if let Activity::Calling { partial: Some(partial), .. } = &turn.activity {
            self.interrupt_message(partial);
        }
        if !self.resume(turn.resumes) {
            return;
        }
        match turn.activity {
            Activity::Context => {
                if self.state.system.is_some() {
                    self.call_model();
                } else {
                    self.effect(Effect::GatherContext);
                }
            }
            Activity::Calling { .. } | Activity::Waiting { .. } => self.call_model_step(turn.step),
            Activity::Tools { .. } => self.call_model(),
        }
    }

    /// Counts a resume; a turn that was resumed too often ends instead.
    fn resume(&mut self, resumes: u32) -> bool {
        if resumes >= self.engine.settings.max_resumes {
            let message =
                format!("the daemon stopped {} times during this turn; it is not resumed again", resumes + 1);
            self.finish(
                Subtype::ErrorDuringExecution,
                vec![TurnError { kind: "resumed_too_often".into(), message }],
            );
            return false;
        }
        self.push_turn(Event::TurnResumed { resumes: resumes + 1 });
        true
    }

    /// Gives every open call the result that fits a turn which a restart has ended.
    fn close_after_restart(&mut self, calls: &[Call]) {
        for call in calls {
            match &call.stage {
                Stage::Done { .. } => {}
                Stage::Running { prepared, .. } if !prepared.read_only => {
                    let outcome = ToolOutcome {
                        status: ToolStatus::Unknown,
                        ..ToolOutcome::failed("unknown_outcome", words::UNKNOWN)
                    };
                    self.complete(call.call.call_id, outcome, 0);
                }
                Stage::Running { .. } => self.withdraw(call, words::LOST_RESTART),
                Stage::Requested | Stage::Awaiting { .. } | Stage::Ready { .. } => {
                    self.withdraw(call, words::NOT_RUN_RESTART);
                }
            }
        }
    }

    fn recover_tools(&mut self, calls: &[Call]) {
        let is_lost =
            |call: &&Call| matches!(&call.stage, Stage::Running { prepared, .. } if !prepared.read_only);
        let lost: Vec<Call> = calls.iter().filter(is_lost).cloned().collect();
        if !lost.is_empty() {
            self.close_after_restart(calls);
            let names: Vec<&str> = lost.iter().map(|call| call.call.tool.as_str()).collect();
            let message = format!(
                "the daemon stopped while {} may have been running; the outcome is unknown. \
                 Check, then submit again: the model is told",
                names.join(", ")
            );
            let error = TurnError { kind: "unknown_outcome".into(), message };
            self.finish(Subtype::ErrorDuringExecution, vec![error]);
            return;
        }
        let waits_only = calls.iter().all(|call| {
            matches!(call.stage, Stage::Awaiting { .. } | Stage::Done { .. } | Stage::Ready { .. })
        });
        if !waits_only {
            let resumes = self.state.turn.as_ref().map_or(0, |turn| turn.resumes);
            if resumes >= self.engine.settings.max_resumes {
                // Every call needs its result before the turn ends, or no later request is valid.
                self.close_after_restart(calls);
            }
            if !self.resume(resumes) {
                return;
            }
        }
        // Read-only calls that were running run again: their intent is on disk already.
        for call in calls {
            if let Stage::Running { prepared, .. } = &call.stage {
                let (call, prepared) = (std::sync::Arc::clone(&call.call), std::sync::Arc::clone(prepared));
                self.effect(Effect::RunTool { call, prepared });
            }
        }
        self.prepare_open_calls();
        let looked_at = !self.state.calls().iter().any(|call| call.stage == Stage::Requested);
        if looked_at {
            self.advance_tools();
        }
    }
}
