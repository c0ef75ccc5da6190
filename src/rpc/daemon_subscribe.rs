//! `daemon.subscribe`: changes of all sessions, jobs and schedules, and the announcement of a planned stop. A client that
//! reads so slowly that changes were lost for it gets the present state of all that may have changed.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::params::Caller;
use crate::context::RpcContext;
use crate::planned_stop::Announcement;
use api::params::{DaemonSubscribeParams, SubscriptionId};
use api::{DAEMON_EVENT, Fault};
use jobs::schedule::Schedules;
use jobs::{JobQuery, Jobs, JobsError};
use session::SessionFollower;
use transport::SubscriptionSink;
use types::daemon_event::{
    DaemonChange, DaemonEvent, DaemonNotification, DaemonSubject, JobNotification, RestartReason,
    ScheduleNotification,
};
use types::schedule::ScheduleChange;
use types::time::Timestamp;

/// Changes within this time are reported together, because a running turn changes its session many times a second.
const COALESCE: Duration = Duration::from_millis(100);
/// Bytes to reserve in the send queue for one read.
const RESERVED_BYTES: usize = 128 * 1024;
/// Changes of jobs, and of schedules, that are sent together.
const BATCH: usize = 100;
/// Tolerance in milliseconds, because the time of a write may be slightly earlier than the time of its report.
const CLOCK_MARGIN_MS: i64 = 10_000;
/// `kind` of a job whose changes were missed.
const UPDATED: &str = "job.updated";

pub(super) async fn subscribe(
    ctx: Arc<RpcContext>,
    caller: Caller,
    p: DaemonSubscribeParams,
) -> Result<SubscriptionId, Fault> {
    let is_wanted = |subject| p.about.is_empty() || p.about.contains(&subject);
    let now = ctx.registry.shared().clock.now();
    let changes = Changes {
        sessions: is_wanted(DaemonSubject::Session).then(|| ctx.registry.follow_sessions()),
        jobs: is_wanted(DaemonSubject::Job).then(|| ChangeFollower::new(ctx.jobs.subscribe(), now)),
        schedules: is_wanted(DaemonSubject::Schedule)
            .then(|| ChangeFollower::new(ctx.schedules.subscribe(), now)),
        stop: is_wanted(DaemonSubject::Daemon).then(|| ctx.stop.subscribe()),
        ctx,
    };
    crate::convert::subscription(caller.connection.subscribe(move |sink| pump(changes, sink)))
}

/// What one subscriber follows.
struct Changes {
    sessions: Option<SessionFollower>,
    jobs: Option<ChangeFollower<JobNotification>>,
    schedules: Option<ChangeFollower<ScheduleNotification>>,
    stop: Option<Announcement>,
    ctx: Arc<RpcContext>,
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
            Some(is_ready) = maybe(self.jobs.as_mut().map(ChangeFollower::wait_ready)) => is_ready,
            Some(is_ready) = maybe(self.schedules.as_mut().map(ChangeFollower::wait_ready)) => is_ready,
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
    async fn next(&mut self) -> Result<Vec<DaemonEvent>, Box<dyn Error + Send + Sync>> {
        let (ctx, now) = (&self.ctx, self.ctx.registry.shared().clock.now());
        let mut events = Vec::new();
        if let Some(sessions) = &mut self.sessions {
            let changes = sessions.next().await?;
            events.extend(changes.into_iter().map(|change| DaemonEvent::Session(Box::new(change))));
        }
        if let Some(jobs) = &mut self.jobs {
            let changes = jobs.next(now, async |since| jobs_since(&ctx.jobs, since).await).await?;
            events.extend(changes.into_iter().map(|change| DaemonEvent::Job(Box::new((*change).clone()))));
        }
        if let Some(schedules) = &mut self.schedules {
            let changes = schedules.next(now, async |_| all_schedules(&ctx.schedules).await).await?;
            events
                .extend(changes.into_iter().map(|change| DaemonEvent::Schedule(Box::new((*change).clone()))));
        }
        Ok(events)
    }
}

/// The result of a future, or `None` without one.
async fn maybe<T>(future: Option<impl Future<Output = T>>) -> Option<T> {
    match future {
        Some(future) => Some(future.await),
        None => None,
    }
}

/// Changes of jobs or of schedules for one subscriber.
struct ChangeFollower<T> {
    changes: broadcast::Receiver<Arc<T>>,
    received: VecDeque<Arc<T>>,
    /// The client was so slow that changes were lost for it.
    has_lagged: bool,
    /// Until this time, no change is missing.
    complete_until: Timestamp,
}

impl<T> ChangeFollower<T> {
    fn new(changes: broadcast::Receiver<Arc<T>>, now: Timestamp) -> Self {
        Self { changes, received: VecDeque::new(), has_lagged: false, complete_until: now }
    }

    /// Waits until a change can be reported. Returns `false` when there will be none. Cancel-safe.
    async fn wait_ready(&mut self) -> bool {
        if self.has_lagged || !self.received.is_empty() {
            return true;
        }
        match self.changes.recv().await {
            Ok(change) => self.received.push_back(change),
            Err(RecvError::Lagged(_)) => self.has_lagged = true,
            Err(RecvError::Closed) => return false,
        }
        true
    }

