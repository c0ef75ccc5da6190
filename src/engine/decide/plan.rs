//! The result of a decision: events in order, and effects to run once the events are on disk.

use std::sync::Arc;

use crate::engine::input::{Input, Now, Refusal};
use crate::engine::state::{Engine, Hold, Stage, State};
use crate::types::background::KilledBy;
use crate::types::blob::Blob;
use crate::types::event::{Envelope, Event, Origin};
use crate::types::ids::{CallId, ItemId, Mint, RequestId, Seq, TurnId};
use crate::types::message::ToolCall;
use crate::types::model::ModelRequest;
use crate::types::session::{ItemKind, ItemStatus, Requires, SessionState};
use crate::types::tool::PreparedCall;

/// One event with the data that the journal needs about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The event with its seq.
    pub envelope: Envelope,
    /// For deltas: seq of the event that opened their item; the delta is pruned when the item completes.
    pub delta_of: Option<Seq>,
}

/// A change of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChange {
    /// Seq of the event that opened it.
    pub first_seq: Seq,
    /// Seq of its newest permanent event.
    pub last_seq: Seq,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Status after this change.
    pub status: ItemStatus,
}

/// A change of a permission request or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestChange {
    /// Id of the permission request or question.
    pub request_id: RequestId,
    /// Seq of the event that changed it.
    pub seq: Seq,
    /// `false` when raised, `true` when settled.
    pub settled: bool,
}

/// Work that the engine requests from the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Build the system prompt; answer with `ContextReady`.
    GatherContext,
    /// Call the model; answer with `Deltas`, then `ModelDone` or `ModelFailed`.
    CallModel {
        /// Returned with each answer, so that the engine can match it.
        token: Seq,
        /// The messages and settings to send.
        request: Box<ModelRequest>,
    },
    /// Call a model outside the turn; answer with `HelperDone`. No turn waits for it, and only the end of the
    /// session or of the daemon stops it.
    AskHelper {
        /// Returned with the answer.
        token: Seq,
        /// The messages and settings to send.
        request: Box<ModelRequest>,
    },
    /// Wait, then `TimerFired`.
    Sleep {
        /// Returned with the answer.
        token: Seq,
        /// Duration, in milliseconds.
        delay_ms: u64,
    },
    /// Prepare the calls without running them, judge them, answer with `Prepared`.
    Prepare {
        /// The turn that made the calls.
        turn_id: TurnId,
        /// In call order.
        calls: Vec<Arc<ToolCall>>,
    },
    /// Run a call; answer with `Progress` and `ToolDone`.
    RunTool {
        /// The call, with a user's arguments if the user changed them.
        call: Arc<ToolCall>,
        /// The prepared call that was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Check the file that an interrupted call was to change, and remove its temporary files; answer with
    /// `Inspected`.
    Inspect {
        /// The interrupted call.
        call: Arc<ToolCall>,
        /// The prepared call that was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Stop all effects of the turn; answer with `Stopped` when none runs.
    StopAll,
    /// Stop one running call; its `ToolDone` is the answer.
    StopCall(CallId),
    /// Stop background commands, each by the call that started it; `CommandOver` is the answer.
    StopCommands {
        /// Calls that started the commands.
        calls: Vec<CallId>,
        /// The reason of the stop.
        by: KilledBy,
    },
}

/// The result of a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Events, in order.
    pub events: Vec<Entry>,
    /// Seqs of opening events whose deltas are pruned.
    pub prune_deltas_of: Vec<Seq>,
    /// Item changes.
    pub items: Vec<ItemChange>,
    /// Changes of permission requests and questions.
    pub requests: Vec<RequestChange>,
    /// Contents that the events refer to.
    pub blobs: Vec<Blob>,
    /// Effects, in order.
    pub effects: Vec<Effect>,
}

