//! Calls of tools over a connection: their questions to users, their tasks, and their limits.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::Peer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelTaskParams, ClientRequest, GetTaskParams,
    InputRequests, InputResponses, ProgressToken, ServerResult, Task, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{PeerRequestOptions, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, bounded_text, refusal_text, service_error};
use crate::handler::{Handler, ProgressRoutes, RequestSinks};
use crate::server_requests::{RequestSink, ServerRequest};
use crate::tool_result::{self, ToolAnswer};
use base::sync::lock;

/// How often a server may ask for input before it has a result.
const MAX_ROUNDS: usize = 10;
/// Limits of the pause between two checks of a task.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for sending a cancellation. A server that reads nothing must not delay the caller.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why a call has no result.
pub(super) enum CallFailure {
    /// The caller stopped the call.
    Stopped,
    TimedOut,
    /// The connection ended during the call.
    Lost,
    /// The server answered with an error; the text is for the model.
    Refused(String),
    /// The server answered, but its answer is no result, so that the tool may have run. The text says why.
    Unclear(String),
}

/// The reports of a running call to its caller.
pub struct CallChannels {
    /// Progress is dropped if the channel is full.
    pub progress: mpsc::Sender<String>,
    /// Requests of the server.
    pub requests: mpsc::Sender<ServerRequest>,
}

/// The conditions that end a call before its result.
struct CallLimits<'a> {
    connection: &'a Connection,
    time: Pin<&'a mut (dyn Future<Output = ()> + Send)>,
    stop: &'a CancellationToken,
}

impl CallLimits<'_> {
    /// Waits for a part of the call within these limits.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, CallFailure> {
        tokio::select! {
            done = work => Ok(done),
            () = self.time.as_mut() => Err(CallFailure::TimedOut),
            () = self.stop.cancelled() => Err(CallFailure::Stopped),
            () = self.connection.wait_closed() => Err(CallFailure::Lost),
        }
    }
}

impl Connection {
    /// Calls a tool.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Duration,
        channels: CallChannels,
        stop: &CancellationToken,
    ) -> Result<ToolAnswer, CallFailure> {
        let CallChannels { progress, requests } = channels;
        let asker = RequestSink::new(requests, self.allowed, Arc::clone(&self.log));
        let time = asker.time_limit(timeout);
        tokio::pin!(time);
        let mut limits = CallLimits { connection: self, time, stop };
        let _known = RequestSinkGuard::new(&self.request_sinks, asker.clone());
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MAX_ROUNDS {
            match self.send_call(params.clone(), &progress, &mut limits).await? {
                ServerResult::CallToolResult(result) => return Ok(tool_result::answer(result)),
                ServerResult::CreateTaskResult(created) => {
                    return self.follow_task(created.task, &progress, &asker, &mut limits).await;
                }
                ServerResult::InputRequiredResult(required) => {
                    let is_later = required.input_requests.as_ref().is_none_or(InputRequests::is_empty);
                    let requests = required.input_requests.unwrap_or_default();
                    let responses = limits
                        .wait(self.answer_requests(&asker, requests))
                        .await?
                        .map_err(CallFailure::Refused)?;
                    if is_later {
                        // The server only requests that the call is sent again later.
                        limits.wait(tokio::time::sleep(DEFAULT_POLL_INTERVAL)).await?;
                    }
                    (params.input_responses, params.request_state) =
                        (Some(responses), required.request_state);
                }
                other => {
                    // The library reads a result that is not as the protocol wants it as another kind of answer.
                    let value = serde_json::to_value(&other).unwrap_or_default();
                    return read_result(&value);
                }
            }
        }
        Err(CallFailure::Refused(format!("the server asked for input more than {MAX_ROUNDS} times")))
    }

    async fn answer_requests(
        &self,
        asker: &RequestSink,
        requests: InputRequests,
    ) -> Result<InputResponses, String> {
        let roots = serde_json::to_value(Handler::roots(self.root.as_deref())).unwrap_or_default();
        asker.fulfil(requests, &roots).await
    }

    /// Sends one request and waits for its result. A call that ends before is cancelled on the server.
    async fn send_call(
        &self,
        params: CallToolRequestParams,
        progress: &mpsc::Sender<String>,
        limits: &mut CallLimits<'_>,
    ) -> Result<ServerResult, CallFailure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.service.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = limits.wait(sent).await?.map_err(|_| CallFailure::Lost)?;
        let _route = ProgressRoute::new(&self.routes, handle.progress_token.clone(), progress.clone());
        let failure = match limits.wait(&mut handle.rx).await {
            Ok(Ok(Ok(result))) => return Ok(result),
            Ok(Ok(Err(error))) => return Err(failure(&error)),
            Ok(Err(_)) | Err(CallFailure::Lost) => return Err(CallFailure::Lost),
            Err(failure) => failure,
        };
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, handle.cancel(Some(cancel_reason(&failure).to_owned())))
            .await;
        Err(failure)
    }

    /// Waits for the result of a call that the server runs as a task.
    async fn follow_task(
        &self,
        task: Task,
        progress: &mpsc::Sender<String>,
        asker: &RequestSink,
        limits: &mut CallLimits<'_>,
    ) -> Result<ToolAnswer, CallFailure> {
        let id = task.task_id.clone();
        let ended = self.poll_task(task, progress, asker, limits).await;
        if matches!(ended, Err(CallFailure::Stopped | CallFailure::TimedOut)) {
            let peer = self.service.peer().clone();
            let cancel: BoxFuture<'static, _> =
                Box::pin(async move { peer.cancel_task(CancelTaskParams::new(id)).await });
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel).await;
        }
        ended
    }

    async fn poll_task(
        &self,
        mut task: Task,
        progress: &mpsc::Sender<String>,
        asker: &RequestSink,
        limits: &mut CallLimits<'_>,
    ) -> Result<ToolAnswer, CallFailure> {
        let mut answered: HashSet<String> = HashSet::new();
        loop {
            let pause = task
                .poll_interval_ms
                .map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis)
                .clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
            limits.wait(tokio::time::sleep(pause)).await?;
            let got = get_task(self.service.peer().clone(), task.task_id.clone());
            let got = limits.wait(got).await?.map_err(|error| failure(&error))?.task;
            if let Some(message) =
                got.task.status_message.as_ref().filter(|_| got.task.status_message != task.status_message)
            {
                // Progress is dropped if the call's queue is full.
                let _ = progress.try_send(format!("{}\n", bounded_text(message)));
            }
            task = got.task;
            match got.payload {
                TaskPayload::Working => {}
                TaskPayload::InputRequired { mut input_requests } => {
                    input_requests.retain(|key, _| answered.insert(key.clone()));
                    if answered.len() > MAX_ROUNDS {
                        return Err(CallFailure::Refused("the server asked for input too often".into()));
                    }
                    if !input_requests.is_empty() {
                        let responses = limits
                            .wait(self.answer_requests(asker, input_requests))
                            .await?
                            .map_err(CallFailure::Refused)?;
                        let update =
                            update_task(self.service.peer().clone(), task.task_id.clone(), responses);
                        limits.wait(update).await?.map_err(|error| failure(&error))?;
                    }
                }
                TaskPayload::Completed { result } => {
                    let value = Value::Object(result);
                    return match serde_json::from_value::<CallToolResult>(value.clone()) {
                        Ok(result) => Ok(tool_result::answer(result)),
                        Err(_) => read_result(&value),
                    };
                }
                TaskPayload::Failed { error } => {
                    let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
                    return Err(CallFailure::Refused(format!("its task failed: {}", bounded_text(message))));
                }
                _ => return Err(CallFailure::Unclear("the server cancelled its task".into())),
            }
        }
    }
}

