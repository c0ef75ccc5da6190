//! The tools for the session, and the lifecycle of a call: find, parse, validate, run.
//! Judging happens in another module, between validating and running.

mod calls;
mod definitions;

pub use calls::CallPreparer;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::calls::CallInput;
use crate::call::{blocking, internal_error};
use crate::context::{EnvironmentSource, SessionContext, ToolContext};
use crate::error::ToolError;
use crate::file_reads::ReadableFiles;
use crate::files::checkpoint;
use crate::files::checkpoint::{FileState, FileVersion, RestoreStep};
use crate::files::input_files;
use crate::files::input_files::{IngestedFile, InputFile};
use crate::files::inspect;
use crate::files::workspace_files::WorkspaceFiles;
use crate::fs::jail::Jails;
use crate::fs::resolve;
use crate::progress::CallProgress;
use crate::sensitivity::SensitivePaths;
use crate::settings::Settings;
use crate::shell::{
    AvailableLevels, CallChannels, Cgroups, CommandContext, FirstSeen, PlaceholderCache, ProcessStarted,
    ProgramSearch, RunningServer, RunningTask, ServerLaunch, ServerStreams, Spools, SweepResult,
};
use crate::{limits, session_tools, shell, web};
use judge::{FileFacts, FileRead};
use types::ids::{CallId, SessionId};
use types::message::ToolCall;
use types::tool::{
    Confinement, Inspection, PreparedCall, ProcessRecord, ToolDefinition, ToolLimits, ToolOutcome,
    ToolProgress,
};

/// All tools with their settings. Cheap to clone.
#[derive(Clone)]
pub struct Toolbox {
    settings: Arc<Settings>,
    places: Arc<SensitivePaths>,
    cgroups: Arc<Cgroups>,
    jails: Arc<Jails>,
    first_seen: Arc<FirstSeen>,
    placeholder_cache: Arc<PlaceholderCache>,
    spools: Option<Arc<Spools>>,
    definitions: Arc<[ToolDefinition]>,
    web: web::WebClient,
}