impl Engine {
    /// Decides what follows from `input`. It reads the state and never changes it.
    ///
    /// # Errors The input is not possible in this state; nothing is written.
    pub fn decide(&self, input: Input, now: Now) -> Result<Plan, Refusal> {
        if let Input::Deltas { token, deltas } = input {
            // The hot path works on the state itself: a copy would be as long as the text so far.
            return Ok(self.stream(token, deltas, now));
        }
        if let Input::Progress { call_id, progress } = input {
            return Ok(self.progress(call_id, progress, now));
        }
        let mut draft = PlanBuilder::new(self, now);
        match input {
            Input::Submit(submit) => draft.submit(submit)?,
            Input::ContextReady { system, sources, untrusted } => {
                draft.context_ready(system, sources, untrusted);
            }
            Input::Untrusted(untrusted) => draft.ask_for_trust(untrusted),
            Input::ModelDone { token, mut reply, cost_usd_micros, model_snapshot, duration_ms } => {
                draft.streamed(token, std::mem::take(&mut reply.last));
                draft.model_done(token, *reply, cost_usd_micros, model_snapshot, duration_ms);
            }
            Input::ModelFailed { token, fault, model_snapshot, .. } => {
                draft.model_failed(token, &fault, model_snapshot)
            }
            Input::TimerFired { token } => draft.timer_fired(token),
            Input::Prepared { turn_id, mode, calls } => draft.prepared(turn_id, mode, calls),
            Input::ToolDone { call_id, outcome, duration_ms } => {
                draft.tool_done(call_id, *outcome, duration_ms)
            }
            Input::CommandOver { call_id, over } => draft.command_over(call_id, *over),
            Input::Answer(answer) => {
                draft.origin = answer.origin.clone();
                draft.answer(*answer)?;
            }
            Input::AllowedByRule { request_id, by, rule } => draft.covered(request_id, by, rule),
            Input::Update(update) => draft.update(*update)?,
            Input::Rule { add, kind, rule, origin } => {
                draft.origin = origin;
                draft.rule(add, kind, rule)?;
            }
            Input::DeadlineReached => draft.expire(),
            Input::Notice { kind, text } => _ = draft.push_session(Event::Notice { kind, text }),
            Input::AnswerQuestion { request_id, choice, origin } => {
                draft.origin = origin;
                draft.choose(request_id, choice)?;
            }
            Input::Inspected { call_id, inspection } => draft.inspected(call_id, inspection),
            Input::Abort { turn_id, call_id, origin } => {
                draft.origin = origin;
                draft.abort(turn_id, call_id)?;
            }
            Input::Kill { origin } => {
                draft.origin = origin;
                draft.kill();
            }
            Input::Stopped { model_snapshot } => draft.stopped(model_snapshot),
            Input::Attached { clients, origin } => {
                draft.origin = origin;
                draft.push_session(Event::SessionAttached { clients });
            }
            Input::Detached { clients, origin } => {
                draft.origin = origin;
                draft.push_session(Event::SessionDetached { clients });
            }
            Input::Parked { helped } => draft.parked(helped),
            Input::HelperDone { token, outcome, began, duration_ms } => {
                draft.helper_done(token, *outcome, began, duration_ms);
            }
            Input::Reloaded { changed, needs_restart } => {
                draft.push_session(Event::ConfigReloaded { changed, needs_restart });
            }
            Input::Recovered(recovery) => draft.recovered(recovery),
            Input::Deltas { .. } | Input::Progress { .. } => {}
        }
        draft.settle_status();
        Ok(draft.plan)
    }
}

/// A decision under construction: a copy of the state to which the events so far are applied.
pub(in crate::engine) struct PlanBuilder<'a> {
    pub engine: &'a Engine,
    pub state: State,
    pub plan: Plan,
    pub now: Now,
    pub mint: Mint,
    pub origin: Option<Origin>,
}

impl<'a> PlanBuilder<'a> {
    fn new(engine: &'a Engine, now: Now) -> Self {
        let state = engine.state.clone();
        Self { engine, state, plan: Plan::default(), now, mint: now.mint(), origin: None }
    }

    /// Adds an event of the session.
    pub fn push_session(&mut self, event: Event) -> Seq {
        self.push(None, None, event)
    }

