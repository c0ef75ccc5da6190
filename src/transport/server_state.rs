//! State that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jsonrpsee::Methods;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::socket::PageSource;

/// State that all connections share.
pub(super) struct ServerState {
    pub methods: Methods,
    pub limits: Limits,
    pub stop: CancellationToken,
    /// User id of the daemon.
    pub uid: u32,
    /// Marker in the environment of this daemon's tool processes.
    pub mark: Option<Arc<[u8]>>,
    /// The metrics page as text.
    pub page: Option<PageSource>,
    /// Number of open connections.
    pub open: Arc<AtomicUsize>,
}

impl ServerState {
    pub(super) fn without_socket(methods: Methods, limits: Limits) -> Self {
        Self {
            methods,
            limits,
            stop: CancellationToken::new(),
            uid: 0,
            mark: None,
            page: None,
            open: Arc::default(),
        }
    }

    /// Counts one more open connection, until the guard is dropped.
    pub(super) fn count(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }
}

pub(super) struct OpenConnection(Arc<ServerState>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
