//! Prompts, steering and cancelling. A prompt is open until its own turn ends, whatever else happens in the session.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::{Conversation, Shared, log};
use crate::acp::mapper::{InputOrigin, failure_text};
use crate::acp::prompt::{PromptInput, without_unreadable};
use crate::acp::wire::{AcpError, Responder};
use crate::connection::session_calls::idempotency_key;
use api::params::{AbortParams, ArchiveParams, SubmitInput, SubmitParams};
use api::{Code, methods};
use types::event::{Envelope, Event};
use types::ids::{Seq, SessionId, TurnId};
use types::item::ItemKind;
use types::model::StopReason;
use types::outcome::{AcceptedState, SubmitOutcome};
use types::queue::WhenBusy;
use types::session::{Subtype, TurnResult};

/// A prompt without a reply.
pub(super) struct OpenPrompt {
    pub(super) responder: Responder,
    stage: PromptStage,
    is_cancelled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptStage {
    /// The daemon has not replied; the number names the submit.
    Submitting(u64),
    /// The turn runs or waits for its start.
    Turn(TurnId),
    /// A command was answered without a model. The event with this seq contains the answer, or it begins a turn that
    /// contains the answer.
    Answered { seq: Seq, turn_id: TurnId },
}

/// A cancel that waits for the replies to the submits before it.
pub(super) struct PendingCancel {
    /// The turn that ran when the user cancelled.
    running: Option<TurnId>,
    pub(super) until: Instant,
}

/// How long a cancel waits for the replies to submits. A hook of the user can hold them up.
const SUBMIT_WAIT: Duration = Duration::from_millis(500);

/// The reply to a submit.
pub(super) struct Submitted {
    outcome: Result<SubmitOutcome, AcpError>,
    purpose: SubmitPurpose,
}

enum SubmitPurpose {
    Prompt(u64),
    Steer(Responder),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PromptReply {
    stop_reason: &'static str,
}

const CANCELLED: PromptReply = PromptReply { stop_reason: "cancelled" };

impl Conversation {
    pub(super) fn submit_prompt(&mut self, responder: Responder, input: PromptInput) {
        let taken = self.prompts.iter().filter_map(|prompt| match prompt.stage {
            PromptStage::Submitting(number) => Some(number + 1),
            _ => None,
        });
        let number = taken.max().unwrap_or(0);
        self.prompts.push(OpenPrompt {
            responder,
            stage: PromptStage::Submitting(number),
            is_cancelled: false,
        });
        self.submit(input, WhenBusy::Queue, SubmitPurpose::Prompt(number));
    }

    pub(super) async fn steer(&mut self, responder: Responder, input: PromptInput, needs_running_turn: bool) {
        if needs_running_turn && self.mapper.turn.is_none() && self.prompts.is_empty() {
            let reply = json!({"outcome": "promptRequired", "reason": "noRunningTurn"});
            return responder.reply(Ok(reply)).await;
        }
        self.submit(input, WhenBusy::Steer, SubmitPurpose::Steer(responder));
    }

    fn submit(&mut self, input: PromptInput, when_busy: WhenBusy, purpose: SubmitPurpose) {
        let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
        self.submits.push(Box::pin(async move {
            let outcome = submit(&shared, session_id, input, when_busy).await;
            Submitted { outcome, purpose }
        }));
    }

