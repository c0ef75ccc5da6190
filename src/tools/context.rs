//! What every tool is given: the settings of the floor and the scene of the call.

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

/// Settings of this floor, filled by the daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The user's home folder: `~` in paths, `HOME` of commands.
    pub home: PathBuf,
    /// The daemon's configuration, data and runtime folders: never written by a tool.
    pub protected: Vec<PathBuf>,
    /// Further names of environment variables that commands may see. `NAME_*` covers all that
    /// begin so, except those that look like secrets; a secret passes only by its full name.
    pub env_allow: Vec<String>,
    /// How long a command may run if it does not say, in milliseconds.
    pub bash_timeout_ms: u64,
    /// How long a command may run at most, in milliseconds.
    pub bash_timeout_max_ms: u64,
    /// How long a command may run in the background at most.
    pub background_time: Duration,
    /// Characters of output that the model is told; of longer output the head and the tail.
    pub output_cap: usize,
    /// Whether a file must have been read before it is changed (T2, T3).
    pub edit_requires_read: bool,
    /// Bytes of progress a call may send.
    pub max_progress_bytes: usize,
    /// The daemon's instance: goes to `AGENTD_INSTANCE` of every process (S9). The same at every
    /// start over the same state.
    pub instance: String,
    /// The daemon's socket: goes to `AGENTD_SOCKET` of every command, so that an `agentctl` in a script
    /// meets this daemon, which knows it for a tool's, and not whichever the defaults lead to.
    pub socket: Option<PathBuf>,
    /// What commands may use.
    pub limits: Limits,
    /// Where commands get a cgroup of their own.
    pub cgroup: CgroupSetting,
    /// The program that converts documents when it is started with
    /// [`DOCUMENT_ARGUMENT`](super::DOCUMENT_ARGUMENT). `None`: this process does, without limits; for
    /// tests of documents that are known.
    pub converter: Option<PathBuf>,
    /// Addresses that WebFetch may reach although they are not public.
    pub web_private: Ranges,
    /// The proxy that WebFetch uses; none of the environment.
    pub web_proxy: Option<String>,
    /// What else commands are held by.
    pub sandbox: SandboxSettings,
    /// Where the whole output of commands is kept that is more than the model is told; `None` for
    /// nowhere.
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
            background_time: Duration::from_secs(12 * 3_600),
            output_cap: 30_000,
            edit_requires_read: true,
            max_progress_bytes: 1 << 20,
            instance: String::new(),
            socket: None,
            limits: Limits::default(),
            cgroup: CgroupSetting::Off,
            converter: None,
            web_private: Ranges::default(),
            web_proxy: None,
            // Nothing says yet where temporary files go, nor what is to be hidden.
            sandbox: SandboxSettings { level: LevelSetting::Off, ..SandboxSettings::default() },
            spools: None,
        }
    }
}

/// What a call may know of its session.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// The session.
    pub session_id: SessionId,
    /// Its workspace, absolute and free of links.
    pub workspace: PathBuf,
    /// Further folders that count as workspace, absolute and free of links.
    pub additional: Vec<PathBuf>,
    /// The folder in which commands start and relative paths begin; at first the workspace.
    pub cwd: PathBuf,
    /// What the model has seen of files, by resolved path.
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    /// Nobody looks on (P6): commands are held more strictly.
    pub unattended: bool,
    /// What rules keep from being read, where a call looks at more than the path it names.
    pub unreadable: Unreadable,
    /// The session's own blobs.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// The session's background commands, as they stood when the call began.
    pub commands: Vec<BackgroundTaskView>,
}

impl SessionContext {
    /// All folders that count as workspace, its own first.
    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.additional)
    }

    /// Whether a path without links lies in the workspace.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.roots().any(|root| path.starts_with(root))
    }
}

/// A background command of the session.
#[derive(Clone, Debug)]
pub struct BackgroundTaskView {
    /// What the journal knows of it.
    pub known: BackgroundCommand,
    /// What it says meanwhile, and its end; of those that run.
    pub live: Option<Arc<Live>>,
}

/// The blobs of one session, for tools that show parts of them.
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Length and media type of a blob; `None` if the session has none of this id. Waits for the disk:
    /// not to be called from a worker of the runtime.
    ///
    /// # Errors
    /// It could not be looked for: why, for people.
    fn find(&self, blob_id: BlobId) -> Result<Option<(u64, String)>, String>;

    /// At most `most` bytes from `offset` on. Waits like [`Blobs::find`].
    ///
    /// # Errors
    /// It could not be read: why, for people.
    fn read(&self, blob_id: BlobId, offset: u64, most: usize) -> Result<Vec<u8>, String>;
}

/// Says of a tool and a resolved path whether a rule keeps that tool from reading it (or asks first).
/// By default nothing is kept.
#[derive(Clone, Default)]
pub struct Unreadable(Option<Arc<Covers>>);

type Covers = dyn Fn(&str, &Path) -> bool + Send + Sync;

impl Unreadable {
    /// Takes the rules as a function of the tool's name and the path.
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

/// One call's view of the world. Cheap to clone.
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
    /// What a path means, judged and held. Waits for the disk.
    pub(super) fn resolve(&self, text: &str, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.covers("Read", path);
        self.jails.of(&self.session_context).decide_with(text, &self.session_context.cwd, access, &hidden)
    }

    /// A hold on a path that was resolved before.
    pub(super) fn hold(&self, path: &Path, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.covers("Read", path);
        self.jails.of(&self.session_context).decide_resolved(path.to_path_buf(), access, &hidden)
    }

    /// The path as people and models write it: relative to the current folder if it is below it.
    /// Characters that nobody sees are spelled out.
    pub(super) fn show(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.session_context.cwd) {
            Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy(),
            _ => path.to_string_lossy(),
        };
        spelled_out(&shown)
    }

    /// What the model knows of a file.
    pub(super) fn record(&self, path: &Path) -> Option<&ReadRecord> {
        self.session_context.reads.get(path)
    }
}

/// A name that cannot pass for two, or for another one.
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
