//! `daemon.subscribe`

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};

use super::params::Caller;
use crate::context::RpcContext;
use api::params::NoParams;
use api::params::SubscriptionId;
use api::{DAEMON_EVENT, Fault};
use jobs::schedule::Schedules;
use jobs::{JobQuery, Jobs};
use session::SessionFollower;
use transport::SubscriptionSink;
use types::daemon_event::{DaemonEvent, JobNotification, ScheduleNotification};
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
    _: NoParams,
) -> Result<SubscriptionId, Fault> {
    let follower = ctx.registry.follow_sessions();
    let jobs = JobFollower { changes: ctx.jobs.subscribe(), jobs: ctx.jobs.clone(), received: Vec::new() };
    let schedules = ScheduleFollower {
        changes: ctx.schedules.subscribe(),
        schedules: ctx.schedules.clone(),
        received: Vec::new(),
    };
    crate::convert::subscription(
        caller.connection.subscribe(move |sink| pump(follower, jobs, schedules, sink)),
    )
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
async fn pump(
    mut follower: SessionFollower,
    mut jobs: JobFollower,
    mut schedules: ScheduleFollower,
    sink: SubscriptionSink,
) {
    loop {
        tokio::select! {
            is_ready = follower.wait_ready() => if !is_ready { return },
            is_ready = jobs.wait_ready() => if !is_ready { return },
            is_ready = schedules.wait_ready() => if !is_ready { return },
            () = sink.wait_ended() => return,
        }
        let _ = tokio::time::timeout(COALESCE, follower.collect()).await;
        let room = tokio::select! {
            room = sink.reserve(RESERVED_BYTES) => room,
            () = follower.collect() => return,
        };
        let Ok(room) = room else { return };
        let changed = match follower.next().await {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!(%error, "a subscription ends: the sessions could not be read");
                return;
            }
        };
        let sessions = changed.into_iter().map(|change| DaemonEvent::Session(Box::new(change)));
        let events: Vec<Arc<str>> = sessions
            .chain(jobs.next())
            .chain(schedules.next())
            .filter_map(|event| serde_json::to_string(&event).ok().map(Arc::from))
            .collect();
        if room.publish(DAEMON_EVENT, events).is_err() {
            return;
        }
    }
}
