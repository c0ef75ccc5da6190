//! The guard of an attached client. Dropping it detaches the client.

use tokio::sync::{mpsc, oneshot};

use crate::session::error::SessionError;
use crate::session::lease::Lease;
use crate::types::event::Origin;

/// Counts an attached client and holds a lease. Dropping it detaches the client.
pub struct AttachGuard {
    leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(in crate::session) origin: Origin,
    /// Whether the session has counted this client. Without that, dropping the guard sends no detach.
    pub(super) is_counted: bool,
    _lease: Lease,
}

/// An attached client, now or when the session is loaded. Dropping it detaches the client.
#[expect(dead_code, reason = "kept for what dropping it does")]
pub struct AttachReply(pub(super) Stay);

#[expect(dead_code, reason = "kept for what dropping it does")]
pub(super) enum Stay {
    Counted(AttachGuard),
    /// The session returns the guard once it has counted the client. If the receiver is gone, the guard is
    /// dropped then.
    Coming(oneshot::Receiver<Result<AttachGuard, SessionError>>),
}

impl Drop for AttachGuard {
    fn drop(&mut self) {
        if self.is_counted {
            // This fails only if the session has been unloaded, and then no count exists.
            let _ = self.leaving.send(Box::new(self.origin.clone()));
        }
    }
}

impl AttachGuard {
    pub(super) fn new(leaving: mpsc::UnboundedSender<Box<Origin>>, origin: Origin, lease: Lease) -> Self {
        Self { leaving, origin, is_counted: false, _lease: lease }
    }
}