    /// The next changes, in their order. If some were lost, `list_since` gives the present state of all that may have
    /// changed since a time.
    async fn next<E>(
        &mut self,
        now: Timestamp,
        list_since: impl AsyncFnOnce(Timestamp) -> Result<Vec<T>, E>,
    ) -> Result<Vec<Arc<T>>, E> {
        let mut has_all = false;
        while self.received.len() < BATCH && !has_all {
            match self.changes.try_recv() {
                Ok(change) => self.received.push_back(change),
                Err(TryRecvError::Lagged(_)) => self.has_lagged = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => has_all = true,
            }
        }
        if self.has_lagged {
            let since = Timestamp(self.complete_until.0.saturating_sub(CLOCK_MARGIN_MS));
            let listed = list_since(since).await?;
            // What was received before is older than the list, or comes again.
            self.received = listed.into_iter().map(Arc::new).collect();
            self.has_lagged = false;
        }
        let count = self.received.len().min(BATCH);
        let next = self.received.drain(..count).collect();
        if has_all && self.received.is_empty() {
            self.complete_until = now;
        }
        Ok(next)
    }
}

/// The present state of all jobs that are not over, or that ended at this time or later.
async fn jobs_since(jobs: &Jobs, since: Timestamp) -> Result<Vec<JobNotification>, JobsError> {
    let wanted = JobQuery { not_ended_before: Some(since), ..JobQuery::default() };
    let (listed, _) = jobs.list(None, u32::MAX - 1, wanted).await?;
    // A list begins with the newest job.
    Ok(listed.into_iter().rev().map(|job| JobNotification { kind: UPDATED.into(), job }).collect())
}

async fn all_schedules(schedules: &Schedules) -> Result<Vec<ScheduleNotification>, JobsError> {
    let updated = |schedule| ScheduleNotification {
        kind: ScheduleChange::Updated,
        slot_ms: None,
        job_id: None,
        schedule,
    };
    Ok(schedules.list().await?.into_iter().map(updated).collect())
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
                tracing::warn!(%error, "a subscription ends: what changed could not be read");
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Poll;

    use futures_util::poll;

    use super::*;

    /// What the follower gives; `listed` is the list for a client that was too slow.
    async fn next(follower: &mut ChangeFollower<u32>, now: i64, listed: &[u32]) -> (Vec<u32>, Option<i64>) {
        let mut since = None;
        let list = async |time: Timestamp| {
            since = Some(time.0);
            Ok::<_, Infallible>(listed.to_vec())
        };
        let Ok(changes) = follower.next(Timestamp(now), list).await;
        (changes.into_iter().map(|change| *change).collect(), since)
    }

    #[tokio::test]
    async fn lost_changes_are_replaced_by_a_list_even_if_the_wait_was_dropped() {
        let (sender, receiver) = broadcast::channel(2);
        let mut follower = ChangeFollower::new(receiver, Timestamp(50_000));
        let send = |change: u32| sender.send(Arc::new(change)).expect("a follower");
        send(1);
        assert!(follower.wait_ready().await);
        assert_eq!(next(&mut follower, 60_000, &[]).await, (vec![1], None));
        (2..6).for_each(|change| _ = send(change));
        // The loss is noticed by a wait that is dropped then.
        assert_eq!(poll!(Box::pin(follower.wait_ready())), Poll::Ready(true));
        let (changes, since) = next(&mut follower, 70_000, &[7, 8]).await;
        assert_eq!((changes, since), (vec![7, 8], Some(60_000 - CLOCK_MARGIN_MS)));
        // The loss is noticed by a read.
        (10..14).for_each(|change| _ = send(change));
        let (changes, since) = next(&mut follower, 80_000, &[20]).await;
        assert_eq!((changes, since), (vec![20], Some(70_000 - CLOCK_MARGIN_MS)));
        send(30);
        assert!(follower.wait_ready().await);
        assert_eq!(next(&mut follower, 90_000, &[]).await, (vec![30], None));
        drop(sender);
        assert!(!follower.wait_ready().await);
    }

    #[tokio::test]
    async fn list_goes_back_to_the_last_time_when_nothing_waited() {
        let (sender, receiver) = broadcast::channel(4 * BATCH);
        let mut follower = ChangeFollower::new(receiver, Timestamp(50_000));
        let send = |count: usize| (0..count).for_each(|_| _ = sender.send(Arc::new(0)));
        send(BATCH + 1);
        assert_eq!(next(&mut follower, 90_000, &[]).await.0.len(), BATCH);
        // What still waits is from before this read, and is lost now.
        send(8 * BATCH);
        assert_eq!(next(&mut follower, 95_000, &[1]).await, (vec![1], Some(50_000 - CLOCK_MARGIN_MS)));
    }

    #[tokio::test]
    async fn list_that_failed_is_read_again() {
        let (sender, receiver) = broadcast::channel(1);
        let mut follower = ChangeFollower::new(receiver, Timestamp(0));
        (0..3).for_each(|change| _ = sender.send(Arc::new(change)));
        assert!(follower.wait_ready().await);
        let failing = async |_: Timestamp| Err("no list");
        assert_eq!(follower.next(Timestamp(1), failing).await, Err("no list"));
        assert_eq!(next(&mut follower, 2, &[9]).await.0, [9]);
    }
}
