//! The methods about jobs.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Creates a job and returns it. The job starts when a slot is free.
    Create = "job.create", types::job_request::JobRequest => p::JobCreateReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::Overloaded, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Returns a page of the jobs in all states, newest first.
    List = "job.list", p::JobListParams => p::JobListReply, READS;
    /// Returns one job with its stored content.
    Get = "job.get", p::JobParams => p::JobGetReply, READS.errors(&[Code::NotFound]);
    /// Changes a job that has not started, or raises the limits of a running one, and returns the job.
    Update = "job.update", p::JobUpdateParams => p::JobReply,
        CHANGES.errors(&[Code::NotFound, Code::Busy, Code::NotPending, Code::StorageReadOnly]);
    /// Cancels a job and returns it when its work has stopped.
    Cancel = "job.cancel", p::JobCancelParams => p::JobCancelReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::NotPending, Code::StorageReadOnly]);
    /// Gives one more attempt to a job that failed, expired or was cancelled, and returns the job.
    Retry = "job.retry", p::JobRetryParams => p::JobReply,
        CHANGES.errors(&[Code::NotFound, Code::Busy, Code::NotPending, Code::StorageReadOnly]);
    /// Waits until a job has ended and returns it.
    Wait = "job.wait", p::JobWaitParams => p::JobWaitReply,
        READS.waits().errors(&[Code::NotFound, Code::ShuttingDown]);
    /// Returns a page of the events of an attempt's session.
    Logs = "job.logs", p::JobLogsParams => p::JobLogsReply, READS.errors(&[Code::NotFound]);
    /// Returns a page of the numbered events of a job. They are never removed.
    Events = "job.events", p::JobEventsParams => p::JobEventsReply, READS.errors(&[Code::NotFound]);
    /// Stops the start of jobs, also after a restart of the daemon, and returns whether starts are stopped. Running
    /// jobs continue.
    Pause = "job.pause", p::JobPauseParams => p::JobPauseReply, CHANGES.errors(&[Code::StorageReadOnly]);
    /// Lets jobs start again and returns whether starts are stopped.
    Resume = "job.resume", p::JobPauseParams => p::JobPauseReply, CHANGES.errors(&[Code::StorageReadOnly]);
    /// Returns the user's templates, and for a folder those of its trusted project.
    Templates = "job.templates", p::JobTemplatesParams => p::JobTemplatesReply, READS.errors(&[Code::NotFound]);
}
