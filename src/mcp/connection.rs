//! One connection to a server: its handshake and its end. `calls` and `lists` use it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{ErrorData, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientLifecycleMode, Peer};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::handler::{Handler, ProgressRoutes, RequestSinks};
use crate::handshake_filter::HandshakeFilter;
use crate::http;
use crate::http_client::{LimitedClient, StreamLimit};
use crate::launch::{Launcher, ServerProcess};
use crate::server_log::ServerLog;
use crate::server_requests::AllowedRequests;
use crate::stdio::LimitedOutput;
use crate::tool_result;
use crate::variables::{Endpoint, ResolvedConfig};
use types::server_program::ServerProgram;

/// Time limit of `headers_command`.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum output of `headers_command` in bytes.
const MAX_HEADERS_BYTES: u64 = 64 << 10;
/// How long a process may take to exit after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A ready connection. Calls share it; the owner of the server ends it.
pub(super) struct Connection {
    pub(super) service: RunningService<RoleClient, Handler>,
    pub(super) routes: Arc<ProgressRoutes>,
    /// Running calls that the server may ask about.
    pub(super) request_sinks: Arc<RequestSinks>,
    /// Whether the server may ask users.
    pub(super) allowed: AllowedRequests,
    pub(super) log: Arc<ServerLog>,
    /// The address of the workspace; `None` if the server does not receive it.
    pub(super) root: Option<String>,
    /// The reason why the connection was ended, if the server sent too much.
    breach: Arc<OnceLock<String>>,
    /// Notified when a list of the server has changed.
    pub changed: Arc<Notify>,
    pub protocol: String,
    tasks: Vec<JoinHandle<()>>,
}

/// The parts of a connection that only its owner uses.
pub(super) struct OwnedProcess(Option<Box<dyn ServerProcess>>);

/// The parameters of a connection.
pub(super) struct ConnectRequest {
    pub resolved: Arc<ResolvedConfig>,
    pub unattended: bool,
    pub launcher: Arc<dyn Launcher>,
    pub log: Arc<ServerLog>,
    /// Whether an earlier attempt showed that the server knows only older revisions of the protocol.
    pub is_legacy: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The reason why there is no connection.
pub(super) struct ConnectFailure {
    /// The text for users.
    pub why: String,
    /// Whether the server may be one that ends at a request of a newer revision of the protocol.
    pub may_be_older: bool,
}

impl From<String> for ConnectFailure {
    fn from(why: String) -> Self {
        Self { why, may_be_older: false }
    }
}

/// Starts the server or connects to it, and performs the handshake. The caller sets the time limit.
pub(super) fn connect(
    request: ConnectRequest,
) -> BoxFuture<'static, Result<(Connection, OwnedProcess), ConnectFailure>> {
    // Boxed: the library's futures are not `Send` for every lifetime.
    Box::pin(connect_once(request))
}

type ServeResult = Result<RunningService<RoleClient, Handler>, ClientInitializeError>;

fn serve_stdio(
    handler: Handler,
    output: LimitedOutput<Box<dyn AsyncRead + Send + Unpin>>,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    lifecycle: ClientLifecycleMode,
    log: Arc<ServerLog>,
) -> BoxFuture<'static, ServeResult> {
    let transport = AsyncRwTransport::new_client(output, input);
    Box::pin(rmcp::serve_client_with_lifecycle(handler, HandshakeFilter::new(transport, log), lifecycle))
}

fn serve_http(
    handler: Handler,
    transport: StreamableHttpClientTransport<LimitedClient>,
    lifecycle: ClientLifecycleMode,
    log: Arc<ServerLog>,
) -> BoxFuture<'static, ServeResult> {
    Box::pin(rmcp::serve_client_with_lifecycle(handler, HandshakeFilter::new(transport, log), lifecycle))
}