    pub(super) async fn on_submitted(&mut self, submitted: Submitted) {
        let Submitted { outcome, purpose } = submitted;
        match (outcome, purpose) {
            (Ok(outcome), SubmitPurpose::Steer(responder)) => {
                let name = match outcome.state {
                    AcceptedState::Steered | AcceptedState::Completed => {
                        self.own_seqs.insert(outcome.seq);
                        "injected"
                    }
                    AcceptedState::Running | AcceptedState::Queued => {
                        self.own_turns.insert(outcome.turn_id);
                        "startedNewTurn"
                    }
                };
                responder.reply(Ok(json!({ "outcome": name }))).await;
            }
            (Err(error), SubmitPurpose::Steer(responder)) => responder.refuse(error).await,
            (Ok(outcome), SubmitPurpose::Prompt(number)) => {
                let stage = match outcome.state {
                    AcceptedState::Completed => {
                        PromptStage::Answered { seq: outcome.seq, turn_id: outcome.turn_id }
                    }
                    AcceptedState::Running | AcceptedState::Queued | AcceptedState::Steered => {
                        self.own_turns.insert(outcome.turn_id);
                        PromptStage::Turn(outcome.turn_id)
                    }
                };
                let submitting = PromptStage::Submitting(number);
                let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.stage == submitting) else {
                    return;
                };
                prompt.stage = stage;
                if self.cancel.is_some() {
                    self.cancel_after_submits();
                } else if prompt.is_cancelled && matches!(stage, PromptStage::Turn(_)) {
                    self.abort(vec![outcome.turn_id]);
                }
            }
            (Err(error), SubmitPurpose::Prompt(number)) => {
                let submitting = PromptStage::Submitting(number);
                for prompt in
                    self.prompts.extract_if(.., |prompt| prompt.stage == submitting).collect::<Vec<_>>()
                {
                    prompt.responder.refuse(error.clone()).await;
                }
                if self.cancel.is_some() {
                    self.cancel_after_submits();
                }
            }
        }
    }

    /// Cancels what this client submitted, and the running turn, which the user sees. Idle, it has no effect: a later
    /// prompt is not touched. While the daemon has not replied to a submit, the running turn goes on for a moment: its
    /// end would start that prompt.
    pub(super) fn cancel(&mut self) {
        for prompt in &mut self.prompts {
            prompt.is_cancelled = true;
        }
        let since = self.cancel.take();
        self.cancel = Some(PendingCancel {
            running: self.mapper.turn.or(since.as_ref().and_then(|cancel| cancel.running)),
            until: since.map_or_else(|| Instant::now() + SUBMIT_WAIT, |cancel| cancel.until),
        });
        self.cancel_after_submits();
    }

    /// Carries out a cancel once no cancelled prompt waits for the reply to its submit.
    fn cancel_after_submits(&mut self) {
        let is_submitting = |prompt: &OpenPrompt| matches!(prompt.stage, PromptStage::Submitting(_));
        if !self.prompts.iter().any(|prompt| prompt.is_cancelled && is_submitting(prompt)) {
            self.cancel_now();
        }
    }

    /// Carries out a cancel that waited for submits.
    pub(super) fn cancel_now(&mut self) {
        let Some(cancel) = self.cancel.take() else { return };
        let turn_of = |prompt: &OpenPrompt| match prompt.stage {
            PromptStage::Turn(turn_id) if prompt.is_cancelled => Some(turn_id),
            _ => None,
        };
        let mut turns: Vec<TurnId> = self.prompts.iter().filter_map(turn_of).collect();
        // The queued turns first, so that none of them starts when the running one ends.
        turns.retain(|turn| Some(*turn) != cancel.running);
        turns.reverse();
        turns.extend(cancel.running);
        self.abort(turns);
    }

    pub(super) fn cancel_prompt(&mut self, id: &str) {
        let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.responder.id() == id) else { return };
        match prompt.stage {
            PromptStage::Submitting(_) => prompt.is_cancelled = true,
            PromptStage::Turn(turn_id) => self.abort(vec![turn_id]),
            PromptStage::Answered { .. } => {}
        }
    }

    /// Stops turns by their ids: a queued one leaves the queue, a running one ends. Any other turn is not touched.
    fn abort(&mut self, turns: Vec<TurnId>) {
        let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
        self.work.push(Box::pin(async move {
            for turn_id in turns {
                let params = AbortParams {
                    session_id,
                    turn_id: Some(turn_id),
                    call_id: None,
                    idempotency_key: Some(idempotency_key()),
                };
                let error = shared.daemon.call::<methods::session::Abort>(&params).await.err();
                // It ended meanwhile.
                let is_over = |error: &AcpError| {
                    [Code::NotFound, Code::StalePrecondition].iter().any(|code| code.number() == error.code)
                };
                log(error.filter(|error| !is_over(error)));
            }
        }));
    }

