//! What every method may use.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::api::params::{LastReload, ReloadReply};
use crate::rpc::refusals::Refusals;
use crate::session::Registry;
use crate::types::time::Timestamp;

/// Facts about this daemon for `daemon.status`.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its socket.
    pub socket: String,
    /// Its data folder.
    pub data_dir: String,
    /// Where its rolling backups are.
    pub backups: PathBuf,
    /// What became of damaged databases.
    pub storage_notices: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// Processes of an earlier daemon that it could not end.
    pub leftovers: Vec<i32>,
}

/// What is known of the configuration now.
#[derive(Clone, Debug, Default)]
pub struct ConfigState {
    /// Files that were read.
    pub files: Vec<String>,
    /// How the last reload went.
    pub last_reload: Option<LastReload>,
}

/// A configuration that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where, if it lies in a file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The whole text for people; it begins with the place.
    pub message: String,
}

/// Asks the daemon to read its configuration again, and waits for how that went.
pub type ReloadRequest = oneshot::Sender<Result<ReloadReply, Refused>>;

/// What every method may use.
#[derive(Clone)]
pub struct RpcContext {
    /// The sessions.
    pub registry: Registry,
    /// About this daemon.
    pub info: Arc<Info>,
    /// About its configuration.
    pub config: watch::Receiver<ConfigState>,
    /// Reads it again; one at a time, the others wait.
    pub reload: mpsc::Sender<ReloadRequest>,
    /// Cancelled to stop the daemon.
    pub stop: CancellationToken,
    /// Cancelled when stopping does not wait for running tools.
    pub hurry: CancellationToken,
    /// Writes down who was refused.
    pub refusals: Arc<Refusals>,
}
