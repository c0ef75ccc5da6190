//! One connection to a server: handshake, lists, calls, and its end.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, PaginatedRequestParams,
    ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, Peer};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::mcp::catalog::{self, Offer, Prompt};
use crate::mcp::config::ServerConfig;
use crate::mcp::handler::{Handler, ProgressRoutes};
use crate::mcp::http;
use crate::mcp::launch::{LaunchRequest, Launcher, ServerProcess};
use crate::mcp::server_log::ServerLog;
use crate::mcp::stdio::LimitedOutput;
use crate::mcp::tool_result::{self, ToolAnswer};
use crate::mcp::variables::{Endpoint, Resolved};
use crate::sync::lock;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 50;
/// Time limit of `headers_command`.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum output of `headers_command` in bytes.
const MAX_HEADERS_BYTES: u64 = 64 << 10;
/// How long a process may take to exit after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a call has no result.
pub(super) enum CallFailure {
    /// The caller stopped it.
    Stopped,
    TimedOut,
    /// The connection ended during the call.
    Lost,
    /// The server refused it; the text is for the model.
    Refused(String),
}

/// A ready connection. Calls share it; the owner of the server ends it.
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    routes: Arc<ProgressRoutes>,
    /// Why the output of the process was ended.
    breach: Arc<OnceLock<String>>,
    /// A list of the server has changed.
    pub changed: Arc<Notify>,
    pub protocol: String,
    tasks: Vec<JoinHandle<()>>,
}

/// The parts of a connection that only its owner uses.
pub(super) struct OwnedProcess(Option<Box<dyn ServerProcess>>);

/// What a connection needs.
pub(super) struct ConnectRequest {
    pub resolved: Arc<Resolved>,
    pub unattended: bool,
    pub launcher: Arc<dyn Launcher>,
    pub log: Arc<ServerLog>,
    /// Whether the server was seen to know only older revisions of the protocol.
    pub is_legacy: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Starts the server or reaches it, and shakes hands. The caller sets the time limit.
pub(super) fn connect(
    request: ConnectRequest,
) -> BoxFuture<'static, Result<(Connection, OwnedProcess), String>> {
    // Boxed: the library's futures are not `Send` for every lifetime.
    Box::pin(connect_once(request))
}

type Served = Result<RunningService<RoleClient, Handler>, ClientInitializeError>;

fn serve_stdio(
    handler: Handler,
    output: LimitedOutput<Box<dyn AsyncRead + Send + Unpin>>,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    lifecycle: ClientLifecycleMode,
) -> BoxFuture<'static, Served> {
    Box::pin(rmcp::serve_client_with_lifecycle(handler, (output, input), lifecycle))
}

fn serve_http(
    handler: Handler,
    transport: StreamableHttpClientTransport<reqwest::Client>,
    lifecycle: ClientLifecycleMode,
) -> BoxFuture<'static, Served> {
    Box::pin(rmcp::serve_client_with_lifecycle(handler, transport, lifecycle))
}