    /// Whether the event must wait until the daemon has replied to the open submits, because only the replies show
    /// whether the event belongs to an input of this client.
    pub(super) fn must_wait(&self, envelope: &Envelope) -> bool {
        if self.submits.is_empty() || self.replay.is_some() {
            return false;
        }
        let is_unknown = |turn: TurnId| {
            self.mapper.turn != Some(turn)
                && !self.own_turns.contains(&turn)
                && !self.other_turns.contains(&turn)
        };
        matches!(envelope.event, Event::TurnSteered { .. } | Event::CommandCompleted { .. })
            || envelope.turn_id.is_some_and(is_unknown)
    }

    /// Whether the editor shows the input of the event already.
    pub(super) fn origin_of(&mut self, envelope: &Envelope) -> InputOrigin {
        let origin = |is_own: bool| if is_own { InputOrigin::ThisClient } else { InputOrigin::Other };
        let is_own_turn = envelope.turn_id.is_some_and(|turn| self.own_turns.contains(&turn));
        if let Some(turn_id) = envelope.turn_id.filter(|_| !is_own_turn) {
            self.other_turns.insert(turn_id);
        }
        // In a replay, the editor shows nothing yet.
        let is_live = self.replay.is_none();
        match &envelope.event {
            Event::TurnStarted { .. } => {
                self.has_first_input = false;
                self.steered.clear();
                InputOrigin::Other
            }
            Event::TurnSteered { .. } => {
                self.steered.push_back(origin(is_live && self.own_seqs.remove(&envelope.seq)));
                InputOrigin::Other
            }
            Event::MessageCompleted { item, .. } if item.kind == ItemKind::UserMessage => {
                if std::mem::replace(&mut self.has_first_input, true) {
                    return self.steered.pop_front().unwrap_or(InputOrigin::Other);
                }
                origin(is_live && is_own_turn)
            }
            Event::CommandCompleted { .. } => {
                let is_own = self.prompts.iter().any(|prompt| prompt.is_answered_by(envelope));
                origin(is_live && (is_own || (is_own_turn && !self.has_first_input)))
            }
            Event::TurnCompleted { .. } => {
                let turn = envelope.turn_id;
                if let Some(turn_id) = turn {
                    self.other_turns.remove(&turn_id);
                }
                let is_open =
                    |prompt: &OpenPrompt| matches!(prompt.stage, PromptStage::Turn(id) if Some(id) == turn);
                origin(is_live && self.prompts.iter().any(is_open))
            }
            _ => InputOrigin::Other,
        }
    }

    fn take_prompts(&mut self, turn_id: TurnId) -> Vec<OpenPrompt> {
        self.own_turns.remove(&turn_id);
        self.other_turns.remove(&turn_id);
        let is_of_turn = |prompt: &mut OpenPrompt| match prompt.stage {
            PromptStage::Turn(id) | PromptStage::Answered { turn_id: id, .. } => id == turn_id,
            PromptStage::Submitting(_) => false,
        };
        self.prompts.extract_if(.., is_of_turn).collect()
    }

    pub(super) async fn end_prompts(&mut self, turn_id: TurnId, result: &TurnResult) {
        for prompt in self.take_prompts(turn_id) {
            prompt.responder.reply(prompt_reply(result)).await;
        }
    }

    /// A queued turn was removed, by this client or by another one.
    pub(super) async fn drop_prompts(&mut self, turn_id: TurnId) {
        for prompt in self.take_prompts(turn_id) {
            prompt.responder.reply(Ok(CANCELLED)).await;
        }
    }