/// The sandbox that commands get; the errors say why there is none.
#[derive(Clone, Debug)]
pub struct SandboxReport {
    /// Confinement in attended sessions, with a description.
    pub attended: Result<(Confinement, &'static str), String>,
    /// Confinement in unattended sessions, with a description.
    pub unattended: Result<(Confinement, &'static str), String>,
    /// Whether level 2 works on this machine.
    pub landlock: Result<(), String>,
    /// Whether level 2 can make `.git/config`, `.git/hooks` and `.agentd` of a workspace read-only on this
    /// machine.
    pub guards: Result<(), String>,
    /// Whether level 3 works on this machine.
    pub bubblewrap: Result<(), String>,
}

impl Toolbox {
    /// Resolves the protected folders once, as far as they exist, and tests the available cgroup functions.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut protected = settings.protected.clone();
        protected.extend(settings.protected.iter().filter_map(|folder| resolve::follow(folder).ok()));
        protected.dedup();
        let home = resolve::follow(&settings.home).unwrap_or_else(|_| settings.home.clone());
        let places = Arc::new(SensitivePaths::new(&home, &protected).with_links());
        let jails = Arc::new(Jails::new(settings.undo_folder.as_deref()));
        AvailableLevels::mark(&settings.instance);
        let cgroups = Arc::new(Cgroups::find(&settings.config.cgroup, &settings.instance));
        let config = &settings.config;
        let (call_bytes, total_bytes) = (config.max_spool_size.0, config.max_spool_total.0);
        let spools = settings.spool_folder.as_ref();
        let spools = spools.map(|folder| Arc::new(Spools::new(folder, call_bytes, total_bytes)));
        Self {
            settings: Arc::new(settings),
            places,
            cgroups,
            jails,
            first_seen: Arc::default(),
            placeholder_cache: Arc::default(),
            spools,
            definitions: definitions::definitions(),
            web: web::WebClient::default(),
        }
    }

    /// Copies the first locations of hidden paths from a toolbox with other settings.
    #[must_use]
    pub fn inherit_from(mut self, before: &Self) -> Self {
        self.first_seen = Arc::clone(&before.first_seen);
        self
    }

    /// Whether a folder is the daemon's own, or lies in one of those.
    #[must_use]
    pub fn is_protected(&self, folder: &Path) -> bool {
        self.places.protected.iter().any(|place| folder.starts_with(place))
    }

    /// The worktree of the daemon that holds a folder; `None` if the folder is elsewhere.
    #[must_use]
    pub fn worktree_of(&self, folder: &Path) -> Option<PathBuf> {
        self.settings.worktree_of(folder)
    }

    /// Whether a workspace has an index that `KnowledgeSearch` can use.
    #[must_use]
    pub fn has_index(&self, workspace: &Path) -> bool {
        self.settings.knowledge.as_ref().is_some_and(|indexes| indexes.has_index(workspace))
    }

    /// The files of a workspace, for its index.
    #[must_use]
    pub fn workspace_files(&self, workspace: &Path) -> WorkspaceFiles {
        WorkspaceFiles::new(workspace.to_owned(), Arc::clone(&self.places))
    }

    /// Describes for users how commands are limited on this machine.
    #[must_use]
    pub fn confinement(&self) -> String {
        self.cgroups.describe()
    }

    /// The sandbox that commands get in attended and unattended sessions; `None` while the test of the levels runs.
    #[must_use]
    pub fn sandbox(&self) -> Option<SandboxReport> {
        let here = AvailableLevels::known()?;
        let describe_level = |unattended| {
            let chosen = self.settings.sandbox.choose(unattended, here);
            chosen.map(shell::confinement_label).map_err(|refusal| refusal.text)
        };
        Some(SandboxReport {
            attended: describe_level(false),
            unattended: describe_level(true),
            landlock: here.landlock().map_err(str::to_owned),
            guards: here.guards().map_err(str::to_owned),
            bubblewrap: here.bubblewrap().map_err(str::to_owned),
        })
    }

    /// Ends processes that an earlier daemon of the same instance left running. Call it before any tool call
    /// starts. `records` are the processes that it had stored. Takes at most five seconds. If the future is
    /// dropped, processes that were not killed yet continue to run.
    pub async fn sweep(&self, records: Vec<ProcessRecord>) -> SweepResult {
        shell::sweep(&self.settings.instance, Arc::clone(&self.cgroups), records).await
    }

    /// Removes the temporary files of a session that has ended. A failure is logged, and the next sweep tries
    /// again. Blocks on the disk in a thread of its own.
    pub async fn forget_session(&self, session: SessionId) {
        let root = self.settings.sandbox.temp.clone();
        let done = tokio::task::spawn_blocking(move || shell::forget_temp(&root, session)).await;
        if let Ok(Err(error)) = done {
            tracing::warn!(%session, %error, "could not remove temporary files of an ended session");
        }
    }

    /// Removes placeholders that a crashed daemon left. Call it before any command runs.
    pub async fn remove_leftover_placeholders(&self) {
        let root = self.settings.sandbox.temp.clone();
        let removed = tokio::task::spawn_blocking(move || shell::remove_leftover_placeholders(&root))
            .await
            .unwrap_or(0);
        if removed > 0 {
            tracing::info!(removed, "removed placeholders of an earlier daemon's commands");
        }
    }

    /// Lists the folders for temporary files. Call it before listing the sessions that keep theirs, so that the
    /// folder of a session that begins meanwhile is not removed.
    ///
    /// # Errors
    /// The folders could not be listed.
    pub async fn temp_folders(&self) -> std::io::Result<Vec<String>> {
        let root = self.settings.sandbox.temp.clone();
        let found = tokio::task::spawn_blocking(move || shell::temp_folders(&root)).await;
        found.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Removes the folders of `found` that belong to none of the sessions in `kept_sessions`, and returns their
    /// number. Failures are logged.
    pub async fn sweep_temp(&self, found: Vec<String>, kept_sessions: Vec<SessionId>) -> usize {
        let root = self.settings.sandbox.temp.clone();
        let swept =
            tokio::task::spawn_blocking(move || shell::sweep_temp(&root, &found, &kept_sessions)).await;
        swept.unwrap_or(0)
    }

    /// Makes a new folder that several sessions share. The system's rules for temporary files remove it.
    ///
    /// # Errors
    /// The folder could not be made.
    pub async fn make_scratch_folder(&self) -> std::io::Result<PathBuf> {
        let made = tokio::task::spawn_blocking(|| {
            // Sub-agents write their results there: other users may not read them.
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            let builder = tempfile::Builder::new().prefix("agentd-scratch-").permissions(private).tempdir();
            let folder = builder?.keep();
            folder.canonicalize()
        });
        made.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// The environment of programs that the user configured, such as hooks: that of the session's commands. May block on
    /// the disk.
    #[must_use]
    pub fn environment(&self, session: Option<&dyn EnvironmentSource>) -> Vec<(OsString, OsString)> {
        shell::environment(&self.settings, session.and_then(|source| source.variables()).as_ref())
    }

    /// Names of `[tools] env`: variables that the user lets pass to commands.
    #[must_use]
    pub fn environment_names(&self) -> &[String] {
        &self.settings.config.env
    }

    /// Finds the programs that commands of the session start. May block on the disk.
    #[must_use]
    pub fn program_search(&self, session: &SessionContext) -> ProgramSearch {
        ProgramSearch::new(&self.settings, session)
    }

    /// The definitions for models, always in the same order.
    #[must_use]
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.definitions.clone()
    }

    /// The definition of the search for deferred tools.
    #[must_use]
    pub fn tool_search_definition(&self) -> ToolDefinition {
        session_tools::tool_search_definition()
    }

    /// Permission need, time limit and output limit of a tool.
    #[must_use]
    pub fn limits(&self, tool: &str) -> ToolLimits {
        limits::tool_limits(tool, &self.settings)
    }

    /// Prepares a call: determines its effect without changing anything. Reads files, never writes, runs
    /// nothing. The error is an outcome for the model: unknown tools, invalid arguments, calls that cannot
    /// succeed. Cancel-safe.
    pub async fn prepare(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Result<PreparedCall, ToolOutcome> {
        let (preparer, call, session_context) =
            (self.call_preparer().await, call.clone(), session_context.clone());
        let prepared = tokio::task::spawn_blocking(move || preparer.prepare(&call, &session_context));
        Ok(prepared.await.unwrap_or_else(|_| Err(internal_error()))?)
    }

    /// Inspects what a command of the session would read, before it is judged. `confinement` is that of the
    /// command. Blocks on the disk, for at most about 40 ms.
    #[must_use]
    pub fn inspect_reads(
        &self,
        reads: Vec<FileRead>,
        session_context: &SessionContext,
        confinement: Option<Confinement>,
    ) -> FileFacts {
        if reads.is_empty() {
            return FileFacts::default();
        }
        let roots: Vec<PathBuf> = session_context.roots().cloned().collect();
        let context = self.context(session_context);
        let hidden = || {
            let mut hidden = shell::hidden_paths(&context, &self.first_seen, confinement);
            // The folder around a worktree of the daemon is hidden, but not the worktree.
            hidden.retain(|folder| !roots.iter().any(|root| root.starts_with(folder)));
            hidden
        };
        ReadableFiles { roots: &roots, places: &context.places, hidden: &hidden }.inspect(reads)
    }

    /// Time that a shell takes that does nothing, in the sandbox of this session's calls. For benchmarks only.
    /// Blocking.
    ///
    /// # Errors
    /// The level does not work here, or the shell failed.
    pub fn bare_shell(&self, session_context: &SessionContext) -> std::io::Result<std::time::Duration> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let here = AvailableLevels::probe_once().await;
            shell::spawn_bare(&self.command_context(session_context), here).await
        })
    }

