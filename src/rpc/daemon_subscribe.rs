//! `daemon.subscribe`

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};

use super::params::Caller;
use crate::context::RpcContext;
use crate::planned_stop::Announcement;
use api::params::{DaemonSubscribeParams, SubscriptionId};
use api::{DAEMON_EVENT, Fault};
use jobs::schedule::Schedules;
use jobs::{JobQuery, Jobs};
use session::{SessionError, SessionFollower};
use transport::SubscriptionSink;
use types::daemon_event::{
    DaemonChange, DaemonEvent, DaemonNotification, DaemonSubject, JobNotification, RestartReason,
    ScheduleNotification,
};
use types::job::JobState;
use types::schedule::ScheduleChange;

/// Changes within this time are reported together, because a running turn changes its session many times a second.
const COALESCE: Duration = Duration::from_millis(100);
/// Bytes to reserve in the send queue for one read.
const RESERVED_BYTES: usize = 128 * 1024;
/// Changes of jobs, and of schedules, that are sent together.
const BATCH: usize = 100;
/// `kind` of a job whose changes were missed.
const UPDATED: &str = "job.updated";

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: DaemonSubscribeParams,
) -> Result<SubscriptionId, Fault> {
    let is_wanted = |subject| p.about.is_empty() || p.about.contains(&subject);
    let changes = Changes {
        sessions: is_wanted(DaemonSubject::Session).then(|| ctx.registry.follow_sessions()),
        jobs: is_wanted(DaemonSubject::Job).then(|| JobFollower {
            changes: ctx.jobs.subscribe(),
            jobs: ctx.jobs.clone(),
            received: Vec::new(),
        }),
        schedules: is_wanted(DaemonSubject::Schedule).then(|| ScheduleFollower {
            changes: ctx.schedules.subscribe(),
            schedules: ctx.schedules.clone(),
            received: Vec::new(),
        }),
        stop: is_wanted(DaemonSubject::Daemon).then(|| ctx.stop.subscribe()),
    };
    crate::convert::subscription(caller.connection.subscribe(move |sink| pump(changes, sink)))
}

/// What one subscriber follows.
struct Changes {
    sessions: Option<SessionFollower>,
    jobs: Option<JobFollower>,
    schedules: Option<ScheduleFollower>,
    stop: Option<Announcement>,
}

/// What woke a subscription.
enum Wake {
    Changed,
    Stopping(RestartReason),
    /// There will be no further change.
    Over,
}

impl Changes {
    /// Waits until something can be reported. The stop comes first, because it ends the other sources. Cancel-safe.
    async fn wait(&mut self) -> Wake {
        let is_ready = tokio::select! {
            biased;
            Some(reason) = maybe(self.stop.as_mut().map(Announcement::next)) => return Wake::Stopping(reason),
            Some(is_ready) = maybe(self.sessions.as_mut().map(SessionFollower::wait_ready)) => is_ready,
            Some(is_ready) = maybe(self.jobs.as_mut().map(JobFollower::wait_ready)) => is_ready,
            Some(is_ready) = maybe(self.schedules.as_mut().map(ScheduleFollower::wait_ready)) => is_ready,
            else => std::future::pending().await,
        };
        if is_ready { Wake::Changed } else { Wake::Over }
    }

    /// Collects changes of sessions and never returns. Cancel-safe.
    async fn collect(&mut self) {
        match &mut self.sessions {
            Some(sessions) => sessions.collect().await,
            None => std::future::pending().await,
        }
    }

    /// The next changes, in the order of their source.
    async fn next(&mut self) -> Result<Vec<DaemonEvent>, SessionError> {
        let sessions = match &mut self.sessions {
            Some(sessions) => sessions.next().await?,
            None => Vec::new(),
        };
        let sessions = sessions.into_iter().map(|change| DaemonEvent::Session(Box::new(change)));
        let jobs = self.jobs.as_mut().map(JobFollower::next).unwrap_or_default();
        let schedules = self.schedules.as_mut().map(ScheduleFollower::next).unwrap_or_default();
        Ok(sessions.chain(jobs).chain(schedules).collect())
    }
}

/// The result of a future, or `None` without one.
async fn maybe<T>(future: Option<impl Future<Output = T>>) -> Option<T> {
    match future {
        Some(future) => Some(future.await),
        None => None,
    }
}

