//! The model for calls about one workspace's index: requests, retries and streams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::booking::{Bookings, SentCall};
use super::gate::CallGate;
use knowledge::{CallPurpose, Completion, ErrorKind, KnowledgeError, LanguageModel, ModelCall, ModelUsage};
use session::Registry;
use types::message::{Block, Message, Role};
use types::model::{
    Delta, FaultKind, ModelFault, ModelRef, ModelReply, ModelRequest, ReplyBlock, StopReason,
};
use types::sampling::Sampling;
use types::thinking::Thinking;
use types::usage::{ModelSnapshot, Usage};

/// Maximum attempts of one model call.
const MAX_ATTEMPTS: u32 = 4;
/// The first wait between two attempts. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Maximum number of delta batches that wait for a slow reader.
const DELTA_CAPACITY: usize = 16;

/// The model for calls about one workspace. Its usage is booked in the workspace's hidden session.
pub(super) struct WorkspaceModel {
    pub registry: Registry,
    pub workspace: PathBuf,
    pub model: ModelRef,
    pub timeout: Duration,
    pub bookings: Arc<Bookings>,
    pub gate: Arc<CallGate>,
    /// Maximum number of simultaneous calls about all indexes.
    pub max_calls: usize,
}

impl WorkspaceModel {
    fn request(&self, call: &ModelCall, is_repeated: bool) -> ModelRequest {
        let message = |role: Role, text: &str| {
            Arc::new(Message { role, content: vec![Block::Text { text: text.to_owned() }], model: None })
        };
        ModelRequest {
            model: self.model.clone(),
            system: call.system.as_str().into(),
            messages: call.messages.iter().map(|it| message(it.role, &it.content)).collect(),
            tools: [].into(),
            max_output_tokens: None,
            thinking: (call.purpose != CallPurpose::Answer).then_some(Thinking::Off),
            sampling: Sampling::default(),
            media: Default::default(),
            previous_response_id: None,
            fresh_connection: is_repeated,
            is_helper_call: true,
            stop: Vec::new(),
            metadata: Default::default(),
            no_interleaving: false,
            is_repeated,
        }
    }

    /// Calls the model. Repeats the call after a temporary fault, unless a part of the answer was
    /// already delivered. Calls without an answer are booked like those of sessions.
    async fn call(
        &self,
        call: &ModelCall,
        deltas: Option<&mpsc::Sender<String>>,
        cancel: &CancellationToken,
    ) -> Result<Completion, KnowledgeError> {
        if cancel.is_cancelled() {
            return Err(KnowledgeError::cancelled());
        }
        let _place = tokio::select! {
            place = self.gate.acquire(self.max_calls, call.purpose.priority()) => place,
            () = cancel.cancelled() => return Err(KnowledgeError::cancelled()),
        };
        let mut wait = FIRST_WAIT;
        let mut lost = ModelUsage::default();
        for attempt in 1.. {
            let sent =
                self.bookings.open_call(&self.workspace, self.request(call, attempt > 1), self.snapshot());
            let mut has_begun = false;
            let tried = self.attempt(&sent, deltas, &mut has_begun);
            let outcome = tokio::select! {
                outcome = tokio::time::timeout(self.timeout, tried) => Some(outcome),
                () = cancel.cancelled() => None,
            };
            let fault = match outcome {
                Some(Ok(Ok(reply))) => {
                    let mut completion = completion(sent, &reply).await;
                    completion.usage.add(lost);
                    return Ok(completion);
                }
                Some(Ok(Err(CallError::Fault(fault)))) => fault,
                None | Some(Ok(Err(CallError::Cancelled))) => {
                    lost.add(sent.book_lost(None).await);
                    return Err(KnowledgeError::cancelled().with_usage(lost));
                }
                Some(Err(_)) => {
                    lost.add(sent.book_lost(None).await);
                    let seconds = self.timeout.as_secs();
                    let text = format!("could not call the model: no answer within {seconds} s; try again");
                    return Err(KnowledgeError::new(ErrorKind::Model, text).with_usage(lost));
                }
            };
            // The provider may charge for a begun answer, and also for silence, because the model may
            // have been thinking.
            if sent.has_received() || fault.usage.is_some() || fault.kind == FaultKind::Idle {
                lost.add(sent.book_lost(fault.usage.as_deref()).await);
            } else {
                sent.drop_unbooked();
            }
            if !fault.kind.is_retryable() || has_begun || attempt >= MAX_ATTEMPTS {
                let text =
                    format!("could not call the model {}: {}; try again later", self.model, fault.message);
                return Err(KnowledgeError::new(ErrorKind::Model, text).with_usage(lost));
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Err(KnowledgeError::cancelled().with_usage(lost)),
            }
            wait *= 2;
        }
        Err(KnowledgeError::cancelled().with_usage(lost))
    }

    async fn attempt(
        &self,
        sent: &SentCall,
        deltas: Option<&mpsc::Sender<String>>,
        has_begun: &mut bool,
    ) -> Result<ModelReply, CallError> {
        let models = self.registry.shared().components().models.clone();
        let (sender, mut arriving) = mpsc::channel::<Vec<Delta>>(DELTA_CAPACITY);
        let deliver = async move {
            while let Some(batch) = arriving.recv().await {
                sent.receive(&batch);
                if !send_text(&batch, deltas, has_begun).await {
                    // The reader dropped the receiver, so end the call.
                    return false;
                }
            }
            true
        };
        let (reply, was_read) = tokio::join!(
            async {
                let sender = sender;
                models.call(sent.request(), &sender).await
            },
            deliver
        );
        if !was_read {
            return Err(CallError::Cancelled);
        }
        let reply = reply.map_err(CallError::Fault)?;
        let mut ignored = false;
        if send_text(&reply.last, deltas, &mut ignored).await { Ok(reply) } else { Err(CallError::Cancelled) }
    }

    fn snapshot(&self) -> ModelSnapshot {
        self.registry.shared().components().models.model_snapshot(&self.model)
    }
}

async fn completion(sent: SentCall, reply: &ModelReply) -> Completion {
    let texts = reply.content.iter().filter_map(|block| match block {
        ReplyBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect();
    let truncated = reply.stop_reason == StopReason::MaxTokens;
    Completion { text, usage: sent.book_answer(reply.usage, reply.cache_hit).await, truncated }
}

/// The reason why an attempt gave no answer.
enum CallError {
    Fault(ModelFault),
    Cancelled,
}

/// Sends the text of deltas. Returns `false` if the reader has dropped its receiver.
async fn send_text(batch: &[Delta], deltas: Option<&mpsc::Sender<String>>, has_begun: &mut bool) -> bool {
    let Some(deltas) = deltas else { return true };
    let texts = batch.iter().filter_map(|delta| match delta {
        Delta::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    if text.is_empty() {
        return !deltas.is_closed();
    }
    *has_begun = true;
    deltas.send(text).await.is_ok()
}

impl LanguageModel for WorkspaceModel {
    fn identity(&self) -> String {
        self.model.to_string()
    }

    fn price(&self, input_tokens: u64, output_tokens: u64) -> Option<u64> {
        self.snapshot().cost_usd_micros(&Usage { input_tokens, output_tokens, ..Usage::default() })
    }

    fn complete(
        &self,
        call: ModelCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move { self.call(&call, None, &cancel).await }.boxed()
    }

    fn stream(
        &self,
        call: ModelCall,
        deltas: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Completion, KnowledgeError>> {
        async move { self.call(&call, Some(&deltas), &cancel).await }.boxed()
    }
}
