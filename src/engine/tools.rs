//! Tool calls: looked at together, judged, run in the order that Q22 allows.

use std::sync::Arc;

use super::input::{Judged, Now};
use super::model::pieces;
use super::plan::{Draft, Effect, Entry, Plan};
use super::state::{Activity, Call, Engine, Stage};
use super::words;
use crate::types::event::{Envelope, Event};
use crate::types::ids::{CallId, ItemId, TurnId};
use crate::types::message::ToolCall;
use crate::types::permission::{Verdict, VerdictKind};
use crate::types::session::PermissionRequest;
use crate::types::tool::{Prepared, Progress, ToolOutcome, ToolStatus};

impl Engine {
    /// Output of a running tool becomes rows; that of any other is ignored.
    pub(super) fn progress(&self, call_id: CallId, progress: Progress, now: Now) -> Plan {
        let mut plan = Plan::default();
        let Some(turn) = &self.state.turn else { return plan };
        let Some(call) = self.state.call(call_id) else { return plan };
        let Stage::Running { started_seq, .. } = call.stage else { return plan };
        for (offset, text) in (0..).zip(pieces(progress.text)) {
            let envelope = Envelope {
                seq: self.state.next_seq + offset,
                session_id: self.state.session_id,
                turn_id: Some(turn.id),
                item_id: Some(call.item_id),
                at_ms: now.at,
                origin: None,
                event: Event::ToolProgress { call_id, stream: progress.stream.into(), text },
            };
            plan.facts.push(Entry { envelope, fold: Some(started_seq) });
        }
        plan
    }
}

/// A call that may start now.
pub(super) struct Startable {
    pub call: Arc<ToolCall>,
    pub item_id: ItemId,
    pub prepared: Arc<Prepared>,
    pub allowed_by: String,
}

