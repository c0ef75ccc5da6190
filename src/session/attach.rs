//! The attached clients of a session, and the guard for one client. Dropping the guard detaches its client.

use std::sync::RwLock;

use tokio::sync::{mpsc, oneshot};

use crate::error::SessionError;
use crate::lease::Lease;
use base::sync::{read, write};
use types::event::Origin;
use types::session::AttachedClient;

/// The attached clients of one session, readable by other tasks. Only the session's task changes them.
#[derive(Debug, Default)]
pub(super) struct AttachedClients(RwLock<Vec<AttachedClient>>);

impl AttachedClients {
    /// Adds a client. Returns the number of clients.
    pub fn add(&self, client: AttachedClient) -> u32 {
        let mut clients = write(&self.0);
        clients.push(client);
        count(&clients)
    }

    /// Removes the newest client with this name. Returns the number of clients that remain.
    pub fn remove(&self, name: &str) -> u32 {
        let mut clients = write(&self.0);
        if let Some(at) = clients.iter().rposition(|client| client.name == name) {
            clients.remove(at);
        }
        count(&clients)
    }

    /// The number of clients.
    pub fn count(&self) -> u32 {
        count(&read(&self.0))
    }

    /// All clients, in the order in which they attached.
    pub fn list_clients(&self) -> Vec<AttachedClient> {
        read(&self.0).clone()
    }
}

fn count(clients: &[AttachedClient]) -> u32 {
    u32::try_from(clients.len()).unwrap_or(u32::MAX)
}

/// Counts an attached client and holds a lease. Dropping the guard detaches the client.
pub struct AttachGuard {
    leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(crate) origin: Origin,
    /// The client's role in `daemon.hello`.
    pub(crate) role: &'static str,
    /// Whether the session has counted this client. If not, dropping the guard sends no detach.
    pub(super) is_counted: bool,
    _lease: Lease,
}

/// A client that is attached, or will be attached when the session is loaded. Dropping this value
/// detaches the client.
#[expect(dead_code, reason = "kept for what dropping it does")]
pub struct AttachReply(pub(super) AttachState);

#[expect(dead_code, reason = "kept for what dropping it does")]
pub(super) enum AttachState {
    Counted(AttachGuard),
    /// The session sends the guard once it has counted the client. If the receiver is already dropped,
    /// the guard is dropped as well, which detaches the client.
    Coming(oneshot::Receiver<Result<AttachGuard, SessionError>>),
}

impl Drop for AttachGuard {
    fn drop(&mut self) {
        if self.is_counted {
            // Sending fails only if the session has been unloaded, and then no count exists.
            let _ = self.leaving.send(Box::new(self.origin.clone()));
        }
    }
}

impl AttachGuard {
    pub(super) fn new(
        leaving: mpsc::UnboundedSender<Box<Origin>>,
        origin: Origin,
        role: &'static str,
        lease: Lease,
    ) -> Self {
        Self { leaving, origin, role, is_counted: false, _lease: lease }
    }
}