    /// Adds an event of the running turn.
    pub fn push_turn(&mut self, event: Event) -> Seq {
        self.push(None, self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds an event of an item of the running turn.
    pub fn push_item(&mut self, item_id: ItemId, event: Event) -> Seq {
        self.push(Some(item_id), self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds an event and applies it to the copy of the state. Returns its seq.
    pub fn push(&mut self, item_id: Option<ItemId>, turn_id: Option<TurnId>, event: Event) -> Seq {
        let seq = self.state.next_seq;
        self.index(seq, &event);
        let envelope = Envelope {
            seq,
            session_id: self.state.session_id,
            turn_id,
            item_id,
            at_ms: self.now.at,
            origin: self.origin.clone(),
            truncated_fields: Vec::new(),
            event,
        };
        self.state.apply(&envelope);
        self.plan.events.push(Entry { envelope, delta_of: None });
        seq
    }

    /// Updates the journal's summaries for an event, based on the state before it.
    fn index(&mut self, seq: Seq, event: &Event) {
        match event {
            Event::MessageCompleted { item, .. } => {
                self.plan.items.push(ItemChange {
                    first_seq: item.first_seq,
                    last_seq: seq,
                    kind: item.kind,
                    status: item.status,
                });
                if item.first_seq != seq {
                    self.plan.prune_deltas_of.push(item.first_seq);
                }
            }
            Event::MessageStarted { .. } => {
                self.item(seq, seq, ItemKind::AssistantMessage, ItemStatus::Running)
            }
            Event::ToolRequested { .. } => self.item(seq, seq, ItemKind::ToolCall, ItemStatus::Running),
            Event::ToolStarted { call_id, .. } | Event::ToolStatus { call_id, .. } => {
                if let Some(first) = self.state.call(*call_id).map(|call| call.first_seq) {
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
                }
            }
            Event::ToolBlocked { call_id, .. } => {
                if let Some(call) = self.state.call(*call_id) {
                    let first = call.first_seq;
                    if let Stage::Running { started_seq, .. } = call.stage {
                        self.plan.prune_deltas_of.push(started_seq);
                    }
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
                }
            }
            Event::ToolCompleted { call_id, .. } => {
                if let Some(call) = self.state.call(*call_id) {
                    let first = call.first_seq;
                    if let Stage::Running { started_seq, .. } | Stage::Unknown { started_seq, .. } =
                        call.stage
                    {
                        self.plan.prune_deltas_of.push(started_seq);
                    }
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Completed);
                }
            }
            Event::PermissionRequested { request, .. } => {
                if let Some(first) = self.state.call(request.call_id).map(|call| call.first_seq) {
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
                }
                self.request_row(RequestId::Permission(request.request_id), seq, false);
            }
            Event::PermissionResolved { request_id, call_id, .. } => {
                if let Some(first) = self.state.call(*call_id).map(|call| call.first_seq) {
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
                }
                self.request_row(RequestId::Permission(*request_id), seq, true);
            }
            Event::QuestionRequested { question } => {
                self.call_item(question.call_id, seq);
                self.request_row(RequestId::Question(question.request_id), seq, false);
            }
            Event::QuestionResolved { request_id, call_id, .. } => {
                self.call_item(*call_id, seq);
                self.request_row(RequestId::Question(*request_id), seq, true);
            }
            _ => {}
        }
    }

    fn call_item(&mut self, call_id: Option<CallId>, seq: Seq) {
        let first = call_id.and_then(|call_id| self.state.call(call_id)).map(|call| call.first_seq);
        if let Some(first) = first {
            self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
        }
    }

    fn request_row(&mut self, request_id: RequestId, seq: Seq, settled: bool) {
        self.plan.requests.push(RequestChange { request_id, seq, settled });
    }

    fn item(&mut self, first_seq: Seq, last_seq: Seq, kind: ItemKind, status: ItemStatus) {
        self.plan.items.push(ItemChange { first_seq, last_seq, kind, status });
    }

    pub fn effect(&mut self, effect: Effect) {
        self.plan.effects.push(effect);
    }

    /// Reports a change of the session's state, if the events caused one.
    fn settle_status(&mut self) {
        let (state, requires) = self.derived_status();
        if (state, requires) != (self.state.status, self.state.requires) {
            self.push_session(Event::SessionStatus { state, requires });
        }
    }

    fn derived_status(&self) -> (SessionState, Option<Requires>) {
        if self.state.status == SessionState::Ended {
            return (SessionState::Ended, None);
        }
        let Some(turn) = &self.state.turn else { return (SessionState::Idle, None) };
        if matches!(turn.hold, Some(Hold::Paused { .. })) {
            return (SessionState::Paused, None);
        }
        let stands = |is: fn(&Stage) -> bool| self.state.calls().iter().any(|call| is(&call.stage));
        if stands(|stage| matches!(stage, Stage::Unknown { .. })) {
            // An unattended session comes here only with the policy `pause`: no user is expected to answer
            // soon.
            let waits =
                if self.state.spec.background { SessionState::Paused } else { SessionState::RequiresAction };
            (waits, Some(Requires::UnknownOutcome))
        } else if stands(|stage| matches!(stage, Stage::Awaiting { expired: true, .. })) {
            (SessionState::Paused, Some(Requires::Permission))
        } else if stands(|stage| matches!(stage, Stage::Awaiting { .. })) {
            (SessionState::RequiresAction, Some(Requires::Permission))
        } else {
            (SessionState::Running, None)
        }
    }
}
