//! Prompts, steering and cancelling. A prompt is open until its own turn ends, whatever else happens in the session.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::{Conversation, Shared, log};
use crate::acp::mapper::{InputOrigin, command_id, stop_reason};
use crate::acp::prompt::{PromptInput, without_unreadable};
use crate::acp::schema::Version;
use crate::acp::wire::{AcpError, Responder};
use crate::connection::session_calls::idempotency_key;
use api::params::{AbortParams, ArchiveParams, SubmitInput, SubmitParams};
use api::{Code, methods};
use types::event::{Envelope, Event};
use types::ids::{CallId, ItemId, Seq, SessionId, TurnId};
use types::item::ItemKind;
use types::outcome::{AcceptedState, SubmitOutcome};
use types::queue::WhenBusy;
use types::session::TurnResult;

/// A prompt without a reply.
pub(super) struct OpenPrompt {
    pub(super) responder: Responder,
    stage: PromptStage,
    is_cancelled: bool,
    /// The message of the prompt, once the daemon named it.
    item_id: Option<ItemId>,
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

/// The reply to a prompt.
#[derive(Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum PromptReply {
    /// In version 1: the end of its turn.
    Ended { stop_reason: &'static str },
    /// In version 2: its message is part of the conversation.
    Inserted { message_id: String },
}

impl Conversation {
    pub(super) fn submit_prompt(&mut self, responder: Responder, input: PromptInput, key: Option<String>) {
        let taken = self.prompts.iter().filter_map(|prompt| match prompt.stage {
            PromptStage::Submitting(number) => Some(number + 1),
            _ => None,
        });
        let number = taken.max().unwrap_or(0);
        self.prompts.push(OpenPrompt {
            responder,
            stage: PromptStage::Submitting(number),
            is_cancelled: false,
            item_id: None,
        });
        self.submit(input, WhenBusy::Queue, key, SubmitPurpose::Prompt(number));
    }

    pub(super) async fn steer(&mut self, responder: Responder, input: PromptInput, needs_running_turn: bool) {
        if needs_running_turn && self.mapper.turn.is_none() && self.prompts.is_empty() {
            let reply = json!({"outcome": "promptRequired", "reason": "noRunningTurn"});
            return responder.reply(Ok(reply)).await;
        }
        self.submit(input, WhenBusy::Steer, None, SubmitPurpose::Steer(responder));
    }

