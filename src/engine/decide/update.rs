//! Changes of a running session: title, model, mode, limits, tools, folders, and its own rules.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::input::{Refusal, SessionUpdate};
use types::event::{Event, SettledBy};
use types::permission::RuleKind;
use types::session::SessionState;
use types::tool::{ToolChoice, ToolDefinition};
use types::turn_options::TurnOptions;

/// The tool for the notes of the project.
const MEMORY: &str = "Memory";

impl PlanBuilder<'_> {
    /// Applies the changes. A value that is already set is no change. The mode applies to every verdict
    /// from now on, and requests that it allows are settled in the same decision. A stricter mode
    /// revokes nothing that was allowed.
    pub fn update(&mut self, update: SessionUpdate) -> Result<(), Refusal> {
        let SessionUpdate { title, options, covered, origin } = update;
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        self.origin = origin;
        // A title that a client sets is kept, even if it equals the current one.
        let is_own = self.state.titled_by.is_none();
        let title = title.filter(|title| *title != self.state.spec.title || !is_own);
        // The running turn may have another mode than its session.
        let mode = options.mode.filter(|mode| *mode != self.state.mode());
        let mut options = options.changes_of(&self.state.spec);
        options.mode = options.mode.or(mode);
        if title.is_some() || options != TurnOptions::default() {
            self.push_session(Event::SessionUpdated { title, titled_by: None, options: Box::new(options) });
        }
        for (request_id, reason) in covered {
            self.settle_by_rule_or_mode(request_id, SettledBy::Mode, reason);
        }
        Ok(())
    }

    /// Adds a rule to this session, or removes one. Adding an existing rule changes nothing.
    pub fn change_rule(&mut self, add: bool, kind: RuleKind, rule: String) -> Result<(), Refusal> {
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        let known = self.state.rules.with_kind(kind).contains(&rule);
        match (add, known) {
            (true, true) => {}
            (true, false) => _ = self.push_session(Event::PermissionRuleAdded { kind, rule }),
            (false, true) => _ = self.push_session(Event::PermissionRuleRemoved { kind, rule }),
            (false, false) => return Err(Refusal::NoSuchRule),
        }
        Ok(())
    }

    /// The tools that the model is offered, in the daemon's fixed order.
    pub fn offered_tools(&self) -> Arc<[ToolDefinition]> {
        let all = &self.engine.settings.tools;
        let is_all = self.choice().is_all() && !self.state.spec.ablation.auto_memory;
        let own = match is_all {
            true => Arc::clone(all),
            false => all.iter().filter(|card| self.allows_tool(&card.name)).cloned().collect(),
        };
        self.with_mcp_tools(own)
    }

    /// Whether the session or the turn allows this tool, if it exists.
    fn allows_tool(&self, tool: &str) -> bool {
        self.chooses(tool) && !(tool == MEMORY && self.state.spec.ablation.auto_memory)
    }

    /// Whether a call is of an existing tool that this session does not offer.
    pub fn is_withheld(&self, tool: &str) -> bool {
        let exists = self.engine.settings.tools.iter().any(|card| card.name == tool) || self.is_of_mcp(tool);
        exists && !self.allows_tool(tool)
    }

    /// Whether models of the running turn may call this tool.
    pub fn is_offered(&self, tool: &str) -> bool {
        let exists = self.engine.settings.tools.iter().any(|card| card.name == tool);
        exists && self.allows_tool(tool)
    }

    pub(super) fn choice(&self) -> &ToolChoice {
        self.state.turn.as_ref().map_or(&self.state.spec.tools, |turn| &turn.settings.tools)
    }
}
