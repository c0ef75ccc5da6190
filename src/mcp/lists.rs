//! The lists of a server: tools, prompts and resources.

use futures_util::future::BoxFuture;
use rmcp::Peer;
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{RoleClient, ServiceError};
use serde_json::Value;

use crate::catalog::{self, Problems, Prompt, ServerOffer};
use crate::config::ServerConfig;
use crate::connection::{Connection, service_error};
use crate::listed_tool::ListedTool;
use crate::resource::{ResourcePart, resource, resource_template};
use crate::tool_lists;
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
    let (mut listed, mut problems) = (Vec::new(), Problems::default());
    if has_tools {
        let mut cursor = None;
        for page in 0.. {
            cursor = tool_page(&peer, cursor, &mut listed, &mut problems).await?;
            if cursor.is_none() {
                break;
            }
            let is_long = page + 1 == MAX_PAGES || listed.len() > catalog::MAX_TOOLS * 2;
            if is_long {
                problems.add("its list of tools does not end; the rest is left out".to_owned());
                break;
            }
        }
    }
    let mut prompts = Vec::new();
    if has_prompts {
        // A server without its prompts is still useful.
        match peer.list_prompts(None).await {
            Ok(reply) => prompts = reply.prompts.into_iter().take(catalog::MAX_TOOLS).map(prompt).collect(),
            Err(error) => problems.add(failed("prompts", &error)),
        }
    }
    let names = listed.iter().map(|tool: &ListedTool| tool.name.as_str());
    let unmatched_entries = match has_tools {
        true => tool_lists::unmatched_entries(config.tool_lists(), &server, names),
        false => Vec::new(),
    };
    let tools = catalog::tools(&server, &part, listed, |tool| config.uses_tool(&server, tool), &mut problems);
    let instructions = info.and_then(|info| info.instructions.clone()).filter(|text| !text.trim().is_empty());
    Ok(ServerOffer { tools, instructions, prompts, problems: problems.into_texts(), unmatched_entries })
}

/// Reads one page of the list of tools. Returns the cursor of the next one.
async fn tool_page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
    listed: &mut Vec<ListedTool>,
    problems: &mut Problems,
) -> Result<Option<String>, String> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    // Not the library's own function: it refuses a list in which one tool is not as the protocol wants it.
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
    let next = match peer.send_request(request).await.map_err(|error| failed("tools", &error))? {
        ServerResult::ListToolsResult(page) => {
            for (index, tool) in page.tools.into_iter().enumerate() {
                match tool.name.is_empty() {
                    true => problems.add(ListedTool::nameless(index)),
                    false => listed.push(tool.into()),
                }
            }
            page.next_cursor
        }
        ServerResult::CustomResult(page) => {
            let mut page = page.0;
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
                return Err("could not list its tools: its answer has no list of tools".into());
            };
            for (index, tool) in tools.into_iter().enumerate() {
                match ListedTool::read(tool, index, &mut |note| problems.add(note)) {
                    Ok(tool) => listed.push(tool),
                    Err(why) => problems.add(why),
                }
            }
            next
        }
        _ => return Err("could not list its tools: its answer is no list of tools".into()),
    };
    Ok(next.filter(|cursor| !cursor.is_empty()))
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
