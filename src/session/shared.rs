//! Services and settings that all sessions share.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::background_hooks::BackgroundHooks;
use crate::error::SessionError;
use crate::loaded_workspaces::LoadedWorkspaces;
use crate::metrics::MetricCounters;
use crate::rate_limits::RateLimits;
use crate::session_environments::SessionEnvironments;
use crate::stream::feed::FeedPool;
use crate::worktree_bases::WorktreeBases;
use base::sync::{read, write};
use judge::Rules;
use mcp::{Pool, ScopedServer};
use model::Models;
use project::folders::ProjectFolders;
use project::hooks::{Hook, OnFailure};
use project::policy::Policies;
use project::workspace::GitFacts;
use store::{Store, StoreError, StoreReader};
use tools::Toolbox;
use types::ablation::Ablation;
use types::daemon_event::SessionChangeKind;
use types::event::Envelope;
use types::ids::{RequestId, SessionId};
use types::permission::{Mode, RuleKind, RuleScope};
use types::session::{Requires, SessionState, SessionView};
use types::thinking::Thinking;
use types::time::Clock;
use types::usage::Budgets;

/// Settings of all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    pub engine: Arc<engine::Settings>,
    /// Settings of the engine for sessions whose workspace has an index. They include the tool that
    /// searches the index.
    pub engine_with_index: Arc<engine::Settings>,
    /// The MCP servers of all configuration files.
    pub mcp: Arc<[ScopedServer]>,
    /// Environment variables that hold keys of providers.
    pub key_variables: Arc<[String]>,
    /// The rules of all configuration files together.
    pub rules: Arc<Rules>,
    /// The same rules as single entries, with their files.
    pub configured: Arc<[ConfiguredRule]>,
    /// The hooks of the configuration.
    pub hooks: Arc<[Hook]>,
    /// What follows if a hook before a call fails to run.
    pub hook_failures: OnFailure,
    /// The user's home folder.
    pub home: PathBuf,
    /// The user's folder with an `AGENTS.md` for all projects.
    pub user_dir: Option<PathBuf>,
    /// The configuration files that were read, for `/bug`.
    pub config_files: Vec<PathBuf>,
    /// The folder for diagnostic bundles.
    pub reports_dir: PathBuf,
    /// The folder for notes about projects.
    pub memory_dir: PathBuf,
    /// The folder for worktrees, absolute and without links. It is made with the first one.
    pub worktrees_dir: PathBuf,
    /// Model of sessions that name no model.
    pub main_model: Option<String>,
    /// Approval mode of sessions that name no mode.
    pub mode: Mode,
    /// Thinking level of sessions that name none.
    pub thinking: Option<Thinking>,
    /// Whether sessions that do not set safe mode use it.
    pub safe_mode: bool,
    /// Optimisations that are turned off in sessions that do not set them.
    pub ablation: Ablation,
    /// Whether the environment of the daemon sets `ablation`, so that no project changes it.
    pub has_fixed_ablation: bool,
    /// Whether models of attended sessions answer twice, if a session does not set it.
    pub binary_feedback: bool,
    /// Whether read-only commands inside the workspace run without a rule.
    pub safe_commands: bool,
    /// Whether some calls need a permission request even in `bypass`: see [`judge::BypassGuard`].
    pub bypass_guard: bool,
    /// Whether a caller may request `bypass`. The error is the reason why not.
    pub bypass: Result<(), String>,
    /// Limits of sessions that name no limits.
    pub budgets: Budgets,
    /// How long an unused session stays loaded.
    pub idle_unload: Duration,
    /// Size limit of the journal in bytes. Beyond it, new input is refused.
    pub journal_bytes: u64,
    /// Age at which ended sessions are deleted; `None` keeps them until a user deletes them.
    pub delete_ended_after: Option<Duration>,
    /// Maximum number of calls between a session and its deepest sub-agent.
    pub subagent_depth: u32,
    /// Maximum number of loaded sessions. Beyond it, the least recently used ones are unloaded. Sessions with
    /// leases or an open turn stay loaded.
    pub loaded_sessions: usize,
}

/// A rule of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// Allow, ask or deny.
    pub kind: RuleKind,
    /// The rule as text, `Tool(pattern)`.
    pub rule: String,
    /// Whether the rule comes from the system's or the user's configuration.
    pub scope: RuleScope,
    /// The file that contains it.
    pub file: PathBuf,
}

/// Receives the committed events of all sessions. The session's task calls it, so it must not block and
/// must handle its own errors.
pub trait Observer: Send + Sync {
    /// Called after an event was committed.
    fn on_commit(&self, envelope: &Envelope);
}

