//! Answers to permission requests: the first one wins.

use super::input::Refusal;
use super::plan::Draft;
use super::state::Stage;
use super::words;
use crate::types::event::{Event, SettledBy};
use crate::types::ids::PermissionId;
use crate::types::permission::{Decision, Scope};
use crate::types::tool::{ToolOutcome, ToolStatus};

impl Draft<'_> {
    pub fn answer(
        &mut self,
        request_id: PermissionId,
        decision: Decision,
        scope: Scope,
        grant: Option<String>,
        feedback: Option<String>,
    ) -> Result<(), Refusal> {
        let found = self.state.calls().iter().find_map(|call| match &call.stage {
            Stage::Awaiting { request_id: id, suggestions, .. } if *id == request_id => {
                Some((call.call.call_id, call.item_id, suggestions.clone()))
            }
            _ => None,
        });
        let Some((call_id, item_id, suggestions)) = found.filter(|_| !self.is_aborting()) else {
            return Err(Refusal::NotPending);
        };
        let grant = match (decision, scope) {
            (Decision::Allow, Scope::Session) => {
                Some(grant.or_else(|| suggestions.into_iter().next()).ok_or(Refusal::NoGrant)?)
            }
            _ => None,
        };
        self.push_item(
            item_id,
            Event::PermissionResolved {
                request_id,
                call_id,
                decision,
                scope,
                grant,
                feedback: feedback.clone(),
                by: SettledBy::Answer,
            },
        );
        if decision == Decision::Deny {
            let (code, text) = match feedback.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
                Some(feedback) => ("denied_with_feedback", words::denied_with_feedback(feedback)),
                None => ("denied", words::DENIED.to_string()),
            };
            let outcome = ToolOutcome { status: ToolStatus::Denied, ..ToolOutcome::failed(code, text) };
            self.complete(call_id, outcome, 0);
        }
        self.advance_tools();
        Ok(())
    }
}
