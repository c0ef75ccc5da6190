//! Properties of the events of tool calls: requested before allowed, allowed before started, ended once.

use crate::property;
use crate::reference_model::ReferenceModel;
use crate::watches::{CallWatch, CommandWatch};
use engine::model_texts;
use types::background::BackgroundState;
use types::event::{Envelope, Event, SettledBy};
use types::ids::{CallId, Seq};
use types::message::ToolCall;
use types::permission::{Decision, Mode, OnTimeout, RequestKind, RuleKind, Scope};
use types::question::QuestionKind;
use types::session::{ItemKind, ItemStatus};
use types::tool::{Subject, ToolProgress, ToolStatus};

/// The grant that lets the foreground command of these scripts run outside its sandbox.
pub const OUTSIDE: &str = "Unsandboxed(ls)";

/// The grant that lets the background command of these scripts run outside its sandbox.
const OUTSIDE_SERVE: &str = "Unsandboxed(serve)";

impl ReferenceModel {
    pub(super) fn check_tool_event(
        &mut self,
        envelope: &Envelope,
        delta_of: Option<Seq>,
    ) -> Result<(), String> {
        match &envelope.event {
            Event::ToolRequested { call_id, tool, input, provider_id, .. } => {
                if let Some(provider_id) = provider_id {
                    property!(self.streaming.is_some(), "a call starts early while its message streams");
                    let (call_id, provider_id) = (*call_id, provider_id.clone());
                    let (tool, input) = (tool.clone(), input.clone());
                    self.message.push(ToolCall { call_id, provider_id, tool, input, input_error: None });
                    self.seen.insert("early call".into());
                }
                let requested = self.message.iter().find(|call| call.call_id == *call_id);
                property!(
                    requested.is_some_and(|call| call.tool == *tool && call.input == *input),
                    "what is requested is what the model said"
                );
                property!(self.calls.insert(*call_id, CallWatch::default()).is_none(), "call ids are new");
                self.items.insert(envelope.seq, (ItemKind::ToolCall, ItemStatus::Running));
                self.turn.as_mut().ok_or("a call belongs to a turn")?.calls.push(*call_id);
            }
            Event::ToolStatus { call_id, prepared, allowed_by, .. } => {
                let call = self.open_call(*call_id)?;
                property!(call.permission_id.is_none() && !call.allowed, "a call is judged once");
                property!(!allowed_by.is_empty(), "an allowed call has a reason");
                (call.allowed, call.read_only) = (true, Some(prepared.read_only));
                call.is_edit = prepared.subject.changes_files();
                call.is_background = matches!(prepared.subject, Subject::Bash { background: true, .. });
            }
            Event::PermissionRequested { request, read_only, sandbox, .. } => {
                let is_sandbox_request = request.kind == RequestKind::Sandbox;
                if request.kind == RequestKind::Plan {
                    property!(!self.setup.background, "an unattended session approves no plan");
                    self.plans.insert(request.request_id);
                }
                let is_again = self.judged_again.contains(&request.call_id);
                property!(
                    is_sandbox_request || is_again || !self.asked_before,
                    "all requests of a message are raised together"
                );
                let may_leave = self.setup.settings.offer_unsandboxed_retry.applies_to(self.setup.background);
                let call = self.open_call(request.call_id)?;
                if is_again {
                    property!(
                        call.allowed && call.started.is_none(),
                        "only a call that waits is judged again"
                    );
                    (call.allowed, call.permission_id) = (false, None);
                }
                property!(call.permission_id.is_none() && !call.allowed, "a call is judged once");
                property!(
                    call.blocked.is_some() == is_sandbox_request,
                    "what the sandbox stopped may ask to leave it"
                );
                property!(
                    sandbox.is_some_and(|held| held.unsandboxed) == is_sandbox_request,
                    "a request says where it would run"
                );
                property!(!is_sandbox_request || may_leave, "who forbids the offer is not asked");
                (call.permission_id, call.read_only) = (Some(request.request_id), Some(*read_only));
                call.passes_as_reading = match request.subject {
                    Subject::Bash { .. } => request.read_only_command,
                    _ => *read_only,
                };
                call.is_edit = request.subject.changes_files();
                call.folder = Some(request.cwd.clone());
                property!(request.cwd == self.folder, "a request names the folder");
                property!(request.digest.len() == 64, "a request has a digest");
                property!(
                    request.deadline_ms.is_some() == self.setup.background,
                    "requests of unattended sessions have a deadline, others have none"
                );
                if let (Some(deadline), Some(on_timeout)) = (request.deadline_ms, request.on_timeout) {
                    let wait = self.setup.settings.unattended.deadline_ms();
                    property!(
                        Some(deadline.since(envelope.at_ms)) == wait,
                        "a deadline is as far away as is configured"
                    );
                    self.deadlines.insert(request.request_id, (deadline, on_timeout, false));
                }
                let entry = (request.call_id, !request.suggestions.is_empty(), false);
                property!(self.requests.insert(request.request_id, entry).is_none(), "request ids are new");
                if is_sandbox_request {
                    property!(self.turn_mode != Mode::DontAsk, "a session that never asks does not offer");
                    self.outside.insert(request.request_id);
                }
                self.asks_now |= !is_sandbox_request;
            }
            Event::PermissionExpired { request_id, call_id, on_timeout, .. } => {
                let request = self.requests.get(request_id).ok_or("what expires was asked")?;
                property!(request.0 == *call_id && !request.2, "what is settled does not expire");
                let deadline = self.deadlines.get_mut(request_id).ok_or("what expires has a deadline")?;
                property!(envelope.at_ms >= deadline.0, "nothing expires before its deadline");
                property!(deadline.1 == *on_timeout && !deadline.2, "a request expires once, as it was said");
                deadline.2 = true;
            }
            Event::PermissionRuleAdded { kind, rule } => {
                property!(self.rules.insert((kind.name(), rule.clone())), "a rule is added once");
            }
            Event::PermissionRuleRemoved { kind, rule } => {
                property!(self.rules.remove(&(kind.name(), rule.clone())), "what is taken back was there");
            }
            Event::PermissionResolved {
                request_id,
                call_id,
                decision,
                by,
                grant,
                scope,
                updated_input,
                stop,
                rule,
                ..
            } => {
                let is_sandbox_request = self.outside.contains(request_id);
                let request = self.requests.get_mut(request_id).ok_or("what is settled was asked")?;
                property!(request.0 == *call_id && !request.2, "a request is settled once");
                request.2 = true;
                let is_allowed = *decision == Decision::Allow;
                property!(!is_allowed || *by != SettledBy::Abort, "an abort allows nothing");
                let by_change = matches!(by, SettledBy::Rule | SettledBy::Mode);
                property!(
                    is_allowed || !by_change,
                    "a rule or a mode that comes denies nothing that was asked"
                );
                let by_its_grant =
                    *by == SettledBy::Rule && matches!(rule.as_deref(), Some(OUTSIDE | OUTSIDE_SERVE));
                property!(
                    !(is_sandbox_request && is_allowed) || *by == SettledBy::Answer || by_its_grant,
                    "no mode, no rule and no deadline leads out of the sandbox: its own grant does"
                );
                property!(
                    !is_sandbox_request
                        || *scope != Scope::Project
                            && grant.as_ref().is_none_or(|grant| grant == OUTSIDE || grant == OUTSIDE_SERVE),
                    "leaving the sandbox is granted to a session, for one command"
                );
                property!(!stop || !is_allowed, "only a denial ends a turn");
                property!(
                    updated_input.is_none() || is_allowed && *by == SettledBy::Answer,
                    "a person changes a call"
                );
                let on_timeout = match by {
                    SettledBy::Timeout => {
                        let (_, on_timeout, expired) = self.deadlines[request_id];
                        property!(expired, "a request that is not answered expires first");
                        property!(*stop == (on_timeout == OnTimeout::Fail), "who fails ends the turn");
                        Some(on_timeout)
                    }
                    SettledBy::NoApprover => Some(self.setup.settings.unattended.on_timeout),
                    _ => None,
                };
                if let Some(on_timeout) = on_timeout {
                    property!(on_timeout != OnTimeout::Pause, "who pauses waits on");
                    property!(*stop || on_timeout != OnTimeout::Fail, "who fails ends the turn");
                    let passes = self.calls[call_id].passes_as_reading;
                    property!(
                        is_allowed
                            == (on_timeout == OnTimeout::AllowReadOnly && passes && !is_sandbox_request),
                        "without an answer only reading passes, if that was said"
                    );
                }
                property!(is_allowed || grant.is_none(), "a denial grants nothing");
                if let (true, Scope::Session, Some(grant)) = (is_allowed, scope, grant) {
                    self.rules.insert((RuleKind::Allow.name(), grant.clone()));
                }
                let call = self.open_call(*call_id)?;
                (call.allowed, call.denied) = (is_allowed, !is_allowed && *by != SettledBy::Abort);
                if !is_sandbox_request {
                    call.edited.clone_from(updated_input);
                }
            }
            Event::ToolBlocked { call_id, status, output, .. } => {
                self.running.retain(|running| running != call_id);
                let call = self.open_call(*call_id)?;
                property!(
                    call.started.is_some() && call.blocked.is_none(),
                    "a run is stopped once, while it runs"
                );
                // The following events belong to the second run, so watch the call from its start again.
                *call = CallWatch {
                    read_only: call.read_only,
                    is_edit: call.is_edit,
                    edited: call.edited.take(),
                    blocked: Some((*status, output.clone())),
                    ..CallWatch::default()
                };
            }
            Event::ToolStarted { call_id, allowed_by, read_only, sandbox, attempt, .. } => {
                let here = self.folder.clone();
                let call = self.open_call(*call_id)?;
                property!(call.allowed, "nothing starts that was not allowed");
                property!(call.started.is_none(), "a run starts once");
                let is_second_run = call.blocked.is_some();
                property!(
                    (*attempt == 2) == is_second_run && *attempt <= 2,
                    "a second run follows one that was stopped"
                );
                property!(
                    sandbox.is_some_and(|held| held.unsandboxed) == is_second_run,
                    "only a second run is outside"
                );
                property!(
                    call.folder.as_ref().is_none_or(|shown| *shown == here),
                    "what a person allowed runs where they saw it"
                );
                property!(call.read_only == Some(*read_only), "what starts is what was judged");
                property!(!allowed_by.is_empty(), "a started call has a reason");
                call.started = Some(envelope.seq);
                if is_second_run {
                    self.seen.insert("outside run".into());
                }
            }
            Event::ToolSummary { call_ids, text } => {
                let answer: Vec<CallId> = self.message.iter().map(|call| call.call_id).collect();
                property!(answer.len() > 1 && *call_ids == answer, "a summary names the calls of an answer");
                property!(!text.is_empty(), "a summary has a text");
                for call_id in call_ids {
                    let call = self.calls.get_mut(call_id).ok_or("a summary names known calls")?;
                    property!(call.status.is_some(), "a summary comes after its calls");
                    property!(!std::mem::replace(&mut call.is_summarized, true), "calls are summarized once");
                }
            }
            Event::ToolBackground {
                call_id, bash_id, state: BackgroundState::Running, end: None, ..
            } => {
                let most = self.setup.settings.background_commands;
                property!(self.running_commands().count() < most, "no more commands run than may");
                let call = self.open_call(*call_id)?;
                property!(call.started.is_some() && call.is_background, "only what was judged so goes on");
                property!(envelope.turn_id.is_some(), "a command begins in a turn");
                property!(bash_id.0 as usize == self.commands.len() + 1, "commands are numbered in order");
                let (call_id, turn_id, opened) = (*call_id, envelope.turn_id, envelope.seq);
                self.commands.push(CommandWatch { call_id, turn_id, opened, is_over: false });
            }
            Event::ToolBackground { call_id, bash_id, state, end, .. } => {
                let command = self.commands.get_mut(bash_id.0 as usize - 1).ok_or("what ends had begun")?;
                property!(command.call_id == *call_id && !command.is_over, "a command ends once");
                property!(*state != BackgroundState::Running && end.is_some(), "an end says how");
                property!(
                    envelope.turn_id.is_none() || envelope.turn_id == command.turn_id,
                    "an end names no other turn"
                );
                command.is_over = true;
            }
            Event::ToolProgress { call_id, .. }
                if self.running_commands().any(|it| it.call_id == *call_id) =>
            {
                let opened = self.running_commands().find(|it| it.call_id == *call_id).map(|it| it.opened);
                property!(delta_of == opened, "what a command says belongs to its beginning");
            }
            Event::ToolProgress { call_id, stream, text } => {
                property!(envelope.step.is_some(), "a tool speaks in a step");
                let call = self.open_call(*call_id)?;
                property!(call.started.is_some() && delta_of == call.started, "only a running tool speaks");
                // A note about how far the call is, is no output.
                if stream != ToolProgress::NOTE {
                    call.output.push_str(text);
                }
            }
            Event::QuestionRequested { question } => {
                let about = question.call_id;
                let is_asked = self.questions.values().any(|(call, settled)| *call == about && !settled);
                property!(!is_asked, "a question is asked once");
                if question.kind == QuestionKind::Question {
                    property!(!self.setup.background, "an unattended session asks no user");
                    let call = self.open_call(about.ok_or("the model asks with a call")?)?;
                    let is_of_tool = call.started.is_some();
                    property!(
                        is_of_tool || call.permission_id.is_none() && !call.allowed,
                        "a call is judged once"
                    );
                    property!(!question.questions.is_empty(), "a question has a text");
                    call.asks_user |= !is_of_tool;
                    self.user_questions.insert(question.request_id);
                } else if question.kind == QuestionKind::RepeatedCall {
                    property!(!self.setup.background, "an unattended session asks no user");
                    let turn = self.turn.as_ref().ok_or("a turn asks")?;
                    property!(self.repeats_call(turn), "only a call that was repeated is asked about");
                    let call =
                        about.and_then(|call_id| self.calls.get(&call_id)).ok_or("it names the call")?;
                    property!(call.status.is_some(), "a repeated call has its result");
                    self.repetitions.insert(question.request_id);
                    self.seen.insert("repeated call".into());
                } else if let Some(call_id) = about {
                    let may_pause = self.setup.settings.unattended.on_timeout == OnTimeout::Pause;
                    property!(
                        !self.setup.background || may_pause,
                        "an unattended session asks no user, unless it pauses"
                    );
                    let call = self.open_call(call_id)?;
                    property!(
                        call.started.is_some() && call.read_only == Some(false),
                        "only a call with effects is asked about"
                    );
                    let output = question.output.clone().unwrap_or_default();
                    property!(
                        output == call.output || call.output.len() > 16 * 1024 && output.len() < 17 * 1024,
                        "a question tells what the call had said"
                    );
                }
                let earlier = self.questions.insert(question.request_id, (about, false));
                property!(earlier.is_none(), "question ids are new");
            }
            Event::QuestionResolved { request_id, call_id, .. } => {
                let question = self.questions.get_mut(request_id).ok_or("what is settled was asked")?;
                property!(question.0 == *call_id && !question.1, "a question is settled once");
                question.1 = true;
            }
            Event::FileChanged { call_id, .. } => {
                property!(self.open_call(*call_id)?.started.is_some(), "only a running tool changes files");
            }
            Event::ToolCompleted { call_id, status, output, cwd, .. } => {
                if let Some(turn) = &mut self.turn
                    && let Some(call) = self.message.iter().find(|call| call.call_id == *call_id)
                {
                    let (tool, input) = (call.tool.clone(), call.input.clone());
                    turn.results.push((tool, input, *status == ToolStatus::Completed, output.clone()));
                }
                self.check_end(*call_id, *status, output)?;
                self.folder = cwd.clone().unwrap_or(std::mem::take(&mut self.folder));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_end(&mut self, call_id: CallId, status: ToolStatus, output: &str) -> Result<(), String> {
        self.running.retain(|running| *running != call_id);
        let call = self.open_call(call_id)?;
        property!(
            !call.denied || status == ToolStatus::Denied || call.blocked.is_some(),
            "what was denied ends as denied"
        );
        if let Some((first, first_output)) = &call.blocked {
            let is_second_run = call.started.is_some();
            property!(
                is_second_run || status == *first && output.contains(first_output),
                "without a second run the first one counts"
            );
            property!(
                !is_second_run || output.contains("let it run a second time"),
                "the model is told that it ran twice"
            );
        }
        let says_not_run =
            [model_texts::DENIED, model_texts::ABORTED_UNSTARTED, model_texts::NOT_RUN_RESTART]
                .contains(&output);
        property!(
            !says_not_run || call.started.is_none(),
            "the model is not told that a started call did not run"
        );
        let has_open_question =
            self.questions.values().any(|(call, settled)| *call == Some(call_id) && !settled);
        property!(!has_open_question, "a call with an open question does not end");
        let call = self.open_call(call_id)?;
        let says_maybe = [model_texts::ABORTED, model_texts::STOPPED_BY_LIMIT].contains(&output)
            || output.starts_with(model_texts::UNKNOWN);
        property!(
            !says_maybe || call.started.is_some(),
            "the model is not told that an unstarted call may have run"
        );
        call.status = Some(status);
        let permission_id = call.permission_id;
        property!(
            permission_id.is_none_or(|id| self.requests[&id].2),
            "a call with an open question does not end"
        );
        if let (ToolStatus::Denied, Some(turn)) = (status, &mut self.turn) {
            turn.denied.push(call_id);
        }
        if let Some(entry) = self.item_of(call_id) {
            entry.1 = ItemStatus::Completed;
        }
        Ok(())
    }

    /// The item of a call. Calls and their items are opened in the same order.
    fn item_of(&mut self, call_id: CallId) -> Option<&mut (ItemKind, ItemStatus)> {
        let turn = self.turn.as_ref()?;
        let behind = turn.calls.iter().rev().position(|other| *other == call_id)?;
        self.items.values_mut().rev().filter(|(kind, _)| *kind == ItemKind::ToolCall).nth(behind)
    }

    fn open_call(&mut self, call_id: CallId) -> Result<&mut CallWatch, String> {
        let call = self.calls.get_mut(&call_id).ok_or("a call was requested before")?;
        property!(call.status.is_none(), "nothing happens to a call that has its result");
        Ok(call)
    }
}
