//! Parameters and replies of jobs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::event::Envelope;
use types::ids::{JobId, ScheduleId, SessionId};
use types::job::{Job, JobEvent, JobState};
use types::job_request::{JobRequest, RetryMode};
use types::job_template::{JobTemplate, TemplateDiagnostic};
use types::time::Timestamp;
use types::usage::Budgets;

/// Reply of `job.create`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobCreateReply {
    /// The job.
    pub job: Job,
    /// Whether it existed before, because it has the same `unique` key.
    pub existing: bool,
}

/// Reply with one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobReply {
    /// The job.
    pub job: Job,
}

/// `job.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobListParams {
    /// Only these states.
    pub states: Option<Vec<JobState>>,
    /// Only jobs of this schedule.
    pub schedule_id: Option<ScheduleId>,
    /// Only jobs of this template.
    pub template: Option<String>,
    /// Only jobs with this label: `NAME` or `NAME=VALUE`.
    pub label: Option<String>,
    /// Only jobs of this folder.
    pub cwd: Option<String>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Jobs per page, 1 to 500; 100 by default.
    pub limit: Option<u32>,
}

/// Reply of `job.list`: newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobListReply {
    /// Jobs of this page.
    pub jobs: Vec<Job>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Selects one job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobParams {
    /// Id of the job.
    pub job_id: JobId,
}

/// Reply of `job.get`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobGetReply {
    /// The job.
    pub job: Job,
    /// What it is asked to do, as it was stored.
    pub request: JobRequest,
}

/// `job.update`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobUpdateParams {
    /// Id of the job.
    pub job_id: JobId,
    /// From -100 to 100.
    pub priority: Option<i32>,
    /// The job does not start before this time.
    pub run_at_ms: Option<Timestamp>,
    /// All labels, in place of those that it has.
    pub labels: Option<BTreeMap<String, String>>,
    /// Higher limits, also of a running job.
    pub budgets: Option<Budgets>,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

/// `job.cancel`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobCancelParams {
    /// Id of the job.
    pub job_id: JobId,
    /// Why, for the log.
    pub reason: Option<String>,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

/// Reply of `job.cancel`: the work has stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobCancelReply {
    /// The job.
    pub job: Job,
    /// Whether an attempt was stopped.
    pub stopped: bool,
    /// Ids of processes that could not be killed.
    pub survivors: Vec<i32>,
}

/// `job.retry`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobRetryParams {
    /// Id of the job.
    pub job_id: JobId,
    /// What the attempt starts from; by default as `retry` of the job says.
    pub mode: Option<RetryMode>,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

/// `job.wait`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobWaitParams {
    /// Id of the job.
    pub job_id: JobId,
    /// How long to wait at most, in milliseconds; without it, until the job is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Reply of `job.wait`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobWaitReply {
    /// The job.
    pub job: Job,
    /// Whether the time was over before the job was.
    pub timed_out: bool,
}

/// `job.logs`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobLogsParams {
    /// Id of the job.
    pub job_id: JobId,
    /// Number of the attempt; by default the newest.
    pub attempt: Option<u32>,
    /// Only events after this seq.
    pub after_seq: Option<u64>,
    /// Events per page.
    pub limit: Option<u32>,
}

/// Reply of `job.logs`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobLogsReply {
    /// The session of the attempt.
    pub session_id: SessionId,
    /// Its events, oldest first.
    pub events: Vec<Envelope>,
    /// Seq of the session's newest event.
    pub last_seq: u64,
    /// `after_seq` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `job.events`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobEventsParams {
    /// Id of the job.
    pub job_id: JobId,
    /// Only events after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<u64>,
}

/// Reply of `job.events`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobEventsReply {
    /// Events, oldest first; at most 1,000.
    pub events: Vec<JobEvent>,
}

/// `job.pause`, `job.resume`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobPauseParams {
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `job.pause` and `job.resume`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobPauseReply {
    /// Whether new starts are stopped.
    pub paused: bool,
}

/// `job.templates`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobTemplatesParams {
    /// A folder whose project's templates are listed as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Reply of `job.templates`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobTemplatesReply {
    /// Templates by name.
    pub templates: Vec<JobTemplate>,
    /// Files that are not used.
    pub diagnostics: Vec<TemplateDiagnostic>,
}
