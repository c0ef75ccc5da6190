//! Changes of a session in mid-flight: title, mode, limits, and rules of its own (P1, P2).

use super::input::{Refusal, Update};
use super::plan::Draft;
use crate::types::event::{Event, SettledBy};
use crate::types::permission::{Mode, RuleKind};
use crate::types::session::SessionState;

impl Draft<'_> {
    /// Takes the changes in; what is already so is no change. The mode counts for every verdict from
    /// now on; requests that it lets pass are settled in the same breath. One that is stricter takes
    /// nothing back that was allowed before.
    pub fn update(&mut self, update: Update) -> Result<(), Refusal> {
        let Update { title, mode, budgets, thinking, covered, origin } = update;
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        self.origin = origin;
        let title = title.filter(|title| *title != self.state.spec.title);
        let mode = mode.filter(|mode| *mode != self.state.spec.mode || *mode != self.state.mode());
        let budgets = budgets.filter(|budgets| *budgets != self.state.spec.budgets);
        let thinking = thinking.filter(|thinking| Some(*thinking) != self.state.spec.thinking);
        if title.is_some() || mode.is_some() || budgets.is_some() || thinking.is_some() {
            self.push_session(Event::SessionUpdated { title, model: None, mode, budgets, thinking });
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

    /// What the model is told beside a person's words, if the mode asks for it.
    pub fn reminder(&self) -> Option<&'static str> {
        (self.state.mode() == Mode::Plan).then_some(super::words::PLAN_MODE)
    }
}