    /// The session will run no command soon: removes the placeholders in its workspace.
    pub fn on_session_idle(&self, session: SessionId) {
        self.placeholder_cache.end(session);
    }

    /// Returns a preparer for callers on a thread that may block on the disk.
    pub async fn call_preparer(&self) -> CallPreparer {
        CallPreparer { tools: self.clone(), here: AvailableLevels::probe_once().await }
    }

    /// Runs the call. `prepared` is the judged call: if the call would now affect another target, it is refused
    /// (`target_changed`). Once `stop` is cancelled, the outcome is `Cancelled`, unless a file was already
    /// changed. It is returned after every process of the call has ended or is listed in `detail.survivors`.
    /// Progress that the channel cannot take is dropped. A started process is reported to `process_starts`; its call
    /// continues once the session has answered.
    ///
    /// Never panics. If the future is dropped, processes are killed; a thread still completes a file write in
    /// progress (atomically).
    pub async fn run(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        progress: mpsc::Sender<ToolProgress>,
        process_starts: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> ToolOutcome {
        let work =
            AssertUnwindSafe(self.run_call(call, prepared, session_context, progress, process_starts, stop));
        match work.catch_unwind().await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(refusal)) => refusal.into(),
            Err(_) => internal_error().into(),
        }
    }

    /// Starts a Bash call as a background task: the command runs and is recorded when this returns. The error
    /// is an outcome for the model. `stop` ends it until then; if the future is dropped, started processes are
    /// killed.
    ///
    /// # Errors
    /// It was not started, or all its processes have ended.
    pub async fn start(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        process_starts: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> Result<RunningTask, ToolOutcome> {
        // Progress begins when a caller follows the task.
        let (progress, _) = mpsc::channel(1);
        match self.parse(call, session_context)? {
            CallInput::Bash(input) => {
                let channels = CallChannels { progress, process_starts, stop };
                shell::start(&self.command_context(session_context), call.call_id, &input, prepared, channels)
                    .await
            }
            _ => Err(internal_error().into()),
        }
    }

    /// Starts a program that outlives calls, for example an MCP server.
    ///
    /// # Errors
    /// The program could not be started; the text is for users.
    pub async fn launch_server(
        &self,
        launch: ServerLaunch,
    ) -> Result<(RunningServer, ServerStreams), String> {
        let session_context = launch.session_context();
        shell::launch(&self.command_context(&session_context), launch).await
    }

    /// After a crash: finds the state of a file change that `call_id` had begun. Removes the temporary file
    /// that it may have left. Never panics; cancel-safe.
    pub async fn inspect(
        &self,
        call_id: CallId,
        prepared: &PreparedCall,
        session_context: &SessionContext,
    ) -> Inspection {
        let (context, prepared) = (self.context(session_context), prepared.clone());
        let inspection = blocking(move || Ok(inspect::inspect(&context, call_id, &prepared))).await;
        inspection.unwrap_or_else(|refusal| Inspection::Conflict(refusal.text))
    }

    /// The current versions of the files that a call will change, for its file checkpoint. Contents beyond the
    /// configured size are left out. Cancel-safe.
    pub async fn file_versions_of(
        &self,
        prepared: &PreparedCall,
        session_context: &SessionContext,
    ) -> Vec<FileVersion> {
        let paths = checkpoint::paths_of(&prepared.subject);
        self.file_versions(paths, self.settings.config.max_checkpoint_size.0, session_context).await
    }

    /// The current versions of files. Contents of more than `max_bytes` are left out. Cancel-safe.
    pub async fn file_versions(
        &self,
        paths: Vec<PathBuf>,
        max_bytes: u64,
        session_context: &SessionContext,
    ) -> Vec<FileVersion> {
        let (context, named) = (self.context(session_context), paths.clone());
        let read = blocking(move || Ok(checkpoint::versions(&context, &paths, max_bytes))).await;
        read.unwrap_or_else(|refusal| {
            let version = |path| FileVersion { path, state: FileState::Unreadable(refusal.text.clone()) };
            named.into_iter().map(version).collect()
        })
    }

    /// Changes all these files, or none. `call_id` names the temporary files. Not cancel-safe: if the future
    /// is dropped, some of the files may be changed.
    ///
    /// # Errors
    /// The file that could not be changed, and the reason. All files have their content from before.
    pub async fn restore_files(
        &self,
        call_id: CallId,
        steps: Vec<RestoreStep>,
        session_context: &SessionContext,
    ) -> Result<(), (PathBuf, String)> {
        let context = self.context(session_context);
        let restored = blocking(move || Ok(checkpoint::restore(&context, call_id, steps))).await;
        restored.unwrap_or_else(|refusal| Err((PathBuf::new(), refusal.text)))
    }

    /// Reads a file that a user attaches to an input, checks it in a process of its own, and converts it for
    /// models. Cancel-safe.
    ///
    /// # Errors
    /// The file does not exist, is too large or damaged, or has a type that no model accepts.
    pub async fn ingest_file(&self, input_file: InputFile) -> Result<IngestedFile, ToolError> {
        input_files::ingest(&self.settings, input_file).await
    }

    fn context(&self, session_context: &SessionContext) -> ToolContext {
        let worktree = self.settings.worktree_of(&session_context.workspace);
        ToolContext {
            settings: self.settings.clone(),
            places: match worktree {
                Some(worktree) => Arc::new(self.places.in_worktree(worktree)),
                None => self.places.clone(),
            },
            jails: self.jails.clone(),
            session_context: session_context.clone(),
            progress: CallProgress::none(),
        }
    }

    fn command_context(&self, session_context: &SessionContext) -> CommandContext {
        CommandContext {
            tool: self.context(session_context),
            cgroups: self.cgroups.clone(),
            first_seen: self.first_seen.clone(),
            placeholder_cache: self.placeholder_cache.clone(),
            spools: self.spools.clone(),
        }
    }
}
