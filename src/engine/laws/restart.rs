//! Laws of a restart: the journal is all that is left, and what may have happened never happens twice.

use std::sync::Arc;

use super::law;
use super::world::World;
use crate::engine::{Effect, Engine, Input, Now, Plan};
use crate::types::event::Event;
use crate::types::ids::{CallId, Seed};
use crate::types::time::Timestamp;
use crate::types::tool::ToolStatus;

impl World {
    /// The daemon dies and starts again: what is left is the journal.
    pub fn crash(&mut self, unwritten: bool, twice: bool) -> Result<(), String> {
        if unwritten {
            let now = Now { at: Timestamp(self.clock), seed: Seed(u128::from(self.next())) };
            let before = self.engine.clone();
            let _ = self.engine.decide(Input::Kill { origin: None }, now);
            law!(self.engine.same_as(&before), "a decision that was not written leaves no trace");
        }
        let lost: Vec<CallId> = std::mem::take(&mut self.watch.running);
        let (turn, was_aborting) = (self.engine.turn_id(), self.engine.is_aborting());
        self.die()?;
        let first = self.feed(Input::Recovered)?.unwrap_or_default();
        law!(turn.is_some() || first == Plan::default(), "without a turn there is nothing to recover");
        for call_id in lost {
            let call = &self.watch.calls[&call_id];
            let runs_again = first
                .effects
                .iter()
                .filter(|effect| matches!(effect, Effect::RunTool { call, .. } if call.call_id == call_id))
                .count();
            let expected = match (call.read_only, was_aborting, call.status) {
                (_, true, Some(ToolStatus::Cancelled)) => 0,
                (Some(false), false, Some(ToolStatus::Unknown)) => 0,
                (Some(true), false, None) => 1,
                // Its turn could not go on.
                (Some(true), false, Some(ToolStatus::Cancelled)) if self.engine.turn_id() != turn => 0,
                other => return Err(format!("a call that ran when the daemon died became {other:?}")),
            };
            law!(runs_again == expected, "after a crash what only reads runs again, the rest does not");
        }
        if twice {
            self.watch.running.clear();
            self.die()?;
            let second = self.feed(Input::Recovered)?.unwrap_or_default();
            self.same_recovery(&first, &second)?;
        }
        Ok(())
    }

    /// A second recovery of the same journal asks for the same things again, unless the first one
    /// began what must not begin twice, or this was one restart too many.
    fn same_recovery(&self, first: &Plan, second: &Plan) -> Result<(), String> {
        let started = first
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::RunTool { prepared, .. } if !prepared.read_only));
        let ended = |plan: &Plan| {
            plan.facts.iter().any(|entry| matches!(entry.envelope.event, Event::TurnCompleted { .. }))
        };
        if started || ended(second) {
            return Ok(());
        }
        for entry in &second.facts {
            let event = &entry.envelope.event;
            law!(
                matches!(event, Event::TurnResumed { .. } | Event::TurnPhase { .. }),
                "a second recovery repairs nothing more: {}",
                event.kind()
            );
        }
        let anew = |plan: &Plan| {
            let mut effects: Vec<String> = plan
                .effects
                .iter()
                .map(|effect| match effect {
                    Effect::CallModel { request, .. } => format!("{request:?}"),
                    other => format!("{other:?}"),
                })
                .collect();
            effects.sort();
            effects
        };
        law!(anew(first) == anew(second), "a second recovery asks for the same");
        Ok(())
    }

    /// Everything but the journal is lost.
    fn die(&mut self) -> Result<(), String> {
        self.trace.push("the daemon dies".into());
        self.replayed()?;
        self.engine = self.reload()?;
        self.outstanding.clear();
        // Nothing of an earlier process comes home.
        self.late.clear();
        Ok(())
    }

    /// The journal as a restart reads it: text, without the rows that were folded away.
    fn reload(&self) -> Result<Engine, String> {
        let mut engine = Engine::new(self.id, Arc::clone(&self.settings));
        for entry in &self.journal {
            let text = serde_json::to_string(&entry.envelope).map_err(|error| error.to_string())?;
            let read = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            law!(entry.envelope == read, "an event is read as it was written: {text}");
            engine.apply(&read);
        }
        engine.skip_to(self.watch.last_seq + 1);
        Ok(engine)
    }

    pub fn replayed(&self) -> Result<(), String> {
        let again = Engine::replay(
            self.id,
            Arc::clone(&self.settings),
            self.journal.iter().map(|entry| &entry.envelope),
        );
        let read = self.reload()?;
        for engine in [&again, &read] {
            let mut engine = engine.clone();
            engine.skip_to(self.engine.next_seq());
            law!(engine.same_as(&self.engine), "replaying the journal gives the living state");
        }
        for entry in self.journal.iter().filter(|entry| entry.fold.is_some()) {
            let streaming = self.watch.streaming.as_ref().map(|(_, first_seq, _)| *first_seq);
            let by_tool =
                self.watch.calls.values().any(|call| {
                    call.status.is_none() && call.started.is_some() && call.started == entry.fold
                });
            law!(entry.fold == streaming || by_tool, "rows of what is whole are folded away");
        }
        Ok(())
    }
}
