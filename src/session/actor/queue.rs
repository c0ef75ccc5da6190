//! Changes of the queue, and of the archive.

use crate::actor::Actor;
use crate::actor::commit::UnwrittenPlan;
use crate::error::SessionError;
use crate::idempotency::{IdempotencyKey, method};
use crate::requests::QueueChange;
use engine::Input;
use types::event::Origin;
use types::queue::QueuedTurn;

impl Actor {
    /// Changes the queue and returns it. A repeated call with the same key has no further effect.
    pub(super) async fn edit_queue(&mut self, change: QueueChange) -> Result<Vec<QueuedTurn>, SessionError> {
        let QueueChange { edit, keyed, origin } = change;
        let method = method::of_queue_edit(&edit);
        self.change_once(method, Input::EditQueue { edit, origin: Some(origin) }, keyed).await?;
        Ok(self.engine.queue())
    }

    pub(super) async fn archive(
        &mut self,
        archived: bool,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<(), SessionError> {
        self.change_once(method::ARCHIVE, Input::Archive { archived, origin: Some(origin) }, keyed).await
    }

    /// Decides and commits an input, unless an earlier call of `method` with this key did so.
    pub(super) async fn change_once(
        &mut self,
        method: &'static str,
        input: Input,
        keyed: Option<IdempotencyKey>,
    ) -> Result<(), SessionError> {
        if let Some(done) = self.remembered(method, keyed.as_ref()).await? {
            return Ok(done);
        }
        let decision = self.decide(input)?;
        let idempotency = keyed.and_then(|keyed| keyed.row(method, self.id, &()));
        self.commit(UnwrittenPlan { idempotency, ..UnwrittenPlan::new(decision) }).await.map(|_| ())
    }
}
