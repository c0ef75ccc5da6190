//! Data that every tool receives: settings of all tools and the session's part of the call.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::ahead::Ahead;
use super::shell::{
    CgroupSetting, Cgroups, Found, LevelSetting, Limits, Live, PlaceholderCache, SandboxSettings, Spools,
};
use super::web::Ranges;
use crate::tools::error::ToolError;
use crate::tools::fs::jails::Jails;
use crate::tools::fs::pinned::PinnedPath;
use crate::tools::sensitivity::{Access, SensitivePaths};
use crate::types::background::BackgroundCommand;
use crate::types::ids::{BlobId, SessionId};
use crate::types::names;
use crate::types::tool::ReadRecord;

/// Settings of the tools, filled by the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The user's home folder: `~` in paths, `HOME` of commands.
    pub home: PathBuf,
    /// The daemon's configuration, data and runtime folders. No tool may write them.
    pub protected: Vec<PathBuf>,
    /// Names of further environment variables that commands may see. `NAME_*` matches all names with this
    /// prefix except those that look like secrets; a secret must be listed by its full name.
    pub env_allow: Vec<String>,
    /// Default time limit of a command, in milliseconds.
    pub bash_timeout_ms: u64,
    /// Highest time limit of a command, in milliseconds.
    pub bash_timeout_max_ms: u64,
    /// Time limit of a background task.
    pub background_timeout: Duration,
    /// Characters of output that the model receives. Longer output is reduced to its head and tail.
    pub output_cap: usize,
    /// Whether the model must have read a file before it changes the file.
    pub edit_requires_read: bool,
    /// Bytes of progress that one call may send.
    pub max_progress_bytes: usize,
    /// The daemon's instance, set as `AGENTD_INSTANCE` of every process. It is the same after each restart with
    /// the same data folder.
    pub instance: String,
    /// The daemon's socket, set as `AGENTD_SOCKET` of every command. An `agentctl` in a script connects to this
    /// daemon, which recognises it as a tool's process, instead of the default daemon.
    pub socket: Option<PathBuf>,
    /// Resource limits of commands.
    pub limits: Limits,
    /// Where the daemon creates a cgroup per call.
    pub cgroup: CgroupSetting,
    /// The program that converts documents if it is started with
    /// [`DOCUMENT_ARGUMENT`](super::DOCUMENT_ARGUMENT). `None` converts in this process without limits, for
    /// tests with trusted documents.
    pub converter: Option<PathBuf>,
    /// Non-public addresses that WebFetch may reach.
    pub web_allowed_private: Ranges,
    /// The proxy of WebFetch. Proxy variables of the environment are ignored.
    pub web_proxy: Option<String>,
    /// Settings of the sandbox.
    pub sandbox: SandboxSettings,
    /// Where the full output of commands is stored if it exceeds the excerpt for the model; `None` stores
    /// nothing.
    pub spools: Option<Spools>,
}

impl Settings {
    /// The defaults, for a user at `home`.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self {
            home,
            protected: Vec::new(),
            env_allow: Vec::new(),
            bash_timeout_ms: 120_000,
            bash_timeout_max_ms: 600_000,
            background_timeout: Duration::from_secs(12 * 3_600),
            output_cap: 30_000,
            edit_requires_read: true,
            max_progress_bytes: 1 << 20,
            instance: String::new(),
            socket: None,
            limits: Limits::default(),
            cgroup: CgroupSetting::Off,
            converter: None,
            web_allowed_private: Ranges::default(),
            web_proxy: None,
            // The folder for temporary files and the hidden paths are not known yet.
            sandbox: SandboxSettings { level: LevelSetting::Off, ..SandboxSettings::default() },
            spools: None,
        }
    }
}

