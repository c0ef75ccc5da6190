//! The dependencies that every RPC method receives.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::planned_stop::PlannedStop;
use crate::refusals::Refusals;
use api::params::{ConfigValue, LastReload, ReloadReply};
use jobs::Jobs;
use jobs::schedule::Schedules;
use knowledge::registry::Indexes;
use session::Registry;
use types::time::Timestamp;

/// Facts about this daemon for `daemon.status`.
#[derive(Clone, Debug)]
pub struct DaemonInfo {
    /// Path of the socket.
    pub socket: String,
    /// Path of the data folder.
    pub data_dir: String,
    /// Folder of the daily backups.
    pub backups: PathBuf,
    /// Messages about recovered or missing databases.
    pub storage_notices: Vec<String>,
    /// Time of the start.
    pub started_at: Timestamp,
    /// Ids of processes of an earlier daemon that could not be killed.
    pub leftovers: Vec<i32>,
    /// Reads the resident memory of this process, in bytes.
    pub resident_bytes: fn() -> u64,
}

/// Values of the configuration. They are listed at the first use, because listing takes milliseconds
/// and would delay the start.
pub type ConfigValues = LazyLock<Vec<ConfigValue>, Box<dyn FnOnce() -> Vec<ConfigValue> + Send>>;

/// The state of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigState {
    /// Paths of the files that were read.
    pub files: Vec<String>,
    /// The effective values, without secrets.
    pub values: Arc<ConfigValues>,
    /// Result of the last reload.
    pub last_reload: Option<LastReload>,
}

/// A configuration that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRefusal {
    /// The file with the error, if the error is in a file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The whole message for the user, which begins with file and line.
    pub message: String,
}

/// Requests a reload of the configuration. The result is sent through this channel.
pub type ReloadRequest = oneshot::Sender<Result<ReloadReply, ConfigRefusal>>;

/// The dependencies that every RPC method receives. Cloning is cheap.
#[derive(Clone)]
pub struct RpcContext {
    /// The loaded sessions.
    pub registry: Registry,
    pub jobs: Jobs,
    /// What creates jobs at given times.
    pub schedules: Schedules,
    /// The indexes of workspaces.
    pub indexes: Indexes,
    /// Facts about this daemon.
    pub info: Arc<DaemonInfo>,
    /// The state of the configuration.
    pub config: watch::Receiver<ConfigState>,
    /// Requests a reload. Reloads run one at a time.
    pub reload: mpsc::Sender<ReloadRequest>,
    /// Stops the daemon.
    pub stop: PlannedStop,
    /// Cancelled when the shutdown must not wait for running tools.
    pub hurry: CancellationToken,
    /// Records refused calls in the audit log.
    pub refusals: Arc<Refusals>,
}
