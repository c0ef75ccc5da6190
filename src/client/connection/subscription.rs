//! A connection for one subscription: events of a session, of all sessions, or of work on the index.

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::connection::wire::{
    CallError, Carrier, DaemonStream, Lines, Message, parse, request, subscribe_requests,
};
use api::params::{DaemonSubscribeParams, HelloParams};
use api::{ApiMethod, methods};
use types::daemon_event::DaemonSubject;

/// An open subscription. Dropping it ends the subscription.
pub(crate) struct Subscription {
    lines: Lines<OwnedReadHalf>,
    /// Kept open, because closing the client's side would end the subscription.
    write: OwnedWriteHalf,
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
        Ok(Self { lines, write, _carrier: carrier })
    }

    /// Asks the daemon to announce its planned stop on this connection too. Does not wait for the reply: an older daemon
    /// refuses the call, and its stop is noticed when the connection ends.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn follow_daemon(&mut self) -> Result<(), CallError> {
        let params = DaemonSubscribeParams { about: vec![DaemonSubject::Daemon] };
        let text = request(3, methods::daemon::Subscribe::METHOD.name, &params)?;
        Ok(self.write.write_all(text.as_bytes()).await?)
    }

    /// The next message. Cancel-safe.
    pub(crate) async fn next_line(&mut self) -> Result<Vec<u8>, CallError> {
        self.lines.next().await?.ok_or(CallError::Closed)
    }
}
