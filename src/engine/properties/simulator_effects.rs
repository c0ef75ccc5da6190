//! The simulator's handling of a plan: it records the events and begins the effects.

use crate::generators::background_command_ended;
use crate::property;
use crate::script::EffectOutcome;
use crate::simulator::{OutstandingEffect, Simulator};
use crate::watches::CommandWatch;
use engine::{Effect, Plan, PlannedEvent};
use types::background::BackgroundState;
use types::event::Event;
use types::ids::CallId;
use types::time::Timestamp;

impl Simulator {
    pub(super) fn write(&mut self, plan: &Plan) -> Result<(), String> {
        for entry in &plan.events {
            property!(entry.envelope.session_id == self.id, "facts are of the session");
            property!(entry.envelope.at_ms == Timestamp(self.clock), "facts are of the moment");
            self.journal.push(entry.clone());
        }
        for opener in &plan.prune_deltas_of {
            let goes = |entry: &PlannedEvent| entry.delta_of == Some(*opener);
            property!(
                self.journal.iter().filter(|entry| goes(entry)).all(|entry| entry.envelope.event.is_delta()),
                "only deltas are pruned"
            );
            self.journal.retain(|entry| !goes(entry));
        }
        Ok(())
    }

    /// Records submitted texts. A queued input counts once its turn starts.
    pub(super) fn started(&mut self, plan: &Plan) {
        for entry in &plan.events {
            let envelope = &entry.envelope;
            match (&envelope.event, envelope.turn_id) {
                (Event::TurnStarted { .. }, Some(turn_id)) => {
                    if let Some(index) = self.queued.iter().position(|(id, _)| *id == turn_id) {
                        self.submitted_texts.push(self.queued.remove(index).1);
                    }
                    self.past_turns.push(turn_id);
                }
                (Event::TurnDequeued { .. }, Some(turn_id)) => self.queued.retain(|(id, _)| *id != turn_id),
                (Event::SessionEnded { .. }, _) => {
                    self.queued.clear();
                    // The helper call is dropped. It may have answered just before, so its answer is
                    // delivered late.
                    let outcome = EffectOutcome::successful();
                    while let Some(token) = self.helpers.pop() {
                        let input = self.helper_done(token, &outcome);
                        self.late.push(input);
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn start_effect(&mut self, effect: &Effect) -> Result<(), String> {
        let thinking = |out: &OutstandingEffect| {
            matches!(
                out,
                OutstandingEffect::Context
                    | OutstandingEffect::Check { .. }
                    | OutstandingEffect::Model { .. }
                    | OutstandingEffect::Timer { .. }
            )
        };
        let next = match effect {
            Effect::AskHelper { token, .. } => {
                property!(self.helpers.is_empty(), "one helper at a time is asked");
                self.helpers.push(*token);
                return Ok(());
            }
            Effect::GatherContext => OutstandingEffect::Context,
            Effect::CheckContext { turn_id } => OutstandingEffect::Check { turn_id: *turn_id },
            Effect::CallModel { token, .. } => OutstandingEffect::Model { token: *token, answer: None },
            Effect::Sleep { token, .. } => OutstandingEffect::Timer { token: *token },
            Effect::Prepare { turn_id, calls } => {
                let mode = self.engine.mode();
                OutstandingEffect::Prepare { turn_id: *turn_id, mode, calls: calls.clone() }
            }
            Effect::CheckRules { turn_id, calls } => {
                let calls = calls.iter().map(|(call, _)| call.call_id).collect();
                OutstandingEffect::CheckRules { turn_id: *turn_id, mode: self.engine.mode(), calls }
            }
            Effect::RunTool { call, .. } => OutstandingEffect::Tool { call_id: call.call_id },
            Effect::Inspect { call, .. } => OutstandingEffect::Inspect { call_id: call.call_id },
            Effect::StopAll => {
                // A dropped effect may have reported its result just before, so its result is delivered late.
                for out in std::mem::take(&mut self.outstanding) {
                    match out {
                        OutstandingEffect::Tool { .. } => self.outstanding.push(out),
                        other => self.discard_effect(other),
                    }
                }
                OutstandingEffect::Stop
            }
            // The stopped tool ends later, with any result.
            Effect::StopCall(_) | Effect::StopCommands { .. } => return Ok(()),
            // The tool continues with the answers.
            Effect::AnswerTool { .. } => return Ok(()),
            // These scripts start no sub-agents: `properties/subagents.rs` checks trees of sessions.
            Effect::RunSubagent { .. } | Effect::FollowSubagent { .. } | Effect::StopSubagents => {
                return Err("no sub-agent is started here".into());
            }
        };
        property!(
            !(thinking(&next) && self.outstanding.iter().any(thinking)),
            "one thing at a time is waited for"
        );
        self.outstanding.push(next);
        Ok(())
    }

    /// Ends the background commands that `is_selected` selects.
    pub(super) fn end_commands(&mut self, is_selected: impl Fn(&CommandWatch) -> bool) -> Result<(), String> {
        let calls: Vec<CallId> =
            self.watch.running_commands().filter(|it| is_selected(it)).map(|it| it.call_id).collect();
        for call_id in calls {
            let input = background_command_ended(call_id, BackgroundState::Killed);
            self.late.push(input.clone());
            self.feed(input)?;
        }
        Ok(())
    }
}
