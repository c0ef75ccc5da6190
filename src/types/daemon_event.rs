//! Changes of sessions, jobs and schedules, and the stop of the daemon, as `daemon.subscribe` reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::JobId;
use super::job::{Job, JobEventKind};
use super::schedule::{Schedule, ScheduleChange};
use super::session::SessionView;
use super::time::Timestamp;

/// The change of a session that a notification reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionChangeKind {
    /// The session was created.
    #[serde(rename = "session.created")]
    Created,
    /// A value changed that `session.list` shows.
    #[serde(rename = "session.updated")]
    Updated,
    /// The session was killed or deleted.
    #[serde(rename = "session.ended")]
    Ended,
}

/// A notification `daemon.event` of `daemon.subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DaemonEvent {
    /// A session changed.
    Session(Box<SessionNotification>),
    /// A job changed.
    Job(Box<JobNotification>),
    /// A schedule changed or fired.
    Schedule(Box<ScheduleNotification>),
    /// The daemon itself changes.
    Daemon(DaemonNotification),
}

/// What `daemon.subscribe` reports changes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DaemonSubject {
    /// Sessions.
    Session,
    /// Jobs.
    Job,
    /// Schedules.
    Schedule,
    /// The daemon.
    Daemon,
}

/// The change of the daemon that a notification reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DaemonChange {
    /// The daemon stops as planned. It parks what runs and then closes the connection. Connect again, and continue after
    /// the last `seq`.
    #[serde(rename = "daemon.restarting")]
    Restarting,
}

/// Why the daemon stops. Only a client can say that another daemon follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartReason {
    /// A client stopped it.
    Stop,
    /// A client stopped it in order to start it again.
    Restart,
    /// A signal stopped it: a service manager, which may start it again, or a user.
    Signal,
}

/// The planned stop of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonNotification {
    /// What happens.
    pub kind: DaemonChange,
    /// Why it happens.
    pub reason: RestartReason,
}

/// The change of a schedule.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleNotification {
    /// What happened.
    pub kind: ScheduleChange,
    /// The slot that fired or was skipped.
    pub slot_ms: Option<Timestamp>,
    /// The job that the slot made.
    pub job_id: Option<JobId>,
    /// The schedule as `schedule.list` shows it.
    pub schedule: Schedule,
}

/// The change of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobNotification {
    /// `type` of the job's newest event, for example `job.started`.
    pub kind: String,
    /// The job as `job.list` shows it.
    pub job: Job,
}

impl JobNotification {
    /// The notification about an event.
    #[must_use]
    pub fn new(event: &JobEventKind, job: Job) -> Self {
        Self { kind: event.name().to_owned(), job }
    }
}

/// The change of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionNotification {
    /// The change of the session.
    pub kind: SessionChangeKind,
    /// The session as `session.list` shows it, at the time of the notification.
    pub session: SessionView,
    /// Whether the session was deleted with its history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}
