//! Answers to permission requests: the first one counts. A request is also settled without an answer by a rule
//! or mode that allows it, or by its deadline.

use serde_json::Value;

use crate::decide::plan::PlanBuilder;
use crate::input::{EditedCall, Refusal, RequestAnswer};
use crate::output::Reply;
use crate::request::model_texts;
use crate::state::{CallStage, CallState, Deadline};
use types::event::{Event, SettledBy};
use types::ids::{CallId, PermissionId};
use types::outcome::AnswerOutcome;
use types::permission::{Decision, Mode, OnTimeout, Scope};
use types::permission_request::PermissionAnswer;
use types::session::Subtype;
use types::tool::{PathSensitivity, PreparedCall, ProposedPlan, Subject, ToolOutcome, ToolStatus};
use types::turn_options::TurnOptions;

/// How a request is settled, with the texts about it.
struct Settlement {
    decision: Decision,
    by: SettledBy,
    scope: Scope,
    grant: Option<String>,
    feedback: Option<String>,
    rule: Option<String>,
    edited: Option<(Value, PreparedCall)>,
    stop: bool,
}

/// A plan that the user approved.
struct ApprovedPlan {
    /// The approval mode after plan mode.
    mode: Mode,
    /// The plan text as the user edited it. `None` if the user approved the model's text.
    edited: Option<String>,
}

impl Settlement {
    fn new(decision: Decision, by: SettledBy) -> Self {
        let (scope, grant, feedback, rule, edited) = (Scope::Once, None, None, None, None);
        Self { decision, by, scope, grant, feedback, rule, edited, stop: false }
    }
}

