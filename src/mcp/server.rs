//! Runs one server: it connects, restarts after a failure with growing pauses, and ends some time after its last
//! user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::{CallChannels, CallFailure};
use crate::catalog::{self, Prompt, ServerOffer};
use crate::config::ServerConfig;
use crate::connection::{self, ConnectRequest, Connection, OwnedProcess};
use crate::launch::Launcher;
use crate::resource::ResourcePart;
use crate::server_log::ServerLog;
use crate::settings::PoolSettings;
use crate::tool_result::ToolAnswer;
use crate::variables::ResolvedConfig;
use types::mcp::{McpInstructions, McpResourceList, McpState, McpTool};

/// Failures in a row after which the server pauses for longer.
const BREAKER_FAILURES: u32 = 5;
/// A connection that lasted this long ends a row of failures.
const MIN_STABLE_TIME: Duration = Duration::from_secs(60);
/// Time for a process to exit after it closed its output.
const EXIT_PAUSE: Duration = Duration::from_millis(300);
/// Time limit for finding the reason of a lost connection.
const LOSS_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit of a short request, such as that for a prompt, and of a turn's wait for a restart.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Lists are read again after this pause, because servers report several changes in a row.
const LIST_DEBOUNCE: Duration = Duration::from_millis(100);

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The caller stopped the call.
    Stopped,
    /// The server is not ready; the text says why. The call was not sent.
    Unavailable(String),
    /// The server did not answer within this time.
    TimedOut(Duration),
    /// The connection ended during the call: its outcome is unknown. The text says why.
    Lost(String),
    /// The server answered with an error.
    Refused(String),
    /// The server answered, but its answer is no result: the outcome is unknown. The text says why.
    Unclear(String),
}

/// A server at one moment.
#[derive(Clone, Debug)]
pub struct ServerView {
    pub state: McpState,
    /// The reason of the failure.
    pub error: Option<String>,
    pub tools: Arc<[McpTool]>,
    pub instructions: Option<McpInstructions>,
    pub prompts: Arc<[Prompt]>,
    /// Tools that are left out or changed, each with the reason.
    pub problems: Arc<[String]>,
    /// Entries of the configuration's lists of tools that name none of them, as notes for users.
    pub unmatched_entries: Arc<[String]>,
    /// The revision of the protocol.
    pub protocol: String,
}

impl ServerView {
    pub(super) fn new(state: McpState, error: Option<String>) -> Self {
        Self {
            state,
            error,
            tools: Arc::default(),
            instructions: None,
            prompts: Arc::default(),
            problems: Arc::default(),
            unmatched_entries: Arc::default(),
            protocol: String::new(),
        }
    }

    /// What users are told about a ready server: its problems, and entries of lists that name no tool.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.unmatched_entries.iter().chain(self.problems.iter()).cloned().collect()
    }
}

/// The state of a server for its users.
#[derive(Clone)]
struct ServerState {
    view: ServerView,
    connection: Option<Arc<Connection>>,
}

/// A server that sessions share.
pub(super) struct Server {
    pub name: String,
    part: String,
    config: ServerConfig,
    resolved: Arc<ResolvedConfig>,
    unattended: bool,
    settings: PoolSettings,
    current: watch::Sender<ServerState>,
    pub log: Arc<ServerLog>,
    /// Number of leases.
    users: AtomicUsize,
    /// Woken when the last lease ends.
    unused: Notify,
    /// Ends the pause after a failure.
    retry: Notify,
    is_legacy: AtomicBool,
    /// Whether the server was ready once.
    was_ready: AtomicBool,
    /// When the server was first needed.
    needed_since: Instant,
    /// Whether the server's task has ended.
    has_ended: AtomicBool,
}

/// The parts of a new server.
pub(super) struct NewServer {
    pub name: String,
    pub part: String,
    pub config: ServerConfig,
    pub resolved: ResolvedConfig,
    pub unattended: bool,
    pub log: Arc<ServerLog>,
}

