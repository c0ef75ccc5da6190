//! Handles a committed event: replies to callers that waited for it, and updates the records of running processes.

use crate::actor::{Actor, journal};
use crate::requests::AbortOutcome;
use base::sync::write;
use types::background::BackgroundState;
use types::event::{Envelope, Event};

impl Actor {
    /// Answers callers that waited for this event.
    pub(super) fn on_event(&mut self, fact: &Envelope) {
        self.run_hooks_of(&fact.event);
        match &fact.event {
            Event::TurnCompleted { .. } => {
                let aborted = std::mem::take(&mut self.state.aborted);
                self.state.stop_by = None;
                for reply in self.state.aborts.drain(..) {
                    let _ = reply.send(Ok(aborted.clone()));
                }
                // Callers that wait for the end of background tasks get their reply when these tasks have ended.
                let behind = self.engine.running_commands();
                let over = self.state.call_aborts.extract_if(|call_id, _| !behind.contains(call_id));
                for reply in over.flat_map(|(_, replies)| replies) {
                    let _ = reply.send(Ok(AbortOutcome::default()));
                }
            }
            Event::SessionEnded { .. } => {
                self.effects.drop_helpers();
                self.effects.forget(self.id);
            }
            // The call no longer runs. A user must decide about its unknown outcome.
            Event::QuestionRequested { question } => {
                let about = question.call_id.and_then(|call_id| self.state.call_aborts.remove(&call_id));
                for reply in about.unwrap_or_default() {
                    let _ = reply.send(Ok(AbortOutcome::default()));
                }
            }
            Event::FileCheckpointed { call_id, .. } => self.effects.checkpoint_stored(*call_id),
            Event::ToolBlocked { call_id, .. } => _ = self.state.recorded_calls.remove(call_id),
            Event::ToolCompleted { call_id, detail, .. } => {
                if self.engine.running_commands().contains(call_id) {
                    return;
                }
                self.state.recorded_calls.remove(call_id);
                for reply in self.state.call_aborts.remove(call_id).unwrap_or_default() {
                    let survivors = journal::surviving_pids(detail.as_ref());
                    let _ = reply.send(Ok(AbortOutcome { turn: None, calls: vec![*call_id], survivors }));
                }
            }
            Event::ToolBackground { end: None, .. } => self.publish_background_commands(),
            Event::ToolBackground { call_id, end: Some(end), .. } => {
                self.publish_background_commands();
                self.effects.forget_command(*call_id);
                self.state.recorded_calls.remove(call_id);
                let (call_id, survivors) = (*call_id, &end.survivors);
                for reply in self.state.call_aborts.remove(&call_id).unwrap_or_default() {
                    let (calls, survivors) = (vec![call_id], survivors.clone());
                    let _ = reply.send(Ok(AbortOutcome { turn: None, calls, survivors }));
                }
                if let Some((_, ended)) = &mut self.state.kills {
                    ended.survivors.extend(survivors);
                }
                if self.engine.running_commands().is_empty()
                    && let Some((replies, ended)) = self.state.kills.take()
                {
                    for reply in replies {
                        let _ = reply.send(Ok(ended.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    fn publish_background_commands(&self) {
        let mut running = self.engine.commands();
        running.retain(|command| command.state == BackgroundState::Running);
        *write(&self.commands) = running;
    }

    pub(super) fn note_survivors(&mut self, survivors: Vec<i32>) {
        if self.engine.is_aborting() {
            self.state.aborted.survivors.extend(survivors);
        }
    }
}
