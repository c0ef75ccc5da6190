//! Data of the session's MCP servers for tools.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use mcp::{Approvals, Lease, SamplingAnswer, SamplingRequest};
use types::ids::CallId;
use types::mcp::McpCatalog;
use types::question::{UserAnswer, UserQuestion};

/// The MCP servers of one session.
pub trait McpServers: Send + Sync {
    /// A running server by its name in the configuration, started if necessary. The error is for the model.
    fn lease(&self, server: &str) -> BoxFuture<'_, Result<Arc<Lease>, String>>;

    /// Digests of approved tools.
    fn approvals(&self) -> &Approvals;

    /// Asks the user for a running call: one answer for each question, or `None` where no user can answer. Dropping
    /// the future does not withdraw the questions.
    fn ask(&self, call_id: CallId, questions: Vec<UserQuestion>) -> BoxFuture<'_, Option<Vec<UserAnswer>>>;

    /// Calls a model for a server, after the user allowed it. The call is booked in the session. The error is for the
    /// server. Dropping the future ends the call, which is then booked by an estimate.
    fn call_model(
        &self,
        model: &str,
        request: SamplingRequest,
    ) -> BoxFuture<'_, Result<SamplingAnswer, String>>;

    /// Withdraws the questions of a running call.
    fn withdraw(&self, call_id: CallId) -> BoxFuture<'_, ()>;
}

/// Data of MCP servers for one call.
#[derive(Clone, Default)]
pub struct McpContext {
    /// The tools that the running turn has.
    pub catalog: Arc<McpCatalog>,
    /// The model of the running turn, `PROVIDER/MODEL`.
    pub model: String,
    /// The session's servers.
    pub servers: Option<Arc<dyn McpServers>>,
}

impl std::fmt::Debug for McpContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "McpContext({} tools)", self.catalog.tools.len())
    }
}
