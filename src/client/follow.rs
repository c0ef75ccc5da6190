//! Following a session through restarts of the daemon: subscribes again after the last event.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::connect::{CallError, Client};
use super::events::Events;
use super::failure::{Failure, code};
use super::reach::Reach;
use super::wire::Received;
use crate::types::ids::{Seq, SessionId};

/// How long a lost daemon is sought.
const PATIENCE: Duration = Duration::from_secs(15);

/// What happened next.
pub enum Step {
    /// An event.
    Event(Box<Received>),
    /// The daemon went away; it is being sought.
    Lost,
    /// It is back: calls go through this client from now on.
    Back(Client),
}

/// The events of one session, across connections.
pub struct Follow {
    reach: Reach,
    session: SessionId,
    last_seq: Seq,
    events: Option<Events>,
    attempt: Option<Attempt>,
}

struct Attempt(JoinHandle<Result<(Client, Events), Failure>>);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Follow {
    /// Follows from the event after `after_seq`.
    ///
    /// # Errors
    /// The daemon refuses the subscription.
    pub async fn start(
        reach: &Reach,
        client: &Client,
        session: SessionId,
        after_seq: Seq,
    ) -> Result<Self, CallError> {
        let events = client.subscribe(session, after_seq).await?;
        Ok(Self { reach: reach.clone(), session, last_seq: after_seq, events: Some(events), attempt: None })
    }

    /// The next step. Cancel-safe.
    ///
    /// # Errors
    /// The daemon stayed away, or it does not have the session any more.
    pub async fn next(&mut self) -> Result<Step, Failure> {
        if let Some(events) = &mut self.events {
            return match events.next().await {
                Ok(event) => {
                    self.last_seq = events.last_seq();
                    Ok(Step::Event(Box::new(event)))
                }
                Err(_) => {
                    self.events = None;
                    Ok(Step::Lost)
                }
            };
        }
        let (reach, session, after) = (self.reach.clone(), self.session, self.last_seq);
        let attempt = self.attempt.get_or_insert_with(|| Attempt(tokio::spawn(seek(reach, session, after))));
        let outcome = (&mut attempt.0).await;
        self.attempt = None;
        let (client, events) = outcome.map_err(|e| Failure::internal(e.to_string()))??;
        self.events = Some(events);
        Ok(Step::Back(client))
    }

    /// The newest event that was seen.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }
}

async fn seek(reach: Reach, session: SessionId, after: Seq) -> Result<(Client, Events), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut wait = Duration::from_millis(50);
    loop {
        sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(1));
        let failure = match once(&reach, session, after).await {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        if failure.code != code::UNREACHABLE || Instant::now() > deadline {
            return Err(failure);
        }
    }
}

async fn once(reach: &Reach, session: SessionId, after: Seq) -> Result<(Client, Events), Failure> {
    let client = reach.connect_again().await?;
    let events = client.subscribe(session, after).await?;
    Ok((client, events))
}
