//! Messages that a server sends by itself: progress, logs, changed lists, and requests.

#![expect(deprecated, reason = "servers of older revisions use roots, log messages and sampling")]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
    Implementation, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, Root, RootsCapabilities, SamplingCapability, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Notify, mpsc};

use crate::server_log::ServerLog;
use crate::server_requests::{AllowedRequests, RequestSink};
use base::sync::lock;

/// Maximum bytes of one progress message.
const MAX_PROGRESS_BYTES: usize = 4 << 10;

/// The code of the protocol for a model call that the user refuses.
const SAMPLING_REFUSED: ErrorCode = ErrorCode(-1);

/// Receivers of the progress of running calls.
pub(super) type ProgressRoutes = Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>;

/// Receivers of the server's requests, by running call. A server does not name the call for which it asks.
pub(super) type RequestSinks = Mutex<BTreeMap<u64, RequestSink>>;

/// Receives a server's messages.
pub(super) struct Handler {
    pub routes: Arc<ProgressRoutes>,
    pub request_sinks: Arc<RequestSinks>,
    pub allowed: AllowedRequests,
    pub changed: Arc<Notify>,
    pub log: Arc<ServerLog>,
    /// The address of the workspace; `None` if the server does not receive it.
    pub root: Option<String>,
}

impl Handler {
    /// The `file:` URL of a folder.
    pub fn root_of(workspace: &Path) -> String {
        reqwest::Url::from_directory_path(workspace).map(String::from).unwrap_or_default()
    }

    /// The folders that the server receives as roots.
    pub fn roots(root: Option<&str>) -> ListRootsResult {
        ListRootsResult::new(root.into_iter().map(|root| Root::new(root.to_owned())).collect())
    }

    /// The call that the server asks about.
    fn request_sink(&self) -> Result<RequestSink, &'static str> {
        let request_sinks = lock(&self.request_sinks);
        match request_sinks.len() {
            0 => Err("no call of it is running"),
            1 => request_sinks.values().next().cloned().ok_or("no call of it is running"),
            _ => Err("several calls are running, and it does not say for which of them it asks"),
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = self.root.is_some().then(RootsCapabilities::default);
        capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new())].into());
        if self.allowed.sampling {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        if self.allowed.elicitation {
            capabilities.elicitation =
                Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        }
        ClientConfig::new(capabilities, Implementation::new("agentd", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, rmcp::ErrorData> {
        Ok(Self::roots(self.root.as_deref()))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, rmcp::ErrorData> {
        let refuse = |why: String| rmcp::ErrorData::new(SAMPLING_REFUSED, why, None);
        let asker = self.request_sink().map_err(|why| {
            self.log.note(&format!("a model call for the server was refused: {why}"));
            refuse(why.to_owned())
        })?;
        tokio::select! {
            result = asker.sample(params) => result.map_err(refuse),
            () = context.ct.cancelled() => Err(refuse("the request was cancelled".into())),
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let asker = match self.request_sink() {
            Ok(asker) => asker,
            Err(why) => {
                self.log.note(&format!("a question to the user was declined: {why}"));
                return Ok(ElicitResult::new(ElicitationAction::Decline));
            }
        };
        tokio::select! {
            result = asker.ask(request) => Ok(result),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let Some(route) = lock(&self.routes).get(&progress.progress_token).cloned() else { return };
        let share = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let message = progress.message.unwrap_or_default();
        let message = &message[..message.floor_char_boundary(MAX_PROGRESS_BYTES)];
        let line = if message.is_empty() { format!("{share}\n") } else { format!("{share}: {message}\n") };
        // Progress is dropped if the call's queue is full.
        let _ = route.try_send(line);
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match &message.data {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.log.add(&format!("[{}] {text}", format!("{:?}", message.level).to_lowercase()));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
