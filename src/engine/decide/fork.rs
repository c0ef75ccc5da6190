//! The end of a copied journal, and the rewind of a conversation.

use crate::copy::CopyEnd;
use crate::decide::plan::PlanBuilder;
use crate::input::{Refusal, Rewind};
use crate::state::{CallStage, Engine};
use types::blob::Blob;
use types::event::{DequeueReason, Event};
use types::history::{FileCheckpoint, RewoundHistory};
use types::ids::{CallId, TurnId};
use types::message::Message;
use types::permission::{Mode, RuleKind};
use types::session::{SessionState, Subtype};
use types::tool::ReadRecord;
use types::turn_options::TurnOptions;
use types::usage::ModelSnapshot;

impl PlanBuilder<'_> {
    /// Ends the copied part of a fork: closes an open turn as interrupted, pairs calls with results, and marks
    /// the end. Precondition: no effect runs.
    pub fn finish_fork(&mut self, forked: CopyEnd) {
        if self.state.turn.is_some() {
            self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::Aborted });
            self.finish_stop(ModelSnapshot::default());
        }
        self.repair_history();
        let CopyEnd { forked_from, context_tokens } = forked;
        self.push_session(Event::SessionForked { forked_from, context_tokens });
    }

    /// Ends an imported journal: nothing of the journal runs, and it grants no permissions.
    /// Precondition: no effect runs.
    pub fn finish_import(&mut self) {
        let queued: Vec<TurnId> = self.state.queue.iter().map(|queued| queued.turn_id).collect();
        queued.into_iter().for_each(|turn_id| self.dequeue(turn_id, DequeueReason::Cleared));
        self.close_lost_commands();
        if self.state.turn.is_some() {
            self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::Aborted });
            self.finish_stop(ModelSnapshot::default());
        }
        self.drop_helper();
        // The imported file provides the conversation. Its allow rules are removed, because only the
        // user grants permissions.
        let allowed = self.state.rules.allow.clone();
        for rule in allowed {
            self.push_session(Event::PermissionRuleRemoved { kind: RuleKind::Allow, rule });
        }
        let spec = &self.state.spec;
        let asks_less = !matches!(spec.mode, Mode::Default | Mode::Plan);
        let options = TurnOptions {
            mode: asks_less.then_some(Mode::Default),
            additional_dirs: (!spec.additional_dirs.is_empty()).then(Vec::new),
            ..TurnOptions::default()
        };
        if options != TurnOptions::default() {
            let options = Box::new(options);
            self.push_session(Event::SessionUpdated { title: None, titled_by: None, options });
        }
        self.repair_history();
    }

    /// Makes an earlier item the last one of the conversation. `rewind.target` is the engine's state at that item.
    pub fn rewind(&mut self, rewind: Rewind) -> Result<(), Refusal> {
        self.engine.check_rewind()?;
        let Rewind { item_id, last_item_seq, removed_items, target, files, origin } = rewind;
        self.origin = origin;
        let target = &target.state;
        let same = self.state.transcript.iter().zip(target.transcript.iter());
        let kept_count = same.take_while(|(now, then)| now == then).count();
        let messages: Vec<Message> =
            target.transcript.iter().skip(kept_count).map(|message| (**message).clone()).collect();
        let mut reads: Vec<ReadRecord> = target.reads.values().cloned().collect();
        reads.sort_by(|one, other| one.path.cmp(&other.path));
        let rewound = RewoundHistory {
            last_item_seq,
            removed_items,
            kept_messages: kept_count as u64,
            messages,
            reads,
            cwd: target.cwd.to_string_lossy().into_owned(),
            context_tokens: target.context_tokens,
            todos: (target.todos != self.state.todos).then(|| (*target.todos).clone()),
            files,
        };
        self.push(Some(item_id), None, Event::SessionRewound(rewound));
        Ok(())
    }

    /// Stores the content of files that a running call is about to change.
    pub fn files_read(&mut self, call_id: CallId, files: Vec<FileCheckpoint>, blobs: Vec<Blob>) {
        let running = self.state.call(call_id).filter(|call| matches!(call.stage, CallStage::Running { .. }));
        let Some(item_id) = running.map(|call| call.item_id).filter(|_| !self.is_aborting()) else { return };
        self.plan.blobs.extend(blobs);
        self.push_item(item_id, Event::FileCheckpointed { call_id, files });
    }
}

impl Engine {
    /// Whether the conversation may be rewound now.
    ///
    /// # Errors
    /// A turn runs, or the session is archived or ended.
    pub fn check_rewind(&self) -> Result<(), Refusal> {
        match &self.state.turn {
            _ if self.state.status == SessionState::Ended => Err(Refusal::Ended),
            _ if self.state.archived => Err(Refusal::Archived),
            Some(turn) => Err(Refusal::Busy { turn_id: turn.id }),
            None => Ok(()),
        }
    }
}
