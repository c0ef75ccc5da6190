//! The lists of a server: tools, prompts and resources.

use futures_util::future::BoxFuture;
use rmcp::Peer;
use rmcp::model::{PaginatedRequestParams, ReadResourceRequestParams};
use rmcp::service::{RoleClient, ServiceError};

use crate::catalog::{self, Prompt, ServerOffer};
use crate::config::ServerConfig;
use crate::connection::{Connection, service_error};
use crate::resource::{ResourcePart, resource, resource_template};
use types::mcp::McpResourceList;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 50;
/// Maximum number of resources of one list.
const MAX_RESOURCES: usize = 1_000;

impl Connection {
    /// Reads the lists of tools and prompts.
    pub fn offer(
        &self,
        server: &str,
        part: &str,
        config: &ServerConfig,
    ) -> BoxFuture<'static, Result<ServerOffer, String>> {
        let (server, part, config) = (server.to_owned(), part.to_owned(), config.clone());
        Box::pin(offer(self.service.peer().clone(), server, part, config))
    }

    /// Reads the list of resources.
    pub fn resources(&self) -> BoxFuture<'static, Result<McpResourceList, String>> {
        Box::pin(resources(self.service.peer().clone()))
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: String) -> BoxFuture<'static, Result<Vec<ResourcePart>, String>> {
        let peer = self.service.peer().clone();
        Box::pin(async move {
            let reply = peer.read_resource(ReadResourceRequestParams::new(uri)).await;
            let reply = reply.map_err(|error| service_error(&error))?;
            reply.contents.into_iter().map(ResourcePart::try_from).collect()
        })
    }
}

fn failed(what: &str, error: &ServiceError) -> String {
    format!("could not list its {what}: {}", service_error(error))
}

async fn offer(
    peer: Peer<RoleClient>,
    server: String,
    part: String,
    config: ServerConfig,
) -> Result<ServerOffer, String> {
    let info = peer.peer_info();
    let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
    let has_prompts = info.as_ref().is_some_and(|info| info.capabilities.prompts.is_some());
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
        // A server without its prompts is still useful.
        match peer.list_prompts(None).await {
            Ok(reply) => prompts = reply.prompts.into_iter().take(catalog::MAX_TOOLS).map(prompt).collect(),
            Err(error) => problems.push(failed("prompts", &error)),
        }
    }
    let (tools, left_out) = catalog::tools(&server, &part, listed, |tool| config.uses_tool(&server, tool));
    problems.extend(left_out);
    let instructions = info.and_then(|info| info.instructions.clone()).filter(|text| !text.trim().is_empty());
    Ok(ServerOffer { tools, instructions, prompts, problems })
}

fn prompt(prompt: rmcp::model::Prompt) -> Prompt {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    Prompt {
        name: prompt.name,
        description: prompt.description.unwrap_or_default(),
        arguments: arguments.map(|argument| (argument.name, argument.required == Some(true))).collect(),
    }
}

async fn resources(peer: Peer<RoleClient>) -> Result<McpResourceList, String> {
    let info = peer.peer_info();
    if info.is_some_and(|info| info.capabilities.resources.is_none()) {
        return Ok(McpResourceList { is_complete: true, ..McpResourceList::default() });
    }
    let mut list = McpResourceList::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let reply = peer.list_resources(Some(params)).await.map_err(|error| failed("resources", &error))?;
        let room = MAX_RESOURCES.saturating_sub(list.resources.len());
        let is_cut = reply.resources.len() > room;
        list.resources.extend(reply.resources.into_iter().take(room).map(resource));
        cursor = reply.next_cursor.filter(|cursor| !cursor.is_empty());
        list.is_complete = cursor.is_none() && !is_cut;
        if cursor.is_none() || is_cut {
            break;
        }
    }
    // Many servers have no templates and refuse the request.
    if let Ok(reply) = peer.list_resource_templates(None).await {
        let templates = reply.resource_templates.into_iter().take(MAX_RESOURCES);
        list.templates = templates.map(resource_template).collect();
    }
    Ok(list)
}
