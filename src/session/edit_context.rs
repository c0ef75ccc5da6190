//! Prepares a user's arguments that replace the model's. Preparing reads files, so the caller does it,
//! because the session's task must not wait for a file system.

use std::sync::Arc;

use crate::error::SessionError;
use crate::shared::Components;
use engine::EditedCall;
use tools::SessionContext;
use types::message::ToolCall;

/// A pending call, and the data for preparing it with other arguments.
pub(crate) struct EditContext {
    pub call: Arc<ToolCall>,
    pub context: SessionContext,
    pub components: Arc<Components>,
}

impl EditContext {
    /// Prepares changed arguments like the model's own: checks them against the tool's schema without running
    /// the tool.
    pub async fn prepare(self, input: serde_json::Value) -> Result<EditedCall, SessionError> {
        let call = ToolCall { input: input.clone(), input_error: None, ..(*self.call).clone() };
        match self.components.tools.prepare(&call, &self.context).await {
            Ok(prepared) => Ok(EditedCall { input, prepared }),
            Err(outcome) => Err(SessionError::BadParam("updated_input", outcome.output)),
        }
    }
}