impl Server {
    pub fn new(new: NewServer, settings: PoolSettings) -> Self {
        let NewServer { name, part, config, resolved, unattended, log } = new;
        let view = ServerView::new(McpState::Starting, None);
        Self {
            name,
            part,
            config,
            resolved: Arc::new(resolved),
            unattended,
            settings,
            current: watch::Sender::new(ServerState { view, connection: None }),
            log,
            users: AtomicUsize::new(0),
            unused: Notify::new(),
            retry: Notify::new(),
            is_legacy: AtomicBool::new(false),
            was_ready: AtomicBool::new(false),
            needed_since: Instant::now(),
            has_ended: AtomicBool::new(false),
        }
    }

    pub fn add_user(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    pub fn remove_user(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unused.notify_one();
        }
    }

    pub fn has_users(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    pub fn is_running(&self) -> bool {
        !self.has_ended.load(Ordering::Acquire)
    }

    pub fn view(&self) -> ServerView {
        self.current.borrow().view.clone()
    }

    /// Ends the pause after a failure.
    pub fn retry_now(&self) {
        self.retry.notify_one();
    }

    /// The first state that is not `starting`, or the state when the time is over. Cancel-safe.
    pub async fn wait_settled(&self, within: Duration) -> ServerView {
        let mut current = self.current.subscribe();
        let settled = current.wait_for(|current| current.view.state != McpState::Starting);
        match tokio::time::timeout(within, settled).await {
            Ok(Ok(current)) => current.view.clone(),
            _ => self.view(),
        }
    }

    /// Waits for a change of the view.
    pub fn subscribe(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut changes = self.current.subscribe();
        async move {
            changes.mark_unchanged();
            let _ = changes.changed().await;
        }
    }

    /// The connection of a ready server; waits for one that starts.
    async fn connection(&self, stop: &CancellationToken) -> Result<Arc<Connection>, CallError> {
        let limit = self.start_limit() + Duration::from_secs(1);
        let view = tokio::select! {
            () = stop.cancelled() => return Err(CallError::Stopped),
            view = self.wait_settled(limit) => view,
        };
        let connection = self.current.borrow().connection.clone();
        connection.ok_or_else(|| {
            let why = view.error.unwrap_or_else(|| format!("it is {}", view.state.name()));
            CallError::Unavailable(why)
        })
    }

    /// Calls a tool by its name on the server.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        channels: CallChannels,
        stop: &CancellationToken,
    ) -> Result<ToolAnswer, CallError> {
        let connection = self.connection(stop).await?;
        let timeout = self.resolved.timeout;
        connection.call(tool, arguments, timeout, channels, stop).await.map_err(|failure| match failure {
            CallFailure::Stopped => CallError::Stopped,
            CallFailure::TimedOut => CallError::TimedOut(timeout),
            CallFailure::Lost => {
                CallError::Lost(connection.exceeded_limit().unwrap_or_else(|| "the connection ended".into()))
            }
            CallFailure::Refused(why) => CallError::Refused(why),
            CallFailure::Unclear(why) => CallError::Unclear(why),
        })
    }

    /// The reason why the connection ended. The server's task sets it shortly after the end.
    pub async fn reason_of_loss(&self) -> Option<String> {
        let mut current = self.current.subscribe();
        let ended = current.wait_for(|current| current.view.state != McpState::Ready);
        tokio::time::timeout(LOSS_TIMEOUT, ended).await.ok()?.ok()?.view.error.clone()
    }

