//! Jobs: unattended work with one result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{BlobId, CallId, JobId, ScheduleId, SessionId};
use super::time::Timestamp;
use super::turn_result::{Subtype, TurnResult};
use super::usage::Usage;
use super::worktree::GitResult;

/// The state of a job.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JobState {
    /// Its time has not come.
    Scheduled,
    /// It may start as soon as a slot is free.
    #[default]
    Queued,
    /// An attempt works on it.
    Running,
    /// The attempt waits for a person.
    Waiting,
    /// It waits for its next attempt.
    Retrying,
    /// Its last attempt ended with the subtype `success`.
    Succeeded,
    /// It did not succeed.
    Failed,
    /// A user cancelled it.
    Cancelled,
    /// It did not start before its `start_deadline`.
    Expired,
    /// A schedule did not start it, because an earlier job of the schedule was not over.
    Skipped,
}

impl JobState {
    /// All states.
    pub const ALL: [Self; 10] = [
        Self::Scheduled,
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Retrying,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::Skipped,
    ];

    /// Whether the job is over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired | Self::Skipped)
    }

    /// Whether an attempt of the job is alive.
    #[must_use]
    pub const fn has_attempt(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// The name in the database and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How many jobs are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobCounts {
    /// Whether new starts are stopped.
    pub paused: bool,
    /// Jobs that are not over, by state.
    pub open: BTreeMap<String, u64>,
    /// Jobs that reached a final state since the start of the daemon, by state.
    pub completed: BTreeMap<String, u64>,
}

/// Why a job does not start yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QueueReason {
    /// All slots are in use (`[jobs] concurrent`).
    Slots,
    /// The limit of its concurrency key is reached.
    Concurrency,
    /// Its time has not come.
    NotDue,
    /// The day's money is used up (`[jobs] usd_per_day`).
    Budget,
    /// New starts are stopped (`job.pause`).
    Paused,
    /// The provider of its model limits the rate of requests, and an attempt or a session waits for it.
    RateLimited,
    /// No node can take it.
    Node,
}

impl QueueReason {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A job as `job.get` and `job.list` return it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Its id.
    pub job_id: JobId,
    /// Its state.
    pub state: JobState,
    /// Why it does not start yet. With a living attempt only `rate_limited`: the attempt waits for its provider.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<QueueReason>,
    /// Short name.
    pub title: String,
    /// The template that it was made from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub template: Option<String>,
    /// The schedule that created it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule_id: Option<ScheduleId>,
    /// The slot of the schedule.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slot_ms: Option<Timestamp>,
    /// Earlier slots of the schedule that were missed and got no job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub missed_slots: Option<u64>,
    /// Its folder.
    pub cwd: String,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// From -100 to 100.
    pub priority: i32,
    /// Number of its newest attempt; 0 before the first.
    pub attempt: u32,
    /// How many attempts it may have.
    pub attempts_max: u32,
    /// The session of the newest attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<SessionId>,
    /// The daemon that works on it, in a fleet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<String>,
    /// Time of its creation.
    pub created_at_ms: Timestamp,
    /// Time at which it is due; for a job that retries, of the next attempt.
    pub run_at_ms: Timestamp,
    /// Start of the first attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at_ms: Option<Timestamp>,
    /// Time of its final state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at_ms: Option<Timestamp>,
    /// Cost of all attempts, in millionths of a dollar; `null` if a price is unknown.
    pub cost_usd_micros: Option<u64>,
    /// Tokens of all attempts.
    pub usage: Usage,
    /// Number of its newest event.
    pub seq: u64,
    /// What a running attempt does now, in one line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub activity: Option<String>,
    /// What a waiting job waits for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_for: Option<WaitingFor>,
    /// The result of its last turn, with the attempts. Lists omit its text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Box<JobResult>>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<JobError>,
    /// The notifications about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub deliveries: Vec<Delivery>,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// An answer to a permission request.
    Permission,
    /// An answer to a question of the model.
    Question,
    /// A decision about a tool call with an unknown outcome.
    UnknownOutcome,
    /// Someone who resumes its paused turn.
    Resume,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobError {
    /// A stable code: `unknown_outcome`, `worktree`, `session`, `no_result`, `killed`, or that of the turn's error.
    pub kind: String,
    /// Text for users.
    pub message: String,
    /// The tool call that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<CallId>,
}

impl JobError {
    /// An error that is not about a call.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), call_id: None }
    }
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// The result of the last turn; absent if no turn ended.
    #[serde(flatten)]
    pub turn: Option<TurnResult>,
    /// All attempts, the first one first.
    #[serde(default)]
    pub attempts: Vec<JobAttempt>,
    /// What it left in its branch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub git: Option<GitResult>,
    /// The files that were kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<Artifact>,
}

/// One session that worked on a job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Its session.
    pub session_id: SessionId,
    /// The daemon that worked on it, in a fleet.
    pub node: Option<String>,
    /// Time of its start.
    pub started_at_ms: Timestamp,
    /// Time of its end.
    pub ended_at_ms: Option<Timestamp>,
    /// How its last turn ended.
    pub subtype: Option<Subtype>,
}