/// Reads a result that is not as the protocol wants it.
fn read_result(value: &Value) -> Result<ToolAnswer, CallFailure> {
    tool_result::read_answer(value).ok_or_else(|| {
        CallFailure::Unclear(format!(
            "its answer is not the result of a tool: {}",
            bounded_text(&value.to_string())
        ))
    })
}

// Boxed and with owned parts: the library's futures are not `Send` for every lifetime.
fn get_task(
    peer: Peer<RoleClient>,
    id: String,
) -> BoxFuture<'static, Result<rmcp::model::GetTaskResult, ServiceError>> {
    Box::pin(async move { peer.get_task(GetTaskParams::new(id)).await })
}

fn update_task(
    peer: Peer<RoleClient>,
    id: String,
    responses: InputResponses,
) -> BoxFuture<'static, Result<(), ServiceError>> {
    Box::pin(async move { peer.update_task(UpdateTaskParams::new(id, responses)).await })
}

/// The notification for the server about a call that ends early.
const fn cancel_reason(failure: &CallFailure) -> &'static str {
    match failure {
        CallFailure::TimedOut => "timeout",
        _ => "stopped by the user",
    }
}

fn failure(error: &ServiceError) -> CallFailure {
    match error {
        ServiceError::McpError(data) => CallFailure::Refused(refusal_text(data)),
        ServiceError::TransportSend(cause) if !is_sent(&*cause.error) => {
            CallFailure::Refused(format!("could not send the call: {}", service_error(error)))
        }
        _ => CallFailure::Lost,
    }
}

/// Whether the server may have received a call that could not be sent. Over HTTP, a failed send may also mean
/// that the reply did not arrive, or that the server failed after its work.
fn is_sent(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // The pipe accepted no complete line, so the server did not receive the call.
        None => false,
        Some(StreamableHttpError::Client(error)) => !error.is_connect() && !error.is_builder(),
        Some(StreamableHttpError::HttpStatus(status)) => !(400..500).contains(&status.status),
        Some(
            StreamableHttpError::AuthRequired(_)
            | StreamableHttpError::InsufficientScope(_)
            | StreamableHttpError::ReservedHeaderConflict(_),
        ) => false,
        Some(_) => true,
    }
}

/// Removes the route of a call's progress when the call ends.
struct ProgressRoute<'a> {
    routes: &'a ProgressRoutes,
    token: ProgressToken,
}

impl<'a> ProgressRoute<'a> {
    fn new(routes: &'a ProgressRoutes, token: ProgressToken, progress: mpsc::Sender<String>) -> Self {
        lock(routes).insert(token.clone(), progress);
        Self { routes, token }
    }
}

impl Drop for ProgressRoute<'_> {
    fn drop(&mut self) {
        lock(self.routes).remove(&self.token);
    }
}

/// Lets the server ask the user while the call runs.
struct RequestSinkGuard<'a> {
    request_sinks: &'a RequestSinks,
    key: u64,
}

impl<'a> RequestSinkGuard<'a> {
    fn new(request_sinks: &'a RequestSinks, asker: RequestSink) -> Self {
        let mut all = lock(request_sinks);
        let key = all.keys().next_back().map_or(0, |last| last + 1);
        all.insert(key, asker);
        Self { request_sinks, key }
    }
}

impl Drop for RequestSinkGuard<'_> {
    fn drop(&mut self) {
        lock(self.request_sinks).remove(&self.key);
    }
}
