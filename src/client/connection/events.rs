//! The events of one session, on a separate connection.

use api::methods;
use std::collections::VecDeque;

use crate::connection::subscription::Subscription;
use crate::connection::wire::{CallError, DaemonStream, Message, ReceivedEvent, parse};
use api::params::{HelloParams, Include, SubscribeParams};
use types::daemon_event::RestartReason;
use types::ids::{Seq, SessionId};

/// What a subscription delivers.
pub(crate) enum Delivery {
    /// An event of the session.
    Event(Box<ReceivedEvent>),
    /// The daemon stops as planned.
    Restarting(RestartReason),
}

/// The events of one session, in order. Dropping it ends the subscription.
pub struct Events {
    subscription: Subscription,
    early: VecDeque<ReceivedEvent>,
    last_seq: Seq,
}

impl Events {
    pub(crate) async fn open(
        stream: DaemonStream,
        greeting: &HelloParams,
        session: SessionId,
        after_seq: Seq,
        include: Include,
    ) -> Result<Self, CallError> {
        let params = SubscribeParams { session_id: session, after_seq, include };
        let mut early = VecDeque::new();
        let mut subscription =
            Subscription::open::<methods::session::Subscribe>(stream, greeting, &params, |line| {
                if let Some(Message::Event(event)) = parse(line) {
                    early.push_back(*event);
                }
            })
            .await?;
        subscription.follow_daemon().await?;
        Ok(Self { subscription, early, last_seq: after_seq })
    }

    /// The next event. Waits without a deadline. Cancel-safe.
    ///
    /// # Errors
    /// [`CallError::Closed`] when the daemon exits: subscribe again with [`Events::last_seq`].
    pub async fn next(&mut self) -> Result<ReceivedEvent, CallError> {
        loop {
            if let Delivery::Event(event) = self.next_delivery().await? {
                return Ok(*event);
            }
        }
    }

    /// The next event, or the announcement that the daemon stops. Cancel-safe.
    ///
    /// # Errors
    /// As of [`Events::next`].
    pub(crate) async fn next_delivery(&mut self) -> Result<Delivery, CallError> {
        loop {
            let event = match self.early.pop_front() {
                Some(event) => Box::new(event),
                None => match parse(&self.subscription.next_line().await?) {
                    Some(Message::Event(event)) => event,
                    Some(Message::Restarting(reason)) => return Ok(Delivery::Restarting(reason)),
                    _ => continue,
                },
            };
            self.last_seq = self.last_seq.max(event.seq);
            return Ok(Delivery::Event(event));
        }
    }

    /// Seq after which to subscribe again.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }
}
