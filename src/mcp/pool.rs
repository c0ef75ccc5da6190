//! The running servers. Sessions with equal configuration in one workspace share a server.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::added::AddedServers;
use crate::approvals::Approvals;
use crate::calls::CallChannels;
use crate::config::{ServerConfig, ServerSource};
use crate::launch::Launcher;
use crate::of_sessions::SessionServerFiles;
use crate::resource::ResourcePart;
use crate::server::{CallError, NewServer, Server, ServerView};
use crate::server_log::ServerLog;
use crate::settings::PoolSettings;
use crate::tool_result::ToolAnswer;
use crate::variables::{ResolvedConfig, resolve};
use base::sync::lock;
use types::mcp::McpResourceList;
use types::session_environment::SessionEnvironment;

/// Maximum number of logs that are kept.
const MAX_LOGS: usize = 50;

/// Servers with the same key are one server.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    name: String,
    resolved: ResolvedConfig,
    tools: Vec<String>,
    unattended: bool,
}

/// All running servers, and the daemon's data about servers.
#[derive(Default)]
pub struct Pool {
    settings: PoolSettings,
    launcher: OnceLock<Arc<dyn Launcher>>,
    servers: Arc<Mutex<HashMap<ServerKey, Arc<Server>>>>,
    /// The newest logs by name and workspace, also of servers that have ended.
    logs: Mutex<VecDeque<ServerLogEntry>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Servers that were added over RPC.
    pub added: AddedServers,
    /// Servers that were given for one session.
    pub of_sessions: SessionServerFiles,
    /// Digests of approved tools.
    pub approvals: Approvals,
}

struct ServerLogEntry {
    name: String,
    workspace: PathBuf,
    log: Arc<ServerLog>,
}

#[derive(Clone, Copy, Debug)]
pub struct ServerUse<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// Its configuration.
    pub config: &'a ServerConfig,
    /// The workspace of the session.
    pub workspace: &'a Path,
    /// Whether the session is unattended.
    pub unattended: bool,
    /// The source of its configuration.
    pub source: ServerSource,
    /// What a client sent for the session. Sessions with different variables do not share a program.
    pub environment: Option<&'a SessionEnvironment>,
}

impl Pool {
    /// A pool that keeps its files in a folder.
    #[must_use]
    pub fn at(data_dir: &Path, settings: PoolSettings) -> Self {
        Self {
            settings,
            added: AddedServers::at(data_dir.join("mcp.json")),
            of_sessions: SessionServerFiles::at(data_dir.join("mcp-sessions")),
            approvals: Approvals::at(data_dir.join("mcp-approved.json")),
            ..Self::default()
        }
    }

    /// Sets the launcher of processes. Without it no server starts.
    pub fn set_launcher(&self, launcher: Arc<dyn Launcher>) {
        let _ = self.launcher.set(launcher);
    }

    /// Starts the server, or uses the one that runs. It runs as long as the lease exists.
    ///
    /// # Errors
    /// The configuration cannot be used; the text is for users.
    pub fn acquire(&self, usage: &ServerUse<'_>) -> Result<Lease, String> {
        let part = types::mcp_names::server_part(usage.name).ok_or_else(|| {
            format!("could not use the MCP server {:?}: its name has no letters", usage.name)
        })?;
        let launcher = self.launcher.get().ok_or("this daemon starts no MCP servers")?;
        let lookup = |name: &str| launcher.variable(name, usage.source);
        let mut resolved = resolve(usage.config, usage.workspace, &lookup)
            .map_err(|why| format!("the MCP server {} failed: {why}", usage.name))?;
        if resolved.starts_program() {
            resolved.session_environment = usage.environment.cloned();
        }
        let config = usage.config;
        let mut tools = vec![format!("{:?}", config.allow_tools)];
        tools.extend(config.deny_tools.iter().cloned());
        // The sandbox of unattended sessions is stricter.
        let unattended = usage.unattended && config.sandbox;
        let key = ServerKey { name: usage.name.to_owned(), resolved: resolved.clone(), tools, unattended };
        let mut servers = lock(&self.servers);
        if self.stop.is_cancelled() {
            return Err("the daemon is stopping".into());
        }
        if let Some(server) = servers.get(&key) {
            return Ok(Lease::new(Arc::clone(server)));
        }
        let (name, config) = (usage.name.to_owned(), config.clone());
        let log = self.log_of(usage);
        let server = Server::new(NewServer { name, part, config, resolved, unattended, log }, self.settings);
        let server = Arc::new(server);
        let lease = Lease::new(Arc::clone(&server));
        servers.insert(key.clone(), Arc::clone(&server));
        let (launcher, stop, all) = (Arc::clone(launcher), self.stop.clone(), Arc::clone(&self.servers));
        self.tasks.spawn(async move {
            let owner = RemovalGuard { all, key, server: Arc::clone(&server) };
            server.run(launcher, stop).await;
            drop(owner);
        });
        Ok(lease)
    }

