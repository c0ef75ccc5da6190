//! Data that every tool receives: the settings, the session's part of the call, and its open workspace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::background_task::BackgroundTaskView;
use crate::error::ToolError;
use crate::fs::jail::{Jail, Jails};
use crate::fs::pinned::PinnedPath;
use crate::mcp_context::McpContext;
use crate::progress::CallProgress;
use crate::sensitivity::{Access, SensitivePaths};
use crate::settings::Settings;
use project::extensions::agents::Agent;
use types::ids::{BlobId, SessionId};
use types::invisible_chars::{is_invisible, is_joiner_at};
use types::memory::MemoryNote;
use types::permission::Mode;
use types::session_environment::SessionEnvironment;
use types::todo::Todo;
use types::tool::ReadRecord;

/// The session's part of a tool context.
#[derive(Clone, Debug)]
pub struct SessionContext {
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
    /// Time limit of a command that sets none, in milliseconds; absent for that of the settings.
    pub bash_timeout_ms: Option<u64>,
    /// Files that rules deny for reading, for calls that read more than the path in their arguments.
    pub unreadable: UnreadablePaths,
    /// The session's own blobs.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// The approval mode of the session.
    pub mode: Mode,
    /// The session's todo list.
    pub todos: Arc<Vec<Todo>>,
    /// The agents that `Task` can start. Empty for calls of other tools.
    pub agents: Arc<[Agent]>,
    /// Skills and notes of the project.
    pub project: Option<Arc<dyn ProjectData>>,
    /// The session's background tasks at the start of the call.
    pub commands: Vec<BackgroundTaskView>,
    /// The tools of MCP servers.
    pub mcp: McpContext,
    /// The variables that a client sent for the session's commands; `None` for those of the daemon.
    pub environment: Option<Arc<dyn EnvironmentSource>>,
}

impl SessionContext {
    /// Whether an absolute path without links is inside the workspace.
    #[must_use]
    pub fn is_inside(&self, path: &Path) -> bool {
        let leads_up = path.components().any(|part| matches!(part, std::path::Component::ParentDir));
        path.is_absolute() && !leads_up && self.roots().any(|root| path.starts_with(root))
    }

    /// All folders of the workspace, the main one first.
    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.additional)
    }

    /// Whether a path without links lies in the workspace.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.roots().any(|root| path.starts_with(root))
    }
}

/// The variables that a client sent for the commands of one session.
pub trait EnvironmentSource: Send + Sync + std::fmt::Debug {
    /// The current ones; `None` if no client sent any. May block on the disk.
    fn variables(&self) -> Option<SessionEnvironment>;
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

/// The reason why skills or notes could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// A stable code.
    pub code: &'static str,
    /// Tells the model what to fix.
    pub text: String,
}

/// Skills and notes of a session's project. All calls block on the disk.
pub trait ProjectData: Send + Sync + std::fmt::Debug {
    /// The text of a skill for the model.
    ///
    /// # Errors
    /// There is no such skill.
    fn skill(&self, name: &str) -> Result<String, DataError>;

    /// Names and descriptions of the skills that fit a query, for the model.
    ///
    /// # Errors
    /// The skills could not be read.
    fn find_skills(&self, query: &str) -> Result<String, DataError>;

    /// The notes about the project, without their texts.
    ///
    /// # Errors
    /// The notes could not be read.
    fn notes(&self) -> Result<Vec<MemoryNote>, DataError>;

    /// One note with its text.
    fn read_note(&self, name: &str) -> Result<MemoryNote, DataError>;

    /// Writes a note, or replaces it.
    ///
    /// # Errors
    /// The note was not written.
    fn write_note(&self, name: &str, text: &str) -> Result<(), DataError>;

    /// Removes a note.
    fn remove_note(&self, name: &str) -> Result<(), DataError>;
}

/// Decides for a tool and a resolved path whether a rule denies reading or requires a permission request. The
/// default denies nothing.
#[derive(Clone, Default)]
pub struct UnreadablePaths(Option<Arc<UnreadableCheck>>);

type UnreadableCheck = dyn Fn(&str, &Path) -> bool + Send + Sync;

impl UnreadablePaths {
    /// Creates the check from a function of the tool's name and the path.
    #[must_use]
    pub fn new(covers: impl Fn(&str, &Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(covers)))
    }

    pub(super) fn is_unreadable(&self, tool: &str, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|covers| covers(tool, path))
    }
}

impl std::fmt::Debug for UnreadablePaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "UnreadablePaths(by rules)" } else { "UnreadablePaths(nothing)" })
    }
}

/// Context of one tool call. Cheap to clone.
#[derive(Clone)]
pub(super) struct ToolContext {
    pub(super) settings: Arc<Settings>,
    pub(super) places: Arc<SensitivePaths>,
    pub(super) jails: Arc<Jails>,
    pub(super) session_context: SessionContext,
    pub(super) progress: CallProgress,
}

impl ToolContext {
    /// The open workspace of the session. Blocks on the disk.
    pub(super) fn jail(&self) -> Arc<Jail> {
        let roots: Vec<PathBuf> = self.session_context.roots().cloned().collect();
        self.jails.jail_for(self.session_context.session_id, &roots, &self.places)
    }

    /// Resolves, judges and pins a path. Blocks on the disk.
    pub(super) fn resolve(&self, text: &str, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.is_unreadable("Read", path);
        self.jail().decide_with(text, &self.session_context.cwd, access, &hidden)
    }

    /// Pins a path that was resolved before.
    pub(super) fn hold(&self, path: &Path, access: Access) -> Result<PinnedPath, ToolError> {
        let hidden = |path: &Path| self.session_context.unreadable.is_unreadable("Read", path);
        self.jail().decide_resolved(path.to_path_buf(), access, &hidden)
    }

    /// The path as users and models write it: relative to the current folder if it lies below it. Invisible
    /// characters are escaped.
    pub(super) fn show(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.session_context.cwd) {
            Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy(),
            _ => path.to_string_lossy(),
        };
        escape_name(&shown)
    }

    /// The part of a file that the model has read, if any.
    pub(super) fn record(&self, path: &Path) -> Option<&ReadRecord> {
        self.session_context.reads.get(path)
    }
}

/// Escapes a name, so that it cannot look like two names or like another name. Joiners of words and emoji are part of
/// it, so that the model can open the file by the name that it sees.
pub(super) fn escape_name(name: &str) -> String {
    if !name.chars().any(is_invisible) {
        return name.to_owned();
    }
    name.char_indices().fold(String::with_capacity(name.len() + 8), |mut out, (index, c)| {
        if is_invisible(c) && !is_joiner_at(name, index) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}
