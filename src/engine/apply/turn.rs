//! Events of a turn: its start, phases, retries, questions, and end.

use std::sync::Arc;

use crate::decide::recover::RESUMED_TOO_OFTEN;
use crate::state::backoff::Backoff;
use crate::state::{
    Activity, CONTEXT_OVERFLOW, CallStage, CallState, Hold, OpenQuestion, State, Subagent, Turn,
};
use types::event::{Envelope, Event, HISTORY_LOST, Phase};
use types::hook::HookDecision;
use types::ids::RequestId;
use types::model::FaultKind;
use types::question::{Question, QuestionKind};
use types::session::{LastTurn, Subtype, TurnError};

impl State {
    /// Events that open or close a turn.
    pub(super) fn apply_turn_border(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::TurnStarted { options } => {
                if let Some(turn_id) = envelope.turn_id {
                    self.queue.retain(|queued| queued.turn_id != turn_id);
                    self.has_failed = false;
                    let turn = Turn::new(turn_id, (**options).clone(), &self.spec, envelope.at_ms);
                    self.turn = Some(Turn { message_item: envelope.item_id, ..turn });
                    if std::mem::take(&mut self.is_stale) {
                        self.system = None;
                    }
                }
            }
            Event::TurnPromptBuilt { system, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.settings.system = Some(Arc::from(system.as_str()));
                }
            }
            Event::Notice { kind, .. } if kind == HISTORY_LOST => {
                if let Some(turn) = &mut self.turn {
                    turn.restart.journal_truncated = true;
                }
            }
            Event::TurnCompleted { result } => {
                self.has_failed = result.errors.iter().any(|error| error.kind == RESUMED_TOO_OFTEN);
                self.worked_ms = self.worked_ms.saturating_add(result.duration_ms);
                self.last_turn = Some(LastTurn::from_result(result, envelope.at_ms));
                if let Some(turn) = self.turn.take() {
                    self.has_wrong_guess |=
                        turn.compaction.is_shortened && result.subtype == Subtype::LlmError;
                    self.left_of_turn = turn.remaining_budgets(envelope.at_ms);
                }
            }
            _ => {}
        }
    }
}

impl Turn {
    /// Events in the course of the running turn.
    pub(super) fn apply(&mut self, envelope: &Envelope, subagents: &[Arc<Subagent>]) {
        let turn = self;
        match &envelope.event {
            Event::TurnPhase { phase: Phase::ModelCall, uncalibrated_tokens } => {
                turn.model_call.uncalibrated_tokens = *uncalibrated_tokens;
                let step = envelope.step.unwrap_or(turn.step);
                if turn.step == step {
                    turn.model_call.attempts += 1;
                } else {
                    turn.model_call.attempts = 1;
                    (turn.model_call.reduced_output_limit, turn.model_call.is_fresh) = (None, false);
                    turn.model_call.discarded_items.clear();
                }
                turn.step = step;
                turn.totals.model_calls = step + turn.model_call.unanswered_attempts;
                turn.restart.hold = None;
                turn.calls.clear();
                turn.has_results = false;
                turn.activity = Activity::Calling { token: envelope.seq, partial: None };
            }
            Event::TurnPhase { phase: Phase::CompactCheck, .. } => {
                turn.restart.hold = None;
                // Without an open compaction, nothing had to be summarised yet.
                if let Some(compaction) = &mut turn.compaction.open {
                    let step = envelope.step.unwrap_or(turn.step);
                    (turn.compaction.last_step, compaction.step) = (step, step);
                    turn.calls.clear();
                    turn.has_results = false;
                    turn.activity = Activity::Calling { token: envelope.seq, partial: None };
                }
            }
            Event::TurnPhase { .. } => turn.restart.hold = None,
            Event::TurnResumed { resumes, delay_ms } => {
                turn.restart.resumes = *resumes;
                turn.restart.hold = (*delay_ms > 0).then_some(Hold::Wait { token: envelope.seq });
            }
            Event::QuestionRequested { question } => apply_question(turn, question, envelope),
            Event::QuestionResolved { request_id, kind, .. } => {
                match kind {
                    QuestionKind::Resume => turn.restart.hold = None,
                    QuestionKind::RepeatedCall => (turn.restart.hold, turn.repeated) = (None, None),
                    QuestionKind::UnknownOutcome | QuestionKind::Question => {}
                }
                end_wait(turn, subagents, Some(RequestId::Question(*request_id)), envelope);
                for call in &mut turn.calls {
                    if let CallStage::Running { question, .. } = &mut call.stage {
                        question.take_if(|open| open.request_id == *request_id);
                    }
                }
            }
            // The answer is the result of a turn that the command started.
            Event::CommandCompleted { name, text, .. }
                if turn.settings.options.command.as_ref().is_some_and(|command| command.name == *name) =>
            {
                turn.outcome.last_text = text.as_str().into();
            }
            Event::HookCompleted { call_id: Some(call_id), run }
                if run.decision == Some(HookDecision::Ask) =>
            {
                turn.left_to_user.insert(*call_id);
            }
            Event::TurnSteered { input } => {
                turn.steered.push_back((envelope.item_id, Arc::new(input.clone())));
            }
            Event::TurnAborting { ending, subtype } => {
                if !turn.stop.is_aborting {
                    turn.stop.ends_as = *subtype;
                }
                turn.stop.is_aborting = true;
                turn.stop.is_ending |= ending;
                if envelope.origin.is_some() {
                    turn.stop.aborted_by.clone_from(&envelope.origin);
                }
            }
            Event::Retry { attempt, max, delay_ms, reason, kind, max_output_tokens } => {
                turn.model_call.failures = turn.model_call.failures.saturating_add(1);
                let is = |kinds: &[FaultKind]| kinds.iter().any(|known| known.name() == kind);
                turn.model_call.overloads =
                    if is(&[FaultKind::Overloaded]) { turn.model_call.overloads + 1 } else { 0 };
                turn.model_call.is_fresh =
                    is(&[FaultKind::Interrupted, FaultKind::Idle, FaultKind::Unreachable]);
                turn.model_call.reduced_output_limit =
                    max_output_tokens.or(turn.model_call.reduced_output_limit);
                if let Some(compaction) = turn.compaction.open.as_mut().filter(|_| kind == CONTEXT_OVERFLOW) {
                    compaction.overflows += u32::from(max_output_tokens.is_none());
                }
                let (reason, attempt) = (reason.clone(), *attempt);
                let (left_ms, reported_at, max) = (*delay_ms, envelope.at_ms, Some(*max));
                let wait = Backoff { left_ms, reported_at, reason, attempt, max };
                turn.activity = Activity::Waiting { token: envelope.seq, wait: Some(wait) };
            }
            Event::ClockChanged { by_ms } => turn.move_times(*by_ms),
            Event::Heartbeat { reason, attempt, remaining_ms, max } => {
                let (reason, attempt) = (reason.clone(), *attempt);
                let (left_ms, reported_at, max) = (*remaining_ms, envelope.at_ms, *max);
                let wait = Backoff { left_ms, reported_at, reason, attempt, max };
                turn.restart.hold = None;
                turn.activity = Activity::Waiting { token: envelope.seq, wait: Some(wait) };
            }
            Event::BudgetWarning { budget, .. } => turn.totals.warned.push(*budget),
            Event::ModelSwitched { from, to, .. } => {
                turn.model_call.tried_models.push(from.clone());
                turn.settings.model.clone_from(to);
                (turn.model_call.failures, turn.model_call.overloads) = (0, 0);
                (turn.model_call.reduced_output_limit, turn.model_call.is_fresh) = (None, false);
            }
            Event::Error { kind, message, causes } => turn.outcome.errors.push(TurnError {
                kind: kind.clone(),
                message: message.clone(),
                causes: causes.clone(),
            }),
            _ => {}
        }
    }
}

