//! Changes of the queue, and of the archive.

use crate::decide::plan::PlanBuilder;
use crate::decide::submit::is_empty_input;
use crate::input::{QueueEdit, Refusal};
use types::event::{DequeueReason, Event};
use types::ids::TurnId;
use types::session::SessionState;

impl PlanBuilder<'_> {
    /// Changes the queue. An edit that changes nothing writes nothing.
    pub fn edit_queue(&mut self, edit: QueueEdit) -> Result<(), Refusal> {
        match edit {
            QueueEdit::Clear => {
                let all: Vec<TurnId> = self.state.queue.iter().map(|queued| queued.turn_id).collect();
                all.into_iter().for_each(|turn_id| self.dequeue(turn_id, DequeueReason::Cleared));
            }
            QueueEdit::Remove { turn_id } => {
                self.position_in_queue(turn_id)?;
                self.dequeue(turn_id, DequeueReason::Removed);
            }
            QueueEdit::Update { turn_id, input, blobs } => {
                let at = self.position_in_queue(turn_id)?;
                if is_empty_input(&input) {
                    return Err(Refusal::EmptyInput);
                }
                if self.state.queue[at].input != input {
                    self.plan.blobs.extend(blobs);
                    self.push(None, Some(turn_id), Event::TurnQueueUpdated { input });
                }
            }
            QueueEdit::Move { turn_id, before } => {
                let at = self.position_in_queue(turn_id)?;
                let target = match before {
                    Some(before) => self.position_in_queue(before)?,
                    None => self.state.queue.len(),
                };
                if target != at && target != at + 1 {
                    self.push(None, Some(turn_id), Event::TurnQueueMoved { before });
                }
            }
        }
        Ok(())
    }

    fn position_in_queue(&self, turn_id: TurnId) -> Result<usize, Refusal> {
        self.state.queue_position(turn_id).ok_or(Refusal::NotQueued { turn_id })
    }

    /// Removes a queued turn.
    pub fn dequeue(&mut self, turn_id: TurnId, reason: DequeueReason) {
        self.push(None, Some(turn_id), Event::TurnDequeued { reason });
    }

    /// Archives the session or restores it. No turn or command of an archived session may run.
    pub fn archive(&mut self, archived: bool) -> Result<(), Refusal> {
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        if self.state.archived == archived {
            return Ok(());
        }
        if let Some(turn) = &self.state.turn {
            return Err(Refusal::Busy { turn_id: turn.id });
        }
        if self.state.commands.iter().any(|command| command.is_running()) {
            return Err(Refusal::CommandsRun);
        }
        self.push_session(Event::SessionArchived { archived });
        Ok(())
    }
}