    fn submit(
        &mut self,
        input: PromptInput,
        when_busy: WhenBusy,
        key: Option<String>,
        purpose: SubmitPurpose,
    ) {
        let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
        self.submits.push(Box::pin(async move {
            let outcome = submit(&shared, session_id, input, when_busy, key).await;
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
                prompt.item_id = outcome.item_id;
                let is_cancelled = prompt.is_cancelled;
                if let Some(reply) = self.repeated_reply(&outcome) {
                    let is_it = |prompt: &mut OpenPrompt| prompt.stage == stage;
                    for prompt in self.prompts.extract_if(.., is_it).collect::<Vec<_>>() {
                        prompt.responder.reply(reply.clone()).await;
                    }
                } else if self.cancel.is_some() {
                    self.cancel_after_submits();
                } else if is_cancelled && matches!(stage, PromptStage::Turn(_)) {
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

    /// The reply to a prompt that was submitted before with the same key, and whose message is there or will not be.
    fn repeated_reply(&self, outcome: &SubmitOutcome) -> Option<Result<PromptReply, AcpError>> {
        if self.version() == Version::V1 {
            return None;
        }
        if let Some(item_id) = outcome.item_id.filter(|item_id| self.inserted.contains(item_id)) {
            return Some(Ok(PromptReply::Inserted { message_id: item_id.to_string() }));
        }
        if outcome.state == AcceptedState::Completed && outcome.seq <= self.last_seq {
            return Some(Ok(PromptReply::Inserted { message_id: command_id(outcome.seq) }));
        }
        self.dropped_turns.contains(&outcome.turn_id).then(|| Err(not_inserted()))
    }

    pub(super) fn version(&self) -> Version {
        self.shared.features.version
    }

    /// Replies, in version 2, to the prompts whose message this event is.
    pub(super) async fn end_inserted(&mut self, envelope: &Envelope) {
        let Event::MessageCompleted { item, .. } = &envelope.event else { return };
        if self.version() == Version::V1 || item.kind != ItemKind::UserMessage {
            return;
        }
        self.inserted.insert(item.item_id);
        let is_it = |prompt: &mut OpenPrompt| prompt.item_id == Some(item.item_id);
        for prompt in self.prompts.extract_if(.., is_it).collect::<Vec<_>>() {
            let message_id = item.item_id.to_string();
            prompt.responder.reply(Ok(PromptReply::Inserted { message_id })).await;
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
                log(error.filter(|error| !is_over(error)));
            }
        }));
    }

    /// Stops one call of the running turn, which continues.
    pub(super) async fn cancel_call(&mut self, responder: Responder, id: &str) {
        let not_running = || AcpError::param("toolCallId", &format!("no call {id:?} runs"));
        let Some(call_id) = id.parse::<CallId>().ok().filter(|id| self.mapper.is_open(*id)) else {
            return responder.refuse(not_running()).await;
        };
        let (shared, session_id, ended) = (Arc::clone(&self.shared), self.session_id, not_running());
        self.work.push(Box::pin(async move {
            let key = Some(idempotency_key());
            let params =
                AbortParams { session_id, turn_id: None, call_id: Some(call_id), idempotency_key: key };
            let stopped = shared.daemon.call::<methods::session::Abort>(&params).await;
            let reply =
                stopped.map(|_| json!({})).map_err(|error| if is_over(&error) { ended } else { error });
            responder.reply(reply).await;
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
        // In a replay, the editor shows nothing yet; in version 2, it waits for the update.
        let is_live = self.replay.is_none();
        let is_shown = is_live && self.version() == Version::V1;
        match &envelope.event {
            Event::TurnStarted { .. } => {
                self.has_first_input = false;
                self.steered.clear();
                InputOrigin::Other
            }
            Event::TurnSteered { .. } => {
                self.steered.push_back(origin(is_shown && self.own_seqs.remove(&envelope.seq)));
                InputOrigin::Other
            }
            Event::MessageCompleted { item, .. } if item.kind == ItemKind::UserMessage => {
                if std::mem::replace(&mut self.has_first_input, true) {
                    return self.steered.pop_front().unwrap_or(InputOrigin::Other);
                }
                origin(is_shown && is_own_turn)
            }
            Event::CommandCompleted { .. } => {
                let is_own = self.prompts.iter().any(|prompt| prompt.is_answered_by(envelope));
                origin(is_shown && (is_own || (is_own_turn && !self.has_first_input)))
            }
            Event::TurnCompleted { .. } => {
                let turn = envelope.turn_id;
                if let Some(turn_id) = turn {
                    self.other_turns.remove(&turn_id);
                }
                let is_open =
                    |prompt: &OpenPrompt| matches!(prompt.stage, PromptStage::Turn(id) if Some(id) == turn);
                origin(is_live && (!is_shown || self.prompts.iter().any(is_open)))
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
            let reply = match (self.version(), stop_reason(result)) {
                (Version::V1, Ok(stop_reason)) => Ok(PromptReply::Ended { stop_reason }),
                (Version::V2, Ok(_)) => Err(not_inserted()),
                (_, Err(error)) => Err(error),
            };
            prompt.responder.reply(reply).await;
        }
    }

    /// A queued turn was removed, by this client or by another one.
    pub(super) async fn drop_prompts(&mut self, turn_id: TurnId) {
        if self.version() == Version::V2 {
            self.dropped_turns.insert(turn_id);
        }
        for prompt in self.take_prompts(turn_id) {
            prompt.responder.reply(self.cancelled()).await;
        }
    }

    pub(super) async fn cancel_all_prompts(&mut self) {
        let is_accepted = |prompt: &mut OpenPrompt| !matches!(prompt.stage, PromptStage::Submitting(_));
        for prompt in self.prompts.extract_if(.., is_accepted).collect::<Vec<_>>() {
            prompt.responder.reply(self.cancelled()).await;
        }
    }

    fn cancelled(&self) -> Result<PromptReply, AcpError> {
        match self.version() {
            Version::V1 => Ok(PromptReply::Ended { stop_reason: "cancelled" }),
            Version::V2 => Err(not_inserted()),
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
            let reply = match self.version() {
                Version::V1 => PromptReply::Ended { stop_reason: "end_turn" },
                Version::V2 => PromptReply::Inserted { message_id: command_id(envelope.seq) },
            };
            prompt.responder.reply(Ok(reply)).await;
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

/// Whether the work to stop ended meanwhile.
fn is_over(error: &AcpError) -> bool {
    [Code::NotFound, Code::StalePrecondition].iter().any(|code| code.number() == error.code)
}

/// Submits an input. An archived session is restored first. An attachment that the daemon cannot use is replaced by a
/// sentence, so that the model learns of it.
async fn submit(
    shared: &Shared,
    session_id: SessionId,
    input: PromptInput,
    when_busy: WhenBusy,
    key: Option<String>,
) -> Result<SubmitOutcome, AcpError> {
    let mut blocks = input.blocks;
    let mut is_restored = false;
    loop {
        let params = SubmitParams {
            when_busy: Some(when_busy),
            idempotency_key: Some(key.clone().unwrap_or_else(idempotency_key)),
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

/// In version 2: the message of a prompt did not become part of the conversation.
fn not_inserted() -> AcpError {
    AcpError::new(Code::Cancelled, "the prompt was cancelled before it was part of the conversation")
}
