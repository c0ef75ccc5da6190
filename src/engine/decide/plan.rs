//! What a decision comes to: facts in order, and effects to perform once the facts are on disk.

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

/// One fact with what the journal must know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The fact, numbered.
    pub envelope: Envelope,
    /// For foldable rows: seq of the event that opened what they belong to.
    pub fold: Option<Seq>,
}

/// A change of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemChange {
    /// Seq of the event that opened it.
    pub first_seq: Seq,
    /// Seq of its newest permanent event.
    pub last_seq: Seq,
    /// What it is.
    pub kind: ItemKind,
    /// Whether it is whole.
    pub status: ItemStatus,
}

/// A change of a permission request or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestChange {
    /// The request.
    pub request_id: RequestId,
    /// The event.
    pub seq: Seq,
    /// Raised, or settled.
    pub settled: bool,
}

/// Something to do in the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Put the system prompt together, answer with `ContextReady`.
    GatherContext,
    /// Ask the model; answer with `Deltas`, then `ModelDone` or `ModelFailed`.
    CallModel {
        /// To be sent back with the answers.
        token: Seq,
        /// The request.
        request: Box<ModelRequest>,
    },
    /// Ask a model something beside the turn; answer with `HelperDone`. Nothing waits for it, and nothing
    /// but the end of the session or of the daemon stops it.
    AskHelper {
        /// To be sent back.
        token: Seq,
        /// The request.
        request: Box<ModelRequest>,
    },
    /// Wait, then `TimerFired`.
    Sleep {
        /// To be sent back.
        token: Seq,
        /// How long, in milliseconds.
        delay_ms: u64,
    },
    /// Look at the calls without running them, judge them, answer with `Prepared`.
    Prepare {
        /// The turn.
        turn_id: TurnId,
        /// In call order.
        calls: Vec<Arc<ToolCall>>,
    },
    /// Run a call; answer with `Progress` and `ToolDone`.
    RunTool {
        /// The call.
        call: Arc<ToolCall>,
        /// What was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Look at the file that an interrupted call was to change, and remove what it left beside it;
    /// answer with `Inspected`.
    Inspect {
        /// The call.
        call: Arc<ToolCall>,
        /// What was judged.
        prepared: Arc<PreparedCall>,
    },
    /// Stop everything of the turn; answer with `Stopped` when nothing is left.
    StopAll,
    /// Stop one running call; its `ToolDone` is the answer.
    StopCall(CallId),
    /// Stop background commands, each by the call that started it; `CommandOver` is the answer.
    StopCommands {
        /// The calls.
        calls: Vec<CallId>,
        /// What ends them.
        by: KilledBy,
    },
}

/// What a decision comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Facts, in order.
    pub events: Vec<Entry>,
    /// Openers whose foldable rows go.
    pub folds: Vec<Seq>,
    /// Item changes.
    pub items: Vec<ItemChange>,
    /// Changes of permission requests and questions.
    pub requests: Vec<RequestChange>,
    /// Contents that the facts refer to.
    pub blobs: Vec<Blob>,
    /// Effects, in order.
    pub effects: Vec<Effect>,
}

impl Engine {
    /// Looks at the state, never touches it.
    ///
    /// # Errors
    /// The caller asked for something that cannot be; nothing is to be written.
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
            Input::ModelDone { token, mut reply, cost_usd_micros, terms, duration_ms } => {
                draft.streamed(token, std::mem::take(&mut reply.last));
                draft.model_done(token, *reply, cost_usd_micros, terms, duration_ms);
            }
            Input::ModelFailed { token, fault, terms, .. } => draft.model_failed(token, &fault, terms),
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
            Input::Stopped { terms } => draft.stopped(terms),
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

/// A decision in the making: a copy of the state that already knows the facts decided so far.
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

    /// Adds a fact of the session.
    pub fn push_session(&mut self, event: Event) -> Seq {
        self.push(None, None, event)
    }

    /// Adds a fact of the running turn.
    pub fn push_turn(&mut self, event: Event) -> Seq {
        self.push(None, self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds a fact of an item of the running turn.
    pub fn push_item(&mut self, item_id: ItemId, event: Event) -> Seq {
        self.push(Some(item_id), self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds a fact and takes it into the copy of the state. Returns its number.
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
            cut: Vec::new(),
            event,
        };
        self.state.apply(&envelope);
        self.plan.events.push(Entry { envelope, fold: None });
        seq
    }

    /// What the journal's summaries must know of a fact, seen from the state before it.
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
                    self.plan.folds.push(item.first_seq);
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
                        self.plan.folds.push(started_seq);
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
                        self.plan.folds.push(started_seq);
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

    /// Tells a change of the session's state, if the facts made one.
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
            // Of an unattended session only one that pauses comes here: nobody is expected to answer soon.
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
