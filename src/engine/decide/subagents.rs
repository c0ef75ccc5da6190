//! Sub-agents: their start with a part of the session's limits, their permission requests, and their end.
//!
//! The event `subagent.started` names the child session before it exists. After a crash the same effect runs again
//! and finds the session, so nothing of it runs twice.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::decide::tool_start::StartableCall;
use crate::input::SubmitRequest;
use crate::output::Effect;
use crate::request::model_texts;
use crate::state::{CallStage, Subagent};
use types::event::{Event, SettledBy};
use types::ids::{CallId, RequestId, SessionId};
use types::message::{InputBlock, ToolCall};
use types::permission::{Decision, Scope};
use types::question::QuestionKind;
use types::queue::WhenBusy;
use types::session::{SessionState, Subtype, TurnError, TurnResult};
use types::tool::{PreparedCall, Subject, ToolOutcome, ToolStatus};
use types::turn_options::TurnOptions;
use types::usage::Budgets;

/// Maximum characters of a sub-agent's description in its events.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Whether a prepared call starts a sub-agent and returns at once.
fn is_background_task(prepared: &PreparedCall) -> bool {
    matches!(prepared.subject, Subject::Task { background: true, .. })
}

impl PlanBuilder<'_> {
    /// Refuses a sub-agent that may not start, for example because too many run. Returns whether it refused one.
    pub fn refuse_subagent(&mut self) -> bool {
        let tasks: Vec<StartableCall> =
            self.startable_calls().into_iter().filter(|it| it.prepared.is_task()).collect();
        let most = self.engine.settings.subagents;
        let is_off = self.state.spec.ablation.background_tasks;
        let refused = tasks.iter().enumerate().find_map(|(at, it)| {
            if is_off && is_background_task(&it.prepared) {
                let why =
                    "background tasks are turned off in this session; start it without run_in_background";
                return Some((it.call.call_id, "background_off", why.to_owned()));
            }
            // The new sub-agent would still run after this one and its share of the limits have ended.
            if self.state.spec.parent.is_some() && is_background_task(&it.prepared) {
                let why = "a sub-agent cannot leave sub-agents behind; start it without run_in_background";
                return Some((it.call.call_id, "background_off", why.to_owned()));
            }
            if self.state.subagents.len() + at >= most {
                return Some((it.call.call_id, "too_many_subagents", model_texts::too_many_subagents(most)));
            }
            None
        });
        let Some((call_id, code, text)) = refused else { return false };
        self.complete(call_id, ToolOutcome::failed(code, text), 0);
        true
    }

    /// Returns the share of the limits for a sub-agent that starts now. `waiting` is the number of
    /// sub-agents, including this one, that start with this decision and have no share yet. If no share
    /// is left, the call is refused.
    pub fn share_for_subagent(&mut self, call_id: CallId, waiting: u64) -> Option<Budgets> {
        match self.subagent_budgets(waiting + 1) {
            Ok(budgets) => Some(budgets),
            Err(why) => {
                let text = model_texts::no_budget_for_subagent(&why);
                self.complete(call_id, ToolOutcome::failed("budget", text), 0);
                None
            }
        }
    }

    /// Reserves a share of the limits and starts a sub-agent.
    pub fn start_subagent(&mut self, startable: &StartableCall, budgets: Budgets) {
        let StartableCall { call, item_id, prepared, .. } = startable;
        let Subject::Task { agent, background, .. } = &prepared.subject else { return };
        let description = call.input["description"].as_str().unwrap_or_default();
        let child_session_id = self.mint.session();
        self.push_item(
            *item_id,
            Event::SubagentStarted {
                call_id: call.call_id,
                child_session_id,
                agent: agent.clone(),
                description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
                budgets,
                background: *background,
            },
        );
        if let Some(subagent) = self.state.subagents.last().cloned() {
            self.run_subagent(&subagent, Arc::clone(call), Arc::clone(prepared));
        }
        if *background {
            self.complete(call.call_id, ToolOutcome::completed(model_texts::subagent_began(agent)), 0);
        }
    }

    fn run_subagent(&mut self, subagent: &Subagent, call: Arc<ToolCall>, prepared: Arc<PreparedCall>) {
        self.add_effect(Effect::RunSubagent {
            call,
            prepared,
            child_session_id: subagent.child_session_id,
            agent: subagent.agent.clone(),
            budgets: subagent.reserved,
        });
    }

    /// Follows the sub-agents of the running turn again after a restart.
    pub fn follow_subagents(&mut self) {
        for subagent in self.state.subagents.clone() {
            let call = self.state.call(subagent.call_id);
            let running = call.and_then(|call| match &call.stage {
                CallStage::Running { prepared, .. } => Some((call.effective_call(), Arc::clone(prepared))),
                _ => None,
            });
            if let Some((call, prepared)) = running {
                self.run_subagent(&subagent, call, prepared);
            }
        }
    }

    /// Follows the sub-agents without a waiting call again after a restart.
    pub fn follow_background_subagents(&mut self) {
        for subagent in self.state.subagents.clone().iter().filter(|it| it.background) {
            self.add_effect(Effect::FollowSubagent {
                call_id: subagent.call_id,
                child_session_id: subagent.child_session_id,
            });
        }
    }

    /// Ends all sub-agents after a restart; their ends are reported as inputs. Returns whether there are any.
    pub fn end_subagents(&mut self) -> bool {
        for subagent in self.state.subagents.clone() {
            let (call_id, child_session_id) = (subagent.call_id, subagent.child_session_id);
            self.add_effect(Effect::FollowSubagent { call_id, child_session_id });
        }
        let any = !self.state.subagents.is_empty();
        if any {
            self.add_effect(Effect::StopSubagents);
        }
        any
    }

    /// Shows a permission request of a sub-agent, or its end, to the clients of this session.
    pub fn subagent_event(&mut self, call_id: CallId, event: Event) {
        let Some(subagent) = self.state.subagents.iter().find(|it| it.call_id == call_id).cloned() else {
            return;
        };
        let is_known = |id: RequestId| subagent.requests.contains(&id);
        let is_news = match &event {
            Event::PermissionRequested { request, .. } => {
                !is_known(RequestId::Permission(request.request_id))
            }
            Event::QuestionRequested { question } => !is_known(RequestId::Question(question.request_id)),
            Event::PermissionResolved { request_id, .. } | Event::PermissionExpired { request_id, .. } => {
                is_known(RequestId::Permission(*request_id))
            }
            Event::QuestionResolved { request_id, .. } => is_known(RequestId::Question(*request_id)),
            _ => false,
        };
        let (Some(item_id), true) = (subagent.item_id, is_news) else { return };
        let child = event.shows_request_of().unwrap_or(subagent.child_session_id);
        let event = event.for_child_session(child);
        self.push(Some(item_id), self.open_turn_of(&subagent), event);
    }

    /// The turn of a sub-agent's call, if that turn still runs.
    fn open_turn_of(&self, subagent: &Subagent) -> Option<types::ids::TurnId> {
        self.state.turn.as_ref().map(|turn| turn.id).filter(|id| subagent.turn_id == Some(*id))
    }

    /// Records how a sub-agent ended: its usage counts from now on, and its call gets the result.
    pub fn subagent_done(
        &mut self,
        call_id: CallId,
        done: Result<TurnResult, ToolOutcome>,
        duration_ms: u64,
    ) {
        let Some(subagent) = self.state.subagents.iter().find(|it| it.call_id == call_id).cloned() else {
            return;
        };
        let (result, outcome) = match done {
            Ok(result) => {
                let outcome = outcome_of(&subagent, &result);
                (result, outcome)
            }
            Err(outcome) => {
                let error = TurnError::new(outcome.code.clone().unwrap_or_default(), outcome.output.clone());
                let result = TurnResult::unknown(Subtype::ErrorDuringExecution, error);
                // The sub-agent made no model call.
                (TurnResult { cost_usd_micros: Some(0), ..result }, outcome)
            }
        };
        self.close_subagent(&subagent, result);
        if subagent.background {
            self.deliver_subagent_result(&subagent, &outcome);
        } else {
            self.complete(call_id, outcome, duration_ms);
        }
        if !self.is_aborting() {
            self.advance_tools();
        }
    }

    fn close_subagent(&mut self, subagent: &Subagent, result: TurnResult) {
        let turn_id = self.open_turn_of(subagent);
        for request_id in subagent.requests.clone() {
            let event = withdrawn_request_event(request_id, subagent.call_id, subagent.child_session_id);
            self.push(subagent.item_id, turn_id, event);
        }
        let (call_id, child_session_id) = (subagent.call_id, subagent.child_session_id);
        let completed = Event::SubagentCompleted { call_id, child_session_id, result: Box::new(result) };
        self.push(subagent.item_id, turn_id, completed);
    }

    /// Closes the sub-agents that did not report their end in time.
    pub fn close_lost_subagents(&mut self) {
        for subagent in self.state.subagents.clone() {
            let error =
                TurnError::new("lost", "the sub-agent did not report its end; its usage is not known");
            self.close_subagent(&subagent, TurnResult::unknown(Subtype::Aborted, error));
        }
    }

    /// Gives the model the result of a sub-agent in the background: with the next tool results, or as a turn.
    fn deliver_subagent_result(&mut self, subagent: &Subagent, outcome: &ToolOutcome) {
        let takes_input =
            self.state.status != SessionState::Ended && !self.state.archived && !self.is_aborting();
        let is_turn_running = self.state.turn.is_some();
        // The user aborted the sub-agent and wants no new work, so the model receives the result with
        // the next input.
        let is_aborted = outcome.status == ToolStatus::Cancelled && !is_turn_running;
        if !takes_input || is_aborted {
            return;
        }
        let is_busy = self.has_questions();
        // No user submitted this turn, so it gets the limits that the turn before it did not use (`start_turn`).
        // Otherwise, sub-agents that start each other would never end.
        let budgets = match &self.state.turn {
            None => Some(self.state.left_of_turn),
            Some(turn) if is_busy => Some(turn.settings.budgets),
            Some(_) => None,
        };
        let text = model_texts::subagent_ended(&subagent.agent, &subagent.description, &outcome.output);
        let submit = SubmitRequest {
            input: vec![InputBlock::Text { text }],
            blobs: Vec::new(),
            // The result does not answer an open question, so it must not settle the question by steering.
            when_busy: if is_busy { Some(WhenBusy::Queue) } else { Some(WhenBusy::Steer) },
            expected_turn: None,
            options: TurnOptions { budgets, ..TurnOptions::default() },
            origin: None,
        };
        // `submit` refuses if a limit of the session is reached. The result then stays in the journal only.
        let _ = self.submit(submit);
    }
}

