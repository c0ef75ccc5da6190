//! Rewinds the conversation, and the files that the session changed. The session does nothing else meanwhile.
//!
//! The files are restored first, and the event is written last. After a crash in between, the
//! conversation is unchanged. A repeated rewind then finds the restored files unchanged and completes.

use crate::actor::Actor;
use crate::actor::commit::UnwrittenPlan;
use crate::error::SessionError;
use crate::file_checkpoints;
use crate::file_checkpoints::FilePlan;
use crate::idempotency::method;
use crate::journal_copy::{copy_journal, history_point};
use crate::requests::{RewindOutcome, RewindRequest};
use base::crash;
use engine::{CopyLimits, HistoryPoint, Input, Rewind};
use types::history::RewindConflict;
use types::ids::{CallId, ItemId};

impl Actor {
    pub(super) async fn rewind(&mut self, request: RewindRequest) -> Result<RewindOutcome, SessionError> {
        let RewindRequest { item_id, files, dry_run, keyed, origin } = request;
        if let Some(done) = self.remembered(method::REWIND, keyed.as_ref()).await? {
            return Ok(done);
        }
        self.engine.check_rewind()?;
        let key = self.journal.key();
        let point = history_point(&self.shared, key, item_id).await?;
        let removed = self.shared.store.items_begun_after(key, point.first_seq).await?;
        let removed_items: Vec<ItemId> = removed.into_iter().map(|item| item.item_id).collect();
        let context = self.call_context().session_context;
        let plan = match files {
            true => file_checkpoints::plan_rewind(&self.shared, key, point, &context).await?,
            false => FilePlan::default(),
        };
        if !plan.conflicts.is_empty() {
            return Ok(RewindOutcome { conflicts: plan.conflicts, ..RewindOutcome::default() });
        }
        let outcome = RewindOutcome { removed_items, files: plan.files, conflicts: Vec::new() };
        if dry_run {
            return Ok(outcome);
        }
        let rewind = self.rewind_target(point, item_id, &outcome).await?;
        if !plan.steps.is_empty() {
            // The call id depends only on the item, so a repeated rewind finds the temporary files of a killed one.
            let call_id = CallId::of_item(item_id);
            let tools = self.shared.components().tools.clone();
            if let Err((path, reason)) = tools.restore_files(call_id, plan.steps, &context).await {
                let conflict = RewindConflict { path: path.to_string_lossy().into_owned(), reason };
                return Ok(RewindOutcome { conflicts: vec![conflict], ..RewindOutcome::default() });
            }
            crash::point("C25.restored");
        }
        let rewind = Rewind { origin: Some(origin), ..rewind };
        let decision = self.decide(Input::Rewind(Box::new(rewind)))?;
        let idempotency = keyed.and_then(|keyed| keyed.row(method::REWIND, self.id, &outcome));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await?;
        Ok(outcome)
    }

    /// Returns the rewind with the engine's state at the item.
    async fn rewind_target(
        &self,
        point: HistoryPoint,
        item_id: ItemId,
        outcome: &RewindOutcome,
    ) -> Result<Rewind, SessionError> {
        let source = (self.id, self.journal.key());
        let limits = CopyLimits::from_spec(self.engine.spec());
        let copied =
            copy_journal(&self.shared, source, Some(item_id), point, (self.id, limits), |_| {}).await?;
        Ok(Rewind {
            item_id,
            last_item_seq: point.first_seq,
            removed_items: outcome.removed_items.clone(),
            target: Box::new(copied.ending.next),
            files: outcome.files.clone(),
            origin: None,
        })
    }
}
