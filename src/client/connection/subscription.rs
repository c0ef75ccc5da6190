//! A connection for one subscription: events of a session, of all sessions, or of work on the index.

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::connection::wire::{CallError, Carrier, DaemonStream, Lines, Message, parse, subscribe_requests};
use api::ApiMethod;
use api::params::HelloParams;

/// An open subscription. Dropping it ends the subscription.
pub(crate) struct Subscription {
    lines: Lines<OwnedReadHalf>,
    /// Kept open, because closing the client's side would end the subscription.
    _write: OwnedWriteHalf,
    _carrier: Carrier,
}

impl Subscription {
    /// Sends `daemon.hello` and the subscribe call at once, so that they need one round trip, and waits for the reply.
    /// Replies and events may arrive in any order, so `early` gets the messages that come first.
    pub(crate) async fn open<M: ApiMethod>(
        stream: DaemonStream,
        greeting: &HelloParams,
        params: &M::Params,
        mut early: impl FnMut(&[u8]),
    ) -> Result<Self, CallError> {
        let DaemonStream { read, mut write, mut carrier } = stream;
        let mut lines = Lines::new(read);
        let opening = subscribe_requests::<M>(greeting, params)?;
        let replies = async {
            write.write_all(opening.as_bytes()).await?;
            loop {
                let line = lines.next().await?.ok_or(CallError::Closed)?;
                match parse(&line) {
                    Some(Message::Reply { outcome: Err(fault), .. }) => return Err(CallError::Fault(fault)),
                    Some(Message::Reply { id: Some(2), .. }) => return Ok(()),
                    _ => early(&line),
                }
            }
        };
        carrier.greet(replies).await?;
        Ok(Self { lines, _write: write, _carrier: carrier })
    }

    /// The next message. Cancel-safe.
    pub(crate) async fn next_line(&mut self) -> Result<Vec<u8>, CallError> {
        self.lines.next().await?.ok_or(CallError::Closed)
    }
}
