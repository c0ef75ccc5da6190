//! The builder of a decision. It applies each event to its copy of the state as soon as the event is
//! added, so later parts of the same decision see the event. The copy becomes [`Decision::next`].

use std::sync::Arc;

use crate::input::Now;
use crate::output::{Decision, Effect, ItemChange, Plan, PlannedEvent, Reply, RequestChange};
use crate::state::{Activity, CallStage, Engine, Hold, State};
use types::event::{Envelope, Event, Origin, Phase};
use types::ids::{CallId, ItemId, Mint, RequestId, Seq, TurnId};
use types::question::QuestionKind;
use types::session::{ItemKind, ItemStatus, Requires, SessionState};

/// A decision under construction: a copy of the state to which the events so far are applied.
pub(crate) struct PlanBuilder<'a> {
    pub engine: &'a Engine,
    pub state: State,
    pub plan: Plan,
    /// The reply to the caller of the input.
    pub reply: Reply,
    pub now: Now,
    /// Source of the decision's ids and random values, from the seed in `now`.
    pub mint: Mint,
    /// The client that caused the events. Each event records it.
    pub origin: Option<Origin>,
    /// The step of the next event, if it begins one.
    step: Option<u64>,
    /// The value of a final answer that satisfies the schema of the turn.
    pub structured: Option<serde_json::Value>,
    /// Calls that the current rules still allow, each with the rule or mode that allows it.
    pub checked: Vec<(CallId, String)>,
}

impl<'a> PlanBuilder<'a> {
    pub fn new(engine: &'a Engine, now: Now) -> Self {
        let state = engine.state.clone();
        let (plan, reply) = (Plan::default(), Reply::default());
        Self {
            engine,
            state,
            plan,
            reply,
            now,
            mint: now.mint(),
            origin: None,
            step: None,
            structured: None,
            checked: Vec::new(),
        }
    }

    /// Reports a change of the session's status, if the events caused one, and ends the decision.
    pub fn finish_decision(mut self) -> Decision {
        self.settle_status();
        let next = Engine { settings: Arc::clone(&self.engine.settings), state: self.state };
        Decision { plan: self.plan, next, reply: self.reply }
    }

    /// Adds an event of the session.
    pub fn push_session(&mut self, event: Event) -> Seq {
        self.push(None, None, event)
    }

