//! The events of one session, on a separate connection.

use api::methods;
use std::collections::VecDeque;
use std::path::Path;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::connection::wire::{
    CallError, GREETING_TIMEOUT, Lines, Message, ReceivedEvent, dial, no_answer, parse, subscribe_requests,
};
use api::params::{HelloParams, Include, SubscribeParams};
use types::ids::{Seq, SessionId};

/// The events of one session, in order. Dropping it ends the subscription.
pub struct Events {
    lines: Lines<OwnedReadHalf>,
    /// Kept open, because closing the client's side would end the subscription.
    _write: OwnedWriteHalf,
    early: VecDeque<ReceivedEvent>,
    last_seq: Seq,
}

impl Events {
    pub(crate) async fn open(
        path: &Path,
        greeting: &HelloParams,
        session: SessionId,
        after_seq: Seq,
        include: Include,
    ) -> Result<Self, CallError> {
        let (read, mut write) = dial(path).await?;
        let params = SubscribeParams { session_id: session, after_seq, include };
        let opening = subscribe_requests::<methods::session::Subscribe>(greeting, &params)?;
        write.write_all(opening.as_bytes()).await?;
        let mut events =
            Self { lines: Lines::new(read), _write: write, early: VecDeque::new(), last_seq: after_seq };
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
                Some(Message::Reply { id: Some(2), .. }) => return Ok(()),
                Some(Message::Event(event)) => self.early.push_back(*event),
                _ => {}
            }
        }
    }

    /// The next event. Waits without a deadline. Cancel-safe.
    ///
    /// # Errors
    /// [`CallError::Closed`] when the daemon exits: subscribe again with [`Events::last_seq`].
    pub async fn next(&mut self) -> Result<ReceivedEvent, CallError> {
        loop {
            let event = match self.early.pop_front() {
                Some(event) => event,
                None => {
                    let line = self.lines.next().await?.ok_or(CallError::Closed)?;
                    let Some(Message::Event(event)) = parse(&line) else { continue };
                    *event
                }
            };
            self.last_seq = self.last_seq.max(event.seq);
            return Ok(event);
        }
    }

    /// Seq after which to subscribe again.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }
}