    pub(super) async fn cancel_all_prompts(&mut self) {
        let is_accepted = |prompt: &mut OpenPrompt| !matches!(prompt.stage, PromptStage::Submitting(_));
        for prompt in self.prompts.extract_if(.., is_accepted).collect::<Vec<_>>() {
            prompt.responder.reply(Ok(CANCELLED)).await;
        }
    }

    pub(super) async fn fail_prompts(&mut self, error: &AcpError) {
        for prompt in std::mem::take(&mut self.prompts) {
            prompt.responder.refuse(error.clone()).await;
        }
    }

    /// Replies to the commands that this event answers. Such an event waits for the replies to all submits.
    pub(super) async fn end_answered_commands(&mut self, envelope: &Envelope) {
        let answered =
            self.prompts.extract_if(.., |prompt| prompt.is_answered_by(envelope)).collect::<Vec<_>>();
        for prompt in answered {
            prompt.responder.reply(Ok(PromptReply { stop_reason: "end_turn" })).await;
        }
    }
}

impl OpenPrompt {
    /// Whether the answer of a command is the one to this prompt.
    fn is_answered_by(&self, envelope: &Envelope) -> bool {
        match self.stage {
            PromptStage::Answered { seq, turn_id } => {
                envelope.seq == seq || (envelope.turn_id == Some(turn_id) && envelope.seq > seq)
            }
            PromptStage::Submitting(_) | PromptStage::Turn(_) => false,
        }
    }
}

/// Submits an input. An archived session is restored first. An attachment that the daemon cannot use is replaced by a
/// sentence, so that the model learns of it.
async fn submit(
    shared: &Shared,
    session_id: SessionId,
    input: PromptInput,
    when_busy: WhenBusy,
) -> Result<SubmitOutcome, AcpError> {
    let mut blocks = input.blocks;
    let mut is_restored = false;
    loop {
        let params = SubmitParams {
            when_busy: Some(when_busy),
            idempotency_key: Some(idempotency_key()),
            raw: input.is_raw,
            ..SubmitParams::new(session_id, SubmitInput::Blocks(blocks.clone()))
        };
        let error = match shared.daemon.call::<methods::session::Submit>(&params).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        let is_archived = error.data.as_ref().is_some_and(|data| data["state"] == "archived");
        if is_archived && !std::mem::replace(&mut is_restored, true) {
            let params =
                ArchiveParams { session_id, archived: false, idempotency_key: Some(idempotency_key()) };
            shared.daemon.call::<methods::session::Archive>(&params).await?;
            continue;
        }
        match without_unreadable(&blocks, &error) {
            Some(replaced) => blocks = replaced,
            None => return Err(error),
        }
    }
}

/// The reply to the prompt of a turn.
fn prompt_reply(result: &TurnResult) -> Result<PromptReply, AcpError> {
    if let Some(text) = failure_text(result) {
        let code = match result.subtype {
            Subtype::ErrorMaxBudgetUsd | Subtype::ErrorMaxTime | Subtype::ErrorRepeatedCall => Code::Budget,
            _ => Code::Internal,
        };
        let kinds: Vec<&str> = result.errors.iter().map(|error| error.kind.as_str()).collect();
        let data = Some(json!({"subtype": result.subtype.name(), "kinds": kinds}));
        return Err(AcpError { data, ..AcpError::new(code, text) });
    }
    let stop_reason = match (result.subtype, result.stop_reason) {
        (Subtype::Aborted | Subtype::PermissionDenied, _) => "cancelled",
        (Subtype::MaxOutputTokens | Subtype::ErrorMaxTokens, _) => "max_tokens",
        (Subtype::ErrorMaxTurns, _) => "max_turn_requests",
        (_, Some(StopReason::Refusal)) => "refusal",
        (_, Some(StopReason::MaxTokens)) => "max_tokens",
        _ => "end_turn",
    };
    Ok(PromptReply { stop_reason })
}
