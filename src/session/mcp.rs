//! The MCP servers of a session: the servers configured for its workspace, and the servers in use.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all, select_all};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::mcp_sampling::call_model;
use crate::session_environments::SessionEnvironments;
use crate::shared::Shared;
use crate::trust;
use base::sync::lock;
use engine::Input;
use mcp::{
    Approvals, Lease, Pool, ProjectFile, SamplingAnswer, SamplingRequest, ScopedServer, ServerConfig,
    ServerSource, ServerUse, ServerView, merge, parse_file, server_part,
};
use project::folders::ProjectFolders;
use tools::McpServers;
use types::ids::{CallId, SessionId};
use types::mcp::{McpCatalog, McpState, McpStatus};
use types::question::{UserAnswer, UserQuestion};
use types::session_environment::SessionEnvironment;

/// Files of a project with servers. A later file has priority.
const PROJECT_FILES: &[&str] = &[".mcprc", ".mcp.json"];
/// Maximum number of tools of all servers together.
const MAX_TOOLS: usize = 2_000;

/// The servers that are configured for a workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfiguredServers {
    /// The servers, by name.
    pub servers: BTreeMap<String, ScopedServer>,
    /// Whether the project is trusted in its current state.
    pub is_trusted: bool,
    /// Files that cannot be read, each with the problem.
    pub problems: Vec<(String, String)>,
    /// What a client sent for the session that uses the servers.
    pub environment: Option<SessionEnvironment>,
}

impl ConfiguredServers {
    /// Reads the servers of all sources. Without a workspace, reads only the servers of the user and
    /// the system. `owner` is the session whose own servers are included.
    pub async fn load(shared: &Shared, workspace: Option<&Path>, owner: Option<SessionId>) -> Self {
        let (pool, environments) = (Arc::clone(&shared.mcp), Arc::clone(&shared.environments));
        let project = match workspace {
            Some(workspace) => Some(shared.find_project(workspace).await),
            None => None,
        };
        let files = tokio::task::spawn_blocking(move || {
            ServerFiles::read((&pool, &environments), project.as_ref(), owner)
        });
        Self::from_files(shared, workspace, files.await.unwrap_or_default()).await
    }

    /// Combines the servers of all sources, with files that were read before.
    async fn from_files(shared: &Shared, workspace: Option<&Path>, files: ServerFiles) -> Self {
        let ServerFiles { added, of_session, has_project, environment } = files;
        let mut all: Vec<ScopedServer> = shared.components().settings.mcp.to_vec();
        let mut found = Self { environment, ..Self::default() };
        all.extend(added.0);
        found.problems.extend(added.1.map(|problem| ("mcp.json".to_owned(), problem)));
        all.extend(of_session.0);
        found.problems.extend(of_session.1.map(|problem| ("mcp_servers".to_owned(), problem)));
        if let Some(workspace) = workspace
            && has_project
        {
            let (files, is_trusted) =
                trust::files(shared, workspace, PROJECT_FILES).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
                    (Vec::new(), false)
                });
            found.is_trusted = is_trusted;
            // The nearest folder comes last, because the last server of a name counts.
            let files = files.into_iter().rev().flat_map(|of| {
                let folder = of.folder;
                of.files.into_iter().map(move |(path, content)| (folder.clone(), path, content))
            });
            for (folder, path, content) in files {
                let is_own = folder == workspace;
                let name = if is_own { path } else { folder.join(path) }.display().to_string();
                let mut file = match content {
                    Ok(bytes) => parse_file(&name, &bytes),
                    Err(why) => ProjectFile { servers: Vec::new(), problem: Some(format!("{name}: {why}")) },
                };
                if !is_own {
                    file.servers.iter_mut().for_each(|server| start_in(server, &folder));
                }
                all.extend(file.servers);
                found.problems.extend(file.problem.map(|problem| (name, problem)));
            }
        }
        found.servers = merge(all, found.is_trusted);
        found
    }

    /// The reason why a server is not started, as its state and the error.
    fn start_problem<'s>(
        &self,
        server: &'s ScopedServer,
    ) -> Result<&'s ServerConfig, (McpState, Option<String>)> {
        let is_project = server.source == ServerSource::Project;
        match &server.config {
            _ if is_project && !self.is_trusted => Err((
                McpState::Untrusted,
                Some("the project is not trusted as it is; `agentctl trust` shows and trusts it".into()),
            )),
            Err(why) => {
                Err((McpState::Failed, Some(format!("the MCP server {} failed: {why}", server.name))))
            }
            Ok(config) if !config.is_enabled() => Err((McpState::Disabled, None)),
            Ok(config) => Ok(config),
        }
    }
}

