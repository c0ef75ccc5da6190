//! Events of permission requests and of the session's own rules.

use std::sync::Arc;

use crate::apply::tool::set_stage;
use crate::apply::turn::end_wait;
use crate::state::{CallStage, CallState, Deadline, State};
use types::event::{Envelope, Event};
use types::ids::{RequestId, SessionId};
use types::permission::{Decision, RuleKind, Scope, digest};
use types::reason::SettledBy;
use types::tool::PreparedCall;

impl State {
    pub(super) fn apply_rule_event(&mut self, event: &Event) {
        match event {
            Event::PermissionRuleAdded { kind, rule } => self.add_rule(*kind, rule),
            Event::PermissionRuleRemoved { kind, rule } => {
                Arc::make_mut(&mut self.rules).with_kind_mut(*kind).retain(|known| known != rule);
            }
            _ => {}
        }
    }

    pub(super) fn apply_permission_event(&mut self, envelope: &Envelope) {
        let Some(turn) = &mut self.turn else { return };
        match &envelope.event {
            Event::PermissionRequested { request, read_only, change, sandbox } => {
                let prepared = Arc::new(PreparedCall {
                    subject: request.subject.clone(),
                    summary: request.summary.clone(),
                    diff: None,
                    read_only: *read_only,
                    change: change.clone(),
                    sandbox: *sandbox,
                });
                turn.totals.waiting_since.get_or_insert(envelope.at_ms);
                let stage = CallStage::Awaiting {
                    request_id: request.request_id,
                    prepared,
                    suggestions: request.suggestions.clone(),
                    deadline: request
                        .deadline_ms
                        .map(|at| Deadline { at, on_timeout: request.on_timeout.unwrap_or_default() }),
                    read_only_command: request.read_only_command,
                    expired: false,
                    folder: request.cwd.clone(),
                    digest: request.digest.clone(),
                };
                // A hook may have replaced the arguments.
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == request.call_id)
                    && request.input != call.call.input
                {
                    call.edited = Some(request.input.clone());
                }
                set_stage(turn, request.call_id, stage);
            }
            Event::PermissionResolved { request_id, call_id, updated_input, .. } => {
                let session_id = self.session_id;
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id) {
                    // The answer about a run outside the sandbox cannot change the arguments, because
                    // the first run has already used them.
                    if call.blocked_run.is_none() && updated_input.is_some() {
                        call.edited.clone_from(updated_input);
                    }
                    apply_settled(call, session_id, &envelope.event);
                }
                end_wait(turn, &self.subagents, Some(RequestId::Permission(*request_id)), envelope);
                if let Event::PermissionResolved {
                    decision: Decision::Allow,
                    scope: Scope::Session,
                    grant: Some(grant),
                    ..
                } = &envelope.event
                {
                    self.add_rule(RuleKind::Allow, grant);
                }
            }
            Event::PermissionExpired { call_id, .. } => {
                if let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == *call_id)
                    && let CallStage::Awaiting { expired, .. } = &mut call.stage
                {
                    *expired = true;
                }
            }
            _ => {}
        }
    }

    fn add_rule(&mut self, kind: RuleKind, rule: &str) {
        let rules = Arc::make_mut(&mut self.rules).with_kind_mut(kind);
        if !rules.iter().any(|known| known == rule) {
            rules.push(rule.to_string());
        }
    }
}

/// Makes an allowed call ready to start, with its verdict and bound to the request that the user saw.
fn apply_settled(call: &mut CallState, session_id: SessionId, event: &Event) {
    let Event::PermissionResolved {
        request_id, decision: Decision::Allow, prepared: edited, rule, by, ..
    } = event
    else {
        return;
    };
    let CallStage::Awaiting { prepared, folder, digest: shown, .. } = &call.stage else { return };
    let bound = match &call.edited {
        Some(input) => Some(digest(session_id, folder, &call.call.tool, input)),
        // Older journals have no digest; then the answer is not bound to one.
        None => Some(shown.clone()).filter(|shown| !shown.is_empty()),
    };
    call.stage = CallStage::Ready {
        prepared: edited.clone().map_or_else(|| Arc::clone(prepared), Arc::new),
        allowed_by: rule.clone().unwrap_or_else(|| request_id.to_string()),
        bound: bound.map(|digest| (folder.clone(), digest)),
        answered: *by == SettledBy::Answer,
    };
}
