//! Model calls and helper calls, and the deltas of the call that runs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tracing::{Instrument as _, Span, info_span};

use super::rate_limiter::RateLimiter;
use super::{EffectRunner, media};
use crate::shared::elapsed_ms;
use base::crash;
use engine::Input;
use tools::ActiveModelCall;
use types::ids::Seq;
use types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock};

/// Capacity of the queue of delta batches between a model's stream and the session.
pub(super) const DELTA_CAPACITY: usize = 16;
/// Maximum size of a helper call's reply in bytes.
const MAX_HELPER_BYTES: usize = 64 << 10;
/// Time limit of a helper call, because it keeps its session loaded.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
const ADAPTER_PANIC: &str = "the adapter failed on this answer; see the daemon's log";

/// Deltas of one model call. The receiver is kept until the next call, even if this call is stopped: a sender
/// without receiver would report a failure.
pub(super) struct DeltaQueue {
    pub token: Seq,
    pub batches: mpsc::Receiver<Vec<Delta>>,
    pace: RateLimiter,
    /// The stream is not read before this time.
    pub rests_until: Option<Instant>,
}

impl DeltaQueue {
    pub fn new(token: Seq, batches: mpsc::Receiver<Vec<Delta>>) -> Self {
        Self { token, batches, pace: RateLimiter::new(), rests_until: None }
    }

    pub fn input(&mut self, deltas: Vec<Delta>) -> Input {
        let bytes = deltas.iter().map(delta_text_bytes).sum();
        self.rests_until =
            self.pace.record(deltas.len(), bytes, Instant::now(), ActiveModelCall::are_others());
        Input::Deltas { token: self.token, deltas }
    }
}

/// The next deltas, if a model is answering. Cancel-safe.
pub(super) async fn next_deltas(stream: &mut Option<DeltaQueue>) -> Option<Input> {
    let stream = stream.as_mut()?;
    if let Some(until) = stream.rests_until {
        tokio::time::sleep_until(until.into()).await;
        stream.rests_until = None;
    }
    let deltas = stream.batches.recv().await?;
    Some(stream.input(deltas))
}

impl EffectRunner {
    /// Starts a model call. `phase` is the parent of its tracing span.
    pub fn call_model(&mut self, token: Seq, mut request: ModelRequest, phase: &Span) {
        let span = info_span!(parent: phase, "model_call", model = %request.model);
        let key = self.key;
        let shared = Arc::clone(&self.shared);
        let components = shared.components();
        let (out, batches) = mpsc::channel(DELTA_CAPACITY);
        self.deltas = Some(DeltaQueue::new(token, batches));
        let call = async move {
            let _present = ActiveModelCall::new();
            crash::point("C3");
            let started = Instant::now();
            if components.models.model(&request.model).vision != Some(false) {
                request.media = media::load_media(&shared.store, key, &request).await;
            }
            let result = AssertUnwindSafe(components.models.call(&request, &out)).catch_unwind().await;
            let duration_ms = elapsed_ms(started);
            let result = result.unwrap_or_else(|_| Err(ModelFault::new(FaultKind::Garbage, ADAPTER_PANIC)));
            Some(match result {
                Ok(reply) => {
                    let model_snapshot = components.models.model_snapshot(&request.model);
                    let cost = model_snapshot.cost_usd_micros(&reply.usage);
                    // A reply from the response cache costs nothing.
                    let cost_usd_micros = if reply.cache_hit { Some(0) } else { cost };
                    Input::ModelDone {
                        token,
                        reply: Box::new(reply),
                        cost_usd_micros,
                        model_snapshot,
                        duration_ms,
                    }
                }
                Err(fault) => {
                    let model_snapshot = components.models.model_snapshot(&request.model);
                    Input::ModelFailed { token, fault, model_snapshot, duration_ms }
                }
            })
        };
        self.start(call.instrument(span));
    }

    /// Starts a helper call. Its deltas are not published.
    pub fn ask_helper(&mut self, token: Seq, request: ModelRequest) {
        let shared = Arc::clone(&self.shared);
        let components = shared.components();
        self.helpers.spawn(async move {
            crash::point("C3.helper");
            let started = Instant::now();
            let (out, mut batches) = mpsc::channel(DELTA_CAPACITY);
            let ask =
                AssertUnwindSafe(async move { components.models.call(&request, &out).await }).catch_unwind();
            let listen = async move {
                let (mut began, mut bytes) = (false, 0);
                while let Some(deltas) = batches.recv().await {
                    began |= deltas.iter().any(|delta| !matches!(delta, Delta::Silence { .. }));
                    bytes += deltas.iter().map(delta_text_bytes).sum::<usize>();
                    if bytes > MAX_HELPER_BYTES {
                        // The session has ended, so stop reading the stream.
                        break;
                    }
                }
                (began, bytes > MAX_HELPER_BYTES)
            };
            let both = tokio::time::timeout(HELPER_TIMEOUT, async { tokio::join!(ask, listen) }).await;
            let (outcome, began) = match both {
                Ok((_, (began, true))) => (Err(too_long_fault()), began),
                Ok((Ok(outcome), (began, _))) => (outcome.and_then(check_length), began),
                Ok((Err(_), (began, _))) => (Err(ModelFault::new(FaultKind::Garbage, ADAPTER_PANIC)), began),
                Err(_) => {
                    let text = format!("no whole answer within {} s", HELPER_TIMEOUT.as_secs());
                    (Err(ModelFault::new(FaultKind::Idle, text)), true)
                }
            };
            if let Err(fault) = &outcome {
                tracing::debug!(kind = fault.kind.name(), "a helper call failed: {}", fault.message);
            }
            crash::point("C7.helper");
            let duration_ms = elapsed_ms(started);
            Some(Input::HelperDone { token, outcome: Box::new(outcome), began, duration_ms })
        });
    }
}

/// Refuses a helper reply that is too long. Deltas that arrive with the end were not counted before.
fn check_length(reply: ModelReply) -> Result<ModelReply, ModelFault> {
    let text = |block: &ReplyBlock| match block {
        ReplyBlock::Text(text) | ReplyBlock::Thinking { text, .. } => text.len(),
        ReplyBlock::RedactedThinking(_) | ReplyBlock::ToolCall { .. } => 0,
    };
    if reply.content.iter().map(text).sum::<usize>() <= MAX_HELPER_BYTES {
        return Ok(reply);
    }
    Err(ModelFault { usage: Some(Box::new(reply.usage)), ..too_long_fault() })
}

fn too_long_fault() -> ModelFault {
    let text = format!("more than {} KiB, which is too long for a short answer", MAX_HELPER_BYTES >> 10);
    ModelFault::new(FaultKind::Garbage, text)
}

fn delta_text_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        _ => 0,
    }
}
