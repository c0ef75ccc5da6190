//! MCP servers: their tools for the next turn, their states, and which definitions a request contains.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::request::tokens;
use crate::state::Activity;
use types::event::Event;
use types::mcp::{McpCatalog, McpStatus, TOOL_SEARCH};
use types::session::SessionState;
use types::tool::ToolDefinition;

/// Definitions are deferred if they fill more than one tenth of the model's window.
const MAX_DEFINITIONS_DIVISOR: u64 = 10;

impl PlanBuilder<'_> {
    /// Reports changed states of MCP servers. A turn that waits for its context also gets the servers' tools.
    pub fn mcp_changed(&mut self, statuses: Vec<McpStatus>, catalog: Option<McpCatalog>) {
        if self.state.status == SessionState::Ended {
            return;
        }
        let activity = self.state.turn.as_ref().map(|turn| &turn.activity);
        let waits_for_context = matches!(activity, Some(Activity::Context)) && !self.is_aborting();
        for status in &statuses {
            self.push_session(Event::McpStatus(status.clone()));
        }
        let new = catalog.filter(|catalog| waits_for_context && *self.state.mcp.catalog != *catalog);
        if waits_for_context {
            self.remind_of_servers(&statuses);
        }
        if let Some(catalog) = new {
            self.push_session(Event::McpTools(catalog));
        }
    }

    /// Whether the session has tools or instructions of MCP servers.
    pub fn has_mcp(&self) -> bool {
        !self.state.mcp.catalog.is_empty()
    }

    /// Whether the definitions of the servers' tools stay out of requests until a search brings them in.
    pub fn is_mcp_deferred(&self) -> bool {
        let definitions = &self.state.mcp.definitions;
        let window = self.engine.settings.known.capabilities(&self.turn_model()).context_window;
        !definitions.is_empty()
            && window.is_some_and(|window| {
                tokens::tools_tokens(definitions) > u64::from(window) / MAX_DEFINITIONS_DIVISOR
            })
    }

    /// Adds the definitions of the servers' tools to the daemon's definitions. Loaded definitions keep
    /// the order of loading, so that the list only grows and its beginning stays cached.
    pub fn with_mcp_tools(&self, own: Arc<[ToolDefinition]>) -> Arc<[ToolDefinition]> {
        let mcp = &self.state.mcp;
        if mcp.definitions.is_empty() {
            return own;
        }
        let mut all: Vec<ToolDefinition> = own.to_vec();
        let is_chosen = |definition: &&ToolDefinition| self.chooses(&definition.name);
        if self.is_mcp_deferred() {
            all.extend(self.engine.settings.tool_search.iter().filter(is_chosen).cloned());
            let find = |name: &String| mcp.definitions.iter().find(|definition| definition.name == *name);
            all.extend(mcp.loaded.iter().filter_map(find).filter(is_chosen).cloned());
        } else {
            all.extend(mcp.definitions.iter().filter(is_chosen).cloned());
        }
        all.into()
    }

    /// Whether the session's or the turn's choice of tools has this tool.
    pub(super) fn chooses(&self, tool: &str) -> bool {
        match self.state.mcp.catalog.find(tool) {
            Some(tool) => self.choice().offers_mcp(tool.names()),
            None => self.choice().offers(tool),
        }
    }

    /// Whether this is a tool that exists only through MCP servers.
    pub fn is_of_mcp(&self, tool: &str) -> bool {
        self.state.mcp.catalog.find(tool).is_some() || (tool == TOOL_SEARCH && self.has_mcp())
    }
}