/// The servers of a file, and the problem of the file.
type FileServers = (Vec<ScopedServer>, Option<String>);

/// The servers from files that need no trust. A project's files need trust and are read later.
#[derive(Default)]
pub(super) struct ServerFiles {
    added: FileServers,
    of_session: FileServers,
    /// Whether the project has a file with servers.
    has_project: bool,
    environment: Option<SessionEnvironment>,
}

impl ServerFiles {
    /// Reads the files. Blocks on the disk.
    fn read(
        (pool, environments): (&Pool, &SessionEnvironments),
        project: Option<&ProjectFolders>,
        owner: Option<SessionId>,
    ) -> Self {
        Self {
            environment: owner.and_then(|owner| environments.get(owner)),
            added: pool.added.list(),
            of_session: owner.map(|owner| pool.of_sessions.list(owner)).unwrap_or_default(),
            has_project: project.is_some_and(|project| project.may_have(PROJECT_FILES)),
        }
    }
}

/// Lets a server of a file above the workspace start in the folder of its file, as relative paths there expect.
fn start_in(server: &mut ScopedServer, folder: &Path) {
    if let Ok(config) = &mut server.config {
        config.folder = Some(folder.to_owned());
    }
}

/// A configured server with its state.
pub(super) struct ListedServer {
    pub server: ScopedServer,
    pub status: McpStatus,
    /// The running server, if it was started.
    pub view: Option<ServerView>,
    pub lease: Option<Arc<Lease>>,
}

/// How long to wait for servers that start.
#[derive(Clone, Copy, Debug)]
pub(super) enum StartWait {
    /// As long as a start may take.
    Whole,
    /// As long as a turn waits.
    Turn,
    AtMost(Duration),
}

/// Starts the usable servers and waits until each is ready or has failed, but not longer than `wait`.
pub(super) async fn start_all(
    shared: &Shared,
    configured: &ConfiguredServers,
    workspace: &Path,
    unattended: bool,
    wait: StartWait,
) -> Vec<ListedServer> {
    let mut parts: HashMap<String, String> = HashMap::new();
    let starts = configured.servers.values().map(|server| {
        let usable = configured.start_problem(server).and_then(|config| {
            let part = server_part(&server.name).unwrap_or_default();
            if let Some(other) = parts.insert(part, server.name.clone()) {
                let why = format!("its tools would have the names of those of {other:?}; rename one of them");
                return Err((
                    McpState::Failed,
                    Some(format!("the MCP server {} failed: {why}", server.name)),
                ));
            }
            let environment = configured.environment.as_ref();
            let (name, source) = (&server.name, server.source);
            let usage = ServerUse { name, config, workspace, unattended, source, environment };
            shared.mcp.acquire(&usage).map_err(|why| (McpState::Failed, Some(why)))
        });
        async move {
            let status = |state, error, notes| McpStatus { server: server.name.clone(), state, error, notes };
            match usable {
                Err((state, error)) => ListedServer {
                    server: server.clone(),
                    status: status(state, error, Vec::new()),
                    view: None,
                    lease: None,
                },
                Ok(lease) => {
                    let limit = match wait {
                        StartWait::Whole => lease.start_limit(),
                        StartWait::Turn => lease.turn_wait(),
                        StartWait::AtMost(limit) => limit.min(lease.start_limit()),
                    };
                    let view = lease.wait_settled(limit).await;
                    let status = status(view.state, view.error.clone(), view.notes());
                    ListedServer {
                        server: server.clone(),
                        status,
                        view: Some(view),
                        lease: Some(Arc::new(lease)),
                    }
                }
            }
        }
    });
    let starts: Vec<_> = starts.collect();
    join_all(starts).await
}

/// The tools and instructions of ready servers for a turn.
fn catalog(listed: &[ListedServer]) -> McpCatalog {
    let views = || listed.iter().filter_map(|listed| listed.view.as_ref());
    let mut catalog = McpCatalog {
        tools: views().flat_map(|view| view.tools.iter().cloned()).collect(),
        instructions: views().filter_map(|view| view.instructions.clone()).collect(),
    };
    catalog.tools.sort_by(|one, other| one.name.cmp(&other.name));
    catalog.tools.dedup_by(|later, first| later.name == first.name);
    catalog.tools.truncate(MAX_TOOLS);
    catalog
}

