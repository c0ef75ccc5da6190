//! Properties of a restart: the engine rebuilds its state from the journal alone, and never repeats a call that
//! may already have run.

use std::sync::Arc;

use crate::generators::model_snapshot;
use crate::property;
use crate::simulator::Simulator;
use engine::{Effect, Engine, Input, LATEST_ONLY_KINDS, Now, Plan, Recovery, TRANSIENT_KINDS};
use types::event::{Envelope, Event};
use types::ids::{CallId, Seed, Seq};
use types::model::ModelRequest;
use types::permission::OnTimeout;
use types::time::Timestamp;
use types::tool::ToolStatus;

/// The input of a recovery, with a known price. No effect of an earlier process runs.
fn recovered() -> Input {
    Input::Recovered(Recovery { model_snapshot: model_snapshot() })
}

/// The events of a journal that loading a session reads: without the transient events before the last completed turn.
pub(super) fn lasting_events<'a>(journal: &[&'a Envelope]) -> Vec<&'a Envelope> {
    let last_of = |kind: &str, upto: Seq| {
        let newest = journal.iter().rev().find(|it| it.seq <= upto && it.event.kind() == kind);
        newest.map_or(0, |it| it.seq)
    };
    let upto = last_of("turn.completed", Seq::MAX);
    let newest: Vec<Seq> = LATEST_ONLY_KINDS.iter().map(|kind| last_of(kind, upto)).collect();
    let is_lasting = |it: &&&Envelope| {
        let kind = it.event.kind();
        let leaves_something = !TRANSIENT_KINDS.contains(&kind) && !LATEST_ONLY_KINDS.contains(&kind);
        it.seq > upto || leaves_something || newest.contains(&it.seq)
    };
    journal.iter().filter(is_lasting).copied().collect()
}

impl Simulator {
    /// Parks the session for a clean shutdown and recovers it as the next daemon would.
    pub fn restart_cleanly(&mut self) -> Result<(), String> {
        let running = self.engine.turn_id().is_some() && !self.engine.is_aborting();
        if self.next().is_multiple_of(2) {
            self.end_commands(|_| true)?;
        }
        // The helper call is dropped. The daemon knows at this point whether the request was sent.
        let helped = self.next().is_multiple_of(2);
        let of_helper = if self.watch.helper.is_some() { 1 + usize::from(helped) } else { 0 };
        let plan = self.feed(Input::Parked { helped })?.unwrap_or_default();
        let expected_events = usize::from(running) + of_helper;
        property!(plan.events.len() == expected_events && plan.effects.is_empty(), "a stop says so, once");
        self.crash(false, false)
    }

    /// Kills the daemon and restarts it from the journal alone.
    pub fn crash(&mut self, unwritten: bool, twice: bool) -> Result<(), String> {
        if unwritten {
            let now = Now { at: Timestamp(self.clock), seed: Seed(u128::from(self.next())) };
            let before = self.engine.clone();
            let _ = self.engine.decide(Input::Kill { origin: None }, now);
            property!(
                self.engine.has_same_state_as(&before),
                "a decision that was not written leaves no trace"
            );
        }
        let lost: Vec<CallId> = std::mem::take(&mut self.watch.running);
        let (turn, was_aborting) = (self.engine.turn_id(), self.engine.is_aborting());
        let behind = self.watch.running_commands().count() + usize::from(self.watch.helper.is_some());
        let helped = self.watch.helper.is_some();
        self.drop_state()?;
        let first = self.feed(recovered())?.unwrap_or_default();
        property!(self.watch.running_commands().next().is_none(), "nothing runs on behind a crash");
        let over =
            first.events.iter().filter(|it| matches!(it.envelope.event, Event::HelperCompleted { .. }));
        property!(
            over.count() == usize::from(helped),
            "a helper that a crash cut off is closed and not asked again"
        );
        property!(
            turn.is_some() || behind > 0 || first == Plan::default(),
            "without a turn there is nothing to recover"
        );
        for call_id in lost {
            let call = &self.watch.calls[&call_id];
            let count_effects = |wanted: fn(&Effect) -> Option<CallId>| {
                first.effects.iter().filter(|effect| wanted(effect) == Some(call_id)).count()
            };
            let runs = count_effects(|effect| match effect {
                Effect::RunTool { call, .. } => Some(call.call_id),
                _ => None,
            });
            let is_inspected = count_effects(|effect| match effect {
                Effect::Inspect { call, .. } => Some(call.call_id),
                _ => None,
            }) == 1;
            let is_asked =
                self.watch.questions.values().any(|(about, open)| *about == Some(call_id) && !open);
            let (held, ended) = (self.watch.is_held(), self.engine.turn_id() != turn);
            // The policy of an unattended session may tell the model about the unknown outcome and continue.
            let may_continue = self.watch.setup.background
                && matches!(self.settings.unattended.on_timeout, OnTimeout::Deny | OnTimeout::AllowReadOnly);
            let is_recovered = match (call.read_only, was_aborting, call.status) {
                (_, true, Some(ToolStatus::Cancelled)) => runs == 0 && !call.is_edit,
                (Some(false), true, None) => runs == 0 && call.is_edit && is_inspected,
                (Some(true), false, None) => runs == usize::from(!held),
                // The turn could not continue, so its read-only call was cancelled.
                (Some(true), false, Some(ToolStatus::Cancelled)) => runs == 0 && ended,
                (Some(false), false, Some(ToolStatus::Unknown)) => runs == 0 && (ended || may_continue),
                (Some(false), false, None) if call.is_edit => runs == 0 && is_inspected != held,
                (Some(false), false, None) => runs == 0 && is_asked,
                _ => false,
            };
            property!(
                is_recovered,
                "after a crash what only reads runs again, a file is looked at, a person asked: {call:?}, {runs}"
            );
        }
        if twice {
            self.watch.running.clear();
            self.watch.rechecked.clear();
            self.drop_state()?;
            let second = self.feed(recovered())?.unwrap_or_default();
            self.same_recovery(&first, &second)?;
        }
        Ok(())
    }

