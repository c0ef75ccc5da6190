//! Changes of the queue, and aborts of queued turns.

use crate::generators::origin;
use crate::script::QueueChange;
use crate::simulator::Simulator;
use engine::{Input, QueueEdit};
use types::ids::TurnId;
use types::message::InputBlock;

impl Simulator {
    /// Picks from the queue. An index after its end selects a turn that is not queued.
    pub(super) fn edit_queue(&mut self, pick: u8, to: u8, edit: QueueChange) -> Result<(), String> {
        let queue: Vec<TurnId> = self.watch.queue.iter().copied().collect();
        let other = self.mint().turn();
        let pick_turn = |pick: u8| queue.get(usize::from(pick) % (queue.len() + 1)).copied();
        let turn_id = pick_turn(pick).unwrap_or(other);
        let edit = match edit {
            QueueChange::Clear => QueueEdit::Clear,
            QueueChange::Remove => QueueEdit::Remove { turn_id },
            QueueChange::Move => QueueEdit::Move { turn_id, before: pick_turn(to) },
            QueueChange::Update { blank } => {
                let word = format!("u{}.", self.next());
                let text = if blank { " \n".into() } else { format!("rather {word}") };
                let input = vec![InputBlock::Text { text }];
                let edit = QueueEdit::Update { turn_id, input, blobs: Vec::new() };
                let plan = self.feed(Input::EditQueue { edit, origin: origin() })?;
                if plan.is_some()
                    && let Some(queued) = self.queued.iter_mut().find(|(id, _)| *id == turn_id)
                {
                    queued.1 = word;
                }
                return Ok(());
            }
            QueueChange::Abort => {
                let turn_id = pick_turn(pick);
                if turn_id.is_some() {
                    self.feed(Input::Abort { turn_id, call_id: None, origin: origin() })?;
                }
                return Ok(());
            }
        };
        self.feed(Input::EditQueue { edit, origin: origin() })?;
        Ok(())
    }
}
