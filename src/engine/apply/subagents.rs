//! Events of sub-agents.

use std::sync::Arc;

use crate::apply::turn::end_wait;
use crate::state::{State, Subagent};
use types::event::{Envelope, Event};
use types::ids::RequestId;
use types::session::{Subtype, TurnResult};

impl State {
    pub(super) fn apply_subagent_event(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::SubagentStarted { call_id, child_session_id, agent, description, budgets, background } => {
                self.subagents.push(Arc::new(Subagent {
                    call_id: *call_id,
                    item_id: envelope.item_id,
                    turn_id: envelope.turn_id,
                    child_session_id: *child_session_id,
                    agent: agent.clone(),
                    description: description.clone(),
                    reserved: *budgets,
                    background: *background,
                    requests: Vec::new(),
                }));
            }
            Event::SubagentCompleted { child_session_id, result, .. } => {
                let known = self.subagents.iter().position(|it| it.child_session_id == *child_session_id);
                let subagent = known.map(|at| self.subagents.remove(at));
                if let (Some(subagent), Some(turn)) = (&subagent, &mut self.turn)
                    && subagent.holds_up(turn)
                {
                    end_wait(turn, &self.subagents, None, envelope);
                }
                let takes_result = self.turn.as_ref().is_some_and(|turn| !turn.stop.is_aborting);
                if let Some(subagent) = subagent.filter(|it| it.background)
                    && result.subtype == Subtype::Aborted
                    && !takes_result
                {
                    let name = format!("{} ({})", subagent.agent, subagent.description);
                    Arc::make_mut(&mut self.aborted_subagents).push(name);
                }
                self.book_subagent(result, envelope);
            }
            Event::SessionInherited { reads } => {
                let reads = reads.iter().map(|read| (read.path.clone(), read.clone()));
                Arc::make_mut(&mut self.reads).extend(reads);
            }
            _ => {}
        }
    }

    /// Adds the usage of a sub-agent to the session, and to the turn of its call if that turn still runs.
    /// If a later turn runs, the usage counts for the limits of that turn, as the reservation did.
    fn book_subagent(&mut self, result: &TurnResult, envelope: &Envelope) {
        if result.usage_by_model.is_empty() && result.cost_usd_micros.is_none() {
            self.spent.cost_usd_micros = None;
        }
        for (model, usage) in &result.usage_by_model {
            self.spent.add(usage);
            if let Some(turn) = self.turn.as_mut().filter(|turn| envelope.turn_id == Some(turn.id)) {
                turn.totals.spent.add(usage);
                turn.totals.subagent_calls = turn.totals.subagent_calls.saturating_add(usage.calls);
                turn.totals.usage_by_model.entry(model.clone()).or_default().add(usage);
            } else if let Some(turn) = &mut self.turn {
                turn.totals.spent_by_earlier_subagents.add(usage);
            } else {
                self.left_of_turn.subtract(usage);
            }
        }
    }

    /// Records the pending requests of sub-agents. The sub-agents' own sessions wait for the answers. The turn waits
    /// too while it needs their results.
    pub(super) fn apply_subagent_request(&mut self, envelope: &Envelope) {
        let opened = match &envelope.event {
            Event::PermissionRequested { request, .. } => Some(RequestId::Permission(request.request_id)),
            Event::QuestionRequested { question } => Some(RequestId::Question(question.request_id)),
            _ => None,
        };
        let settled = match &envelope.event {
            Event::PermissionResolved { request_id, .. } => Some(RequestId::Permission(*request_id)),
            Event::QuestionResolved { request_id, .. } => Some(RequestId::Question(*request_id)),
            _ => None,
        };
        if let Some(request_id) = opened {
            let is_its = |it: &&mut Arc<Subagent>| it.item_id == envelope.item_id;
            if let Some(subagent) = self.subagents.iter_mut().find(is_its) {
                Arc::make_mut(subagent).requests.push(request_id);
                if let Some(turn) = self.turn.as_mut().filter(|turn| subagent.holds_up(turn)) {
                    turn.totals.waiting_since.get_or_insert(envelope.at_ms);
                }
            }
        }
        if let Some(request_id) = settled {
            let mut held_up = false;
            for subagent in self.subagents.iter_mut().filter(|it| it.requests.contains(&request_id)) {
                Arc::make_mut(subagent).requests.retain(|id| *id != request_id);
                held_up |= self.turn.as_ref().is_some_and(|turn| subagent.holds_up(turn));
            }
            if let Some(turn) = self.turn.as_mut().filter(|_| held_up) {
                end_wait(turn, &self.subagents, None, envelope);
            }
        }
    }
}
