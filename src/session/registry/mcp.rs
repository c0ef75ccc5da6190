//! The methods of the registry about MCP servers.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::SessionError;
use crate::mcp::{ConfiguredServers, ListedServer, StartWait, start_all};
use crate::registry::Registry;
use crate::shared::elapsed_ms;
use mcp::{AddedError, ScopedServer, ServerConfig, ServerSource, ServerView, TransportKind, server_part};
use types::ids::SessionId;
use types::mcp::{McpServerView, McpState, McpTest, McpTool};

/// How long a list of commands waits for servers that start.
const PROMPTS_WAIT: StartWait = StartWait::AtMost(Duration::from_secs(2));
/// How long a list of servers waits for those that start.
const LIST_WAIT: StartWait = StartWait::AtMost(Duration::from_secs(30));
/// Name of a server whose configuration is tried without a name.
const TEST_NAME: &str = "test";
/// Maximum bytes of a server's name.
const MAX_NAME_BYTES: usize = 64;

/// Selects the servers to look up: those of a session, of a folder, or of the user.
#[derive(Clone, Debug, Default)]
pub struct McpOwner {
    /// The absolute path of a folder. Must be absent if `session_id` is set.
    pub cwd: Option<String>,
    /// A session, including the servers that were given for it.
    pub session_id: Option<SessionId>,
}

impl McpOwner {
    /// The servers of a session.
    #[must_use]
    pub fn of_session(session_id: SessionId) -> Self {
        Self { cwd: None, session_id: Some(session_id) }
    }

    /// The servers of a folder.
    #[must_use]
    pub fn of_folder(cwd: &str) -> Self {
        Self { cwd: Some(cwd.to_owned()), session_id: None }
    }
}

/// The servers of a session or a folder, and the folder in which they start.
pub(crate) struct OwnerServers {
    pub configured: ConfiguredServers,
    pub workspace: PathBuf,
    pub unattended: bool,
}

impl Registry {
    /// Lists the configured servers. Usable servers are started to determine their state, and end after a while.
    ///
    /// # Errors
    /// The folder does not exist.
    pub async fn mcp_servers(&self, place: &McpOwner) -> Result<Vec<McpServerView>, SessionError> {
        let OwnerServers { configured, workspace, unattended } = self.configured(place).await?;
        let listed = start_all(self.shared(), &configured, &workspace, unattended, LIST_WAIT).await;
        let mut servers: Vec<McpServerView> = listed.into_iter().map(server_view).collect();
        servers.extend(configured.problems.into_iter().map(|(name, problem)| McpServerView {
            name,
            state: McpState::Failed,
            transport: String::new(),
            source: if place.cwd.is_some() { "project" } else { "user" }.to_owned(),
            tools: Vec::new(),
            error: Some(problem),
            instructions: None,
            notes: Vec::new(),
        }));
        Ok(servers)
    }

    /// The servers of a place. Without a folder and a session, the servers start in the home folder.
    pub(crate) async fn configured(&self, place: &McpOwner) -> Result<OwnerServers, SessionError> {
        let (workspace, unattended, owner) = match (&place.cwd, place.session_id) {
            (Some(_), Some(_)) => {
                return Err(SessionError::BadParam("cwd", "name a session_id or a cwd, and not both".into()));
            }
            (None, Some(id)) => {
                let spec = self.open(id).await?.facts().await?.spec;
                let owner = spec.parent.map_or(id, |parent| parent.root_session_id);
                (Some(PathBuf::from(spec.cwd)), spec.background, Some(owner))
            }
            (Some(cwd), None) => (Some(PathBuf::from(self.folder(cwd).await?)), false, None),
            (None, None) => (None, false, None),
        };
        let configured = ConfiguredServers::load(self.shared(), workspace.as_deref(), owner).await;
        let workspace = workspace.unwrap_or_else(|| self.shared().components().settings.home.clone());
        Ok(OwnerServers { configured, workspace, unattended })
    }