    /// Logs of the servers with this name in a workspace, or in all, each with the server's workspace.
    #[must_use]
    pub fn logs(&self, name: &str, workspace: Option<&Path>) -> Vec<(String, Vec<String>)> {
        let logs = lock(&self.logs);
        let found = logs.iter().filter(|entry| entry.name == name);
        let found = found.filter(|entry| workspace.is_none_or(|workspace| entry.workspace == workspace));
        found.map(|entry| (entry.workspace.display().to_string(), entry.log.lines())).collect()
    }

    /// The log of a server in a workspace.
    fn log_of(&self, usage: &ServerUse<'_>) -> Arc<ServerLog> {
        let mut logs = lock(&self.logs);
        let known = logs.iter().find(|entry| entry.name == usage.name && entry.workspace == usage.workspace);
        if let Some(known) = known {
            return Arc::clone(&known.log);
        }
        let log: Arc<ServerLog> = Arc::default();
        let workspace = usage.workspace.to_owned();
        logs.push_back(ServerLogEntry { name: usage.name.to_owned(), workspace, log: Arc::clone(&log) });
        if logs.len() > MAX_LOGS {
            logs.pop_front();
        }
        log
    }

    /// Notes about entries of lists that name no tool of the servers with this name that run for a workspace.
    #[must_use]
    pub fn unmatched_entries(&self, name: &str, workspace: &Path) -> Vec<String> {
        let servers = lock(&self.servers);
        let running =
            servers.iter().filter(|(key, _)| key.name == name && key.resolved.workspace == workspace);
        let mut notes: Vec<String> =
            running.flat_map(|(_, server)| server.view().unmatched_entries.to_vec()).collect();
        notes.sort();
        notes.dedup();
        notes
    }

    /// Number of running servers.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.servers).len()
    }

    /// Ends all servers and waits for their end.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Removes a server from the map when its task ends, also by a panic.
struct RemovalGuard {
    all: Arc<Mutex<HashMap<ServerKey, Arc<Server>>>>,
    key: ServerKey,
    server: Arc<Server>,
}

impl Drop for RemovalGuard {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        if all.get(&self.key).is_some_and(|server| Arc::ptr_eq(server, &self.server)) {
            all.remove(&self.key);
        }
    }
}

/// A use of a server. The server ends some time after its last lease.
pub struct Lease {
    server: Arc<Server>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.server.remove_user();
    }
}

impl Lease {
    fn new(server: Arc<Server>) -> Self {
        server.add_user();
        Self { server }
    }

    /// The server's name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server.name
    }

    /// Whether the pool still runs the server.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.server.is_running()
    }

    /// The current state.
    #[must_use]
    pub fn view(&self) -> ServerView {
        self.server.view()
    }

    /// The state after the start, or after this time.
    pub async fn wait_settled(&self, within: Duration) -> ServerView {
        self.server.wait_settled(within).await
    }

    /// Maximum time of a start.
    #[must_use]
    pub fn start_limit(&self) -> Duration {
        self.server.start_limit() + Duration::from_millis(500)
    }

    /// How long a turn waits for the start.
    #[must_use]
    pub fn turn_wait(&self) -> Duration {
        self.server.turn_wait()
    }

    /// Hints for users about a configuration that often does not do what was meant.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        self.server.hints()
    }

    /// Tries again at once if the server pauses after a failure.
    pub fn retry_now(&self) {
        self.server.retry_now();
    }

    /// Resolves at the next change of the state.
    pub fn wait_changed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.server.subscribe()
    }

    /// The log of the server.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.server.log.lines()
    }

    /// Calls a tool by its name on the server.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        channels: CallChannels,
        stop: &CancellationToken,
    ) -> Result<ToolAnswer, CallError> {
        match self.server.call(tool, arguments, channels, stop).await {
            Err(CallError::Lost(why)) => {
                Err(CallError::Lost(self.server.reason_of_loss().await.unwrap_or(why)))
            }
            result => result,
        }
    }

    /// Expands a prompt to text.
    ///
    /// # Errors
    /// The server has no such prompt, or does not answer.
    pub async fn prompt(&self, name: &str, arguments: HashMap<String, String>) -> Result<String, String> {
        self.server.prompt(name, arguments).await
    }

    /// The resources that the server lists.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn resources(&self) -> Result<McpResourceList, String> {
        self.server.resources().await
    }

    /// The content of a resource.
    ///
    /// # Errors
    /// The server has no such resource, or does not answer.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourcePart>, String> {
        self.server.read_resource(uri).await
    }
}
