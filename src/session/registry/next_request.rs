//! `Registry::next_request`.

use crate::actor::effects::media::load_media;
use crate::actor::effects::prompt::{UnsentRequest, preview_prompt};
use crate::error::SessionError;
use crate::registry::Registry;
use types::ids::SessionId;
use types::request_view::{RequestView, RequestedTool};

impl Registry {
    /// The next model request of a session, as it would be sent now.
    ///
    /// # Errors
    /// The session does not exist, or no usable model is configured.
    pub async fn next_request(&self, id: SessionId) -> Result<RequestView, SessionError> {
        let handle = self.open(id).await?;
        let UnsentRequest { mut request, prompt } = handle.next_request().await?;
        let shared = &self.inner.shared;
        if let Some(source) = prompt {
            // The task that reads the files ends early only with the daemon.
            let prompt = preview_prompt(shared, *source).await.ok_or(SessionError::ShuttingDown)?;
            request.system = format!("{prompt}{}", request.system).into();
        }
        let components = shared.components();
        let models = &components.models;
        if models.model(&request.model).vision != Some(false) {
            request.media = load_media(&shared.store, handle.key(), &request).await;
        }
        let bytes = models.request_bytes(&request);
        let tool = |tool: &types::tool::ToolDefinition| RequestedTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
        };
        Ok(RequestView {
            system: request.system.to_string(),
            tools: request.tools.iter().map(tool).collect(),
            messages: request.messages.iter().map(|message| (**message).clone()).collect(),
            model: request.model.to_string(),
            bytes,
        })
    }
}