impl Draft<'_> {
    /// Looks at the calls that nobody has looked at yet.
    pub fn prepare_open_calls(&mut self) {
        let Some(turn_id) = self.state.turn.as_ref().map(|turn| turn.id) else { return };
        let calls: Vec<_> = self
            .state
            .calls()
            .iter()
            .filter(|call| call.stage == Stage::Requested)
            .map(|call| Arc::clone(&call.call))
            .collect();
        if !calls.is_empty() {
            self.effect(Effect::Prepare { turn_id, calls });
        }
    }

    /// Every call is judged before any request is raised, so that people see them together.
    pub fn prepared(&mut self, turn_id: TurnId, calls: Vec<Judged>) {
        let current = self.state.turn.as_ref().filter(|turn| turn.id == turn_id && !turn.aborting);
        if current.is_none() {
            return;
        }
        for judged in calls {
            let Some(call) = self.state.call(judged.call_id).filter(|call| call.stage == Stage::Requested)
            else {
                continue;
            };
            let call = call.clone();
            match judged.result {
                Err(outcome) => self.complete(judged.call_id, outcome, 0),
                Ok((prepared, verdict)) => self.judged(&call, prepared, verdict),
            }
        }
        self.advance_tools();
    }

    fn judged(&mut self, call: &Call, prepared: Prepared, verdict: Verdict) {
        let call_id = call.call.call_id;
        match verdict.verdict {
            VerdictKind::Allow => {
                let allowed_by = verdict.rule.unwrap_or(verdict.reason);
                let prepared = Prepared { diff: None, ..prepared };
                self.push_item(call.item_id, Event::ToolStatus { call_id, prepared, allowed_by });
            }
            VerdictKind::Deny => {
                let outcome = ToolOutcome {
                    status: ToolStatus::Denied,
                    ..ToolOutcome::failed("denied_by_rule", words::denied_by_rule(&verdict.reason))
                };
                self.complete(call_id, outcome, 0);
            }
            VerdictKind::Ask => {
                let request = PermissionRequest {
                    request_id: self.mint.permission(),
                    call_id,
                    tool: call.call.tool.clone(),
                    input: call.call.input.clone(),
                    summary: prepared.summary,
                    subject: prepared.subject,
                    reason: verdict.reason,
                    diff: prepared.diff,
                    suggestions: verdict.suggestions,
                    parts: verdict.parts,
                    deadline_ms: None,
                };
                self.push_item(
                    call.item_id,
                    Event::PermissionRequested {
                        request,
                        read_only: prepared.read_only,
                        change: prepared.change,
                    },
                );
            }
        }
    }

    /// Records how a call ended; files that it changed are told first.
    pub fn complete(&mut self, call_id: CallId, outcome: ToolOutcome, duration_ms: u64) {
        let Some(call) = self.state.call(call_id).filter(|call| !call.is_done()) else { return };
        let (item_id, tool) = (call.item_id, call.call.tool.clone());
        for change in outcome.changes {
            self.push_item(item_id, Event::FileChanged { call_id, change });
        }
        self.push_item(
            item_id,
            Event::ToolCompleted {
                call_id,
                tool,
                status: outcome.status,
                output: outcome.output,
                code: outcome.code,
                detail: outcome.detail,
                duration_ms,
                reads: outcome.reads,
                cwd: outcome.cwd.map(|path| path.to_string_lossy().into_owned()),
            },
        );
    }

    pub fn tool_done(&mut self, call_id: CallId, outcome: ToolOutcome, duration_ms: u64) {
        let running =
            self.state.call(call_id).is_some_and(|call| matches!(call.stage, Stage::Running { .. }));
        if !running {
            return;
        }
        self.complete(call_id, outcome, duration_ms);
        if !self.is_aborting() {
            self.advance_tools();
        }
    }

    /// Calls that may start now, in order (Q22).
    pub fn startable(&self) -> Vec<Startable> {
        let serial = self.state.spec.safe_mode;
        let limit = self.engine.settings.parallel_tools.max(1);
        let mut running =
            self.state.calls().iter().filter(|call| matches!(call.stage, Stage::Running { .. })).count();
        let mut unfinished_before = false;
        let mut barrier_before = false;
        let mut start = Vec::new();
        for call in self.state.calls() {
            let (exclusive, ready) = match &call.stage {
                Stage::Done { .. } => continue,
                Stage::Requested | Stage::Unknown { .. } => (true, None),
                Stage::Awaiting { prepared, .. } | Stage::Running { prepared, .. } => {
                    (serial || !prepared.read_only, None)
                }
                Stage::Ready { prepared, allowed_by } => {
                    (serial || !prepared.read_only, Some((Arc::clone(prepared), allowed_by.clone())))
                }
            };
            let free = if exclusive { !unfinished_before } else { !barrier_before };
            if let Some((prepared, allowed_by)) = ready
                && free
                && running < limit
            {
                running += 1;
                start.push(Startable {
                    call: Arc::clone(&call.call),
                    item_id: call.item_id,
                    prepared,
                    allowed_by,
                });
            }
            unfinished_before = true;
            barrier_before |= exclusive;
        }
        start
    }

    /// Starts what may start; asks the model again once every call has its result. Does nothing while
    /// a restart holds the turn.
    pub fn advance_tools(&mut self) {
        if self.state.turn.as_ref().is_none_or(|turn| turn.hold.is_some()) {
            return;
        }
        for Startable { call, item_id, prepared, allowed_by } in self.startable() {
            self.push_item(
                item_id,
                Event::ToolStarted {
                    call_id: call.call_id,
                    tool: call.tool.clone(),
                    allowed_by,
                    read_only: prepared.read_only,
                    change: prepared.change.clone(),
                },
            );
            self.effect(Effect::RunTool { call, prepared });
        }
        let all_done = match self.state.turn.as_ref().map(|turn| &turn.activity) {
            Some(Activity::Tools { calls }) => !calls.is_empty() && calls.iter().all(Call::is_done),
            _ => false,
        };
        if all_done {
            self.deliver_steered();
            self.call_model();
        }
    }
}
