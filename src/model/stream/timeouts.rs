//! Time limits of an answer. Three limits are needed, because a provider can stall in three ways: no byte at
//! all; bytes without content; or an answer so slow that it never ends. Anthropic sends `ping` events without
//! content and OpenRouter comments like `: OPENROUTER PROCESSING`; a model with hidden reasoning may send only
//! these for minutes.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use types::model::{Delta, FaultKind, ModelFault};

/// Factor on the limit of silence for a model that answers in one piece.
const WHOLE_ANSWER_FACTOR: u32 = 10;

/// The time limits of one answer.
#[derive(Clone, Debug)]
pub(crate) struct StreamTimeouts {
    /// Silence after which it is reported.
    pub warn: Duration,
    /// Maximum time until the first byte of the answer.
    pub first_byte: Duration,
    /// Maximum silence after the first byte.
    pub silence: Duration,
    /// Maximum time without content.
    pub content: Duration,
    /// Maximum time of the complete answer.
    pub attempt: Duration,
}

impl StreamTimeouts {
    /// The limits for an answer in one piece.
    pub(crate) fn without_stream(&self) -> Self {
        let silence = self.silence.saturating_mul(WHOLE_ANSWER_FACTOR);
        Self {
            warn: self.warn.saturating_mul(WHOLE_ANSWER_FACTOR),
            first_byte: self.first_byte.max(silence),
            silence,
            content: self.content.max(silence),
            attempt: self.attempt.max(silence),
        }
    }
}

/// Enforces the limits of one exchange.
pub(crate) struct Watchdog<'a> {
    timeouts: StreamTimeouts,
    provider: &'a str,
    out: &'a mpsc::Sender<Vec<Delta>>,
    began: Instant,
    /// Time of the last content, or of the first byte.
    last_content_at: Instant,
    /// Whether a byte of the answer arrived.
    has_bytes: bool,
}

impl<'a> Watchdog<'a> {
    /// Starts the limits now.
    pub(crate) fn new(
        timeouts: StreamTimeouts,
        provider: &'a str,
        out: &'a mpsc::Sender<Vec<Delta>>,
    ) -> Self {
        let now = Instant::now();
        Self { timeouts, provider, out, began: now, last_content_at: now, has_bytes: false }
    }

    /// Records that bytes of the answer arrived. The limits on silence and on content begin with the first one.
    pub(crate) fn record_bytes(&mut self) {
        if !self.has_bytes {
            self.has_bytes = true;
            self.last_content_at = Instant::now();
        }
    }

    /// Records that content arrived and was delivered.
    pub(crate) fn record_content(&mut self) {
        self.last_content_at = Instant::now();
    }

    /// Waits for `work` within the limits, and ends if the receiver is closed. Cancel-safe if `work` is.
    pub(crate) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelFault> {
        let now = Instant::now();
        let attempt = (self.began.checked_add(self.timeouts.attempt), ExceededLimit::Attempt);
        let limits = match self.has_bytes {
            true => [
                (now.checked_add(self.timeouts.silence), ExceededLimit::Silence),
                (self.last_content_at.checked_add(self.timeouts.content), ExceededLimit::Content),
                attempt,
            ],
            false => [
                (self.began.checked_add(self.timeouts.first_byte), ExceededLimit::FirstByte),
                (None, ExceededLimit::Content),
                attempt,
            ],
        };
        let limit = limits.into_iter().filter_map(|(at, limit)| Some((at?, limit))).min_by_key(|(at, _)| *at);
        let mut warn_at = now.checked_add(self.timeouts.warn);
        tokio::pin!(work);
        loop {
            let until = limit.map(|(at, _)| at);
            let next = [until, warn_at].into_iter().flatten().min();
            tokio::select! {
                () = self.out.closed() => return Err(receiver_closed()),
                done = &mut work => return Ok(done),
                () = async {
                    match next {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {
                    if let Some((_, limit)) = limit.filter(|(at, _)| *at <= Instant::now()) {
                        return Err(self.fault(limit));
                    }
                    warn_at = None;
                    let ms = u64::try_from(self.timeouts.warn.as_millis()).unwrap_or(u64::MAX);
                    if self.out.send(vec![Delta::Silence { ms }]).await.is_err() {
                        return Err(receiver_closed());
                    }
                }
            }
        }
    }

    fn fault(&self, limit: ExceededLimit) -> ModelFault {
        let (provider, timeouts) = (self.provider, &self.timeouts);
        let text = match limit {
            ExceededLimit::FirstByte => format!(
                "{provider} sent no byte for {} s; raise first_byte_timeout of [providers.{provider}] if the model \
                 needs longer to begin",
                timeouts.first_byte.as_secs_f32()
            ),
            ExceededLimit::Silence => format!(
                "{provider} was silent for {} s; raise [retry] idle_timeout if the model needs longer",
                timeouts.silence.as_secs_f32()
            ),
            ExceededLimit::Content => format!(
                "{provider} said for {} s that it is alive, and nothing else; raise [retry] content_timeout if \
                 the model needs longer",
                timeouts.content.as_secs_f32()
            ),
            ExceededLimit::Attempt => format!(
                "{provider} did not finish its answer within {} s; raise [retry] attempt_timeout if the model \
                 needs longer",
                timeouts.attempt.as_secs_f32()
            ),
        };
        ModelFault::new(FaultKind::Idle, text)
    }
}

#[derive(Clone, Copy, Debug)]
enum ExceededLimit {
    FirstByte,
    Silence,
    Content,
    Attempt,
}

/// Delivers a batch; waits while the receiver is busy.
pub(crate) async fn send_batch(batch: Vec<Delta>, out: &mpsc::Sender<Vec<Delta>>) -> Result<(), ModelFault> {
    if batch.is_empty() {
        return Ok(());
    }
    out.send(batch).await.map_err(|_| receiver_closed())
}

pub(crate) fn receiver_closed() -> ModelFault {
    ModelFault::new(FaultKind::Interrupted, "the answer was stopped: its receiver is closed")
}
