//! Forks of the session at an item, and rewinds of its conversation to the item.

use std::sync::Arc;

use crate::generators::origin;
use crate::property;
use crate::simulator::{Simulator, choose};
use engine::{CopyEnd, CopyLimits, Engine, HistoryPoint, Input, JournalCopier, Now, Rewind, find_breach};
use types::event::{Envelope, Event};
use types::history::ForkedFrom;
use types::ids::{ItemId, Mint, Seed, Seq};
use types::ledger::ModelUsage;
use types::message::Message;
use types::session::{ItemStatus, SessionState};
use types::time::Timestamp;

impl Simulator {
    pub(super) fn fork(&mut self, pick: u8, rewinds: bool) -> Result<(), String> {
        let complete = |(_, (_, status)): &(&Seq, &(_, ItemStatus))| *status != ItemStatus::Running;
        let items: Vec<Seq> = self.watch.items.iter().filter(complete).map(|(first, _)| *first).collect();
        let Some(first_seq) = choose(&items, pick).copied() else { return Ok(()) };
        let item_at = |first: Seq| self.opened_item(first).ok_or("an item has an id");
        let item_id = item_at(first_seq)?;
        let last_seq = self.last_seq_of(item_id);
        self.import()?;
        let target = self.copy(HistoryPoint { first_seq, last_seq }, item_id)?;
        if !rewinds {
            return Ok(());
        }
        let removed_items = self.watch.items.range(first_seq + 1..).map(|(first, _)| item_at(*first));
        let removed_items = removed_items.collect::<Result<Vec<_>, _>>()?;
        let wanted: Vec<Arc<Message>> = target.inspect().transcript;
        let rewind = Rewind {
            item_id,
            last_item_seq: first_seq,
            removed_items,
            target: Box::new(target),
            files: Vec::new(),
            origin: origin(),
        };
        if self.feed(Input::Rewind(Box::new(rewind)))?.is_some() {
            property!(
                self.engine.inspect().transcript == wanted,
                "a rewound conversation is that of the item"
            );
        }
        Ok(())
    }

    /// Returns the state of a fork at an item. The state must be valid, and the fork's own journal must
    /// replay to it.
    fn copy(&self, point: HistoryPoint, item_id: ItemId) -> Result<Engine, String> {
        let id = Mint::new(1, Seed(1)).session();
        let mut copier = JournalCopier::new(point, id, CopyLimits::default());
        let rows = self.journal.iter().map(|entry| entry.envelope.clone());
        let mut copied: Vec<Envelope> = rows.filter_map(|envelope| copier.copy(envelope)).collect();
        let base = Engine::replay(id, Arc::clone(&self.settings), &copied);
        let forked_from = ForkedFrom { session_id: self.id, item_id: Some(item_id) };
        let forked = CopyEnd { forked_from, context_tokens: copier.context_tokens() };
        let now = Now { at: Timestamp(self.clock), seed: Seed(7) };
        let ending = base.decide(Input::Forked(Box::new(forked)), now).map_err(|it| format!("{it:?}"))?;
        property!(ending.plan.effects.iter().all(|effect| !effect.does_work()), "a fork runs nothing");
        copied.extend(ending.plan.events.iter().map(|entry| entry.envelope.clone()));
        let replayed = Engine::replay(id, Arc::clone(&self.settings), &copied);
        property!(replayed.has_same_state_as(&ending.next), "the journal of a fork replays alone");
        let (next, inspection) = (&ending.next, ending.next.inspect());
        property!(next.snapshot().state == SessionState::Idle && next.turn_id().is_none(), "a fork is idle");
        property!(inspection.queue.is_empty() && inspection.commands == 0, "nothing waits or runs in a fork");
        property!(*inspection.spent == ModelUsage::default(), "a fork has spent nothing");
        property!(next.rules().allow.is_empty(), "a fork allows nothing by rules of its source");
        let messages = inspection.transcript;
        let broken = find_breach(&messages.iter().map(|message| (**message).clone()).collect::<Vec<_>>());
        // The engine's own histories may end with an empty answer, which normalization leaves out.
        let is_valid = broken.is_none() || broken == Some("a message is empty");
        property!(is_valid, "the history of a fork is valid: {broken:?}");
        Ok(ending.next)
    }

    /// Imports a copy of the whole journal. The import must be idle, and its own journal must replay to its state.
    fn import(&self) -> Result<(), String> {
        let mut journal: Vec<Envelope> = self.journal.iter().map(|entry| entry.envelope.clone()).collect();
        journal.retain(|envelope| !envelope.event.is_delta());
        let base = Engine::replay(self.id, Arc::clone(&self.settings), &journal);
        let now = Now { at: Timestamp(self.clock), seed: Seed(9) };
        let ending = base.decide(Input::Imported, now).map_err(|it| format!("{it:?}"))?;
        property!(ending.plan.effects.iter().all(|effect| !effect.does_work()), "an import runs nothing");
        journal.extend(ending.plan.events.iter().map(|entry| entry.envelope.clone()));
        let replayed = Engine::replay(self.id, Arc::clone(&self.settings), &journal);
        property!(replayed.has_same_state_as(&ending.next), "the journal of an import replays alone");
        let (next, inspection) = (&ending.next, ending.next.inspect());
        let rests = [SessionState::Idle, SessionState::Failed, SessionState::Archived, SessionState::Ended];
        property!(rests.contains(&next.snapshot().state) && next.turn_id().is_none(), "an import is idle");
        property!(
            inspection.queue.is_empty() && next.rules().allow.is_empty(),
            "an import brings no permission"
        );
        property!(ending.next.running_commands().is_empty(), "no command of an import runs");
        Ok(())
    }

    fn opened_item(&self, first: Seq) -> Option<ItemId> {
        self.journal.iter().find(|entry| entry.envelope.seq == first)?.envelope.item_id
    }

    fn last_seq_of(&self, item_id: ItemId) -> Seq {
        let belongs = |envelope: &&Envelope| {
            envelope.item_id == Some(item_id)
                && matches!(envelope.event, Event::MessageCompleted { .. } | Event::ToolCompleted { .. })
        };
        let events = self.journal.iter().map(|entry| &entry.envelope).filter(belongs);
        events.map(|envelope| envelope.seq).max().unwrap_or(Seq::MAX)
    }
}
