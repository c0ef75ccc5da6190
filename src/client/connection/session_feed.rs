//! The changes of all sessions (`daemon.subscribe`), on a separate connection.

use api::methods;
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::session_calls;
use crate::connection::subscription::Subscription;
use crate::connection::wire::{CallError, Message, parse};
use crate::failure::Failure;
use api::params::{DaemonSubscribeParams, ListParams};
use types::daemon_event::SessionNotification;
use types::ids::SessionId;
use types::session::SessionView;

/// How long to try to reconnect to the daemon after the connection was lost.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Changes within this time are handled together.
const COALESCE_INTERVAL: Duration = Duration::from_millis(20);

/// A subscription to the changes of all sessions. Dropping it ends the subscription.
struct SessionEvents(Subscription);

impl SessionEvents {
    async fn open(client: &Client) -> Result<Self, CallError> {
        let stream = client.subscription_stream().await?;
        let params = DaemonSubscribeParams::default();
        let subscribed =
            Subscription::open::<methods::daemon::Subscribe>(stream, client.greeting(), &params, |_| {});
        Ok(Self(subscribed.await?))
    }

    /// The next change. Cancel-safe.
    async fn next(&mut self) -> Result<SessionNotification, CallError> {
        loop {
            let line = self.0.next_line().await?;
            if let Some(Message::Session(event)) = parse(&line) {
                return Ok(*event);
            }
        }
    }
}

/// All sessions. The daemon's notifications keep them up to date, also across a restart of the daemon.
pub(crate) struct SessionFeed {
    reach: Connector,
    client: Client,
    events: Option<SessionEvents>,
    sessions: BTreeMap<SessionId, SessionView>,
}

impl SessionFeed {
    /// Subscribes, then reads all sessions.
    pub(crate) async fn start(reach: &Connector) -> Result<Self, Failure> {
        let client = reach.connect_or_start().await?;
        let mut feed = Self { reach: reach.clone(), client, events: None, sessions: BTreeMap::new() };
        feed.subscribe().await?;
        Ok(feed)
    }

    async fn subscribe(&mut self) -> Result<(), Failure> {
        // Subscribe before reading the list, so that no change is lost in between.
        let events = SessionEvents::open(&self.client).await?;
        let filter = ListParams { include_children: true, ..ListParams::default() };
        let sessions = session_calls::all_sessions(&self.client, &filter).await?;
        self.sessions = sessions.into_iter().map(|session| (session.session_id, session)).collect();
        self.events = Some(events);
        Ok(())
    }

    /// All sessions, the newest first.
    pub(crate) fn sessions(&self) -> Vec<&SessionView> {
        let mut sessions: Vec<&SessionView> = self.sessions.values().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.number));
        sessions
    }

    /// The connection for calls.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for the next changes and applies them. After a lost connection it waits until the daemon answers again.
    /// Cancel-safe.
    pub(crate) async fn wait_change(&mut self) -> Result<(), Failure> {
        let Some(events) = &mut self.events else { return self.reconnect().await };
        match events.next().await {
            Ok(event) => apply_event(&mut self.sessions, event),
            Err(_) => {
                self.events = None;
                return self.reconnect().await;
            }
        }
        let more = async {
            while let Ok(event) = events.next().await {
                apply_event(&mut self.sessions, event);
            }
        };
        // Ignore the end of the connection, because the next call detects it again.
        let _ = timeout(COALESCE_INTERVAL, more).await;
        Ok(())
    }

    async fn reconnect(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + self.reach.reconnect_timeout(RECONNECT_TIMEOUT);
        let mut wait = Duration::from_millis(50);
        loop {
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(1));
            let outcome = match self.reach.connect_again().await {
                Ok(client) => {
                    self.client = client;
                    self.subscribe().await
                }
                Err(failure) => Err(failure),
            };
            match outcome {
                Ok(()) => return Ok(()),
                Err(failure) if !failure.may_pass() || Instant::now() > deadline => {
                    return Err(failure);
                }
                Err(_) => {}
            }
        }
    }
}

fn apply_event(sessions: &mut BTreeMap<SessionId, SessionView>, event: SessionNotification) {
    if event.deleted {
        sessions.remove(&event.session.session_id);
    } else {
        sessions.insert(event.session.session_id, event.session);
    }
}
