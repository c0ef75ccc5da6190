//! Commands to the task that owns all jobs, and the values in them.

use crate::create::{CheckedJob, FiredSlot};
use crate::decide::JobChange;
use crate::error::JobsError;
use crate::record::JobRecord;
use crate::task::Reply;
use session::IdempotencyKey;
use store::{DeliveryTry, JobWrite, StoredJob};
use types::event::Origin;
use types::ids::JobId;
use types::job::{Job, QueueReason};
use types::job_request::{JobRequest, RetryMode};

/// Method under which replies to creations are stored.
pub(crate) const CREATE: &str = "job.create";

/// A job to create.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id, if the caller needs it for `extra_writes`.
    pub job_id: Option<JobId>,
    /// What it is asked to do.
    pub request: JobRequest,
    /// Who creates it.
    pub origin: Origin,
    /// The slot of the schedule that creates it.
    pub slot: Option<FiredSlot>,
    /// For a slot that an earlier job of the schedule keeps from starting: the job is `skipped` from the start.
    pub is_skipped: bool,
    /// Writes for the same transaction.
    pub extra_writes: Vec<JobWrite>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
}

impl NewJob {
    /// A job that a client creates.
    #[must_use]
    pub fn new(request: JobRequest, origin: Origin) -> Self {
        Self {
            job_id: None,
            request,
            origin,
            slot: None,
            is_skipped: false,
            extra_writes: Vec::new(),
            keyed: None,
        }
    }
}

/// A created job, or the one that exists already.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    pub job: Job,
    /// Whether it existed before.
    pub existing: bool,
}

/// The end of a cancel.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancelled {
    pub job: Job,
    /// Whether an attempt was stopped.
    pub stopped: bool,
    /// Ids of processes that could not be killed.
    pub survivors: Vec<i32>,
}

/// A command to the runner.
pub(crate) enum Command {
    Create(Box<(CheckedJob, NewJob)>, Reply<Created>),
    Update(JobId, Box<JobChange>, Option<IdempotencyKey>, Reply<Job>),
    Cancel {
        id: JobId,
        reason: Option<String>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: Reply<Cancelled>,
    },
    Retry {
        id: JobId,
        mode: Option<RetryMode>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: Reply<Job>,
    },
    SetPaused {
        paused: bool,
        keyed: Option<IdempotencyKey>,
        reply: Reply<bool>,
    },
    Reasons(Vec<JobId>, Reply<Vec<Option<QueueReason>>>),
    DeliveryTried(Box<DeliveryTry>, Reply<()>),
}

/// A job as lists and notifications show it: without its result, whose text may be long.
pub(crate) fn for_lists(job: Job) -> Job {
    Job { result: None, ..job }
}

pub(crate) fn parse(stored: &StoredJob) -> Result<JobRecord, JobsError> {
    parse_record(&stored.record)
}

pub(crate) fn parse_record(text: &str) -> Result<JobRecord, JobsError> {
    serde_json::from_str(text).map_err(|error| corrupt(&error))
}

pub(crate) fn corrupt(error: &serde_json::Error) -> JobsError {
    JobsError::Store(store::StoreError::Corrupt(format!("a job: {error}")))
}
