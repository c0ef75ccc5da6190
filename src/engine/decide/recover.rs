//! Picking a session up after a restart: what was pending stays pending, what was asked is asked
//! again, and what may have happened is never done again by itself (S3, S4, S7).

use std::sync::Arc;

use crate::engine::decide::plan::{Effect, PlanBuilder};
use crate::engine::decide::question::unknown;
use crate::engine::input::Recovery;
use crate::engine::request::model_texts;
use crate::engine::request::repair_history::repair;
use crate::engine::state::{Activity, Call, Hold, Stage};
use crate::types::event::{Event, SettledBy};
use crate::types::ids::{CallId, Seq};
use crate::types::message::Message;
use crate::types::permission::OnTimeout;
use crate::types::question::Choice;
use crate::types::session::{OnRestart, Subtype, TurnError};
use crate::types::tool::{Inspection, PreparedCall, Subject, ToolOutcome};

impl PlanBuilder<'_> {
    /// Nothing of the session runs: looks at what there is and goes on with it.
    pub fn recovered(&mut self, recovery: Recovery) {
        self.repair_history();
        // Whatever is found out now, the stop was in good order.
        let was_parked = self.state.turn.as_ref().is_some_and(|turn| turn.parked);
        self.close_lost_commands();
        self.drop_helper(true);
        let Some(turn) = self.state.turn.clone() else {
            // A crash between a turn's end and the next one's beginning cannot be: both are one
            // transaction. A queue without a turn is an ended session's.
            return;
        };
        if turn.aborting {
            // What a person stopped stays stopped, once it is known what became of a file.
            if !self.inspect_edits() {
                self.stopped(recovery.terms);
            }
            return;
        }
        if let Activity::Calling { partial, .. } = &turn.activity {
            if let Some(partial) = partial {
                self.interrupt_message(partial, turn.resumes < self.engine.settings.max_resumes);
            }
            self.book_lost_attempt(partial.as_ref(), None, recovery.terms);
        }
        if self.paused_by().is_some() {
            return;
        }
        self.give_up_fetches();
        self.settle_kills();
        let lost: Vec<Call> = self.state.calls().iter().filter(|call| is_lost(call)).cloned().collect();
        match self.about_unknown() {
            AboutUnknown::Fail if !lost.is_empty() => {
                self.give_up_unknown(&lost);
                return;
            }
            about => lost.iter().for_each(|call| self.treat_unknown(call, "", about)),
        }
        if !self.goes_on_by_itself() {
            return;
        }
        let policy = self.state.spec.on_restart.unwrap_or(self.engine.settings.on_restart);
        if policy == OnRestart::Pause {
            self.ask_to_resume();
            return;
        }
        self.resume(turn.resumes, was_parked);
    }

    /// A stop in good order: a turn that cannot have been its cause is not charged for it (S7).
    /// `helped`: a helper's call was under way.
    pub fn parked(&mut self, helped: bool) {
        self.drop_helper(helped);
        if self.state.turn.is_some() && !self.is_aborting() {
            self.push_turn(Event::TurnParked {});
        }
    }

    /// Mends a history that breaks the rules, and says so (S5).
    fn repair_history(&mut self) {
        let transcript: Vec<_> = self.state.transcript.iter().cloned().collect();
        let open = self.state.calls().iter().any(|call| !call.is_done());
        let settled = transcript.len() - usize::from(open && !transcript.is_empty());
        let (settled, open) = transcript.split_at(settled);
        let Some(repaired) = repair(settled) else { return };
        let same = settled.iter().zip(&repaired.messages).take_while(|(old, new)| ***old == **new);
        let kept = same.count();
        let mut messages: Vec<Message> = repaired.messages.into_iter().skip(kept).collect();
        messages.extend(open.iter().map(|message| (**message).clone()));
        self.push_session(Event::HistoryRepaired { kept: kept as u64, messages, changes: repaired.changes });
    }

    /// Whether there is something to do that no person has to decide first.
    fn goes_on_by_itself(&self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        let calls = self.state.calls();
        let moves = |call: &Call| matches!(call.stage, Stage::Requested | Stage::Running { .. });
        calls.is_empty()
            || matches!(turn.hold, Some(Hold::Wait { .. }))
            || calls.iter().all(Call::is_done)
            || calls.iter().any(moves)
            || !self.startable().is_empty()
    }

    /// Counts a resume and goes on, at once or after a while; a turn that was resumed too often ends.
    /// One after a stop in good order is not counted and does not wait.
    fn resume(&mut self, resumes: u32, was_parked: bool) {
        let settings = &self.engine.settings;
        if was_parked {
            self.push_turn(Event::TurnResumed { resumes, delay_ms: 0 });
            self.go_on();
            return;
        }
        if resumes >= settings.max_resumes {
            let message =
                format!("the daemon stopped {} times during this turn; it is not resumed again", resumes + 1);
            let error = TurnError::new("resumed_too_often", message);
            // Every call needs its result before the turn ends, or no later request is valid.
            self.close_after_restart();
            self.finish(Subtype::ErrorDuringExecution, vec![error]);
            return;
        }
        let delay_ms = match resumes {
            0 => 0,
            again => settings.resume_base_ms.saturating_mul(1 << (again - 1).min(20)),
        };
        let token = self.push_turn(Event::TurnResumed { resumes: resumes + 1, delay_ms });
        if delay_ms == 0 {
            self.go_on();
        } else {
            self.effect(Effect::Sleep { token, delay_ms });
        }
    }

    /// The wait before a resume is over.
    pub fn wait_is_over(&mut self, token: Seq) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        if turn.aborting || turn.hold != Some(Hold::Wait { token }) {
            return false;
        }
        if !self.state.calls().is_empty() {
            // Ends the hold for whoever reads the journal; a model call says so by itself.
            let (phase, step) = (crate::types::event::Phase::ToolExecution, turn.step);
            self.push_turn(Event::TurnPhase { phase, step });
        }
        self.go_on();
        true
    }

    /// Goes on where the turn was.
    pub fn go_on(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let step = turn.step;
        match turn.activity.clone() {
            Activity::Context if self.state.system.is_none() => {
                self.push_turn(Event::TurnPhase { phase: crate::types::event::Phase::Context, step });
                self.effect(Effect::GatherContext);
            }
            Activity::Calling { .. } | Activity::Waiting { .. } => {
                if !self.continue_backoff() {
                    self.deliver_steered();
                    self.call_model_step(step);
                }
            }
            Activity::Tools { calls } if !calls.is_empty() => self.go_on_with_tools(&calls),
            Activity::Context | Activity::Tools { .. } => {
                self.deliver_steered();
                self.call_model();
            }
        }
    }

    fn go_on_with_tools(&mut self, calls: &[Call]) {
        // Read-only calls that were running run again: their intent is on disk already.
        for call in calls {
            if let Stage::Running { prepared, .. } = &call.stage
                && prepared.read_only
            {
                let (call, prepared) = (call.effective(), Arc::clone(prepared));
                self.effect(Effect::RunTool { call, prepared });
            }
        }
        self.inspect_edits();
        self.prepare_open_calls();
        if !self.state.calls().iter().any(|call| call.stage == Stage::Requested) {
            self.advance_tools();
        }
    }

    /// Whatever it was to end, the restart has ended.
    fn settle_kills(&mut self) {
        for call in self.state.calls().to_vec() {
            if matches!(&call.stage, Stage::Running { prepared, .. } if is_kill(prepared)) {
                self.complete(call.call.call_id, ToolOutcome::completed(model_texts::KILLED_BY_RESTART), 0);
            }
        }
    }

    /// A page that was being fetched is not fetched again by itself, and there is nothing to decide
    /// about it either: it changed nothing here.
    fn give_up_fetches(&mut self) {
        for call in self.state.calls().to_vec() {
            if matches!(&call.stage, Stage::Running { prepared, .. } if is_fetch(prepared)) {
                let outcome = ToolOutcome::failed("interrupted", model_texts::FETCH_LOST);
                self.complete(call.call.call_id, outcome, 0);
            }
        }
    }

    /// Has the files looked at that interrupted calls were to change; whether there are any.
    fn inspect_edits(&mut self) -> bool {
        let edits: Vec<_> = self
            .state
            .calls()
            .iter()
            .filter_map(|call| match &call.stage {
                Stage::Running { prepared, .. } if is_edit(prepared) => {
                    Some((call.effective(), Arc::clone(prepared)))
                }
                _ => None,
            })
            .collect();
        let any = !edits.is_empty();
        for (call, prepared) in edits {
            self.effect(Effect::Inspect { call, prepared });
        }
        any
    }

    /// The file itself says what became of a change of it (S4).
    pub fn inspected(&mut self, call_id: CallId, inspection: Inspection) {
        let Some(call) = self.state.call(call_id).cloned() else { return };
        let Stage::Running { prepared, .. } = &call.stage else { return };
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
                let told = format!("{}{text}", model_texts::EDIT_PARTLY_DONE);
                let outcome =
                    ToolOutcome { reads: records, changes, ..ToolOutcome::failed("partly_done", told) };
                self.complete(call_id, outcome, 0);
            }
            Inspection::NotDone => {
                let outcome = ToolOutcome::failed("not_done", model_texts::EDIT_NOT_DONE);
                self.complete(call_id, outcome, 0);
            }
            Inspection::Conflict(_) if self.is_aborting() => {}
            Inspection::Conflict(why) => match self.about_unknown() {
                AboutUnknown::Fail => {
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

    /// What becomes of a call of which nobody knows whether it took effect: an attended session asks, an
    /// unattended one follows its policy (S7).
    fn about_unknown(&self) -> AboutUnknown {
        match self.engine.settings.unattended.on_timeout {
            _ if !self.state.spec.background => AboutUnknown::Ask,
            OnTimeout::Pause => AboutUnknown::Ask,
            OnTimeout::Deny | OnTimeout::AllowReadOnly => AboutUnknown::Tell,
            OnTimeout::Fail => AboutUnknown::Fail,
        }
    }

    fn treat_unknown(&mut self, call: &Call, why: &str, about: AboutUnknown) {
        let Stage::Running { said, .. } = &call.stage else { return };
        match about {
            AboutUnknown::Tell => self.complete(call.call.call_id, unknown(&said.text()), 0),
            AboutUnknown::Ask | AboutUnknown::Fail => self.ask_about(call, why),
        }
    }

    /// Nobody is to be asked, and the turn is not to go on: it ends, and the model is told with the next submit.
    fn give_up_unknown(&mut self, lost: &[Call]) {
        self.close_after_restart();
        let names: Vec<&str> = lost.iter().map(|call| call.call.tool.as_str()).collect();
        let message = format!(
            "the daemon stopped while {} may have been running; the outcome is unknown. \
             Check, then submit again: the model is told",
            names.join(", ")
        );
        let error = TurnError::new("unknown_outcome", message);
        self.finish(Subtype::ErrorDuringExecution, vec![error]);
    }

    /// Gives every open call the result that fits a turn which a restart has ended.
    fn close_after_restart(&mut self) {
        for call in self.state.calls().to_vec() {
            let call_id = call.call.call_id;
            match &call.stage {
                Stage::Done { .. } => {}
                Stage::Unknown { .. } => self.settle_unknown(call_id, Choice::Abort, SettledBy::Abort),
                Stage::Running { prepared, said, .. } if !prepared.read_only => {
                    self.complete(call_id, unknown(&said.text()), 0);
                }
                Stage::Running { .. } => self.withdraw(&call, model_texts::LOST_RESTART),
                Stage::Requested | Stage::Awaiting { .. } | Stage::Ready { .. } => {
                    self.withdraw(&call, model_texts::NOT_RUN_RESTART);
                }
            }
        }
    }
}

/// What is done about a call whose outcome is unknown.
#[derive(Clone, Copy)]
enum AboutUnknown {
    /// A person decides, and the turn waits.
    Ask,
    /// The model is told, and the turn goes on.
    Tell,
    /// The turn ends.
    Fail,
}

/// A call that may have been running, and of which no file can tell.
fn is_lost(call: &Call) -> bool {
    matches!(&call.stage, Stage::Running { prepared, .. } if !prepared.read_only && !is_edit(prepared))
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