    /// Checks that a second recovery of the same journal requests the same effects again. There are two
    /// exceptions: the first recovery started something that must not start twice, or this restart
    /// exceeded the limit of resumes.
    fn same_recovery(&self, first: &Plan, second: &Plan) -> Result<(), String> {
        let started = first
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::RunTool { prepared, .. } if !prepared.read_only));
        let ended = |plan: &Plan| {
            plan.events.iter().any(|entry| matches!(entry.envelope.event, Event::TurnCompleted { .. }))
        };
        let asks_question = |plan: &Plan| {
            plan.events.iter().any(|entry| matches!(entry.envelope.event, Event::QuestionRequested { .. }))
        };
        // The first recovery started this turn, so the second recovery finds it interrupted.
        if started || ended(second) || (ended(first) && asks_question(second)) {
            return Ok(());
        }
        for entry in &second.events {
            let event = &entry.envelope.event;
            property!(
                matches!(
                    event,
                    Event::TurnResumed { .. }
                        | Event::TurnPhase { .. }
                        | Event::UsageBooked { .. }
                        | Event::Heartbeat { .. }
                ) || ended(first),
                "a second recovery repairs nothing more: {}",
                event.kind()
            );
        }
        let is_sleeping =
            |plan: &Plan| plan.effects.iter().any(|effect| matches!(effect, Effect::Sleep { .. }));
        if is_sleeping(first) || is_sleeping(second) {
            return Ok(());
        }
        let decision_of = |plan: &Plan| {
            // A helper call that the crash cut off is not made again.
            let is_of_turn = |effect: &&Effect| !matches!(effect, Effect::AskHelper { .. });
            let mut effects: Vec<String> = plan
                .effects
                .iter()
                .filter(is_of_turn)
                .map(|effect| match effect {
                    // The first recovery booked a lost attempt, so the budgets leave less for the next answer.
                    Effect::CallModel { request, .. } => {
                        format!("{:?}", ModelRequest { max_output_tokens: None, ..(**request).clone() })
                    }
                    other => format!("{other:?}"),
                })
                .collect();
            effects.sort();
            effects
        };
        property!(decision_of(first) == decision_of(second), "a second recovery asks for the same");
        Ok(())
    }

    /// Drops everything except the journal.
    fn drop_state(&mut self) -> Result<(), String> {
        self.trace.push("the daemon dies".into());
        self.check_replay()?;
        self.engine = self.reload()?;
        self.outstanding.clear();
        self.helpers.clear();
        // Results of effects of an earlier process never arrive.
        self.late.clear();
        Ok(())
    }

    /// Replays the journal as a restart reads it: from text, without the pruned rows.
    fn reload(&self) -> Result<Engine, String> {
        let mut engine = Engine::new(self.id, Arc::clone(&self.settings));
        for entry in &self.journal {
            let text = serde_json::to_string(&entry.envelope).map_err(|error| error.to_string())?;
            let read = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            property!(entry.envelope == read, "an event is read as it was written: {text}");
            engine.apply(&read);
        }
        engine.skip_to(self.watch.last_seq + 1);
        Ok(engine)
    }

    pub fn check_replay(&self) -> Result<(), String> {
        let again = Engine::replay(
            self.id,
            Arc::clone(&self.settings),
            self.journal.iter().map(|entry| &entry.envelope),
        );
        let journal: Vec<&Envelope> = self.journal.iter().map(|entry| &entry.envelope).collect();
        let lasting = Engine::replay(self.id, Arc::clone(&self.settings), lasting_events(&journal));
        let read = self.reload()?;
        for engine in [&again, &read, &lasting] {
            let mut engine = engine.clone();
            engine.skip_to(self.engine.next_seq());
            property!(engine.has_same_state_as(&self.engine), "replaying the journal gives the living state");
        }
        for entry in self.journal.iter().filter(|entry| entry.delta_of.is_some()) {
            let streaming = self.watch.streaming.as_ref().map(|(_, first_seq, _)| *first_seq);
            let by_tool = self.watch.calls.values().any(|call| {
                call.status.is_none() && call.started.is_some() && call.started == entry.delta_of
            });
            let by_command = self.watch.running_commands().any(|it| entry.delta_of == Some(it.opened));
            property!(
                entry.delta_of == streaming || by_tool || by_command,
                "deltas of complete items are pruned"
            );
        }
        Ok(())
    }
}
