//! Model calls for MCP servers (sampling).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::shared::Shared;
use engine::{Input, OutsideUsage, estimate_usage, settle_usage};
use mcp::{SamplingAnswer, SamplingRequest};
use types::event::Purpose;
use types::message::{Block, Message, Role};
use types::model::{Delta, ModelRef, ModelRequest, ReplyBlock, StopReason};
use types::thinking::Thinking;
use types::usage::{ModelSnapshot, Usage};

/// Time limit of a model call for a server.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Capacity of the queue of deltas, which are only counted.
const DELTA_CAPACITY: usize = 16;

/// Calls a model and books the call in the session. The error is for the server. Dropping the future ends the call.
pub(super) async fn call_model(
    shared: Arc<Shared>,
    report: mpsc::Sender<Box<Input>>,
    model: String,
    request: SamplingRequest,
) -> Result<SamplingAnswer, String> {
    let model: ModelRef = model.parse().map_err(str::to_owned)?;
    let models = shared.components().models.clone();
    let model_snapshot = models.model_snapshot(&model);
    let mut sent = SentCall {
        request: model_request(model, request),
        model_snapshot,
        received: 0,
        report: Some(report),
    };
    let (deltas, mut batches) = mpsc::channel(DELTA_CAPACITY);
    let outgoing = sent.request.clone();
    let call = async move { models.call(&outgoing, &deltas).await };
    let received = &mut sent.received;
    let count = async move {
        while let Some(batch) = batches.recv().await {
            *received += batch.iter().map(text_bytes).sum::<usize>();
        }
    };
    let called = tokio::time::timeout(TIMEOUT, async { tokio::join!(call, count).0 }).await;
    match called {
        Ok(Ok(reply)) => {
            let text = reply.content.iter().filter_map(|block| match block {
                ReplyBlock::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let answer = SamplingAnswer {
                model: sent.request.model.to_string(),
                text: text.collect(),
                is_cut: reply.stop_reason == StopReason::MaxTokens,
            };
            let is_free = reply.cache_hit;
            sent.book(reply.usage, is_free).await;
            Ok(answer)
        }
        Ok(Err(fault)) => {
            let why = format!("the model call failed: {}", fault.kind.name());
            sent.end_failed(fault.usage.as_deref());
            Err(why)
        }
        Err(_) => Err(format!("no whole answer of the model within {} s", TIMEOUT.as_secs())),
    }
}

fn model_request(model: ModelRef, request: SamplingRequest) -> ModelRequest {
    let SamplingRequest { system, messages, max_tokens, sampling, stop } = request;
    let message = |(role, text): (Role, String)| {
        Arc::new(Message { role, content: vec![Block::Text { text }], model: None })
    };
    ModelRequest {
        model,
        system: system.into(),
        messages: messages.into_iter().map(message).collect(),
        tools: [].into(),
        max_output_tokens: Some(max_tokens),
        thinking: Some(Thinking::Off),
        sampling,
        media: Default::default(),
        previous_response_id: None,
        fresh_connection: false,
        is_helper_call: true,
        stop,
        metadata: Default::default(),
        no_interleaving: false,
        is_repeated: false,
    }
}

fn text_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        _ => 0,
    }
}

/// A call that was sent. If it is dropped before it is booked, it is booked by an upper estimate, because the provider may
/// charge for it.
struct SentCall {
    request: ModelRequest,
    model_snapshot: ModelSnapshot,
    /// Bytes of the answer so far.
    received: usize,
    /// `None` after the booking.
    report: Option<mpsc::Sender<Box<Input>>>,
}

impl SentCall {
    /// Books a call that has its answer. An answer from the response cache costs nothing.
    async fn book(mut self, usage: Usage, is_free: bool) {
        let cost = if is_free { Some(0) } else { self.model_snapshot.cost_usd_micros(&usage) };
        let booking = self.booking(usage, cost);
        if let Some(report) = self.report.take() {
            // Fails if the session has ended.
            let _ = report.send(Box::new(Input::BookUsage(Box::new(booking)))).await;
        }
    }

    /// Ends a call that failed. It costs nothing if the provider sent no part of an answer and reported no usage.
    fn end_failed(mut self, reported: Option<&Usage>) {
        match reported {
            None if self.received == 0 => self.report = None,
            reported => self.book_lost(reported),
        }
    }

    fn book_lost(&mut self, reported: Option<&Usage>) {
        let Some(report) = self.report.take() else { return };
        let estimated = estimate_usage(&self.request, self.received, &self.model_snapshot);
        let usage = settle_usage(estimated, reported);
        let cost = self.model_snapshot.cost_usd_micros(&usage);
        let booking = self.lost_booking(usage, cost);
        if report.try_send(Box::new(Input::BookUsage(Box::new(booking)))).is_err() {
            tracing::warn!("the usage of a model call for an MCP server was not recorded");
        }
    }

    fn lost_booking(&self, usage: Usage, cost_usd_micros: Option<u64>) -> OutsideUsage {
        OutsideUsage { is_lost: true, ..self.booking(usage, cost_usd_micros) }
    }

    fn booking(&self, usage: Usage, cost_usd_micros: Option<u64>) -> OutsideUsage {
        let (model, model_snapshot) = (self.request.model.to_string(), self.model_snapshot);
        OutsideUsage { purpose: Purpose::Mcp, model, usage, cost_usd_micros, model_snapshot, is_lost: false }
    }
}

impl Drop for SentCall {
    fn drop(&mut self) {
        self.book_lost(None);
    }
}
