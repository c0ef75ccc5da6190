//! The events of an index job or a query, on a separate connection.

use api::methods;

use serde::Deserialize;

use crate::connection::subscription::Subscription;
use crate::connection::wire::{CallError, DaemonStream};
use api::KNOWLEDGE_EVENT;
use api::params::{HelloParams, KnowledgeWorkParams};
use types::knowledge::KnowledgeEvent;

/// The events of one job or query, in order. Dropping it ends the subscription.
pub struct KnowledgeEvents {
    subscription: Subscription,
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
        stream: DaemonStream,
        greeting: &HelloParams,
        work: &KnowledgeWorkParams,
    ) -> Result<Self, CallError> {
        let mut early = Vec::new();
        let subscription =
            Subscription::open::<methods::knowledge::Subscribe>(stream, greeting, work, |line| {
                early.extend(event(line));
            })
            .await?;
        early.reverse();
        Ok(Self { subscription, early })
    }

    /// The next event. Waits without a deadline. Cancel-safe.
    pub async fn next(&mut self) -> Result<KnowledgeEvent, CallError> {
        if let Some(event) = self.early.pop() {
            return Ok(event);
        }
        loop {
            let line = self.subscription.next_line().await?;
            if let Some(event) = event(&line) {
                return Ok(event);
            }
        }
    }
}
