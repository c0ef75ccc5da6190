//! The variables that a client sends for the commands of a session.

use std::sync::Arc;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::session_environments::SessionEnvironments;
use types::ids::SessionId;
use types::session_environment::{SessionEnvironment, check};
use types::subagent::ParentCall;

/// Name of the parameter.
const NAME: &str = "env";

impl Registry {
    /// Runs work on the stored variables on a blocking thread, because it reads and writes the disk.
    async fn with_environments<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SessionEnvironments) -> T + Send + 'static,
    ) -> Result<T, SessionError> {
        let environments = Arc::clone(&self.shared().environments);
        let result = tokio::task::spawn_blocking(move || work(&environments)).await;
        result.map_err(|error| SessionError::BadParam(NAME, error.to_string()))
    }

    /// Checks the variables that a client sends.
    ///
    /// # Errors
    /// Some are refused: the text names all of them.
    pub(super) fn check_environment(
        &self,
        environment: Option<&SessionEnvironment>,
        is_attended: bool,
    ) -> Result<(), SessionError> {
        let Some(environment) = environment else { return Ok(()) };
        let components = self.shared().components();
        check(environment, components.tools.environment_names(), is_attended)
            .map_err(|why| SessionError::BadParam(NAME, why))
    }

    /// Stores the variables of a session.
    pub(super) async fn save_environment(
        &self,
        id: SessionId,
        environment: Option<SessionEnvironment>,
    ) -> Result<(), SessionError> {
        let Some(environment) = environment else { return Ok(()) };
        let saved = self.with_environments(move |all| all.save(id, &environment)).await?;
        saved.map_err(|error| SessionError::BadParam(NAME, format!("could not store them: {error}")))
    }

    /// The variables that were sent for a session; `None` if none were sent.
    pub(super) async fn environment_of(&self, id: SessionId) -> Option<SessionEnvironment> {
        self.with_environments(move |all| all.get(id)).await.ok().flatten()
    }

    /// Whether variables were sent for this session itself.
    pub(crate) async fn has_environment(&self, id: SessionId) -> bool {
        self.environment_of(id).await.is_some()
    }

    /// Names of the variables that the commands of a session get from a client.
    pub(super) async fn environment_names(
        &self,
        id: SessionId,
        parent: Option<ParentCall>,
    ) -> Option<Vec<String>> {
        let own = match (self.environment_of(id).await, parent) {
            (None, Some(parent)) => self.environment_of(parent.root_session_id).await,
            (own, _) => own,
        };
        own.map(|own| own.names().cloned().collect())
    }

    /// Gives a fork the variables of the session that it starts from.
    pub(crate) async fn copy_environment(&self, from: SessionId, to: SessionId) -> Result<(), SessionError> {
        self.save_environment(to, self.environment_of(from).await).await
    }

    /// Deletes the variables of a session that no longer exists.
    pub(super) async fn remove_environment(&self, id: SessionId) {
        let _ = self.with_environments(move |all| all.remove(id)).await;
    }
}