async fn connect_once(request: ConnectRequest) -> Result<(Connection, OwnedProcess), String> {
    let ConnectRequest { resolved, unattended, launcher, log, is_legacy } = request;
    let routes: Arc<ProgressRoutes> = Arc::default();
    let changed: Arc<Notify> = Arc::default();
    let breach: Arc<OnceLock<String>> = Arc::default();
    let handler = Handler {
        routes: Arc::clone(&routes),
        changed: Arc::clone(&changed),
        log: Arc::clone(&log),
        root: Handler::root_of(&resolved.workspace),
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
            let launched = launcher.launch(LaunchRequest {
                program: program.clone(),
                args: args.clone(),
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
            match serve_stdio(handler, stdout, launched.stdin, lifecycle).await {
                Ok(service) => (service, Some(launched.process)),
                Err(error) => {
                    // A process that has ended says more than the closed pipe.
                    let exit =
                        tokio::time::timeout(Duration::from_millis(200), launched.process.wait()).await;
                    launched.process.end().await;
                    tasks.iter().for_each(JoinHandle::abort);
                    let why = breach.get().cloned().or_else(|| exit.ok().map(|exit| format!("it {exit}")));
                    return Err(why.unwrap_or_else(|| describe(&error)));
                }
            }
        }
        Endpoint::Http { url, headers, headers_command } => {
            let mut headers = headers.clone();
            if let Some(command) = headers_command {
                headers.extend(run_headers_command(&resolved, command, &*launcher).await?);
            }
            let transport = http::transport(url, &headers).await?;
            let served = serve_http(handler, transport, lifecycle).await;
            (served.map_err(|error| describe(&error))?, None)
        }
    };
    let info = service.peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    if version.as_ref().is_some_and(|version| !version.has_initialize()) {
        tasks.push(tokio::spawn(listen(service.peer().clone(), Arc::clone(&changed))));
    }
    let protocol = version.map(|version| version.as_str().to_owned()).unwrap_or_default();
    Ok((Connection { service, routes, breach, changed, protocol, tasks }, OwnedProcess(process)))
}

/// Reports changed lists of a server that sends them only on request.
async fn listen(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    filter.prompts_list_changed = Some(true);
    let Ok(mut subscription) = peer.listen(filter).await else { return };
    while let Ok(Some(_)) = subscription.next().await {
        changed.notify_one();
    }
}

/// Runs the command that prints headers.
async fn run_headers_command(
    resolved: &Resolved,
    command: &str,
    launcher: &dyn Launcher,
) -> Result<std::collections::BTreeMap<String, String>, String> {
    let launched = launcher.launch(LaunchRequest {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.to_owned()],
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
            format!("could not reach it: {}", chain(&*error.error))
        }
        ClientInitializeError::JsonRpcError(data) => format!("it refused the handshake: {}", refusal(data)),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let known: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("it knows no common revision of the protocol, only {}", known.join(", "))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake is not that of an MCP server".into()
        }
        other => bounded(&other.to_string()),
    }
}

/// An error with its causes, without addresses: `reqwest` names the URL, which may hold a secret.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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
    bounded(&if parts.is_empty() { "no connection".to_owned() } else { parts.join(": ") })
}

fn refusal(data: &ErrorData) -> String {
    bounded(&format!("{} (code {})", data.message, data.code.0))
}

fn bounded(text: &str) -> String {
    let cut = text.floor_char_boundary(600);
    if cut < text.len() { format!("{}…", &text[..cut]) } else { text.to_owned() }
}

impl Connection {
    /// Reads the server's lists.
    pub fn offer(
        &self,
        server: &str,
        part: &str,
        config: &ServerConfig,
    ) -> BoxFuture<'static, Result<Offer, String>> {
        let (server, part, config) = (server.to_owned(), part.to_owned(), config.clone());
        Box::pin(offer(self.service.peer().clone(), server, part, config))
    }

    /// Calls a tool.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Duration,
        progress: mpsc::Sender<String>,
        stop: &CancellationToken,
    ) -> Result<ToolAnswer, CallFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.service.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = tokio::select! {
            () = stop.cancelled() => return Err(CallFailure::Stopped),
            sent = sent => sent.map_err(|_| CallFailure::Lost)?,
        };
        let route = Route { routes: &self.routes, token: handle.progress_token.clone() };
        lock(&self.routes).insert(route.token.clone(), progress);
        let (failure, reason) = tokio::select! {
            response = &mut handle.rx => return match response {
                Ok(Ok(ServerResult::CallToolResult(result))) => Ok(tool_result::answer(result)),
                Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(CallFailure::Refused(
                    "the server asked for input of the user, which is not supported here".into(),
                )),
                Ok(Ok(_)) => Err(CallFailure::Refused("the server's answer is not the result of a tool".into())),
                Ok(Err(ServiceError::McpError(data))) => Err(CallFailure::Refused(refusal(&data))),
                Ok(Err(ServiceError::TransportSend(error))) => {
                    Err(CallFailure::Refused(format!("could not send the call: {}", chain(&*error.error))))
                }
                Ok(Err(_)) | Err(_) => Err(CallFailure::Lost),
            },
            () = tokio::time::sleep(timeout) => (CallFailure::TimedOut, "timeout"),
            () = stop.cancelled() => (CallFailure::Stopped, "stopped by the user"),
            () = self.closed() => return Err(CallFailure::Lost),
        };
        // A server that reads nothing must not hold up the caller.
        let cancel = handle.cancel(Some(reason.to_owned()));
        let _ = tokio::time::timeout(Duration::from_millis(500), cancel).await;
        drop(route);
        Err(failure)
    }

    /// Expands a prompt to text.
    pub async fn prompt(&self, name: &str, arguments: HashMap<String, String>) -> Result<String, String> {
        let arguments: Map<String, Value> =
            arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let params = rmcp::model::GetPromptRequestParams::new(name.to_owned()).with_arguments(arguments);
        let reply = self.service.get_prompt(params).await.map_err(|error| service_error(&error))?;
        let mut answer = ToolAnswer::default();
        for message in &reply.messages {
            answer.add(&message.content);
        }
        Ok(answer.text)
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        // The library reports the end only to the owner of the service; its queue is the sign for others.
        while !self.service.is_closed() && !self.service.peer().is_transport_closed() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Why the connection ended, if a limit was exceeded.
    pub fn breach(&self) -> Option<String> {
        self.breach.get().cloned()
    }

    /// Stops using the connection: running calls are lost.
    pub fn cancel(&self) {
        self.service.cancellation_token().cancel();
    }
}

