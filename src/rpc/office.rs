//! What every method may use.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio_util::sync::CancellationToken;

use crate::session::Registry;
use crate::types::time::Timestamp;

/// Facts about this daemon for `daemon.status`.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its socket.
    pub socket: String,
    /// Its data folder.
    pub data_dir: String,
    /// Configuration files that were read.
    pub config_files: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// Processes of an earlier daemon that it could not end.
    pub leftovers: Vec<i32>,
}

/// What every method may use.
#[derive(Clone)]
pub struct Office {
    /// The sessions.
    pub registry: Registry,
    /// About this daemon.
    pub info: Arc<Info>,
    /// Cancelled to stop the daemon.
    pub stop: CancellationToken,
    /// Whether stopping does not wait for running tools.
    pub hurry: Arc<AtomicBool>,
}