/// The session's part of a tool context.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// Id of the session.
    pub session_id: SessionId,
    /// The session's workspace: absolute, without links.
    pub workspace: PathBuf,
    /// Additional folders of the workspace: absolute, without links.
    pub additional: Vec<PathBuf>,
    /// The folder in which commands start and relative paths begin. Initially the workspace.
    pub cwd: PathBuf,
    /// The parts of each file that the model has read, by resolved path.
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    /// Whether the session is unattended. Its commands have stricter limits.
    pub unattended: bool,
    /// Files that rules deny for reading, for calls that read more than the path in their arguments.
    pub unreadable: Unreadable,
    /// The session's own blobs.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// The session's background tasks at the start of the call.
    pub commands: Vec<BackgroundTaskView>,
}

impl SessionContext {
    /// All folders of the workspace, the main one first.
    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.additional)
    }

    /// Whether a path without links lies in the workspace.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.roots().any(|root| path.starts_with(root))
    }
}

/// A background task of the session.
#[derive(Clone, Debug)]
pub struct BackgroundTaskView {
    /// State of the task according to the journal.
    pub known: BackgroundCommand,
    /// Live output and end of a running task; `None` if it does not run.
    pub live: Option<Arc<Live>>,
}

/// The blobs of one session, for tools that show parts of them.
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Length in bytes and media type of a blob; `None` if the session has no blob with this id. Blocks on the
    /// disk: do not call it on a worker of the runtime.
    ///
    /// # Errors
    /// The blob could not be looked up; the text gives the reason for users.
    fn find(&self, blob_id: BlobId) -> Result<Option<(u64, String)>, String>;

    /// Reads at most `most` bytes from `offset` on. Blocks like [`Blobs::find`].
    ///
    /// # Errors
    /// The blob could not be read; the text gives the reason for users.
    fn read(&self, blob_id: BlobId, offset: u64, most: usize) -> Result<Vec<u8>, String>;
}

/// Decides for a tool and a resolved path whether a rule denies reading or requires a permission request. The
/// default denies nothing.
#[derive(Clone, Default)]
pub struct Unreadable(Option<Arc<Covers>>);

type Covers = dyn Fn(&str, &Path) -> bool + Send + Sync;

impl Unreadable {
    /// Creates the check from a function of the tool's name and the path.
    #[must_use]
    pub fn new(covers: impl Fn(&str, &Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(covers)))
    }

    pub(super) fn covers(&self, tool: &str, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|covers| covers(tool, path))
    }
}

impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Unreadable(by rules)" } else { "Unreadable(nothing)" })
    }
}

/// Context of one tool call. Cheap to clone.
#[derive(Clone)]
pub(super) struct ToolContext {
    pub(super) settings: Arc<Settings>,
    pub(super) places: Arc<SensitivePaths>,
    pub(super) cells: Arc<Cgroups>,
    pub(super) jails: Arc<Jails>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) layouts: Arc<Found>,
    pub(super) lingering: Arc<PlaceholderCache>,
    pub(super) session_context: SessionContext,
}

impl ToolContext {
    /// Resolves, judges and pins a path. Blocks on the disk.
    pub(super) fn resolve(&self, text: &str, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.covers("Read", path);
        self.jails.of(&self.session_context).decide_with(text, &self.session_context.cwd, access, &hidden)
    }

    /// Pins a path that was resolved before.
    pub(super) fn hold(&self, path: &Path, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.covers("Read", path);
        self.jails.of(&self.session_context).decide_resolved(path.to_path_buf(), access, &hidden)
    }

    /// The path as users and models write it: relative to the current folder if it lies below it. Invisible
    /// characters are escaped.
    pub(super) fn show(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.session_context.cwd) {
            Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy(),
            _ => path.to_string_lossy(),
        };
        spelled_out(&shown)
    }

    /// The part of a file that the model has read, if any.
    pub(super) fn record(&self, path: &Path) -> Option<&ReadRecord> {
        self.session_context.reads.get(path)
    }
}

/// Escapes a name, so that it cannot look like two names or like another name.
pub(super) fn spelled_out(name: &str) -> String {
    if !name.chars().any(names::is_hidden) {
        return name.to_owned();
    }
    name.chars().fold(String::with_capacity(name.len() + 8), |mut out, c| {
        if names::is_hidden(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}
