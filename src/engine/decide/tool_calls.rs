//! Tool calls: prepared together, judged, and run in an order that never runs a change in parallel.

use std::sync::Arc;

use crate::decide::model_reply::split_text;
use crate::decide::plan::PlanBuilder;
use crate::input::JudgedCall;
use crate::output::Effect;
use crate::request::{model_texts, tokens};
use crate::state::{Activity, CallStage, CallState};
use crate::window::result_budget::BoundedResult;
use types::call_summary::call_summary;
use types::compaction::{CompactStage, CompactTrigger};
use types::event::Event;
use types::ids::{CallId, ItemId, TurnId};
use types::message::ToolCall;
use types::permission::{Mode, OnTimeout, RequestKind, Verdict, VerdictKind};
use types::session::PermissionRequest;
use types::time::Timestamp;
use types::tool::{PreparedCall, Subject, ToolOutcome, ToolProgress, ToolStatus};

/// Maximum bytes of changed arguments that the model receives.
const MAX_EDITED_BYTES: usize = 2_000;

/// Whether a user must answer something before the call can continue.
fn needs_user(prepared: &PreparedCall, verdict: &Verdict) -> bool {
    verdict.verdict != VerdictKind::Allow || matches!(prepared.subject, Subject::Question { .. })
}

impl PlanBuilder<'_> {
    /// Adds the output of a running tool; the output of any other tool is ignored.
    pub fn progress(&mut self, call_id: CallId, progress: ToolProgress) {
        let Some((turn_id, item_id, _)) = self.state.progress_target(call_id) else { return };
        for text in split_text(progress.text) {
            let stream = progress.stream.into();
            self.push(item_id, turn_id, Event::ToolProgress { call_id, stream, text });
        }
    }

    /// Prepares the calls that are not prepared yet.
    pub fn prepare_open_calls(&mut self) {
        let Some(turn_id) = self.state.turn.as_ref().map(|turn| turn.id) else { return };
        self.refuse_withheld();
        let calls: Vec<_> = self
            .state
            .calls()
            .iter()
            .filter(|call| call.stage == CallStage::Requested)
            .map(|call| Arc::clone(&call.call))
            .collect();
        if !calls.is_empty() {
            self.add_effect(Effect::Prepare { turn_id, calls });
        }
    }

    /// Refuses calls of tools that the session does not offer. If no other call is open, the turn continues.
    fn refuse_withheld(&mut self) {
        let is_withheld =
            |call: &&CallState| call.stage == CallStage::Requested && self.is_withheld(&call.call.tool);
        let withheld: Vec<_> = self.state.calls().iter().filter(is_withheld).cloned().collect();
        for call in &withheld {
            let text = model_texts::tool_withheld(&call.call.tool);
            self.complete(call.call.call_id, ToolOutcome::failed("tool_not_offered", text), 0);
        }
        if !withheld.is_empty() && self.state.calls().iter().all(CallState::is_done) {
            self.advance_tools();
        }
    }

    /// Judges all calls before any of them raises a request, so that users see the requests together.
    pub fn judge_prepared_calls(&mut self, turn_id: TurnId, mode: Mode, calls: Vec<JudgedCall>) {
        let current = self.state.turn.as_ref().filter(|turn| turn.id == turn_id && !turn.stop.is_aborting);
        let Some(current) = current else { return };
        if current.settings.mode != mode {
            // A client changed the mode during preparation, so prepare the calls again in the new mode.
            self.prepare_open_calls();
            return;
        }
        let is_left = |call: &CallState| {
            call.stage == CallStage::Requested
                && !calls.iter().any(|judged| judged.call_id == call.call.call_id)
        };
        let is_part = self.is_streaming() || self.state.calls().iter().any(is_left);
        for judged in calls {
            let Some(call) =
                self.state.call(judged.call_id).filter(|call| call.stage == CallStage::Requested)
            else {
                continue;
            };
            let call = call.clone();
            match judged.result {
                // An earlier call may create the missing target, so prepare this call again when it is
                // the next call.
                Err(outcome) if self.may_change(&call, &outcome) => {}
                // Requests and refusals of one message are raised together. Until all of its calls are prepared, only
                // calls that need no request start.
                Err(_) if is_part => {}
                Ok((prepared, verdict)) if is_part && needs_user(&prepared, &verdict) => {}
                Err(outcome) => self.complete(judged.call_id, outcome, 0),
                Ok((prepared, verdict)) => self.apply_verdict(&call, prepared, verdict, judged.updated_input),
            }
        }
        self.advance_tools();
    }

    /// Whether the answer with the calls is still streaming.
    pub fn is_streaming(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| matches!(turn.activity, Activity::Calling { .. }))
    }

    /// Pushes the request of a call.
    pub fn push_call(
        &mut self,
        item_id: ItemId,
        call_id: CallId,
        tool: String,
        input: serde_json::Value,
        provider_id: Option<String>,
    ) {
        let summary = call_summary(&tool, &input, &self.state.cwd);
        self.push_item(item_id, Event::ToolRequested { call_id, tool, input, summary, provider_id });
    }

    /// Requests complete calls of the streaming answer (the provider's id, the tool and its input), and prepares
    /// them.
    pub fn request_early(&mut self, complete: Vec<(String, String, serde_json::Value)>) {
        let Some(turn) = &self.state.turn else { return };
        // With binary feedback a client chooses the answer first.
        let is_off = self.state.spec.ablation.streaming_execution
            || self.state.spec.binary_feedback
            || self.state.safe_mode();
        if is_off || turn.stop.is_aborting {
            return;
        }
        let turn_id = turn.id;
        let mut calls = Vec::new();
        for (provider_id, tool, input) in complete {
            let (item_id, call_id) = (self.mint.item(), self.mint.call());
            self.push_call(item_id, call_id, tool, input, Some(provider_id));
            let call = self.state.call(call_id).filter(|call| !self.is_withheld(&call.call.tool));
            calls.extend(call.map(|call| Arc::clone(&call.call)));
        }
        if !calls.is_empty() {
            self.add_effect(Effect::Prepare { turn_id, calls });
        }
    }

    /// Whether another preparation of a call may differ once the calls before it are done.
    fn may_change(&self, call: &CallState, outcome: &ToolOutcome) -> bool {
        let is_its_own =
            matches!(outcome.code.as_deref(), Some("invalid_input" | "unknown_tool" | "internal"));
        let mut before =
            self.state.calls().iter().take_while(|other| other.call.call_id != call.call.call_id);
        !is_its_own && before.any(|other| !other.is_done())
    }

    /// Prepares the next call again, if its preparation failed and an earlier call may have changed the result.
    pub(super) fn prepare_next(&mut self) {
        let next = self.state.calls().iter().find(|call| !call.is_done());
        let is_left = next.is_some_and(|call| call.stage == CallStage::Requested) && !self.is_streaming();
        let is_looked_at = |effect: &Effect| matches!(effect, Effect::Prepare { .. });
        if is_left && !self.plan.effects.iter().any(is_looked_at) {
            self.prepare_open_calls();
        }
    }

    /// Acts on the verdict of a call. `updated_input` holds arguments of a hook that replace the model's.
    pub(super) fn apply_verdict(
        &mut self,
        call: &CallState,
        prepared: PreparedCall,
        verdict: Verdict,
        updated_input: Option<serde_json::Value>,
    ) {
        let call_id = call.call.call_id;
        let is_plan = matches!(prepared.subject, Subject::ProposedPlan(_));
        match (verdict.verdict, &prepared.subject) {
            (VerdictKind::Allow, Subject::Question { questions }) => self.ask_user(call, questions.clone()),
            (VerdictKind::Allow, _) => {
                let allowed_by = verdict.rule.unwrap_or(verdict.reason);
                let prepared = PreparedCall { diff: None, ..prepared };
                self.push_item(
                    call.item_id,
                    Event::ToolStatus { call_id, prepared, allowed_by, updated_input },
                );
            }
            (VerdictKind::Deny, _) => {
                let outcome = ToolOutcome {
                    status: ToolStatus::Denied,
                    detail: verdict.rule.map(|rule| serde_json::json!({ "rule": rule })),
                    ..ToolOutcome::failed("denied_by_rule", model_texts::denied_by_rule(&verdict.reason))
                };
                self.complete(call_id, outcome, 0);
            }
            (VerdictKind::Ask, _) if is_plan && self.state.spec.background => {
                self.deny_call(call_id, "unattended", model_texts::PLAN_UNATTENDED.into());
            }
            (VerdictKind::Ask, _)
                if self.has_no_approver() || (self.is_expanding() && self.state.spec.background) =>
            {
                self.deny_call(call_id, "unattended", model_texts::no_approver_to_ask(&verdict.reason));
            }
            (VerdictKind::Ask, _) => {
                let (deadline_ms, on_timeout) = self.deadline().unzip();
                let shown = ToolCall {
                    input: updated_input.unwrap_or_else(|| call.call.input.clone()),
                    ..(*call.call).clone()
                };
                let digest = self.state.digest(&shown);
                let request = PermissionRequest {
                    request_id: self.mint.permission(),
                    child_session_id: None,
                    kind: if is_plan { RequestKind::Plan } else { RequestKind::Tool },
                    call_id,
                    tool: call.call.tool.clone(),
                    input: shown.input,
                    summary: prepared.summary,
                    subject: prepared.subject,
                    reason: verdict.reason,
                    blocked: None,
                    diff: prepared.diff,
                    suggestions: verdict.suggestions,
                    read_only_command: verdict.read_only_command,
                    parts: verdict.parts,
                    deadline_ms,
                    on_timeout,
                    cwd: self.state.cwd.to_string_lossy().into_owned(),
                    digest,
                };
                self.push_item(
                    call.item_id,
                    Event::PermissionRequested {
                        request,
                        read_only: prepared.read_only,
                        change: prepared.change,
                        sandbox: prepared.sandbox,
                    },
                );
            }
        }
    }

    /// The deadline of a request that is raised now, and the action at the deadline; `None` in attended
    /// sessions.
    pub fn deadline(&self) -> Option<(Timestamp, OnTimeout)> {
        let unattended = &self.engine.settings.unattended;
        let wait = unattended.deadline_ms().filter(|_| self.state.spec.background)?;
        Some((self.now.at.plus(wait), unattended.on_timeout))
    }

    /// Whether a request would be refused at once, because no user can answer it.
    pub fn has_no_approver(&self) -> bool {
        self.state.spec.background && self.engine.settings.unattended.deadline_ms().is_none()
    }

    /// Records how a call ended. The events of its changed files come first.
    pub fn complete(&mut self, call_id: CallId, mut outcome: ToolOutcome, duration_ms: u64) {
        let Some(call) = self.state.call(call_id).filter(|call| !call.is_done()).cloned() else { return };
        let (item_id, tool) = (call.item_id, call.call.tool.clone());
        if matches!(call.stage, CallStage::Running { .. }) {
            self.withdraw_questions(&call);
        }
        if let Some(first) = call.blocked_run.as_ref().filter(|_| call.has_begun()) {
            outcome.output.insert_str(0, &model_texts::ran_again(first.blocked.by));
        }
        if let Some(input) = call.edited.as_ref().filter(|_| call.has_begun() || call.blocked_run.is_some()) {
            // The model's own arguments stay in the history; its result states the arguments that ran.
            let shown = input.to_string();
            let cut = shown.floor_char_boundary(MAX_EDITED_BYTES);
            let rest = if cut < shown.len() { "…" } else { "" };
            outcome.output.insert_str(0, &model_texts::edited(&format!("{}{rest}", &shown[..cut])));
        }
        if self.is_expanding() {
            // The commands of a file gather facts for its text; the next one starts where the session is.
            outcome.cwd = None;
        }
        for change in outcome.changes {
            self.push_item(item_id, Event::FileChanged { call_id, change });
        }
        if let Some(todos) = outcome.todos {
            self.push_item(item_id, Event::TodoUpdated { todos });
        }
        let bytes_before = outcome.output.len();
        let BoundedResult { output, whole, is_cut } = self.bound_result(outcome.output, outcome.whole);
        let shortened = is_cut.then(|| {
            let after = tokens::text_tokens(&output);
            // The excerpt is a part of the full text, so assume the same ratio of bytes to tokens.
            (after * bytes_before as u64 / output.len().max(1) as u64, after)
        });
        // The model has not seen the part of a file that was cut from its result.
        for read in outcome.reads.iter_mut().filter(|_| is_cut) {
            read.whole = false;
            read.lines.clear();
        }
        self.plan.blobs.extend(outcome.blobs);
        self.push_item(
            item_id,
            Event::ToolCompleted {
                call_id,
                tool,
                status: outcome.status,
                output,
                output_blob: whole,
                attachments: outcome.attachments,
                code: outcome.code,
                detail: outcome.detail,
                duration_ms,
                reads: outcome.reads,
                cwd: outcome.cwd.map(|path| path.to_string_lossy().into_owned()),
                background_read: outcome.background_read,
            },
        );
        if let Some((tokens_before, tokens_after)) = shortened {
            let stage = CompactStage::ToolResults;
            let (trigger, error, edit) = (CompactTrigger::Auto, None, None);
            let completed =
                Event::CompactCompleted { stage, trigger, tokens_before, tokens_after, error, edit };
            self.push_item(item_id, completed);
        }
    }

    pub fn tool_done(&mut self, call_id: CallId, mut outcome: ToolOutcome, duration_ms: u64) {
        let Some(call) = self.state.call(call_id).cloned() else { return };
        let CallStage::Running { prepared, .. } = &call.stage else { return };
        // The call leaves the stage `Running` without a result if the sandbox blocked it, so withdraw
        // its questions here.
        self.withdraw_questions(&call);
        let continues_in_background =
            if outcome.continues_in_background { self.command_began(call_id) } else { None };
        if let Some(output_text) = continues_in_background {
            outcome.output = output_text;
        }
        match outcome.blocked.clone() {
            Some(blocked) if self.may_retry_unsandboxed(&call, prepared) => {
                self.offer_unsandboxed_retry(&call, prepared, blocked, outcome, duration_ms);
            }
            _ => self.complete(call_id, outcome, duration_ms),
        }
        if self.is_aborting() {
            // A background command may have started in the moment of the abort, so stop it as well.
            self.stop_aborted_commands();
        } else {
            self.advance_tools();
        }
    }
}