/// A change of a permission request or question: it became pending or was settled.
#[derive(Clone, Debug)]
pub struct PendingChange {
    /// The session of the request.
    pub session_id: SessionId,
    /// The permission request or question.
    pub request_id: RequestId,
    /// Whether the request is pending now.
    pub is_pending: bool,
    /// Whether the session is unattended.
    pub background: bool,
    /// The event as JSON, as in the journal.
    pub body: Arc<str>,
}

/// A change of a session's state, or its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusChange {
    pub session_id: SessionId,
    /// The new state of the session; `None` if the session was deleted.
    pub state: Option<SessionState>,
    /// The kind of decision that the session waits for.
    pub requires: Option<Requires>,
}

/// A change of a session: it was created, changed, ended or deleted.
#[derive(Clone, Debug)]
pub struct SessionChange {
    pub session_id: SessionId,
    pub kind: SessionChangeKind,
    /// The last view of a deleted session; `None` for all other changes.
    pub deleted: Option<Arc<SessionView>>,
}

/// Number of session changes that a follower may miss. If it misses more, it reads from the store which
/// sessions changed.
const SESSION_CAPACITY: usize = 4_096;

/// Number of state changes that a waiting caller may miss. If it misses more, it reads the state from the store.
const STATUS_CAPACITY: usize = 1_024;

/// Number of changes that a follower of pending requests may miss. If it misses more, it reads all
/// pending requests again.
const PENDING_CAPACITY: usize = 1_024;

/// The values that the configuration defines. A reload replaces all of them together.
pub struct Components {
    /// The models and their providers.
    pub models: Models,
    pub tools: Toolbox,
    pub settings: Settings,
}

/// The services and values that all sessions share: the store, the clock, and the current components.
pub struct Shared {
    /// Reads the store.
    pub store: StoreReader,
    /// Changes the store: creates and deletes sessions and makes their journal writers.
    pub(super) database: Store,
    pub clock: Arc<dyn Clock>,
    /// The policy files, whose rules outlive a session.
    pub policies: Arc<Policies>,
    /// The running MCP servers.
    pub mcp: Arc<Pool>,
    /// The variables that clients sent for the commands of sessions.
    pub(super) environments: Arc<SessionEnvironments>,
    /// The workspaces of loaded sessions.
    pub(super) workspaces: Arc<LoadedWorkspaces>,
    /// The worktrees that the daemon made, for the rules of their base folders.
    pub(super) worktree_bases: WorktreeBases,
    /// Sessions whose open turn is aborted when they are loaded: their jobs were cancelled.
    pub(super) aborted_at_load: Mutex<HashSet<SessionId>>,
    /// Held shared while a worktree is made, and alone while the start completes one that a crash left.
    pub(super) worktree_sweep: tokio::sync::RwLock<()>,
    /// Which sessions wait because a provider limits the rate of requests.
    pub(super) rate_limits: RateLimits,
    /// Git facts of the workspaces, for system prompts.
    pub(super) git_facts: GitFacts,
    /// Memory for the newest events of all sessions.
    pub(super) feed_pool: Arc<FeedPool>,
    /// The asynchronous hooks of all sessions.
    pub(super) background_hooks: BackgroundHooks,
    /// Counters since the start.
    pub(super) counts: MetricCounters,
    /// Receives every committed event of all sessions.
    observer: Option<Box<dyn Observer>>,
    /// Sends each change of a pending request.
    pending_tx: broadcast::Sender<PendingChange>,
    /// Sends each change of a session's state.
    status_tx: broadcast::Sender<StatusChange>,
    /// Sends each change of a value that lists of sessions show.
    session_tx: broadcast::Sender<SessionChange>,
    components: RwLock<Arc<Components>>,
    /// Size of the journal at the last measurement, in bytes.
    journal_bytes: AtomicU64,
}

impl Components {
    /// The settings of the engine for a session in this workspace.
    pub(super) fn engine_settings(&self, workspace: &Path) -> &Arc<engine::Settings> {
        match self.tools.has_index(workspace) {
            true => &self.settings.engine_with_index,
            false => &self.settings.engine,
        }
    }
}

