//! Changes of a running session: title, model, mode, limits, tools, folders, and its own rules.

use std::sync::Arc;

use crate::engine::decide::plan::PlanBuilder;
use crate::engine::input::{Refusal, Update};
use crate::types::event::{Event, SettledBy};
use crate::types::permission::RuleKind;
use crate::types::sampling::Sampling;
use crate::types::session::SessionState;
use crate::types::tool::{ToolChoice, ToolDefinition};
use crate::types::turn_options::TurnOptions;

impl PlanBuilder<'_> {
    /// Applies the changes; a value that is already set is no change. The mode counts for every verdict from
    /// now on, and requests that it allows are settled in the same decision. A stricter mode revokes nothing
    /// that was allowed.
    pub fn update(&mut self, update: Update) -> Result<(), Refusal> {
        let Update { title, options, additional_dirs, covered, origin } = update;
        let TurnOptions { budgets, mode, model, thinking, tools, sampling, .. } = options;
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        self.origin = origin;
        // A title that a client sets is kept, even if it equals the current one.
        let is_own = self.state.titled_by.is_none();
        let title = title.filter(|title| *title != self.state.spec.title || !is_own);
        let mode = mode.filter(|mode| *mode != self.state.spec.mode || *mode != self.state.mode());
        let budgets = budgets.filter(|budgets| *budgets != self.state.spec.budgets);
        let thinking = thinking.filter(|thinking| Some(*thinking) != self.state.spec.thinking);
        let known = self.state.spec.sampling;
        let sampling = Sampling {
            temperature: sampling.temperature.filter(|_| sampling.temperature != known.temperature),
            top_p: sampling.top_p.filter(|_| sampling.top_p != known.top_p),
        };
        let model = model.filter(|model| *model != self.state.spec.model);
        let tools = tools.filter(|tools| *tools != self.state.spec.tools);
        let additional_dirs = additional_dirs.filter(|dirs| *dirs != self.state.spec.additional_dirs);
        let changes = [
            title.is_some(),
            model.is_some(),
            mode.is_some(),
            budgets.is_some(),
            thinking.is_some(),
            !sampling.is_empty(),
            tools.is_some(),
            additional_dirs.is_some(),
        ];
        if changes.contains(&true) {
            self.push_session(Event::SessionUpdated {
                title,
                titled_by: None,
                model,
                mode,
                budgets,
                thinking,
                sampling,
                tools,
                additional_dirs,
            });
        }
        for (request_id, reason) in covered {
            self.covered(request_id, SettledBy::Mode, reason);
        }
        Ok(())
    }

    /// Adds a rule to this session, or removes one. Adding an existing rule changes nothing.
    pub fn rule(&mut self, add: bool, kind: RuleKind, rule: String) -> Result<(), Refusal> {
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        let known = self.state.rules.of(kind).contains(&rule);
        match (add, known) {
            (true, true) => {}
            (true, false) => _ = self.push_session(Event::PermissionRuleAdded { kind, rule }),
            (false, true) => _ = self.push_session(Event::PermissionRuleRemoved { kind, rule }),
            (false, false) => return Err(Refusal::NoSuchRule),
        }
        Ok(())
    }

    /// The tools that the model is offered, in the daemon's fixed order.
    pub fn offered(&self) -> Arc<[ToolDefinition]> {
        let all = &self.engine.settings.tools;
        match self.choice() {
            choice if choice.is_all() => Arc::clone(all),
            choice => all.iter().filter(|card| choice.offers(&card.name)).cloned().collect(),
        }
    }

    /// Whether a call is of an existing tool that this session does not offer.
    pub fn is_withheld(&self, tool: &str) -> bool {
        let exists = self.engine.settings.tools.iter().any(|card| card.name == tool);
        exists && !self.choice().offers(tool)
    }

    fn choice(&self) -> &ToolChoice {
        self.state.turn.as_ref().map_or(&self.state.spec.tools, |turn| &turn.tools)
    }
}