async fn connect_once(request: ConnectRequest) -> Result<(Connection, OwnedProcess), ConnectFailure> {
    let ConnectRequest { resolved, unattended, launcher, log, is_legacy } = request;
    let routes: Arc<ProgressRoutes> = Arc::default();
    let changed: Arc<Notify> = Arc::default();
    let breach: Arc<OnceLock<String>> = Arc::default();
    let request_sinks: Arc<RequestSinks> = Arc::default();
    let root = resolved.roots.then(|| Handler::root_of(&resolved.workspace));
    let allowed = AllowedRequests { elicitation: resolved.elicitation, sampling: resolved.sampling };
    let handler = Handler {
        routes: Arc::clone(&routes),
        request_sinks: Arc::clone(&request_sinks),
        allowed,
        changed: Arc::clone(&changed),
        log: Arc::clone(&log),
        root: root.clone(),
    };
    let lifecycle = match is_legacy {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let mut tasks = Vec::new();
    let (service, process) = match &resolved.endpoint {
        Endpoint::Stdio { program, args, env, cwd } => {
            let launched = launcher.launch(ServerProgram {
                program: program.clone(),
                args: args.clone(),
                session_environment: resolved.session_environment.clone(),
                env: env.clone(),
                cwd: cwd.clone(),
                workspace: resolved.workspace.clone(),
                sandbox: resolved.sandbox,
                unattended,
            });
            let mut launched = launched.await?;
            let reader = Arc::clone(&log);
            tasks.push(tokio::spawn(async move { reader.read(launched.stderr).await }));
            let stdout = LimitedOutput::new(launched.stdout, Arc::clone(&breach));
            match serve_stdio(handler, stdout, launched.stdin, lifecycle, Arc::clone(&log)).await {
                Ok(service) => (service, Some(launched.process)),
                Err(error) => {
                    // The exit of a process explains more than the closed pipe.
                    let exit =
                        tokio::time::timeout(Duration::from_millis(200), launched.process.wait()).await;
                    launched.process.end().await;
                    tasks.iter().for_each(JoinHandle::abort);
                    let why = breach.get().cloned().or_else(|| exit.ok().map(|exit| format!("it {exit}")));
                    let why = why.unwrap_or_else(|| describe(&error));
                    return Err(ConnectFailure { why, may_be_older: true });
                }
            }
        }
        Endpoint::Http { url, headers, headers_command } => {
            let mut headers = headers.clone();
            if let Some(command) = headers_command {
                headers.extend(run_headers_command(&resolved, command, &*launcher).await?);
            }
            let exceeded = CancellationToken::new();
            let limit = StreamLimit::new(Arc::clone(&breach), exceeded.clone());
            let transport = http::transport(url, &headers, limit).await?;
            let served = serve_http(handler, transport, lifecycle, Arc::clone(&log)).await;
            let service = served.map_err(|error| ConnectFailure {
                why: breach.get().cloned().unwrap_or_else(|| describe(&error)),
                may_be_older: breach.get().is_none(),
            })?;
            let end = service.cancellation_token();
            tasks.push(tokio::spawn(async move {
                exceeded.cancelled().await;
                end.cancel();
            }));
            (service, None)
        }
    };
    let info = service.peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    if version.as_ref().is_some_and(|version| !version.has_initialize()) {
        tasks.push(tokio::spawn(follow_list_changes(service.peer().clone(), Arc::clone(&changed))));
    }
    let protocol = version.map(|version| version.as_str().to_owned()).unwrap_or_default();
    let connection =
        Connection { service, routes, request_sinks, allowed, log, root, breach, changed, protocol, tasks };
    Ok((connection, OwnedProcess(process)))
}

/// Reports changed lists of a server that sends them only on request.
async fn follow_list_changes(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    filter.prompts_list_changed = Some(true);
    filter.resources_list_changed = Some(true);
    let Ok(mut subscription) = peer.listen(filter).await else { return };
    while let Ok(Some(_)) = subscription.next().await {
        changed.notify_one();
    }
}

/// Runs the command that prints headers.
async fn run_headers_command(
    resolved: &ResolvedConfig,
    command: &str,
    launcher: &dyn Launcher,
) -> Result<std::collections::BTreeMap<String, String>, String> {
    let launched = launcher.launch(ServerProgram {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.to_owned()],
        session_environment: resolved.session_environment.clone(),
        env: Default::default(),
        cwd: resolved.workspace.clone(),
        workspace: resolved.workspace.clone(),
        sandbox: false,
        unattended: false,
    });
    let mut launched = launched.await.map_err(|why| format!("could not run `headers_command`: {why}"))?;
    drop(launched.stdin);
    let mut output = Vec::new();
    let mut stdout = launched.stdout.take(MAX_HEADERS_BYTES);
    let read = tokio::time::timeout(HEADERS_TIMEOUT, stdout.read_to_end(&mut output)).await;
    let exit = tokio::time::timeout(EXIT_TIMEOUT, launched.process.wait()).await;
    launched.process.end().await;
    match (read, exit) {
        (Err(_), _) => Err(format!("`headers_command` took more than {} s", HEADERS_TIMEOUT.as_secs())),
        (Ok(Err(error)), _) => Err(format!("could not read the output of `headers_command`: {error}")),
        (Ok(Ok(_)), Ok(exit)) if exit != "exited with status 0" => Err(format!("`headers_command` {exit}")),
        (Ok(Ok(_)), _) => http::parse_headers(&output),
    }
}