/// Removes the route of a call's progress when the call ends.
struct Route<'a> {
    routes: &'a ProgressRoutes,
    token: rmcp::model::ProgressToken,
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        lock(self.routes).remove(&self.token);
    }
}

async fn offer(
    peer: Peer<RoleClient>,
    server: String,
    part: String,
    config: ServerConfig,
) -> Result<Offer, String> {
    let info = peer.peer_info();
    let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
    let has_prompts = info.as_ref().is_some_and(|info| info.capabilities.prompts.is_some());
    let failed =
        |what: &str, error: &ServiceError| format!("could not list its {what}: {}", service_error(error));
    let (mut listed, mut problems) = (Vec::new(), Vec::new());
    if has_tools {
        let mut cursor = None;
        for page in 0.. {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let reply = peer.list_tools(Some(params)).await;
            let reply = reply.map_err(|error| failed("tools", &error))?;
            listed.extend(reply.tools);
            cursor = reply.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                break;
            }
            if page + 1 == MAX_PAGES || listed.len() > catalog::MAX_TOOLS * 2 {
                problems.push("its list of tools does not end; the rest is left out".to_owned());
                break;
            }
        }
    }
    let mut prompts = Vec::new();
    if has_prompts {
        // A server without its prompts is still of use.
        match peer.list_prompts(None).await {
            Ok(reply) => prompts = reply.prompts.into_iter().take(catalog::MAX_TOOLS).map(prompt).collect(),
            Err(error) => problems.push(failed("prompts", &error)),
        }
    }
    let (tools, left_out) = catalog::tools(&server, &part, listed, |tool| config.uses_tool(tool));
    problems.extend(left_out);
    let instructions = info.and_then(|info| info.instructions.clone()).filter(|text| !text.trim().is_empty());
    Ok(Offer { tools, instructions, prompts, problems })
}

fn prompt(prompt: rmcp::model::Prompt) -> Prompt {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    Prompt {
        name: prompt.name,
        description: prompt.description.unwrap_or_default(),
        arguments: arguments.map(|argument| (argument.name, argument.required == Some(true))).collect(),
    }
}

fn service_error(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(data) => refusal(data),
        ServiceError::TransportSend(error) => chain(&*error.error),
        ServiceError::TransportClosed => "the connection ended".into(),
        other => bounded(&other.to_string()),
    }
}

impl OwnedProcess {
    /// Waits for the exit of the process; forever for a server without one.
    pub async fn exited(&mut self) -> String {
        match &mut self.0 {
            Some(process) => process.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the process: it may exit by itself after its input was closed.
    pub async fn end(self) {
        let Some(mut process) = self.0 else { return };
        let _ = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await;
        process.end().await;
    }
}
