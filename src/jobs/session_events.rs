//! Tells the sessions of attempts what happens to their jobs, so that clients that are attached to a session see it.
//! The rows of the job are the truth: a daemon that dies here may leave the newest event of a job out of its session.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::error::JobsError;
use session::{Registry, SessionError};
use types::daemon_event::JobNotification;
use types::ids::{JobId, SessionId};
use types::job::{JobEvent, JobEventKind};

/// Events of a job that are read again, in case that the session could not take over some.
const READ_AGAIN: u64 = 32;
/// Kinds of events that come before or after the attempt of a session, or concern messages only.
const NOT_TOLD: [&str; 3] = ["job.created", "job.queued", "job.delivery"];

/// Tells sessions of each change until the sender of changes is gone.
pub(crate) async fn run(registry: Registry, mut changes: Receiver<Arc<JobNotification>>) {
    loop {
        let change = match changes.recv().await {
            Ok(change) => change,
            // The next change of a job tells of those before it.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some(session_id) = change.job.session_id else { continue };
        if !NOT_TOLD.contains(&change.kind.as_str()) {
            tell(&registry, change.job.job_id, session_id, change.job.seq).await;
        }
    }
}

/// Tells a session of the events of its job up to number `newest`. Best effort: the session may not exist yet.
pub(crate) async fn tell(registry: &Registry, job_id: JobId, session_id: SessionId, newest: u64) {
    let telling = async {
        let after = newest.saturating_sub(READ_AGAIN);
        let events = registry.shared().store.job_events(job_id, after, u32::MAX).await?;
        let events = of_session(events, session_id);
        if !events.is_empty() {
            registry.open_soon(session_id).await?.record_job_events(events).await?;
        }
        Ok::<(), JobsError>(())
    };
    match telling.await {
        Ok(()) | Err(JobsError::Session(SessionError::NotFound)) => {}
        Err(error) => tracing::debug!(job = %job_id, %error, "a session was not told of its job"),
    }
}

/// The events from the start of an attempt in this session to that of an attempt in another one, without results.
fn of_session(events: Vec<JobEvent>, session_id: SessionId) -> Vec<JobEvent> {
    let starts = |event: &JobEvent| match event.event {
        JobEventKind::Started { session_id, .. } => Some(session_id),
        _ => None,
    };
    let first = events.iter().position(|event| starts(event) == Some(session_id)).unwrap_or(0);
    let is_other = |event: &JobEvent| starts(event).is_some_and(|other| other != session_id);
    let of_attempt = events.into_iter().skip(first).take_while(|event| !is_other(event));
    of_attempt
        .map(|mut event| {
            if let JobEventKind::Completed { result, .. } = &mut event.event {
                *result = None;
            }
            event
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};
    use types::job::{JobState, WaitingFor};
    use types::time::Timestamp;

    #[test]
    fn session_gets_the_events_of_its_attempts_only() {
        let mut mint = Mint::new(1, Seed(1));
        let (job_id, one, two) = (mint.job(), mint.session(), mint.session());
        let started = |attempt, session_id| JobEventKind::Started { attempt, session_id, node: None };
        let retrying = JobEventKind::Retrying { run_at_ms: Timestamp(5), reason: "r".into() };
        let completed = JobEventKind::Completed { state: JobState::Failed, result: None, error: None };
        let kinds = [
            JobEventKind::Created {},
            started(1, one),
            JobEventKind::Waiting { waiting_for: WaitingFor::Question },
            retrying,
            started(2, two),
            completed,
        ];
        let event = |(seq, event)| JobEvent { job_id, seq, at_ms: Timestamp(1), event };
        let events: Vec<JobEvent> = (1..).zip(kinds).map(event).collect();
        let seqs = |events, session| -> Vec<u64> {
            of_session(events, session).iter().map(|event| event.seq).collect()
        };
        assert_eq!(seqs(events.clone(), one), [2, 3, 4]);
        assert_eq!(seqs(events.clone(), two), [5, 6]);
        assert_eq!(seqs(events[5..].to_vec(), two), [6], "its start may be too old to be read");
    }
}