/// A handshake's failure without the server's whole message.
fn describe(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection during the handshake".into(),
        ClientInitializeError::TransportError { error, .. } => {
            format!("could not reach it: {}", error_with_causes(&*error.error))
        }
        ClientInitializeError::JsonRpcError(data) => {
            format!("it refused the handshake: {}", refusal_text(data))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let known: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("it knows no common revision of the protocol, only {}", known.join(", "))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake is not that of an MCP server".into()
        }
        other => bounded_text(&other.to_string()),
    }
}

/// An error with its causes, without addresses: `reqwest` names the URL, which may hold a secret.
fn error_with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = Some(error);
    while let Some(error) = at {
        let is_about_url = error.downcast_ref::<reqwest::Error>().is_some();
        let text = error.to_string();
        if !is_about_url && !text.contains("://") && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        at = error.source();
    }
    bounded_text(&if parts.is_empty() { "no connection".to_owned() } else { parts.join(": ") })
}

pub(super) fn refusal_text(data: &ErrorData) -> String {
    bounded_text(&format!("{} (code {})", data.message, data.code.0))
}

pub(super) fn bounded_text(text: &str) -> String {
    let cut = text.floor_char_boundary(600);
    if cut < text.len() { format!("{}…", &text[..cut]) } else { text.to_owned() }
}

impl Connection {
    /// Expands a prompt to text.
    pub async fn prompt(&self, name: &str, arguments: HashMap<String, String>) -> Result<String, String> {
        let arguments: Map<String, Value> =
            arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let params = rmcp::model::GetPromptRequestParams::new(name.to_owned()).with_arguments(arguments);
        let reply = self.service.get_prompt(params).await.map_err(|error| service_error(&error))?;
        Ok(tool_result::prompt_text(reply.messages.iter().map(|message| &message.content)))
    }

    /// Waits until the connection has ended.
    pub async fn wait_closed(&self) {
        // The library reports the end only to the owner of the service. Other callers must check its transport.
        while !self.service.is_closed() && !self.service.peer().is_transport_closed() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The reason why the connection ended, if a limit was exceeded.
    pub fn exceeded_limit(&self) -> Option<String> {
        self.breach.get().cloned()
    }

    /// Stops using the connection: running calls are lost.
    pub fn cancel(&self) {
        self.service.cancellation_token().cancel();
    }
}

pub(super) fn service_error(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(data) => refusal_text(data),
        ServiceError::TransportSend(error) => error_with_causes(&*error.error),
        ServiceError::TransportClosed => "the connection ended".into(),
        other => bounded_text(&other.to_string()),
    }
}

impl OwnedProcess {
    /// Waits for the exit of the process; forever for a server without one.
    pub async fn wait_exit(&mut self) -> String {
        match &mut self.0 {
            Some(process) => process.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the process. It has some time to exit by itself after its input was closed.
    pub async fn end(self) {
        let Some(mut process) = self.0 else { return };
        let _ = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await;
        process.end().await;
    }
}