impl PlanBuilder<'_> {
    /// Decides the effect of an answer to a permission request: settles the request, then ends or advances its call.
    pub fn answer_permission(&mut self, answer: RequestAnswer) -> Result<(), Refusal> {
        let RequestAnswer { answer, edited, .. } = answer;
        let Some(call) = self.awaiting_call(answer.request_id).filter(|_| !self.is_aborting()) else {
            return Err(Refusal::NotPending);
        };
        let CallStage::Awaiting { suggestions, digest, .. } = &call.stage else {
            return Err(Refusal::NotPending);
        };
        if answer.digest.as_ref().is_some_and(|seen| seen != digest) {
            return Err(Refusal::OtherRequest);
        }
        if answer.no_approver && answer.decision == Decision::Deny {
            return self.settle_without_approver(&call, answer.request_id, answer.stop);
        }
        if call.blocked_run.is_some() && (answer.scope == Scope::Project || edited.is_some()) {
            return Err(Refusal::RetryMustBeUnchanged);
        }
        let plan = self.proposed_plan(&call, &answer, edited.as_ref())?;
        let is_lasting = answer.decision == Decision::Allow && answer.scope != Scope::Once;
        let grant = match is_lasting {
            true => Some(answer.grant.or_else(|| suggestions.first().cloned()).ok_or(Refusal::NoGrant)?),
            false => None,
        };
        if call.blocked_run.is_some() && grant.is_some() && grant.as_ref() != suggestions.first() {
            return Err(Refusal::RetryMustBeUnchanged);
        }
        let stop = answer.stop && answer.decision == Decision::Deny;
        let settled = Settlement {
            scope: answer.scope,
            grant,
            feedback: answer.feedback.clone(),
            edited: edited.map(|edited| (edited.input, edited.prepared)),
            stop,
            ..Settlement::new(answer.decision, SettledBy::Answer)
        };
        self.reply_answered(settled.grant.clone());
        self.settle_request(&call, answer.request_id, settled);
        if let Some(plan) = plan {
            self.leave_plan_mode(call.call.call_id, plan, answer.feedback.as_deref());
        } else if answer.decision == Decision::Deny {
            let feedback_text = answer.feedback.as_deref().map(str::trim).filter(|text| !text.is_empty());
            let (code, text) = match feedback_text {
                feedback_text if is_plan(&call) => {
                    let code = if feedback_text.is_some() { "denied_with_feedback" } else { "denied" };
                    (code, model_texts::plan_denied(feedback_text))
                }
                Some(feedback) => ("denied_with_feedback", model_texts::denied_with_feedback(feedback)),
                None => ("denied", model_texts::DENIED.to_string()),
            };
            if !self.finish_with_first_run(
                call.call.call_id,
                code,
                &model_texts::outside_denied(feedback_text),
            ) {
                self.deny_call(call.call.call_id, code, text);
            }
        }
        if stop {
            self.end_as_denied();
        } else {
            self.advance_tools();
        }
        Ok(())
    }

    /// The approved plan and its following mode. `None` if the answer does not approve a plan.
    fn proposed_plan(
        &self,
        call: &CallState,
        answer: &PermissionAnswer,
        edited: Option<&EditedCall>,
    ) -> Result<Option<ApprovedPlan>, Refusal> {
        let is_approval = is_plan(call) && answer.decision == Decision::Allow;
        if !is_approval {
            return if answer.mode.is_some() { Err(Refusal::ModeOfOtherAnswer) } else { Ok(None) };
        }
        let mode = answer.mode.unwrap_or(Mode::Default);
        if mode == Mode::Plan || answer.scope != Scope::Once {
            return Err(Refusal::PlanNeedsOtherMode);
        }
        let edited = edited.map(|edited| ProposedPlan::text(&edited.input).to_owned());
        Ok(Some(ApprovedPlan { mode, edited }))
    }

    /// Ends plan mode and completes the `ExitPlanMode` call.
    fn leave_plan_mode(&mut self, call_id: CallId, plan: ApprovedPlan, feedback: Option<&str>) {
        let options = Box::new(TurnOptions { mode: Some(plan.mode), ..TurnOptions::default() });
        self.push_turn(Event::SessionUpdated { title: None, titled_by: None, options });
        let feedback_text = feedback.map(str::trim).filter(|text| !text.is_empty());
        let text = model_texts::plan_approved(plan.mode, plan.edited.as_deref(), feedback_text);
        self.complete(call_id, ToolOutcome::completed(text), 0);
    }

    /// Replies with the seq of the next event, which records the answer.
    fn reply_answered(&mut self, grant: Option<String>) {
        self.reply = Reply::Answered(AnswerOutcome { seq: self.state.next_seq, grant });
    }

    /// No user can answer: the action of `on_timeout` applies at once.
    fn settle_without_approver(
        &mut self,
        call: &CallState,
        request_id: PermissionId,
        stop: bool,
    ) -> Result<(), Refusal> {
        let on_timeout = self.engine.settings.unattended.on_timeout;
        if on_timeout == OnTimeout::Pause {
            return Err(Refusal::Paused);
        }
        self.reply_answered(None);
        let texts = (model_texts::NO_APPROVER, model_texts::OUTSIDE_NO_APPROVER);
        if self.apply_on_timeout(call, request_id, on_timeout, SettledBy::NoApprover, texts, stop) {
            self.end_as_denied();
        } else {
            self.advance_tools();
        }
        Ok(())
    }

    /// Applies the action for an unanswered request. Returns whether the turn ends with it.
    fn apply_on_timeout(
        &mut self,
        call: &CallState,
        request_id: PermissionId,
        on_timeout: OnTimeout,
        by: SettledBy,
        (refusal_text, outside): (&str, &str),
        stop: bool,
    ) -> bool {
        let harmless = matches!(&call.stage, CallStage::Awaiting { prepared, read_only_command, .. }
                if *read_only_command || is_harmless(prepared))
            && call.blocked_run.is_none();
        if on_timeout == OnTimeout::AllowReadOnly && harmless {
            self.settle_request(call, request_id, Settlement::new(Decision::Allow, by));
            return false;
        }
        let stop = stop || on_timeout == OnTimeout::Fail;
        self.settle_request(call, request_id, Settlement { stop, ..Settlement::new(Decision::Deny, by) });
        let call_id = call.call.call_id;
        if !self.finish_with_first_run(call_id, "no_answer", outside) {
            self.deny_call(call_id, "no_answer", refusal_text.to_string());
        }
        stop
    }

    /// Settles a request that a new rule or another mode allows. A run outside the sandbox needs its own grant:
    /// no mode and no rule for commands allows it.
    pub fn settle_by_rule_or_mode(&mut self, request_id: PermissionId, by: SettledBy, rule: String) {
        let Some(call) = self.awaiting_call(request_id).filter(|_| !self.is_aborting()) else { return };
        if let (Some(_), CallStage::Awaiting { suggestions, .. }) = (&call.blocked_run, &call.stage)
            && (by != SettledBy::Rule || suggestions.first() != Some(&rule))
        {
            return;
        }
        let settled = Settlement { rule: Some(rule), ..Settlement::new(Decision::Allow, by) };
        self.settle_request(&call, request_id, settled);
        self.advance_tools();
    }

    /// Expires requests that were not answered in time. A request expires once, and never before its deadline,
    /// even if the clock changes.
    pub fn expire_requests(&mut self) {
        if self.is_aborting() || self.check_time() {
            return;
        }
        let now = self.now.at;
        let mut is_failing = false;
        for call in self.state.calls().to_vec() {
            let CallStage::Awaiting { request_id, deadline: Some(deadline), expired: false, .. } =
                &call.stage
            else {
                continue;
            };
            let Deadline { at, on_timeout } = *deadline;
            if at > now {
                continue;
            }
            let (request_id, call_id) = (*request_id, call.call.call_id);
            self.push_item(
                call.item_id,
                Event::PermissionExpired { request_id, call_id, on_timeout, child_session_id: None },
            );
            if on_timeout != OnTimeout::Pause {
                let texts = (model_texts::NO_ANSWER, model_texts::OUTSIDE_NO_ANSWER);
                is_failing |=
                    self.apply_on_timeout(&call, request_id, on_timeout, SettledBy::Timeout, texts, false);
            }
        }
        if is_failing {
            self.end_as_denied();
        } else {
            self.advance_tools();
        }
    }

    fn awaiting_call(&self, request_id: PermissionId) -> Option<CallState> {
        let has_id = |call: &&CallState| matches!(call.stage, CallStage::Awaiting { request_id: id, .. } if id == request_id);
        self.state.calls().iter().find(has_id).cloned()
    }

    fn settle_request(&mut self, call: &CallState, request_id: PermissionId, settled: Settlement) {
        let Settlement { decision, by, scope, grant, feedback, rule, edited, stop } = settled;
        let (updated_input, prepared) = edited.unzip();
        let prepared = prepared.map(|prepared| PreparedCall { diff: None, ..prepared });
        let call_id = call.call.call_id;
        self.push_item(
            call.item_id,
            Event::PermissionResolved {
                request_id,
                call_id,
                decision,
                scope,
                grant,
                feedback,
                by,
                rule,
                updated_input,
                prepared,
                stop,
                child_session_id: None,
            },
        );
    }

    /// Ends a call that was refused.
    pub fn deny_call(&mut self, call_id: CallId, code: &str, text: String) {
        let outcome = ToolOutcome { status: ToolStatus::Denied, ..ToolOutcome::failed(code, text) };
        self.complete(call_id, outcome, 0);
    }

    /// Ends the turn because of a denial: like an abort, but reported as a denial.
    fn end_as_denied(&mut self) {
        self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::PermissionDenied });
        self.stop_turn();
    }
}

/// Whether the call presents a plan for approval.
fn is_plan(call: &CallState) -> bool {
    matches!(&call.stage, CallStage::Awaiting { prepared, .. } if matches!(prepared.subject, Subject::ProposedPlan(_)))
}

/// Calls that `allow_read_only` allows: reading, except of probable secrets, and nothing that leaves this
/// machine.
pub(crate) fn is_harmless(prepared: &PreparedCall) -> bool {
    prepared.read_only && is_harmless_subject(&prepared.subject)
}

fn is_harmless_subject(subject: &Subject) -> bool {
    match subject {
        Subject::Read { path } => path.sensitivity != PathSensitivity::Secret,
        Subject::Background { .. }
        | Subject::Session { .. }
        | Subject::Task { .. }
        | Subject::Tool { .. }
        | Subject::Mcp { .. }
        | Subject::Blob { .. } => true,
        Subject::Several { parts } => parts.iter().all(is_harmless_subject),
        // For commands, `read_only_command` decides this; it also means that no rule requires a request.
        Subject::Bash { .. }
        | Subject::Edit { .. }
        | Subject::Delete { .. }
        | Subject::Web { .. }
        | Subject::Question { .. }
        | Subject::ProposedPlan(_) => false,
    }
}
