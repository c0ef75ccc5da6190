//! Resources of MCP servers: their list, and their content as attachments of an input.

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::mcp::McpOwner;
use mcp::ResourcePart;
use tools::{InputFile, InputSource};
use types::ids::SessionId;
use types::mcp::McpResourceList;

/// Maximum number of parts of one resource.
const MAX_PARTS: usize = 20;

impl Registry {
    /// The resources of a server.
    ///
    /// # Errors
    /// There is no such server, or it is not ready or does not answer.
    pub async fn mcp_resources(&self, name: &str, place: &McpOwner) -> Result<McpResourceList, SessionError> {
        let (listed, _) = self.find_server(name, place).await?;
        let wrong = |why: String| SessionError::BadParam("name", why);
        let Some(lease) = &listed.lease else {
            let state = listed.status.state.name();
            let why = listed.status.error.unwrap_or_else(|| format!("the MCP server {name} is {state}"));
            return Err(wrong(why));
        };
        lease.resources().await.map_err(wrong)
    }

    /// Reads a resource that a user attaches. The files are not checked yet.
    ///
    /// # Errors
    /// There is no such server or resource; the text is for users.
    pub async fn read_mcp_resource(
        &self,
        session: SessionId,
        server: &str,
        uri: &str,
    ) -> Result<Vec<InputFile>, String> {
        let failed = |why: &str| format!("could not read {uri} of the MCP server {server}: {why}");
        let read = async {
            let (listed, _) = self.find_server(server, &McpOwner::of_session(session)).await.map_err(
                |error| match error {
                    SessionError::BadParam(_, why) => why,
                    error => error.to_string(),
                },
            )?;
            let Some(lease) = &listed.lease else {
                return Err(listed
                    .status
                    .error
                    .unwrap_or_else(|| format!("it is {}", listed.status.state.name())));
            };
            lease.read_resource(uri).await
        };
        let parts = read.await.map_err(|why| failed(&why))?;
        if parts.is_empty() {
            return Err(failed("it has no content"));
        }
        if parts.len() > MAX_PARTS {
            return Err(failed(&format!("it has {} parts, {MAX_PARTS} at most", parts.len())));
        }
        let file = |part| {
            let (uri, bytes) = match part {
                ResourcePart::Text { uri, text } => {
                    let fenced = ResourcePart::fenced_text(server, &uri, &text).into_bytes();
                    (uri, fenced)
                }
                ResourcePart::Blob { uri, bytes } => (uri, bytes),
            };
            InputFile {
                source: InputSource::Bytes(bytes),
                name: Some(format!("{server}:{uri}")),
                picture: false,
            }
        };
        Ok(parts.into_iter().map(file).collect())
    }
}
