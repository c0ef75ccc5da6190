//! Data that waits to be written to one peer. Two limits in bytes, which do not block each other, bound it:
//!
//! - Notifications acquire credit before they are queued. If the peer does not read, a subscription
//!   waits for credit in a fair queue with the connection's other subscriptions.
//! - Replies are queued at once, because their call has run. While too many bytes of replies wait, the
//!   connection's reader accepts no further call.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use base::sync::lock;

/// One serialised JSON text, without a newline; shared or not.
#[derive(Clone, Debug)]
pub enum MessageText {
    /// Bytes that may be a slice of a larger buffer.
    Bytes(Bytes),
    /// A text that many subscriptions send.
    Shared(Arc<str>),
}

impl MessageText {
    /// The bytes to write.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

impl From<Bytes> for MessageText {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<String> for MessageText {
    fn from(text: String) -> Self {
        Self::Bytes(text.into())
    }
}

impl From<Vec<u8>> for MessageText {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Arc<str>> for MessageText {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

/// One thing to write.
#[derive(Debug)]
pub(super) enum OutboxItem {
    /// A reply that still needs its frame.
    Reply(Vec<u8>),
    /// Notifications of one subscription that still need their frames, and their credit in bytes.
    Notifications { messages: Vec<MessageText>, credit: usize },
    /// Event texts, each to be put between `start` and `end`, and their credit in bytes.
    Events { start: std::sync::Arc<str>, end: &'static str, events: Vec<MessageText>, credit: usize },
    /// Bytes to write unchanged: control frames, HTTP answers.
    Raw(Bytes),
}

/// The queue of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// Notified when there is something to write, or when the queue has ended.
    work: Notify,
    /// Notified when replies were written.
    written: Notify,
    credit: Semaphore,
    capacity: usize,
}

/// Acquired credit that is not spent yet; dropping it releases the credit.
#[derive(Debug)]
pub(super) struct Credit<'a> {
    outbox: &'a Outbox,
    permit: SemaphorePermit<'a>,
}

impl Credit<'_> {
    /// Queues the result of `make` with as much of the credit as `bytes` need, and releases the rest.
    /// Returns false if the queue accepts nothing any more.
    pub(super) fn spend(mut self, bytes: usize, make: impl FnOnce(usize) -> OutboxItem) -> bool {
        let spent = bytes.clamp(1, self.permit.num_permits());
        let Some(spent) = self.permit.split(spent) else { return false };
        let queued = self.outbox.push(make(spent.num_permits()), 0);
        if queued {
            spent.forget();
        }
        queued
    }
}

#[derive(Debug, Default)]
struct Queue {
    items: Vec<OutboxItem>,
    reply_bytes: usize,
    ended: bool,
    used: bool,
}

impl Outbox {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, u32::MAX as usize);
        Self {
            queue: Mutex::default(),
            work: Notify::new(),
            written: Notify::new(),
            credit: Semaphore::new(capacity),
            capacity,
        }
    }

    /// Queues a reply. Returns false if the queue accepts nothing any more.
    pub(super) fn queue_reply(&self, reply: Vec<u8>) -> bool {
        let bytes = reply.len();
        self.push(OutboxItem::Reply(reply), bytes)
    }

    /// Queues bytes to write unchanged. Returns false if the queue accepts nothing any more.
    pub(super) fn queue_raw(&self, bytes: Bytes) -> bool {
        let length = bytes.len();
        self.push(OutboxItem::Raw(bytes), length)
    }

    fn push(&self, out: OutboxItem, reply_bytes: usize) -> bool {
        let mut queue = lock(&self.queue);
        if queue.ended {
            return false;
        }
        queue.items.push(out);
        queue.used = true;
        queue.reply_bytes += reply_bytes;
        drop(queue);
        self.work.notify_one();
        true
    }

    /// Waits for credit for `bytes` and queues the result of `make` for the acquired credit. Returns
    /// false if the queue accepts nothing any more. Cancel-safe: either all is queued or nothing.
    pub(super) async fn with_credit(&self, bytes: usize, make: impl FnOnce(usize) -> OutboxItem) -> bool {
        let Some(credit) = self.credit(bytes).await else { return false };
        credit.spend(bytes, make)
    }