    /// One configured server.
    pub(super) async fn find_server(
        &self,
        name: &str,
        place: &McpOwner,
    ) -> Result<(ListedServer, u64), SessionError> {
        let OwnerServers { mut configured, workspace, unattended } = self.configured(place).await?;
        if !configured.servers.contains_key(name) {
            let names: Vec<&str> = configured.servers.keys().map(String::as_str).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let why = format!("there is no MCP server {name:?} here; there are: {names}");
            return Err(SessionError::BadParam("name", why));
        }
        configured.servers.retain(|other, _| other == name);
        let started_at = Instant::now();
        let mut listed =
            start_all(self.shared(), &configured, &workspace, unattended, StartWait::Whole).await;
        let duration_ms = elapsed_ms(started_at);
        match listed.pop() {
            Some(listed) => Ok((listed, duration_ms)),
            None => Err(SessionError::BadParam("name", format!("there is no MCP server {name:?}"))),
        }
    }

    /// The tools of a server. The server is started if necessary.
    ///
    /// # Errors
    /// There is no such server, or it is not ready.
    pub async fn mcp_tools(&self, name: &str, place: &McpOwner) -> Result<Vec<McpTool>, SessionError> {
        let (listed, _) = self.find_server(name, place).await?;
        match listed.view.filter(|view| view.state == McpState::Ready) {
            Some(view) => Ok(view.tools.to_vec()),
            None => {
                let state = listed.status.state.name();
                let why = listed.status.error.unwrap_or_else(|| format!("the MCP server {name} is {state}"));
                Err(SessionError::BadParam("name", why))
            }
        }
    }

    /// Starts a server and reports the result. A server that pauses after a failure is started again at once.
    ///
    /// # Errors
    /// There is no such server, or the configuration is wrong.
    pub async fn mcp_test(
        &self,
        name: Option<&str>,
        config: Option<serde_json::Value>,
        place: &McpOwner,
    ) -> Result<McpTest, SessionError> {
        let (listed, duration_ms) = match (name, config) {
            (Some(name), None) => {
                let (listed, duration_ms) = self.find_server(name, place).await?;
                match &listed.lease {
                    Some(lease) if listed.status.state == McpState::Failed => {
                        let started_at = Instant::now();
                        let changed = lease.wait_changed();
                        lease.retry_now();
                        let _ = tokio::time::timeout(lease.start_limit(), changed).await;
                        lease.wait_settled(lease.start_limit()).await;
                        drop(listed);
                        let spent = elapsed_ms(started_at);
                        (self.find_server(name, place).await?.0, spent)
                    }
                    _ => (listed, duration_ms),
                }
            }
            (None, Some(config)) => {
                let config = parse_config("config", TEST_NAME, config)?;
                let workspace = self.configured(place).await?.workspace;
                self.test_config(config, &workspace).await
            }
            _ => {
                return Err(SessionError::BadParam(
                    "name",
                    "name a `name` or a `config`, and not both".into(),
                ));
            }
        };
        let ListedServer { status, view, server, lease } = listed;
        let view = view.as_ref();
        let mut problems = server.notes;
        problems.extend(view.iter().flat_map(|view| view.notes()));
        problems.extend(lease.iter().flat_map(|lease| lease.hints()));
        Ok(McpTest {
            state: status.state,
            error: status.error,
            protocol: view.map(|view| view.protocol.clone()).filter(|protocol| !protocol.is_empty()),
            tools: view.map(tool_names).unwrap_or_default(),
            problems,
            duration_ms,
        })
    }

    async fn test_config(&self, config: ServerConfig, workspace: &Path) -> (ListedServer, u64) {
        let name = TEST_NAME.to_owned();
        let server = ScopedServer {
            name: name.clone(),
            source: ServerSource::User,
            config: Ok(config),
            notes: Vec::new(),
        };
        let configured =
            ConfiguredServers { servers: [(name, server)].into(), ..ConfiguredServers::default() };
        let started_at = Instant::now();
        let mut listed = start_all(self.shared(), &configured, workspace, false, StartWait::Whole).await;
        let spent = elapsed_ms(started_at);
        // One server was given to `start_all`, so it returns one.
        (listed.remove(0), spent)
    }