/// The end of a request whose sub-agent has ended.
fn withdrawn_request_event(request_id: RequestId, call_id: CallId, child: SessionId) -> Event {
    let (by, child_session_id) = (SettledBy::Abort, Some(child));
    match request_id {
        RequestId::Permission(request_id) => Event::PermissionResolved {
            request_id,
            call_id,
            decision: Decision::Deny,
            scope: Scope::Once,
            grant: None,
            feedback: None,
            by,
            rule: None,
            updated_input: None,
            prepared: None,
            stop: false,
            child_session_id,
        },
        RequestId::Question(request_id) => Event::QuestionResolved {
            request_id,
            kind: QuestionKind::Question,
            call_id: Some(call_id),
            choice: None,
            answers: Vec::new(),
            by,
            child_session_id,
        },
    }
}

/// The result of the call for the model.
fn outcome_of(subagent: &Subagent, result: &TurnResult) -> ToolOutcome {
    let detail = serde_json::json!({
        "child_session_id": subagent.child_session_id,
        "agent": subagent.agent,
        "subtype": result.subtype,
        "model_calls": result.model_calls,
        "cost_usd_micros": result.cost_usd_micros,
    });
    let text = if result.text.trim().is_empty() { "(the sub-agent gave no text)" } else { &result.text };
    let outcome = match result.subtype {
        Subtype::Success => ToolOutcome::completed(text),
        Subtype::Aborted => ToolOutcome {
            status: ToolStatus::Cancelled,
            ..ToolOutcome::failed("aborted", model_texts::subagent_failed("was aborted", text))
        },
        subtype => {
            let errors: Vec<&str> = result.errors.iter().map(|error| error.message.as_str()).collect();
            let why = format!("ended with {}: {}", subtype.name(), errors.join("; "));
            ToolOutcome::failed("subagent_failed", model_texts::subagent_failed(&why, text))
        }
    };
    ToolOutcome { detail: Some(detail), ..outcome }
}