    /// Waits for credit for `bytes`, for senders that read their data only when it can be sent. Returns
    /// `None` if the queue accepts nothing any more. Cancel-safe: credit that was not returned was not
    /// acquired.
    pub(super) async fn credit(&self, bytes: usize) -> Option<Credit<'_>> {
        // The capacity is the maximum, because more credit never becomes available. So one long message
        // passes alone.
        let credit = bytes.clamp(1, self.capacity);
        let permit = self.credit.acquire_many(credit as u32).await.ok()?;
        Some(Credit { outbox: self, permit })
    }

    /// Waits until replies may be queued again.
    pub(super) async fn wait_reply_space(&self) {
        while lock(&self.queue).reply_bytes > self.capacity {
            // Only the reader waits here. If the notification comes before it waits, `Notify` keeps the
            // notification.
            self.written.notified().await;
        }
    }

    /// Whether anything was ever queued.
    pub(super) fn was_used(&self) -> bool {
        lock(&self.queue).used
    }

    /// For the writer: waits for work and moves all of it into `batch`, which must be empty. Returns false
    /// once the queue is empty and has ended.
    pub(super) async fn next_batch(&self, batch: &mut Vec<OutboxItem>) -> bool {
        loop {
            {
                let mut queue = lock(&self.queue);
                if !queue.items.is_empty() {
                    std::mem::swap(&mut queue.items, batch);
                    return true;
                }
                if queue.ended {
                    return false;
                }
            }
            self.work.notified().await;
        }
    }

    /// For the writer: records that this many bytes were written.
    pub(super) fn record_written(&self, reply_bytes: usize, credit: usize) {
        if reply_bytes > 0 {
            let mut queue = lock(&self.queue);
            // Closing resets the counters to zero.
            queue.reply_bytes = queue.reply_bytes.saturating_sub(reply_bytes);
            drop(queue);
            self.written.notify_one();
        }
        if credit > 0 {
            self.credit.add_permits(credit);
        }
    }

    /// Accepts nothing more; queued data is still written.
    pub(super) fn end(&self) {
        lock(&self.queue).ended = true;
        self.credit.close();
        self.work.notify_one();
    }

    /// Accepts nothing more and discards queued data.
    pub(super) fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.ended = true;
        let forgotten = std::mem::take(&mut queue.items);
        queue.reply_bytes = 0;
        drop(queue);
        drop(forgotten);
        self.credit.close();
        self.work.notify_one();
        self.written.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::time::Duration;
    use tokio::time::timeout;

    const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

    async fn notify(outbox: &Outbox, bytes: usize) -> bool {
        outbox.with_credit(bytes, |credit| OutboxItem::Notifications { messages: vec![], credit }).await
    }

    #[tokio::test]
    async fn notifications_wait_for_credit_but_replies_do_not() {
        let outbox = Outbox::new(100);
        assert!(notify(&outbox, 100).await);
        let mut waiting = Box::pin(notify(&outbox, 1));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(outbox.queue_reply(vec![0; 50]));
        outbox.record_written(0, 100);
        assert!(timeout(WAIT_TIMEOUT, waiting).await.unwrap());
    }

    #[tokio::test]
    async fn message_larger_than_outbox_is_sent_alone() {
        let outbox = Outbox::new(100);
        assert!(timeout(WAIT_TIMEOUT, notify(&outbox, 5_000_000_000)).await.unwrap());
        let mut waiting = Box::pin(notify(&outbox, 1));
        assert!(waiting.as_mut().now_or_never().is_none());
    }

    #[tokio::test]
    async fn dropped_send_returns_its_credit() {
        let outbox = Outbox::new(100);
        assert!(notify(&outbox, 60).await);
        let mut dropped = Box::pin(notify(&outbox, 60));
        assert!(dropped.as_mut().now_or_never().is_none());
        drop(dropped);
        assert!(timeout(WAIT_TIMEOUT, notify(&outbox, 40)).await.unwrap());
        let mut batch = vec![];
        assert!(outbox.next_batch(&mut batch).await);
        assert_eq!(batch.len(), 2);
    }

    #[tokio::test]
    async fn unspent_credit_is_returned_to_outbox() {
        let outbox = Outbox::new(100);
        let credit = outbox.credit(80).await.unwrap();
        assert!(outbox.credit(80).now_or_never().is_none());
        assert!(credit.spend(30, |credit| OutboxItem::Notifications { messages: vec![], credit }));
        let Some(Some(unspent)) = outbox.credit(70).now_or_never() else { panic!("50 of the 80 are back") };
        drop(unspent);
        assert!(outbox.credit(70).now_or_never().is_some());
        assert!(outbox.credit(71).now_or_never().is_none(), "and 30 are spent until they are written");
    }

    #[tokio::test]
    async fn reader_waits_while_replies_exceed_capacity() {
        let outbox = Outbox::new(100);
        outbox.wait_reply_space().await;
        outbox.queue_reply(vec![0; 101]);
        let mut waiting = Box::pin(outbox.wait_reply_space());
        assert!(waiting.as_mut().now_or_never().is_none());
        outbox.record_written(101, 0);
        timeout(WAIT_TIMEOUT, waiting).await.unwrap();
    }

    #[tokio::test]
    async fn ended_outbox_drains_and_closed_outbox_discards() {
        let mut batch = vec![];
        let outbox = Outbox::new(100);
        outbox.queue_reply(vec![1]);
        outbox.end();
        assert!(!outbox.queue_reply(vec![2]) && !notify(&outbox, 1).await);
        assert!(outbox.next_batch(&mut batch).await);
        batch.clear();
        assert!(!outbox.next_batch(&mut batch).await);

        let outbox = Outbox::new(100);
        outbox.queue_reply(vec![1]);
        outbox.close();
        assert!(!outbox.next_batch(&mut batch).await);
    }
}
