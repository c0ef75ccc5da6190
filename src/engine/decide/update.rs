//! Changes of a session in mid-flight: title, model, mode, limits, tools, folders, and rules of its own (P1, P2,
//! Q42).

use std::sync::Arc;

use crate::engine::decide::plan::PlanBuilder;
use crate::engine::input::{Refusal, Update};
use crate::types::event::{Event, SettledBy};
use crate::types::permission::{Mode, RuleKind};
use crate::types::sampling::Sampling;
use crate::types::session::SessionState;
use crate::types::tool::{ToolChoice, ToolDefinition};

impl PlanBuilder<'_> {
    /// Takes the changes in; what is already so is no change. The mode counts for every verdict from
    /// now on; requests that it lets pass are settled in the same breath. One that is stricter takes
    /// nothing back that was allowed before.
    pub fn update(&mut self, update: Update) -> Result<(), Refusal> {
        let Update {
            title,
            model,
            mode,
            budgets,
            thinking,
            sampling,
            tools,
            additional_dirs,
            covered,
            origin,
        } = update;
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        self.origin = origin;
        // One that a person gives stays, also if it is the one that stands there.
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

    /// Adds a rule of this session, or takes one back. Adding what is there changes nothing.
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

    /// The tools that the model is told of, in the order of the house.
    pub fn offered(&self) -> Arc<[ToolDefinition]> {
        let all = &self.engine.settings.tools;
        match self.choice() {
            choice if choice.is_all() => Arc::clone(all),
            choice => all.iter().filter(|card| choice.offers(&card.name)).cloned().collect(),
        }
    }

    /// Whether a call is of a tool that exists and is not on offer here.
    pub fn is_withheld(&self, tool: &str) -> bool {
        let exists = self.engine.settings.tools.iter().any(|card| card.name == tool);
        exists && !self.choice().offers(tool)
    }

    fn choice(&self) -> &ToolChoice {
        self.state.turn.as_ref().map_or(&self.state.spec.tools, |turn| &turn.tools)
    }

    /// What the model is told beside a person's words, if the mode asks for it.
    pub fn reminder(&self) -> Option<&'static str> {
        (self.state.mode() == Mode::Plan).then_some(crate::engine::request::model_texts::PLAN_MODE)
    }
}