/// Follows the changes of all jobs.
struct JobFollower {
    changes: broadcast::Receiver<Arc<JobNotification>>,
    jobs: Jobs,
    received: Vec<Arc<JobNotification>>,
}

impl JobFollower {
    /// Waits until a change can be reported. Returns `false` when there will be none. Cancel-safe.
    async fn wait_ready(&mut self) -> bool {
        if !self.received.is_empty() {
            return true;
        }
        match self.changes.recv().await {
            Ok(change) => self.received.push(change),
            Err(RecvError::Lagged(_)) => self.received = self.unfinished().await,
            Err(RecvError::Closed) => return false,
        }
        true
    }

    /// All jobs that are not over, for a client that was too slow.
    async fn unfinished(&self) -> Vec<Arc<JobNotification>> {
        let states: Vec<JobState> = JobState::ALL.into_iter().filter(|state| !state.is_final()).collect();
        let wanted = JobQuery { states: &states, ..JobQuery::default() };
        let listed = self.jobs.list(None, u32::MAX - 1, wanted).await;
        let jobs = listed.map(|(jobs, _)| jobs).unwrap_or_default();
        jobs.into_iter().map(|job| Arc::new(JobNotification { kind: UPDATED.into(), job })).collect()
    }

    /// The next changes, in their order.
    fn next(&mut self) -> Vec<DaemonEvent> {
        while self.received.len() < BATCH
            && let Ok(change) = self.changes.try_recv()
        {
            self.received.push(change);
        }
        let take = self.received.len().min(BATCH);
        self.received.drain(..take).map(|change| DaemonEvent::Job(Box::new((*change).clone()))).collect()
    }
}

/// Follows the changes of all schedules.
struct ScheduleFollower {
    changes: broadcast::Receiver<Arc<ScheduleNotification>>,
    schedules: Schedules,
    received: Vec<Arc<ScheduleNotification>>,
}

impl ScheduleFollower {
    /// Waits until a change can be reported. Returns `false` when there will be none. Cancel-safe.
    async fn wait_ready(&mut self) -> bool {
        if !self.received.is_empty() {
            return true;
        }
        match self.changes.recv().await {
            Ok(change) => self.received.push(change),
            // The client was too slow, so it gets all schedules as they are.
            Err(RecvError::Lagged(_)) => {
                let all = self.schedules.list().await.unwrap_or_default();
                let updated = |schedule| ScheduleNotification {
                    kind: ScheduleChange::Updated,
                    slot_ms: None,
                    job_id: None,
                    schedule,
                };
                self.received = all.into_iter().map(|schedule| Arc::new(updated(schedule))).collect();
            }
            Err(RecvError::Closed) => return false,
        }
        true
    }

    /// The next changes, in their order.
    fn next(&mut self) -> Vec<DaemonEvent> {
        while self.received.len() < BATCH
            && let Ok(change) = self.changes.try_recv()
        {
            self.received.push(change);
        }
        let count = self.received.len().min(BATCH);
        self.received
            .drain(..count)
            .map(|change| DaemonEvent::Schedule(Box::new((*change).clone())))
            .collect()
    }
}

/// Reads sessions only after the client has received the earlier ones. Meanwhile it collects the ids of
/// changed sessions.
async fn pump(mut changes: Changes, sink: SubscriptionSink) {
    loop {
        let wake = tokio::select! {
            wake = changes.wait() => wake,
            () = sink.wait_ended() => return,
        };
        match wake {
            Wake::Changed => drop(tokio::time::timeout(COALESCE, changes.collect()).await),
            Wake::Stopping(_) => {}
            Wake::Over => return,
        }
        let room = tokio::select! {
            room = sink.reserve(RESERVED_BYTES) => room,
            () = changes.collect() => return,
        };
        let Ok(room) = room else { return };
        let events = match wake {
            Wake::Stopping(reason) => {
                Ok(vec![DaemonEvent::Daemon(DaemonNotification { kind: DaemonChange::Restarting, reason })])
            }
            _ => changes.next().await,
        };
        let events = match events {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(%error, "a subscription ends: the sessions could not be read");
                return;
            }
        };
        let events: Vec<Arc<str>> =
            events.iter().filter_map(|event| serde_json::to_string(event).ok().map(Arc::from)).collect();
        if room.publish(DAEMON_EVENT, events).is_err() {
            return;
        }
        if let (Wake::Stopping(_), Some(stop)) = (wake, &mut changes.stop) {
            stop.finish();
        }
    }
}
