//! Events of the queue: inputs that wait for the running turn to end.

use std::sync::Arc;

use crate::state::{QueuedInput, State};
use types::event::{Envelope, Event};
use types::ids::TurnId;

impl State {
    pub(super) fn apply_queue_event(&mut self, envelope: &Envelope) {
        let Some(turn_id) = envelope.turn_id else { return };
        match &envelope.event {
            Event::TurnQueued { input, front, options } => {
                let options = (**options).clone();
                let queued = Arc::new(QueuedInput {
                    turn_id,
                    item_id: envelope.item_id,
                    input: input.clone(),
                    options,
                    queued_at: envelope.at_ms,
                    front: *front,
                    origin: envelope.origin.clone(),
                });
                if *front {
                    self.queue.push_front(queued);
                } else {
                    self.queue.push_back(queued);
                }
            }
            Event::TurnDequeued { .. } => self.queue.retain(|queued| queued.turn_id != turn_id),
            Event::TurnQueueUpdated { input } => {
                if let Some(at) = self.queue_position(turn_id) {
                    let queued = Arc::make_mut(&mut self.queue[at]);
                    queued.input.clone_from(input);
                    // The command, its parts and its allow rules are those of the text before.
                    queued.options.command = None;
                }
            }
            Event::TurnQueueMoved { before } => {
                let moved = self.queue_position(turn_id).and_then(|at| self.queue.remove(at));
                if let Some(mut moved) = moved {
                    Arc::make_mut(&mut moved).front = false;
                    let at = before.and_then(|before| self.queue_position(before));
                    self.queue.insert(at.unwrap_or(self.queue.len()), moved);
                }
            }
            _ => {}
        }
    }

    /// Position of a queued turn, from 0. `None` if the turn is not queued.
    pub fn queue_position(&self, turn_id: TurnId) -> Option<usize> {
        self.queue.iter().position(|queued| queued.turn_id == turn_id)
    }
}