/// The MCP servers that one session uses while it is loaded.
pub(super) struct SessionServers {
    shared: Arc<Shared>,
    workspace: PathBuf,
    unattended: bool,
    /// The session whose own servers are used. For a sub-agent it is the session at the root of its tree.
    owner: SessionId,
    report: mpsc::Sender<Box<Input>>,
    asking: WaitingAnswers,
    used: Mutex<UsedServers>,
    /// Reports changes of servers between turns.
    watcher: OnceLock<WatcherTask>,
}

/// Running calls that wait for the user's answers.
type WaitingAnswers = Mutex<HashMap<CallId, oneshot::Sender<Option<Vec<UserAnswer>>>>>;

/// Removes a call from the waiting calls when it no longer waits.
struct WaitingCall<'a> {
    asking: &'a WaitingAnswers,
    call_id: CallId,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        lock(self.asking).remove(&self.call_id);
    }
}

#[derive(Default)]
struct UsedServers {
    leases: HashMap<String, Arc<Lease>>,
    /// The states that were last reported to the session.
    reported: HashMap<String, McpStatus>,
}

/// A task that ends with its session.
struct WatcherTask(JoinHandle<()>);

impl Drop for WatcherTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionServers {
    pub fn new(
        shared: Arc<Shared>,
        (workspace, unattended, owner): (PathBuf, bool, SessionId),
        report: mpsc::Sender<Box<Input>>,
    ) -> Self {
        let (asking, used, watcher) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self { shared, workspace, unattended, owner, report, asking, used, watcher }
    }

    /// Gives a running call the user's answers.
    pub fn answer(&self, call_id: CallId, answers: Option<Vec<UserAnswer>>) {
        if let Some(reply) = lock(&self.asking).remove(&call_id) {
            // Sending fails if the call has ended.
            let _ = reply.send(answers);
        }
    }

    async fn load(&self) -> ConfiguredServers {
        ConfiguredServers::load(&self.shared, Some(&self.workspace), Some(self.owner)).await
    }

    /// Starts a blocking task that reads the files with servers and then does `more`. One task does
    /// both, because waking a second thread takes longer than reading a few files. Such a task cannot
    /// be stopped, so it does not hold the servers.
    pub fn read_files_then<T: Send + 'static>(
        &self,
        more: impl FnOnce() -> T + Send + 'static,
    ) -> (oneshot::Receiver<ServerFiles>, JoinHandle<T>) {
        let (shared, workspace, owner) = (Arc::clone(&self.shared), self.workspace.clone(), self.owner);
        let (send, files) = oneshot::channel();
        let task = tokio::task::spawn_blocking(move || {
            // Sending fails if the turn is over.
            let project = shared.project_folders(&workspace);
            let _ = send.send(ServerFiles::read(
                (&shared.mcp, &shared.environments),
                Some(&project),
                Some(owner),
            ));
            more()
        });
        (files, task)
    }

    /// Looks up the servers for a turn that begins. `had_any` says that earlier turns of the session
    /// had tools of servers. `None` if no server is configured and there were none before.
    pub async fn for_turn(
        self: &Arc<Self>,
        had_any: bool,
        files: oneshot::Receiver<ServerFiles>,
    ) -> Option<Input> {
        let files = files.await.unwrap_or_default();
        let configured = ConfiguredServers::from_files(&self.shared, Some(&self.workspace), files).await;
        if configured.servers.is_empty() && configured.problems.is_empty() && !had_any {
            return None;
        }
        let listed =
            start_all(&self.shared, &configured, &self.workspace, self.unattended, StartWait::Turn).await;
        let catalog = Box::new(catalog(&listed));
        let of_files = configured.problems.iter().map(|(file, problem)| McpStatus {
            server: file.clone(),
            state: McpState::Failed,
            error: Some(problem.clone()),
            notes: Vec::new(),
        });
        let statuses: Vec<McpStatus> =
            listed.iter().map(|listed| listed.status.clone()).chain(of_files).collect();
        {
            let mut used = lock(&self.used);
            // Leases of servers that are not configured any more end here.
            used.leases =
                listed.into_iter().filter_map(|listed| Some((listed.server.name, listed.lease?))).collect();
        }
        let statuses = self.changed_statuses(statuses);
        self.watch_statuses();
        Some(Input::Mcp { statuses, catalog: Some(catalog) })
    }

    /// The states that differ from those that were reported.
    fn changed_statuses(&self, statuses: Vec<McpStatus>) -> Vec<McpStatus> {
        let mut used = lock(&self.used);
        let reported = &mut used.reported;
        statuses
            .into_iter()
            .filter(|status| reported.insert(status.server.clone(), status.clone()).as_ref() != Some(status))
            .collect()
    }

    /// Reports changes of used servers while no turn asks for them.
    fn watch_statuses(self: &Arc<Self>) {
        if lock(&self.used).leases.is_empty() || self.watcher.get().is_some() {
            return;
        }
        let (servers, report) = (Arc::downgrade(self), self.report.clone());
        let watcher = tokio::spawn(async move {
            loop {
                let Some(strong) = servers.upgrade() else { return };
                let leases: Vec<Arc<Lease>> = lock(&strong.used).leases.values().cloned().collect();
                let changes: Vec<_> = leases.iter().map(|lease| Box::pin(lease.wait_changed())).collect();
                let now = |lease: &Arc<Lease>| {
                    let view = lease.view();
                    let notes = view.notes();
                    McpStatus { server: lease.name().to_owned(), state: view.state, error: view.error, notes }
                };
                // A restart of a server is reported by its result only.
                let settled = leases.iter().map(now).filter(|status| status.state != McpState::Starting);
                let statuses = strong.changed_statuses(settled.collect());
                drop((strong, leases));
                if !statuses.is_empty()
                    && report.send(Box::new(Input::Mcp { statuses, catalog: None })).await.is_err()
                {
                    return;
                }
                if changes.is_empty() {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                } else {
                    // The servers in use may have changed, so look at them again after one minute.
                    let pause = tokio::time::sleep(Duration::from_secs(60));
                    tokio::select! {
                        _ = select_all(changes) => {}
                        () = pause => {}
                    }
                }
            }
        });
        // If a watcher exists already, this one is dropped here, which aborts it.
        let _ = self.watcher.set(WatcherTask(watcher));
    }
}