    /// The newest lines that a running server wrote.
    ///
    /// # Errors
    /// There is no such server, or the folder does not exist.
    pub async fn mcp_logs(&self, name: &str, place: &McpOwner) -> Result<Vec<String>, SessionError> {
        let OwnerServers { configured, workspace, .. } = self.configured(place).await?;
        let is_anywhere = place.cwd.is_none() && place.session_id.is_none();
        let logs = self.shared().mcp.logs(name, (!is_anywhere).then_some(workspace.as_path()));
        if logs.is_empty() && !configured.servers.contains_key(name) {
            return Err(SessionError::BadParam("name", format!("there is no MCP server {name:?} here")));
        }
        let is_one = logs.len() == 1;
        let lines = logs.into_iter().flat_map(|(workspace, lines)| {
            let head = (!is_one).then(|| format!("[agentd] started for {workspace}"));
            head.into_iter().chain(lines)
        });
        Ok(lines.collect())
    }

    /// Adds a server for the user, or for the project in `cwd`.
    ///
    /// # Errors
    /// The name or the configuration is wrong, the name is taken, or the file could not be changed.
    pub async fn mcp_add(
        &self,
        name: &str,
        config: serde_json::Value,
        project: Option<&str>,
    ) -> Result<(), SessionError> {
        check_name(name).map_err(|why| SessionError::BadParam("name", why))?;
        let config = parse_config("config", name, config)?;
        if project.is_none()
            && self.shared().components().settings.mcp.iter().any(|server| server.name == name)
        {
            let why = format!("the configuration file defines {name:?} already; choose another name");
            return Err(SessionError::BadParam("name", why));
        }
        let name = name.to_owned();
        self.change_added_servers(project, move |pool, folder| pool.added.add(folder, &name, &config)).await
    }

    /// Removes a server that was added for the user, or that a project's `.mcp.json` defines.
    ///
    /// # Errors
    /// There is no such server, or the file could not be changed.
    pub async fn mcp_remove(&self, name: &str, project: Option<&str>) -> Result<(), SessionError> {
        let name = name.to_owned();
        self.change_added_servers(project, move |pool, folder| pool.added.remove(folder, &name)).await
    }

    async fn change_added_servers(
        &self,
        project: Option<&str>,
        change: impl FnOnce(&mcp::Pool, Option<&Path>) -> Result<(), AddedError> + Send + 'static,
    ) -> Result<(), SessionError> {
        let folder = match project {
            Some(cwd) => Some(PathBuf::from(self.folder(cwd).await?)),
            None => None,
        };
        let pool = Arc::clone(&self.shared().mcp);
        let changed = tokio::task::spawn_blocking(move || change(&pool, folder.as_deref())).await;
        match changed.unwrap_or_else(|error| Err(AddedError::File(error.to_string()))) {
            Ok(()) => Ok(()),
            Err(AddedError::Exists) => {
                let why = "there is such a server already; remove it first, or choose another name";
                Err(SessionError::BadParam("name", why.into()))
            }
            Err(AddedError::Missing) => {
                let why = "no such server was added in this scope; `mcp.list` shows where each is configured";
                Err(SessionError::BadParam("name", why.into()))
            }
            Err(AddedError::File(why)) => Err(SessionError::BadParam("scope", why)),
        }
    }

    /// The prompts of the ready servers of a folder, as slash commands.
    pub(crate) async fn mcp_prompts(&self, place: &McpOwner) -> Vec<McpPrompt> {
        let Ok(OwnerServers { configured, workspace, unattended }) = self.configured(place).await else {
            return Vec::new();
        };
        if configured.servers.is_empty() {
            return Vec::new();
        }
        let listed = start_all(self.shared(), &configured, &workspace, unattended, PROMPTS_WAIT).await;
        let mut prompts = Vec::new();
        for ListedServer { server, view, lease, .. } in listed {
            let (Some(view), Some(lease), Some(part)) = (view, lease, server_part(&server.name)) else {
                continue;
            };
            for prompt in view.prompts.iter() {
                let plain =
                    |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
                let name: String = format!("mcp__{part}__{}", prompt.name).chars().map(plain).collect();
                prompts.push(McpPrompt {
                    command: name.to_ascii_lowercase(),
                    prompt: prompt.clone(),
                    lease: Arc::clone(&lease),
                });
            }
        }
        prompts
    }
}