    /// Adds an event of the running turn.
    pub fn push_turn(&mut self, event: Event) -> Seq {
        self.push(None, self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds a change of the running turn's phase.
    pub fn push_phase(&mut self, phase: Phase, step: u64) -> Seq {
        self.step = Some(step);
        self.push_turn(Event::TurnPhase { phase, uncalibrated_tokens: None })
    }

    /// Adds the beginning of a model call. `uncalibrated_tokens` is the size of its request.
    pub fn push_model_call(&mut self, step: u64, uncalibrated_tokens: Option<u64>) -> Seq {
        self.step = Some(step);
        self.push_turn(Event::TurnPhase { phase: Phase::ModelCall, uncalibrated_tokens })
    }

    /// Adds an event of an item of the running turn.
    pub fn push_item(&mut self, item_id: ItemId, event: Event) -> Seq {
        self.push(Some(item_id), self.state.turn.as_ref().map(|turn| turn.id), event)
    }

    /// Adds an event and applies it to the copy of the state. Returns its seq.
    pub fn push(&mut self, item_id: Option<ItemId>, turn_id: Option<TurnId>, event: Event) -> Seq {
        let seq = self.state.next_seq;
        let delta_of = self.opening_seq(&event);
        self.index(seq, &event);
        let turn = self.state.turn.as_ref().filter(|turn| turn_id == Some(turn.id) && turn.step > 0);
        // A background command may be of an earlier step.
        let is_of_call =
            matches!(&event, Event::ToolProgress { call_id, .. } if self.state.call(*call_id).is_some());
        let known = turn.map(|turn| turn.step).filter(|_| !event.is_delta() || is_of_call);
        let step = self.step.take().or(known);
        let envelope = Envelope {
            seq,
            session_id: self.state.session_id,
            turn_id,
            item_id,
            step,
            parent_call_id: self.state.spec.parent.map(|parent| parent.call_id),
            at_ms: self.now.at,
            origin: self.origin.clone(),
            truncated_fields: Vec::new(),
            event,
        };
        self.state.apply(&envelope);
        self.plan.events.push(PlannedEvent { envelope, delta_of });
        seq
    }

    /// The seq of the event that opened the item of a delta. `None` for other events.
    fn opening_seq(&self, event: &Event) -> Option<Seq> {
        match event {
            Event::ToolProgress { call_id, .. } => self.state.progress_target(*call_id).map(|(.., seq)| seq),
            event if event.is_delta() => self.state.partial().map(|partial| partial.first_seq),
            _ => None,
        }
    }

    /// Updates the journal's summaries for an event, based on the state before it.
    fn index(&mut self, seq: Seq, event: &Event) {
        match event {
            Event::MessageCompleted { item, reasoning_item_id, .. } => {
                if reasoning_item_id.is_some() {
                    self.item(seq, seq, ItemKind::Reasoning, item.status);
                }
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
            Event::Error { .. } => self.item(seq, seq, ItemKind::Error, ItemStatus::Completed),
            Event::CompactStarted { .. } => self.item(seq, seq, ItemKind::Compaction, ItemStatus::Running),
            Event::CompactCompleted { stage, error, .. } => {
                let open = self.state.compacting().filter(|compaction| compaction.stage == *stage);
                if let Some(first) = open.map(|compaction| compaction.first_seq) {
                    let is_complete = error.is_none();
                    let status = if is_complete { ItemStatus::Completed } else { ItemStatus::Interrupted };
                    self.item(first, seq, ItemKind::Compaction, status);
                }
            }
            Event::ToolRequested { tool, .. } => {
                self.item(seq, seq, ItemKind::of_tool(tool), ItemStatus::Running);
            }
            Event::ToolStarted { call_id, .. } | Event::ToolStatus { call_id, .. } => {
                self.call_item(Some(*call_id), seq);
            }
            Event::ToolBlocked { call_id, .. } => {
                if let Some(call) = self.state.call(*call_id) {
                    let first = call.first_seq;
                    if let CallStage::Running { started_seq, .. } = call.stage {
                        self.plan.prune_deltas_of.push(started_seq);
                    }
                    self.item(first, seq, ItemKind::ToolCall, ItemStatus::Running);
                }
            }
            Event::ToolCompleted { call_id, .. } => {
                if let Some(call) = self.state.call(*call_id) {
                    let (first, kind) = (call.first_seq, ItemKind::of_tool(&call.call.tool));
                    if let CallStage::Running { started_seq, .. } | CallStage::Unknown { started_seq, .. } =
                        call.stage
                    {
                        self.plan.prune_deltas_of.push(started_seq);
                    }
                    self.item(first, seq, kind, ItemStatus::Completed);
                }
            }
            // The sub-agent's own journal indexes this request.
            event if event.shows_request_of().is_some() => {}
            Event::PermissionRequested { request, .. } => {
                self.call_item(Some(request.call_id), seq);
                self.add_pending_request(RequestId::Permission(request.request_id), seq);
            }
            Event::PermissionResolved { request_id, call_id, .. } => {
                self.call_item(Some(*call_id), seq);
                self.add_settled_request(RequestId::Permission(*request_id), seq);
            }
            Event::QuestionRequested { question } => {
                // A repeated call has its result, so the question does not belong to its item.
                if question.kind != QuestionKind::RepeatedCall {
                    self.call_item(question.call_id, seq);
                }
                self.add_pending_request(RequestId::Question(question.request_id), seq);
            }
            Event::FeedbackRequested { request_id, .. } => {
                self.add_pending_request(RequestId::Question(*request_id), seq);
            }
            Event::FeedbackCompleted { request_id: Some(request_id), .. } => {
                self.add_settled_request(RequestId::Question(*request_id), seq);
            }
            Event::QuestionResolved { request_id, kind, call_id, .. } => {
                if *kind != QuestionKind::RepeatedCall {
                    self.call_item(*call_id, seq);
                }
                self.add_settled_request(RequestId::Question(*request_id), seq);
            }
            _ => {}
        }
    }

    fn call_item(&mut self, call_id: Option<CallId>, seq: Seq) {
        if let Some(call) = call_id.and_then(|call_id| self.state.call(call_id)) {
            let (first, kind) = (call.first_seq, ItemKind::of_tool(&call.call.tool));
            self.item(first, seq, kind, ItemStatus::Running);
        }
    }

    fn add_pending_request(&mut self, request_id: RequestId, seq: Seq) {
        self.plan.requests.push(RequestChange { request_id, seq, settled: false });
    }

    fn add_settled_request(&mut self, request_id: RequestId, seq: Seq) {
        self.plan.requests.push(RequestChange { request_id, seq, settled: true });
    }

    fn item(&mut self, first_seq: Seq, last_seq: Seq, kind: ItemKind, status: ItemStatus) {
        self.plan.items.push(ItemChange { first_seq, last_seq, kind, status });
    }

    pub fn add_effect(&mut self, effect: Effect) {
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
        let Some(turn) = &self.state.turn else {
            let state = match (self.state.archived, self.state.has_failed) {
                (true, _) => SessionState::Archived,
                (false, true) => SessionState::Failed,
                (false, false) => SessionState::Idle,
            };
            return (state, None);
        };
        let is_choice = match turn.restart.hold {
            Some(Hold::Paused { repeated_call: None, .. }) => {
                return (SessionState::Paused, Some(Requires::Question));
            }
            Some(Hold::Paused { repeated_call: Some(_), .. }) => true,
            _ => matches!(turn.activity, Activity::Choosing { .. }),
        };
        if is_choice {
            return (SessionState::RequiresAction, Some(Requires::Question));
        }
        let child_requests = || self.state.subagents.iter().flat_map(|it| &it.requests);
        let stands = |is: fn(&CallStage) -> bool| self.state.calls().iter().any(|call| is(&call.stage));
        if stands(|stage| matches!(stage, CallStage::Unknown { .. })) {
            // An unattended session reaches this point only with the policy `pause`: no user is expected to answer
            // soon.
            let waiting_state =
                if self.state.spec.background { SessionState::Paused } else { SessionState::RequiresAction };
            (waiting_state, Some(Requires::UnknownOutcome))
        } else if stands(|stage| matches!(stage, CallStage::Awaiting { expired: true, .. })) {
            (SessionState::Paused, Some(Requires::Permission))
        } else if stands(|stage| matches!(stage, CallStage::Awaiting { .. }))
            || child_requests().any(|id| matches!(id, RequestId::Permission(_)))
        {
            (SessionState::RequiresAction, Some(Requires::Permission))
        } else if child_requests().next().is_some()
            || self.state.calls().iter().any(|call| call.open_question().is_some())
        {
            (SessionState::RequiresAction, Some(Requires::Question))
        } else {
            (SessionState::Running, None)
        }
    }
}