    /// Expands a prompt.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: std::collections::HashMap<String, String>,
    ) -> Result<String, String> {
        self.send_request(|connection| async move { connection.prompt(name, arguments).await }).await
    }

    pub async fn resources(&self) -> Result<McpResourceList, String> {
        self.send_request(|connection| async move { connection.resources().await }).await
    }

    /// The content of a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourcePart>, String> {
        self.send_request(|connection| async move { connection.read_resource(uri.to_owned()).await }).await
    }

    /// A short request that is no call. The error is for users.
    async fn send_request<T, Work: Future<Output = Result<T, String>>>(
        &self,
        request: impl FnOnce(Arc<Connection>) -> Work,
    ) -> Result<T, String> {
        let failed = |error| match error {
            CallError::Unavailable(why) => why,
            _ => "it was stopped".to_owned(),
        };
        let connection = self.connection(&CancellationToken::new()).await.map_err(failed)?;
        let limit = self.resolved.timeout.min(REQUEST_TIMEOUT);
        tokio::time::timeout(limit, request(connection))
            .await
            .unwrap_or_else(|_| Err(format!("it did not answer within {} s", limit.as_secs_f32())))
    }

    /// Maximum time of a start with the first lists.
    pub fn start_limit(&self) -> Duration {
        self.resolved.startup_timeout
    }

    /// How long a turn waits for the start. A server that was never ready may take long, so that its tools come with a
    /// later turn. One that was ready is soon there again.
    pub fn turn_wait(&self) -> Duration {
        match self.was_ready.load(Ordering::Acquire) {
            true => self.start_limit().min(REQUEST_TIMEOUT),
            false => self.settings.turn_wait.saturating_sub(self.needed_since.elapsed()),
        }
    }

    /// Hints for users about a configuration that often does not do what was meant.
    pub fn hints(&self) -> Vec<String> {
        let outside = self.resolved.folders_outside_root();
        if outside.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "its arguments name {} outside of the workspace; a server that uses the folders of its client instead of its \
             arguments (such as server-filesystem) cannot reach them: set roots = false",
            outside.join(", ")
        )]
    }

    fn set(&self, view: ServerView, connection: Option<Arc<Connection>>) {
        if let Some(error) = &view.error {
            self.log.note(error);
        }
        tracing::debug!(server = self.name, state = view.state.name(), error = view.error, "MCP server");
        self.current.send_replace(ServerState { view, connection });
    }

    /// Runs the server until it has no users or the daemon stops.
    pub async fn run(self: Arc<Self>, launcher: Arc<dyn Launcher>, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let Some(error) = self.run_once(&launcher, &stop).await else { break };
            failures = if began.elapsed() >= MIN_STABLE_TIME { 1 } else { failures + 1 };
            let is_resting = failures >= BREAKER_FAILURES;
            let pause = if is_resting { self.settings.breaker_pause } else { self.backoff(failures) };
            self.log.note(&format!("next try in {} s", pause.as_secs_f32().ceil()));
            // The text stays the same at each try, so that sessions report a failure once.
            let error = match is_resting {
                true => format!("{error}; it failed several times in a row and rests now"),
                false => error,
            };
            self.set(ServerView::new(McpState::Failed, Some(error)), None);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.retry.notified() => failures = 0,
                () = self.wait_unused() => break,
                () = stop.cancelled() => break,
            }
            self.set(ServerView::new(McpState::Starting, None), None);
        }
        // Later users start a new server, because the pool removes this one.
        self.has_ended.store(true, Ordering::Release);
        self.set(ServerView::new(McpState::Failed, Some("the server was ended".into())), None);
    }

    fn backoff(&self, failures: u32) -> Duration {
        self.settings.backoff * 2_u32.saturating_pow(failures.saturating_sub(1).min(10))
    }

    /// Resolves when the server has had no users for a while.
    fn wait_unused(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                if self.has_users() {
                    self.unused.notified().await;
                }
                tokio::time::sleep(self.settings.linger).await;
                if !self.has_users() {
                    return;
                }
            }
        })
    }

    /// Connects once and waits for the end. Returns the failure, or `None` if the server is no longer needed.
    async fn run_once(&self, launcher: &Arc<dyn Launcher>, stop: &CancellationToken) -> Option<String> {
        let limit = self.start_limit();
        let start = tokio::time::timeout(limit, self.start(launcher));
        let (connection, mut process) = tokio::select! {
            started = start => match started {
                Ok(Ok(started)) => started,
                Ok(Err(why)) => return Some(self.failure(&why)),
                Err(_) => return Some(self.failure(&format!("it was not ready within {} s; startup_timeout gives it more time", limit.as_secs_f32()))),
            },
            () = self.wait_unused() => return None,
            () = stop.cancelled() => return None,
        };
        let failure = loop {
            tokio::select! {
                exit = process.wait_exit() => {
                    // A breached limit ends the connection first; the process follows.
                    break Some(connection.exceeded_limit().unwrap_or_else(|| format!("it {exit}")));
                }
                () = connection.wait_closed() => {
                    // The exit of the process explains more than its closed output.
                    let exit = tokio::time::timeout(EXIT_PAUSE, process.wait_exit()).await;
                    let why = exit.map_or_else(|_| "it closed the connection".to_owned(), |exit| format!("it {exit}"));
                    break Some(connection.exceeded_limit().unwrap_or(why));
                }
                () = connection.changed.notified() => {
                    tokio::time::sleep(LIST_DEBOUNCE).await;
                    match tokio::time::timeout(limit, connection.offer(&self.name, &self.part, &self.config)).await {
                        Ok(Ok(offer)) => self.set(self.ready_view(&connection, offer), Some(Arc::clone(&connection))),
                        Ok(Err(why)) => self.log.note(&why),
                        Err(_) => self.log.note("it did not list its tools again in time"),
                    }
                }
                () = self.wait_unused() => break None,
                () = stop.cancelled() => break None,
            }
        };
        // Set the state first: no caller gets a connection that is about to end.
        if let Some(why) = &failure {
            self.set(ServerView::new(McpState::Failed, Some(self.failure(why))), None);
        }
        connection.cancel();
        drop(connection);
        process.end().await;
        failure.map(|why| self.failure(&why))
    }

    /// Connects and reads the lists.
    fn start<'a>(
        &'a self,
        launcher: &'a Arc<dyn Launcher>,
    ) -> BoxFuture<'a, Result<(Arc<Connection>, OwnedProcess), String>> {
        Box::pin(self.start_inner(launcher))
    }

    async fn start_inner(
        &self,
        launcher: &Arc<dyn Launcher>,
    ) -> Result<(Arc<Connection>, OwnedProcess), String> {
        let request = |is_legacy| ConnectRequest {
            resolved: Arc::clone(&self.resolved),
            unattended: self.unattended,
            launcher: Arc::clone(launcher),
            log: Arc::clone(&self.log),
            is_legacy,
        };
        let is_legacy = self.is_legacy.load(Ordering::Relaxed);
        let connected = match connection::connect(request(is_legacy)).await {
            // Some older servers end at the first request that is not `initialize`.
            Err(first) if !is_legacy && first.may_be_older => {
                self.log.note(&format!("{}; trying an older revision of the protocol", first.why));
                connection::connect(request(true))
                    .await
                    .map_err(|second| if second.why.starts_with("it ") { second } else { first })
            }
            connected => connected,
        };
        let (connection, process) = connected.map_err(|failure| failure.why)?;
        let has_initialize =
            connection.protocol.as_str() < rmcp::model::ProtocolVersion::NO_INITIALIZE.as_str();
        self.is_legacy.store(has_initialize, Ordering::Relaxed);
        let offer = connection.offer(&self.name, &self.part, &self.config).await;
        let offer = match offer {
            Ok(offer) => offer,
            Err(why) => {
                let why = connection.exceeded_limit().unwrap_or(why);
                drop(connection);
                process.end().await;
                return Err(why);
            }
        };
        let connection = Arc::new(connection);
        self.was_ready.store(true, Ordering::Release);
        self.set(self.ready_view(&connection, offer), Some(Arc::clone(&connection)));
        Ok((connection, process))
    }

    fn ready_view(&self, connection: &Connection, offer: ServerOffer) -> ServerView {
        for problem in offer.problems.iter().chain(&offer.unmatched_entries) {
            self.log.note(problem);
        }
        ServerView {
            tools: offer.tools.into(),
            instructions: offer.instructions.map(|text| catalog::instructions(&self.name, &text)),
            prompts: offer.prompts.into(),
            problems: offer.problems.into(),
            unmatched_entries: offer.unmatched_entries.into(),
            protocol: connection.protocol.clone(),
            ..ServerView::new(McpState::Ready, None)
        }
    }

    /// A failure with the last output of the process.
    fn failure(&self, why: &str) -> String {
        let last_output = self.log.tail().filter(|_| !why.contains("its last output"));
        let output_note = last_output.map(|tail| format!(" (its last output: {tail})")).unwrap_or_default();
        format!("the MCP server {} failed: {why}{output_note}", self.name)
    }
}