/// Applies a new question, about a call or about the whole turn.
fn apply_question(turn: &mut Turn, question: &Question, envelope: &Envelope) {
    turn.totals.waiting_since.get_or_insert(envelope.at_ms);
    let request_id = question.request_id;
    let call_id = match (question.kind, question.call_id) {
        (QuestionKind::RepeatedCall, repeated_call) | (_, repeated_call @ None) => {
            turn.restart.hold = Some(Hold::Paused { request_id, repeated_call });
            return;
        }
        (_, Some(call_id)) => call_id,
    };
    let Some(call) = turn.calls.iter_mut().find(|call| call.call.call_id == call_id) else { return };
    if question.kind == QuestionKind::Question {
        let open = OpenQuestion { request_id, questions: Arc::new(question.questions.clone()) };
        match &mut call.stage {
            CallStage::Running { question, .. } => *question = Some(open),
            stage => *stage = CallStage::Asking(open),
        }
    } else if let CallStage::Running { started_seq, .. } = call.stage {
        let output = question.output.clone().unwrap_or_default();
        call.stage = CallStage::Unknown { request_id, started_seq, output };
    }
}

/// Ends the time of waiting unless another request is open: one of the turn, or one of a sub-agent that it waits for.
/// `answered` is the request that the event settles.
pub(super) fn end_wait(
    turn: &mut Turn,
    subagents: &[Arc<Subagent>],
    answered: Option<RequestId>,
    envelope: &Envelope,
) {
    let is_open = |request: RequestId| answered != Some(request);
    let is_waiting = |call: &CallState| match call.stage {
        CallStage::Awaiting { request_id, .. } => is_open(RequestId::Permission(request_id)),
        CallStage::Unknown { request_id, .. } => is_open(RequestId::Question(request_id)),
        _ => call.open_question().is_some_and(|open| is_open(RequestId::Question(open.request_id))),
    };
    let is_open = turn.calls.iter().any(is_waiting)
        || matches!(turn.restart.hold, Some(Hold::Paused { .. }))
        || subagents.iter().any(|it| it.holds_up(turn) && !it.requests.is_empty());
    if !is_open && let Some(since) = turn.totals.waiting_since.take() {
        turn.totals.permission_ms += envelope.at_ms.since(since);
    }
}