impl McpServers for SessionServers {
    fn lease(&self, server: &str) -> BoxFuture<'_, Result<Arc<Lease>, String>> {
        let known = lock(&self.used).leases.get(server).cloned();
        let server = server.to_owned();
        Box::pin(async move {
            if let Some(known) = known.filter(|lease| lease.is_running()) {
                return Ok(known);
            }
            // After a restart of the daemon, the turn continues without looking up its servers again.
            let configured = self.load().await;
            let Some(scoped) = configured.servers.get(&server) else {
                return Err(format!("the MCP server {server} is not configured any more"));
            };
            let config = configured.start_problem(scoped).map_err(|(state, error)| {
                error.unwrap_or_else(|| format!("the MCP server {server} is {}", state.name()))
            })?;
            let usage = ServerUse {
                name: &server,
                config,
                workspace: &self.workspace,
                unattended: self.unattended,
                source: scoped.source,
                environment: configured.environment.as_ref(),
            };
            let lease = Arc::new(self.shared.mcp.acquire(&usage)?);
            lock(&self.used).leases.insert(server, Arc::clone(&lease));
            Ok(lease)
        })
    }

    fn approvals(&self) -> &Approvals {
        &self.shared.mcp.approvals
    }

    fn ask(&self, call_id: CallId, questions: Vec<UserQuestion>) -> BoxFuture<'_, Option<Vec<UserAnswer>>> {
        let (reply, answers) = oneshot::channel();
        lock(&self.asking).insert(call_id, reply);
        let waiting_call = WaitingCall { asking: &self.asking, call_id };
        Box::pin(async move {
            let _waiting_call = waiting_call;
            self.report.send(Box::new(Input::ToolAsks { call_id, questions })).await.ok()?;
            answers.await.ok().flatten()
        })
    }

    fn call_model(
        &self,
        model: &str,
        request: SamplingRequest,
    ) -> BoxFuture<'_, Result<SamplingAnswer, String>> {
        let (shared, report) = (Arc::clone(&self.shared), self.report.clone());
        Box::pin(call_model(shared, report, model.to_owned(), request))
    }

    fn withdraw(&self, call_id: CallId) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Fails if the session has ended.
            let _ = self.report.send(Box::new(Input::ToolStoppedAsking { call_id })).await;
        })
    }
}
