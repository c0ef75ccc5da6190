//! The events of an index job or a query, on a separate connection.

use api::methods;
use std::path::Path;

use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::connection::wire::{
    CallError, GREETING_TIMEOUT, Lines, Message, dial, no_answer, parse, subscribe_requests,
};
use api::KNOWLEDGE_EVENT;
use api::params::{HelloParams, KnowledgeWorkParams};
use types::knowledge::KnowledgeEvent;

/// The events of one job or query, in order. Dropping it ends the subscription.
pub struct KnowledgeEvents {
    lines: Lines<OwnedReadHalf>,
    /// Kept open, because closing the client's side would end the subscription.
    _write: OwnedWriteHalf,
    early: Vec<KnowledgeEvent>,
}

#[derive(Deserialize)]
struct Notification {
    method: String,
    params: NotificationParams,
}

#[derive(Deserialize)]
struct NotificationParams {
    result: KnowledgeEvent,
}

/// The event in a line; `None` for other messages and for events of a later version.
fn event(line: &[u8]) -> Option<KnowledgeEvent> {
    let notification: Notification = serde_json::from_slice(line).ok()?;
    (notification.method == KNOWLEDGE_EVENT).then_some(notification.params.result)
}

impl KnowledgeEvents {
    pub(crate) async fn open(
        path: &Path,
        greeting: &HelloParams,
        work: &KnowledgeWorkParams,
    ) -> Result<Self, CallError> {
        let (read, mut write) = dial(path).await?;
        let opening = subscribe_requests::<methods::knowledge::Subscribe>(greeting, work)?;
        write.write_all(opening.as_bytes()).await?;
        let mut events = Self { lines: Lines::new(read), _write: write, early: Vec::new() };
        timeout(GREETING_TIMEOUT, events.wait_subscribed()).await.map_err(|_| no_answer())??;
        Ok(events)
    }

    /// Waits for the reply to the subscribe call. Replies and events may arrive in any order, so events that
    /// come first are kept.
    async fn wait_subscribed(&mut self) -> Result<(), CallError> {
        loop {
            let line = self.lines.next().await?.ok_or(CallError::Closed)?;
            match parse(&line) {
                Some(Message::Reply { outcome: Err(fault), .. }) => return Err(CallError::Fault(fault)),
                Some(Message::Reply { id: Some(2), .. }) => {
                    self.early.reverse();
                    return Ok(());
                }
                _ => self.early.extend(event(&line)),
            }
        }
    }

    /// The next event. Waits without a deadline. Cancel-safe.
    ///
    /// # Errors
    /// [`CallError::Closed`] when the daemon exits.
    pub async fn next(&mut self) -> Result<KnowledgeEvent, CallError> {
        if let Some(event) = self.early.pop() {
            return Ok(event);
        }
        loop {
            let line = self.lines.next().await?.ok_or(CallError::Closed)?;
            if let Some(event) = event(&line) {
                return Ok(event);
            }
        }
    }
}