impl Shared {
    /// Creates the shared state with its first components.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, components: Components) -> Self {
        let (pending_tx, _) = broadcast::channel(PENDING_CAPACITY);
        let policies = Arc::default();
        Self {
            store: store.reader(),
            database: store,
            clock,
            policies,
            mcp: Arc::default(),
            environments: Arc::default(),
            workspaces: Arc::default(),
            worktree_bases: WorktreeBases::default(),
            aborted_at_load: Mutex::default(),
            worktree_sweep: tokio::sync::RwLock::default(),
            rate_limits: RateLimits::default(),
            git_facts: GitFacts::default(),
            feed_pool: Arc::default(),
            background_hooks: BackgroundHooks::default(),
            counts: MetricCounters::default(),
            observer: None,
            pending_tx,
            status_tx: broadcast::channel(STATUS_CAPACITY).0,
            session_tx: broadcast::channel(SESSION_CAPACITY).0,
            components: RwLock::new(Arc::new(components)),
            journal_bytes: AtomicU64::new(0),
        }
    }

    /// Measures the size of the journal.
    ///
    /// # Errors
    /// The size could not be read.
    pub async fn measure_journal(&self) -> Result<(), StoreError> {
        self.journal_bytes.store(self.store.used_bytes().await?, Ordering::Relaxed);
        Ok(())
    }

    /// Size of the journal at the last measurement, in bytes.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.journal_bytes.load(Ordering::Relaxed)
    }

    /// Refuses new input if the journal has reached its size limit.
    pub(super) fn check_journal_quota(&self) -> Result<(), SessionError> {
        let (held, most) = (self.journal_bytes(), self.components().settings.journal_bytes);
        if held > most { Err(SessionError::JournalFull { held, most }) } else { Ok(()) }
    }

    /// Sets the folder of the policy files.
    #[must_use]
    pub fn with_policies(self, policies: Policies) -> Self {
        Self { policies: Arc::new(policies), ..self }
    }

    /// Sets the pool of MCP servers.
    #[must_use]
    pub fn with_mcp(self, pool: Pool) -> Self {
        Self { mcp: Arc::new(pool), ..self }
    }

    /// Sets the store of the variables that clients send.
    #[must_use]
    pub fn with_environments(self, environments: SessionEnvironments) -> Self {
        Self { environments: Arc::new(environments), ..self }
    }

    /// Sets the observer of all committed events.
    #[must_use]
    pub fn with_observer(self, observer: impl Observer + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Counts a committed event and passes it to the observer.
    pub(super) fn on_commit(&self, envelope: &Envelope) {
        self.counts.count_event(envelope);
        if let Some(observer) = &self.observer {
            observer.on_commit(envelope);
        }
    }

    /// Which sessions wait because a provider limits the rate of requests.
    #[must_use]
    pub fn rate_limits(&self) -> &RateLimits {
        &self.rate_limits
    }

    /// Subscribes to all later changes of pending requests, in all sessions.
    #[must_use]
    pub fn subscribe_pending(&self) -> broadcast::Receiver<PendingChange> {
        self.pending_tx.subscribe()
    }

    /// Subscribes to all later changes of sessions' states.
    #[must_use]
    pub fn subscribe_status(&self) -> broadcast::Receiver<StatusChange> {
        self.status_tx.subscribe()
    }

    pub(super) fn notify_status(&self, change: StatusChange) {
        // Sending fails if there is no subscriber.
        let _ = self.status_tx.send(change);
    }

    /// Subscribes to all later changes of sessions.
    #[must_use]
    pub fn subscribe_sessions(&self) -> broadcast::Receiver<SessionChange> {
        self.session_tx.subscribe()
    }

    pub(super) fn notify_session(&self, session_id: SessionId, kind: SessionChangeKind) {
        // Sending fails if there is no subscriber.
        let _ = self.session_tx.send(SessionChange { session_id, kind, deleted: None });
    }

    pub(super) fn notify_deleted(&self, view: SessionView) {
        let (session_id, kind) = (view.session_id, SessionChangeKind::Ended);
        let _ = self.session_tx.send(SessionChange { session_id, kind, deleted: Some(Arc::new(view)) });
    }

    pub(super) fn has_pending_subscribers(&self) -> bool {
        self.pending_tx.receiver_count() > 0
    }

    pub(super) fn notify_pending(&self, pending_change: PendingChange) {
        // Sending fails if there is no subscriber.
        let _ = self.pending_tx.send(pending_change);
    }

    /// The folders of the project that holds a folder. Blocks on the disk.
    pub(super) fn project_folders(&self, cwd: &Path) -> ProjectFolders {
        self.workspaces.project_folders(cwd, &self.components().settings.home)
    }

    /// Like [`Self::project_folders`], for callers on the runtime.
    pub(super) async fn find_project(&self, cwd: &Path) -> ProjectFolders {
        let (workspaces, home) = (Arc::clone(&self.workspaces), self.components().settings.home.clone());
        let folder = cwd.to_owned();
        let found = tokio::task::spawn_blocking(move || workspaces.project_folders(&folder, &home)).await;
        found.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// The current components. A model call, a tool call and a verdict each get the components once at
    /// their start and use them to the end.
    #[must_use]
    pub fn components(&self) -> Arc<Components> {
        Arc::clone(&read(&self.components))
    }

    /// Replaces the components for all work that starts later.
    pub(super) fn replace(&self, components: Components) {
        let mut current = write(&self.components);
        let tools = components.tools.inherit_from(&current.tools);
        *current = Arc::new(Components { tools, ..components });
    }
}

/// Milliseconds that passed since a moment, whatever the system's clock shows.
pub(super) fn elapsed_ms(since: std::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
