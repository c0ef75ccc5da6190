//! How long a provider is waited for (Q29). Three limits, since there are three ways of saying nothing:
//! no byte at all; bytes that are no part of an answer (Anthropic sends `ping` events, OpenRouter comments
//! like `: OPENROUTER PROCESSING`, and a model that thinks in secret may bring nothing else for minutes);
//! and an answer so slow that it never ends.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::model::stream::http::nobody_listens;
use crate::types::model::{Delta, FaultKind, ModelFault};

/// How much longer a model may be silent that answers in one piece.
const WITHOUT_STREAM: u32 = 10;

/// The limits.
#[derive(Clone, Debug)]
pub(in crate::model) struct Patience {
    /// Silence after which the listener is told.
    pub warn: Duration,
    /// Longest silence.
    pub silence: Duration,
    /// Longest time without a part of the answer.
    pub content: Duration,
    /// Longest time for all of it.
    pub attempt: Duration,
}

impl Patience {
    /// For an answer that comes in one piece.
    pub(in crate::model) fn without_stream(&self) -> Self {
        let silence = self.silence.saturating_mul(WITHOUT_STREAM);
        Self {
            warn: self.warn.saturating_mul(WITHOUT_STREAM),
            silence,
            content: self.content.max(silence),
            attempt: self.attempt.max(silence),
        }
    }
}

/// Watches one exchange.
pub(in crate::model) struct Watchdog<'a> {
    patience: Patience,
    provider: &'a str,
    out: &'a mpsc::Sender<Vec<Delta>>,
    began: Instant,
    /// When something of the answer came last.
    heard: Instant,
}

impl<'a> Watchdog<'a> {
    /// Begins to watch now.
    pub(in crate::model) fn new(
        patience: Patience,
        provider: &'a str,
        out: &'a mpsc::Sender<Vec<Delta>>,
    ) -> Self {
        let now = Instant::now();
        Self { patience, provider, out, began: now, heard: now }
    }

    /// Something of the answer came, and was handed on.
    pub(in crate::model) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Waits for the provider's next word, but not longer than it may be silent, nor for a listener who
    /// left. Cancel-safe as far as the work is.
    pub(in crate::model) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelFault> {
        let now = Instant::now();
        let limits = [
            (now.checked_add(self.patience.silence), Limit::Silence),
            (self.heard.checked_add(self.patience.content), Limit::Content),
            (self.began.checked_add(self.patience.attempt), Limit::Attempt),
        ];
        let limit = limits.into_iter().filter_map(|(at, limit)| Some((at?, limit))).min_by_key(|(at, _)| *at);
        let mut warn_at = now.checked_add(self.patience.warn);
        tokio::pin!(work);
        loop {
            let until = limit.map(|(at, _)| at);
            let next = [until, warn_at].into_iter().flatten().min();
            tokio::select! {
                () = self.out.closed() => return Err(nobody_listens()),
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
                    let ms = u64::try_from(self.patience.warn.as_millis()).unwrap_or(u64::MAX);
                    if self.out.send(vec![Delta::Silence { ms }]).await.is_err() {
                        return Err(nobody_listens());
                    }
                }
            }
        }
    }

    fn fault(&self, limit: Limit) -> ModelFault {
        let (provider, patience) = (self.provider, &self.patience);
        let text = match limit {
            Limit::Silence => format!(
                "{provider} was silent for {} s; raise [retry] idle_timeout if the model needs longer",
                patience.silence.as_secs_f32()
            ),
            Limit::Content => format!(
                "{provider} said for {} s that it is alive, and nothing else; raise [retry] content_timeout if \
                 the model needs longer",
                patience.content.as_secs_f32()
            ),
            Limit::Attempt => format!(
                "{provider} did not finish its answer within {} s; raise [retry] attempt_timeout if the model \
                 needs longer",
                patience.attempt.as_secs_f32()
            ),
        };
        ModelFault::new(FaultKind::Idle, text)
    }
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Silence,
    Content,
    Attempt,
}