/// A prompt of a server as a slash command.
pub(crate) struct McpPrompt {
    /// The command's name.
    pub command: String,
    pub prompt: mcp::Prompt,
    lease: Arc<mcp::Lease>,
}

impl McpPrompt {
    /// The arguments for users.
    pub fn hint(&self) -> Option<String> {
        let one = |(name, required): &(String, bool)| {
            if *required { format!("<{name}>") } else { format!("[{name}]") }
        };
        let hint: Vec<String> = self.prompt.arguments.iter().map(one).collect();
        (!hint.is_empty()).then(|| hint.join(" "))
    }

    /// Expands the prompt. The words of the line are its arguments in order, and the last argument gets
    /// the rest of the line.
    pub async fn expand(&self, line: &str) -> Result<String, String> {
        let mut values = HashMap::new();
        let mut rest = line.trim();
        let count = self.prompt.arguments.len();
        for (index, (name, required)) in self.prompt.arguments.iter().enumerate() {
            let (value, after) = match index + 1 == count {
                true => (rest, ""),
                false => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            };
            rest = after.trim_start();
            if !value.is_empty() {
                values.insert(name.clone(), value.to_owned());
            } else if *required {
                return Err(format!("the prompt needs the argument <{name}>"));
            }
        }
        let text = self.lease.prompt(&self.prompt.name, values).await?;
        if text.trim().is_empty() { Err("the prompt is empty".into()) } else { Ok(text) }
    }
}

/// Whether a server may be added under this name. Files of other programs may use more names.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if name.len() <= MAX_NAME_BYTES && begins_well && name.chars().all(is_allowed) {
        return Ok(());
    }
    Err(format!(
        "expected a name of at most {MAX_NAME_BYTES} letters, digits and . _ - that begins with a letter or a digit"
    ))
}

/// The servers that are given for one session.
///
/// # Errors
/// A name or a configuration is wrong.
pub(super) fn parse_servers(
    servers: BTreeMap<String, serde_json::Value>,
) -> Result<BTreeMap<String, ServerConfig>, SessionError> {
    let server = |(name, config): (String, serde_json::Value)| {
        let wrong = |why: String| SessionError::BadParam("mcp_servers", format!("{name:?}: {why}"));
        check_name(&name).map_err(wrong)?;
        let config = parse_config("mcp_servers", &name, config).map_err(|error| match error {
            SessionError::BadParam(_, why) => wrong(why),
            error => error,
        })?;
        Ok((name, config))
    };
    servers.into_iter().map(server).collect()
}

fn parse_config(
    field: &'static str,
    name: &str,
    config: serde_json::Value,
) -> Result<ServerConfig, SessionError> {
    mcp::parse_config(name, config).map_err(|why| SessionError::BadParam(field, why))
}

fn server_view(listed: ListedServer) -> McpServerView {
    let ListedServer { server, status, view, .. } = listed;
    let ScopedServer { name, source, config, mut notes } = server;
    let config = config.ok();
    notes.extend(config.iter().flat_map(ServerConfig::notes));
    match view.as_ref().filter(|view| view.state == McpState::Ready) {
        Some(view) => notes.extend(view.notes()),
        // Without the server's tools, only the form of the entries can be judged.
        None => notes.extend(config.iter().flat_map(|config| config.odd_entries(&name))),
    }
    let transport = config.and_then(|config| config.transport().ok());
    McpServerView {
        name,
        state: status.state,
        transport: transport.map(TransportKind::name).unwrap_or_default().to_owned(),
        source: source.name().to_owned(),
        tools: view.as_ref().map(tool_names).unwrap_or_default(),
        error: status.error,
        instructions: view.and_then(|view| view.instructions).map(|instructions| instructions.text),
        notes,
    }
}

fn tool_names(view: &ServerView) -> Vec<String> {
    view.tools.iter().map(|tool| tool.name.clone()).collect()
}
