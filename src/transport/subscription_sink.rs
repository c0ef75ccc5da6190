//! The sink for a subscription's notifications.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::outbox::{Credit, MessageText, Outbox, OutboxItem};

/// The connection is closed or the subscription was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscription has ended")]
pub struct SinkClosed;

/// The sink of one subscription. Its methods apply the back-pressure: they wait until the peer has read
/// enough.
#[derive(Debug)]
pub struct SubscriptionSink {
    pub(super) outbox: Arc<Outbox>,
    pub(super) id: Arc<str>,
    pub(super) ended: CancellationToken,
}

impl SubscriptionSink {
    /// Id of the subscription, as the client knows it.
    pub fn subscription(&self) -> &str {
        &self.id
    }

    /// Queues notifications, each one whole JSON object without a newline, in order and contiguous
    /// within this subscription. Waits while more than `Limits::outbox_bytes` of notifications wait for
    /// this connection's peer. Cancel-safe: either all is queued or nothing.
    ///
    /// # Errors
    /// [`SinkClosed`] when the connection is closed or the subscription was ended; nothing was queued then.
    pub async fn send<M: Into<MessageText>>(&self, messages: Vec<M>) -> Result<(), SinkClosed> {
        let messages: Vec<MessageText> = messages.into_iter().map(Into::into).collect();
        let bytes = messages.iter().map(|message| message.as_bytes().len()).sum();
        if messages.is_empty() {
            return self.check_open();
        }
        self.queue(bytes, |credit| OutboxItem::Notifications { messages, credit }).await
    }

    /// Waits until `bytes` may be queued, before the caller reads them. So a subscription whose peer does not
    /// read holds no data while it waits. Cancel-safe.
    ///
    /// # Errors
    /// [`SinkClosed`] when the connection is closed or the subscription was ended.
    pub async fn reserve(&self, bytes: usize) -> Result<SendPermit<'_>, SinkClosed> {
        self.check_open()?;
        tokio::select! {
            biased;
            credit = self.outbox.credit(bytes) => {
                credit.map(|credit| SendPermit { sink: self, credit }).ok_or(SinkClosed)
            }
            () = self.ended.cancelled() => Err(SinkClosed),
        }
    }

    /// Waits until the subscription has ended.
    pub async fn wait_ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns an error if the subscription has ended.
    fn check_open(&self) -> Result<(), SinkClosed> {
        if self.ended.is_cancelled() { Err(SinkClosed) } else { Ok(()) }
    }

    async fn queue(&self, bytes: usize, make: impl FnOnce(usize) -> OutboxItem) -> Result<(), SinkClosed> {
        self.check_open()?;
        tokio::select! {
            biased;
            queued = self.outbox.with_credit(bytes, make) => {
                if queued { Ok(()) } else { Err(SinkClosed) }
            }
            () = self.ended.cancelled() => Err(SinkClosed),
        }
    }
}

/// Reserved bytes in a peer's queue; unused bytes are released on drop.
#[derive(Debug)]
pub struct SendPermit<'a> {
    sink: &'a SubscriptionSink,
    credit: Credit<'a>,
}

impl SendPermit<'_> {
    /// Queues events that were serialised once for all subscribers. Each goes out as a notification
    /// `method` with `{"subscription": ID, "result": EVENT}`, and is copied only into the socket's
    /// buffer. Events larger than the reserved bytes pass as well.
    ///
    /// # Errors
    /// [`SinkClosed`] when the connection is closed or the subscription was ended; nothing was queued then.
    pub fn publish<M: Into<MessageText>>(self, method: &str, events: Vec<M>) -> Result<(), SinkClosed> {
        self.sink.check_open()?;
        let events: Vec<MessageText> = events.into_iter().map(Into::into).collect();
        if events.is_empty() {
            return Ok(());
        }
        let (method, id) = (serde_json::Value::from(method), serde_json::Value::from(&*self.sink.id));
        let start: Arc<str> =
            format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{{"subscription":{id},"result":"#).into();
        let end = "}}";
        let wrapping = start.len() + end.len();
        let bytes = events.iter().map(|event| event.as_bytes().len() + wrapping).sum();
        let queued = self.credit.spend(bytes, |credit| OutboxItem::Events { start, end, events, credit });
        if queued { Ok(()) } else { Err(SinkClosed) }
    }
}
