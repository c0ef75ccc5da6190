//! Messages that a server sends by itself: progress, logs, changed lists, and requests.

#![expect(deprecated, reason = "servers of older revisions use roots and log messages")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Notify, mpsc};

use crate::mcp::server_log::ServerLog;
use crate::sync::lock;

/// Maximum bytes of one progress message.
const MAX_PROGRESS_BYTES: usize = 4 << 10;

/// Where progress of running calls goes.
pub(super) type ProgressRoutes = Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>;

/// Receives a server's messages. Sampling is refused and questions are declined.
pub(super) struct Handler {
    pub routes: Arc<ProgressRoutes>,
    pub changed: Arc<Notify>,
    pub log: Arc<ServerLog>,
    pub root: String,
}

impl Handler {
    /// The address of a folder.
    pub fn root_of(workspace: &Path) -> String {
        reqwest::Url::from_directory_path(workspace).map(String::from).unwrap_or_default()
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("agentd", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, rmcp::ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(self.root.clone())]))
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
        // Progress that the call cannot take is dropped.
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