/// A file that was kept with the result. `session.blob` of the last attempt's session reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Path relative to the job's folder.
    pub path: String,
    /// Its content; absent if the file was too large to be kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blob_id: Option<BlobId>,
    /// Its size.
    pub bytes: u64,
}

/// A notification about a job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Id of the message, the same for all tries.
    pub webhook_id: String,
    /// The table `[jobs.notify.NAME]`.
    pub target: String,
    /// The state that it reports.
    pub job_state: JobState,
    /// How far it is.
    pub status: DeliveryStatus,
    /// Number of tries so far.
    pub tries: u32,
    /// Time of the next try.
    pub next_try_ms: Option<Timestamp>,
    /// Why the last try failed, without addresses and keys.
    pub error: Option<String>,
}

/// How far a notification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is owed.
    Pending,
    /// It was delivered at least once.
    Delivered,
    /// It was given up.
    Failed,
}

/// A message about a job whose last try failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedDelivery {
    /// The job.
    pub job_id: JobId,
    /// The message.
    pub delivery: Delivery,
}

impl DeliveryStatus {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The name in the database and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One numbered event of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobEvent {
    /// The job.
    pub job_id: JobId,
    /// Its number: 1, 2, 3 … without gaps.
    pub seq: u64,
    /// Time of the event.
    pub at_ms: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: JobEventKind,
}

/// What happened to a job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum JobEventKind {
    /// It was created.
    #[serde(rename = "job.created")]
    Created {},
    /// It may start as soon as a slot is free.
    #[serde(rename = "job.queued")]
    Queued {},
    /// An attempt was started.
    #[serde(rename = "job.started")]
    Started {
        /// Number of the attempt.
        attempt: u32,
        /// Its session.
        session_id: SessionId,
        /// The daemon, in a fleet.
        node: Option<String>,
    },
    /// The attempt waits for a person.
    #[serde(rename = "job.waiting")]
    Waiting {
        /// What for.
        #[serde(rename = "for")]
        waiting_for: WaitingFor,
    },
    /// The attempt goes on after it waited for a person.
    #[serde(rename = "job.resumed")]
    Resumed {},
    /// The attempt failed and another one follows.
    #[serde(rename = "job.retrying")]
    Retrying {
        /// Time of the next attempt. `at_ms` is the time of the event.
        run_at_ms: Timestamp,
        /// Why the attempt failed.
        reason: String,
    },
    /// Its priority, time, labels or limits were changed.
    #[serde(rename = "job.updated")]
    Updated {},
    /// A user cancelled it; its attempt is being stopped.
    #[serde(rename = "job.cancelling")]
    Cancelling {
        /// Why.
        reason: Option<String>,
    },
    /// It has a final state.
    #[serde(rename = "job.completed")]
    Completed {
        /// The final state.
        state: JobState,
        /// The result; absent if no attempt was started.
        result: Option<Box<JobResult>>,
        /// Why it failed.
        error: Option<JobError>,
    },
    /// A notification was delivered, failed or was given up.
    #[serde(rename = "job.delivery")]
    Delivery {
        /// The table `[jobs.notify.NAME]`.
        target: String,
        /// How far it is.
        status: DeliveryStatus,
        /// Number of tries so far.
        tries: u32,
    },
}

impl JobEventKind {
    /// The `type` on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created {} => "job.created",
            Self::Queued {} => "job.queued",
            Self::Started { .. } => "job.started",
            Self::Waiting { .. } => "job.waiting",
            Self::Resumed {} => "job.resumed",
            Self::Retrying { .. } => "job.retrying",
            Self::Updated {} => "job.updated",
            Self::Cancelling { .. } => "job.cancelling",
            Self::Completed { .. } => "job.completed",
            Self::Delivery { .. } => "job.delivery",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Mint, Seed};

    #[test]
    fn every_event_of_a_job_is_read_as_it_was_written() {
        let mut mint = Mint::new(1, Seed(1));
        let (job_id, session_id) = (mint.job(), mint.session());
        let error = Some(JobError::new("kind", "why"));
        let kinds = [
            JobEventKind::Created {},
            JobEventKind::Queued {},
            JobEventKind::Started { attempt: 1, session_id, node: Some("n".into()) },
            JobEventKind::Waiting { waiting_for: WaitingFor::Permission },
            JobEventKind::Resumed {},
            JobEventKind::Retrying { run_at_ms: Timestamp(9), reason: "r".into() },
            JobEventKind::Updated {},
            JobEventKind::Cancelling { reason: Some("r".into()) },
            JobEventKind::Completed { state: JobState::Failed, result: None, error },
            JobEventKind::Delivery { target: "t".into(), status: DeliveryStatus::Failed, tries: 2 },
        ];
        for (seq, event) in (1..).zip(kinds) {
            let event = JobEvent { job_id, seq, at_ms: Timestamp(5), event };
            let text = serde_json::to_string(&event).expect("plain data");
            assert_eq!(serde_json::from_str::<JobEvent>(&text).expect(&text), event);
        }
    }
}
