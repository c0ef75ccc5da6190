//! MCP servers that are given for one session.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::mcp::parse_servers;
use mcp::{Pool, ServerConfig};
use types::ids::SessionId;

impl Registry {
    /// Runs work on the files of sessions' servers. Uses a blocking thread, because the work reads and
    /// writes the disk.
    async fn with_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Pool) -> T + Send + 'static,
    ) -> Result<T, SessionError> {
        let pool = Arc::clone(&self.shared().mcp);
        let result = tokio::task::spawn_blocking(move || work(&pool)).await;
        result.map_err(|error| SessionError::BadParam("mcp_servers", error.to_string()))
    }

    /// Stores the servers of a session that will be created next.
    pub(super) async fn save_servers(
        &self,
        id: SessionId,
        servers: BTreeMap<String, ServerConfig>,
    ) -> Result<(), SessionError> {
        if servers.is_empty() {
            return Ok(());
        }
        let saved = self.with_pool(move |pool| pool.of_sessions.save(id, &servers)).await?;
        saved.map_err(|why| SessionError::BadParam("mcp_servers", why))
    }

    /// Checks the servers that a session is to have from its next turn on.
    pub(super) async fn checked_servers(
        &self,
        id: SessionId,
        servers: BTreeMap<String, serde_json::Value>,
    ) -> Result<BTreeMap<String, ServerConfig>, SessionError> {
        if let Some(parent) = self.view(id).await?.parent_session_id {
            let why =
                format!("a sub-agent has the servers of the session above it ({parent}): update that one");
            return Err(SessionError::BadParam("mcp_servers", why));
        }
        parse_servers(servers)
    }

    /// Stores the servers of a session in place of those that it has.
    pub(super) async fn replace_servers(
        &self,
        id: SessionId,
        servers: BTreeMap<String, ServerConfig>,
    ) -> Result<(), SessionError> {
        if servers.is_empty() {
            self.remove_servers(id).await;
        }
        self.save_servers(id, servers).await
    }

    /// Whether a session was created with exactly these servers.
    pub(super) async fn has_servers(&self, id: SessionId, servers: &BTreeMap<String, ServerConfig>) -> bool {
        let Ok((known, _)) = self.with_pool(move |pool| pool.of_sessions.list(id)).await else {
            return false;
        };
        known.len() == servers.len()
            && known.iter().all(|known| {
                // The file always names the transport, but a request may omit it.
                let requested = servers.get(&known.name).map(|config| (config, config.transport()));
                let stored = known.config.as_ref().ok().map(|config| (config, config.transport()));
                matches!((requested, stored), (Some((requested, a)), Some((stored, b)))
                    if a == b && ServerConfig { transport: stored.transport, ..requested.clone() } == *stored)
            })
    }

    /// Deletes the servers of a session that no longer exists.
    pub(super) async fn remove_servers(&self, id: SessionId) {
        let _ = self.with_pool(move |pool| pool.of_sessions.remove(id)).await;
    }

    /// Gives a fork the servers of the session that it starts from.
    pub(crate) async fn copy_servers(&self, from: SessionId, to: SessionId) -> Result<(), SessionError> {
        let copied = self.with_pool(move |pool| pool.of_sessions.copy(from, to)).await?;
        copied.map_err(|error| {
            SessionError::BadParam("session_id", format!("could not copy its MCP servers: {error}"))
        })
    }
}
