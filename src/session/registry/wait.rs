//! `Registry::wait`: waits until a session reaches one of several states.

use tokio::sync::broadcast::error::RecvError;

use crate::error::SessionError;
use crate::registry::Registry;
use types::event::Event;
use types::ids::SessionId;
use types::session::{SessionState, SessionView, TurnResult};

impl Registry {
    /// Waits until the session is in one of these states. The session need not be loaded. The view shows the
    /// state that ended the wait, even if another turn has started since. The call may be dropped at any time.
    ///
    /// # Errors
    /// The session does not exist or is deleted meanwhile, or the database could not be read.
    pub async fn wait(&self, id: SessionId, until: &[SessionState]) -> Result<SessionView, SessionError> {
        // Subscribe before the state is read, so that no change between both is lost.
        let mut changes = self.inner.shared.subscribe_status();
        let view = self.view(id).await?;
        if until.contains(&view.summary.state) {
            return Ok(view);
        }
        loop {
            match changes.recv().await {
                Ok(change) if change.session_id != id => {}
                Ok(change) => match change.state {
                    None => return Err(SessionError::NotFound),
                    Some(state) if until.contains(&state) => {
                        let mut view = self.view(id).await?;
                        (view.summary.state, view.summary.requires) = (state, change.requires);
                        return Ok(view);
                    }
                    Some(_) => {}
                },
                Err(RecvError::Lagged(_)) => {
                    let view = self.view(id).await?;
                    if until.contains(&view.summary.state) {
                        return Ok(view);
                    }
                }
                Err(RecvError::Closed) => return Err(SessionError::ShuttingDown),
            }
        }
    }

    /// The result of the session's newest completed turn.
    pub async fn last_result(&self, id: SessionId) -> Result<Option<TurnResult>, SessionError> {
        let store = &self.inner.shared.store;
        let key = store.find(id).await?.ok_or(SessionError::NotFound)?;
        let Some(row) = store.newest_event(key, "turn.completed").await? else { return Ok(None) };
        Ok(match store.restored_event(key, row.seq, &row.body).await?.map(|envelope| envelope.event) {
            Some(Event::TurnCompleted { result }) => Some(result),
            _ => None,
        })
    }
}
