//! The methods about jobs.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Create a job. It starts when a slot is free.
    Create = "job.create", types::job_request::JobRequest => p::JobCreateReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::Overloaded, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Jobs of all states, newest first.
    List = "job.list", p::JobListParams => p::JobListReply, READS;
    /// One job with its stored content.
    Get = "job.get", p::JobParams => p::JobGetReply, READS.errors(&[Code::NotFound]);
    /// Change a job that has not started, or raise its limits.
    Update = "job.update", p::JobUpdateParams => p::JobReply,
        CHANGES.errors(&[Code::NotFound, Code::Busy, Code::NotPending, Code::StorageReadOnly]);
    /// Cancel a job. Replies when the work has stopped.
    Cancel = "job.cancel", p::JobCancelParams => p::JobCancelReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::NotPending, Code::StorageReadOnly]);
    /// Give a job that failed, was cancelled or expired one more attempt.
    Retry = "job.retry", p::JobRetryParams => p::JobReply,
        CHANGES.errors(&[Code::NotFound, Code::Busy, Code::NotPending, Code::StorageReadOnly]);
    /// Wait until a job is over.
    Wait = "job.wait", p::JobWaitParams => p::JobWaitReply,
        READS.waits().errors(&[Code::NotFound, Code::ShuttingDown]);
    /// The events of an attempt's session, from its journal.
    Logs = "job.logs", p::JobLogsParams => p::JobLogsReply, READS.errors(&[Code::NotFound]);
    /// The numbered events of a job. They are never removed.
    Events = "job.events", p::JobEventsParams => p::JobEventsReply, READS.errors(&[Code::NotFound]);
    /// Start no further jobs, also after a restart of the daemon. Running jobs go on.
    Pause = "job.pause", p::JobPauseParams => p::JobPauseReply, CHANGES.errors(&[Code::StorageReadOnly]);
    /// Start jobs again.
    Resume = "job.resume", p::JobPauseParams => p::JobPauseReply, CHANGES.errors(&[Code::StorageReadOnly]);
    /// Templates of the user, and with a folder those of its trusted project.
    Templates = "job.templates", p::JobTemplatesParams => p::JobTemplatesReply, READS.errors(&[Code::NotFound]);
}
