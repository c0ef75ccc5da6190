//! Follows a session through restarts of the daemon: subscribes again after the last event. Events are
//! complete, because values that the daemon truncated for the wire are inserted.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::connection::events::{Delivery, Events};
use crate::connection::expand_truncated;
use crate::connection::wire::ReceivedEvent;
use crate::failure::Failure;
use api::params::Include;
use types::daemon_event::RestartReason;
use types::ids::{Seq, SessionId};

/// How long to try to reconnect to the daemon after the connection was lost.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The next step of a followed session.
pub enum FollowStep {
    /// An event.
    Event(Box<ReceivedEvent>),
    /// The daemon stops as planned. The client reconnects once the connection ends, and [`FollowStep::Lost`] is left out.
    Restarting(RestartReason),
    /// The connection was lost; the client is reconnecting.
    Lost,
    /// The client has reconnected: use this client for calls from now on.
    Back(Client),
}

/// The state of the connection while the daemon stops, in a few words.
pub(crate) fn stop_words(reason: RestartReason) -> &'static str {
    match reason {
        RestartReason::Restart => "the daemon restarts…",
        RestartReason::Stop | RestartReason::Signal => "the daemon stops…",
    }
}

/// The events of one session, across connections.
pub struct SessionFollower {
    reach: Connector,
    session: SessionId,
    last_seq: Seq,
    client: Client,
    include: Include,
    /// Whether events are returned as sent on the wire.
    as_sent: bool,
    events: Option<Events>,
    /// Whether the daemon of this connection has announced its stop.
    is_announced: bool,
    /// The task that reads the truncated values of an event.
    pending: Option<AbortOnDrop<Result<ReceivedEvent, CallError>>>,
    attempt: Option<AbortOnDrop<Result<(Client, Events), Failure>>>,
}

/// A task that is aborted when its owner is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionFollower {
    /// Follows from the event after `after_seq`.
    ///
    /// # Errors
    /// The daemon refuses the subscription.
    pub async fn start(
        reach: &Connector,
        client: &Client,
        session: SessionId,
        after_seq: Seq,
    ) -> Result<Self, CallError> {
        Self::start_with(reach, client, session, after_seq, Include::default()).await
    }

    /// Follows a part of the events.
    ///
    /// # Errors
    /// See [`SessionFollower::start`].
    pub async fn start_with(
        reach: &Connector,
        client: &Client,
        session: SessionId,
        after_seq: Seq,
        include: Include,
    ) -> Result<Self, CallError> {
        let events = match client.subscribe_to(session, after_seq, include).await {
            Ok(events) => Some(events),
            // Treat a daemon that exits now like one that exits later: reconnect.
            Err(error) if error.is_lost() => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            reach: reach.clone(),
            session,
            last_seq: after_seq,
            client: client.clone(),
            include,
            as_sent: false,
            events,
            is_announced: false,
            pending: None,
            attempt: None,
        })
    }

    /// Returns events as sent on the wire: truncated values stay truncated.
    #[must_use]
    pub fn as_sent(mut self) -> Self {
        self.as_sent = true;
        self
    }

    /// The options of the command line that lead to the same daemon: `ClientPaths::flags`.
    #[must_use]
    pub fn flags(&self) -> &[String] {
        &self.reach.places.flags
    }

    /// The next step. Cancel-safe.
    ///
    /// # Errors
    /// The client could not reconnect, or the daemon no longer has the session.
    pub async fn next(&mut self) -> Result<FollowStep, Failure> {
        if let Some(events) = &mut self.events {
            if self.pending.is_none() {
                match events.next_delivery().await {
                    Ok(Delivery::Restarting(reason)) => {
                        self.is_announced = true;
                        return Ok(FollowStep::Restarting(reason));
                    }
                    Ok(Delivery::Event(event)) if expand_truncated::is_truncated(&event) && !self.as_sent => {
                        let client = self.client.clone();
                        let task =
                            tokio::spawn(async move { expand_truncated::whole(&client, *event).await });
                        self.pending = Some(AbortOnDrop(task));
                    }
                    Ok(Delivery::Event(event)) => {
                        self.last_seq = events.last_seq();
                        return Ok(FollowStep::Event(event));
                    }
                    Err(_) => {
                        self.events = None;
                        if !self.is_announced {
                            return Ok(FollowStep::Lost);
                        }
                    }
                }
            }
            if let Some(pending) = &mut self.pending {
                let made = (&mut pending.0).await;
                self.pending = None;
                if let Ok(Ok(event)) = made {
                    self.last_seq = self.last_seq.max(event.seq);
                    return Ok(FollowStep::Event(Box::new(event)));
                }
                // After reconnecting, the subscription delivers this event again.
                self.events = None;
                if !self.is_announced {
                    return Ok(FollowStep::Lost);
                }
            }
        }
        let (reach, session, after) = (self.reach.clone(), self.session, self.last_seq);
        let include = self.include;
        let attempt = self
            .attempt
            .get_or_insert_with(|| AbortOnDrop(tokio::spawn(seek(reach, session, after, include))));
        let outcome = (&mut attempt.0).await;
        self.attempt = None;
        let (client, events) = outcome.map_err(|e| Failure::internal(e.to_string()))??;
        self.events = Some(events);
        self.is_announced = false;
        self.client = client.clone();
        Ok(FollowStep::Back(client))
    }

    /// Seq of the newest returned event.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }
}

async fn seek(
    reach: Connector,
    session: SessionId,
    after: Seq,
    include: Include,
) -> Result<(Client, Events), Failure> {
    let deadline = Instant::now() + reach.reconnect_timeout(RECONNECT_TIMEOUT);
    let mut wait = Duration::from_millis(50);
    loop {
        sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(1));
        let failure = match connect_once(&reach, session, after, include).await {
            Ok(follow) => return Ok(follow),
            Err(failure) => failure,
        };
        if !failure.may_pass() || Instant::now() > deadline {
            return Err(failure);
        }
    }
}

async fn connect_once(
    reach: &Connector,
    session: SessionId,
    after: Seq,
    include: Include,
) -> Result<(Client, Events), Failure> {
    let client = reach.connect_again().await?;
    let events = client.subscribe_to(session, after, include).await?;
    Ok((client, events))
}
