//! `job.*`

use std::sync::Arc;
use std::time::Duration;

use super::params::Caller;
use super::{convert, events};
use crate::context::RpcContext;
use api::params::{
    EventsParams, JobCancelParams, JobCancelReply, JobCreateReply, JobEventsParams, JobEventsReply,
    JobGetReply, JobListParams, JobListReply, JobLogsParams, JobParams, JobPauseParams, JobPauseReply,
    JobReply, JobRetryParams, JobUpdateParams, JobWaitParams, JobWaitReply,
};
use api::{Code, Fault};
use jobs::{JobQuery, JobUpdate, JobsError, NewJob};
use serde::Serialize;
use types::ids::SessionId;
use types::job_request::JobRequest;

/// Maximum number of events of a reply.
const MAX_EVENTS: u32 = 1_000;
/// Maximum `timeout_ms`: 30 days.
const MAX_TIMEOUT_MS: u64 = 30 * 24 * 3_600 * 1_000;

pub(super) fn fault(error: JobsError) -> Fault {
    let message = error.to_string();
    match error {
        JobsError::NotFound | JobsError::NoSuchSchedule => Fault::new(Code::NotFound, message),
        JobsError::BadParam { path, .. } => Fault::new(Code::InvalidParams, message).with("path", path),
        JobsError::Running(id) => Fault::new(Code::Busy, message).with("job_id", id.to_string()),
        JobsError::NotPending(state) => Fault::new(Code::NotPending, message).with("state", state.name()),
        JobsError::NotOver(state) => Fault::new(Code::Busy, message).with("state", state.name()),
        JobsError::UniqueKeyTaken(id) => {
            Fault::new(Code::Conflict, message).with("path", "unique.key").with("job_id", id.to_string())
        }
        JobsError::KeyConflict => Fault::new(Code::Conflict, message).with("path", "idempotency_key"),
        JobsError::SlotFired => Fault::new(Code::Conflict, message),
        JobsError::QueueFull { .. } | JobsError::TooManySchedules { .. } => {
            Fault::new(Code::Overloaded, message)
        }
        JobsError::ShuttingDown => Fault::new(Code::ShuttingDown, message),
        JobsError::Session(error) => convert::fault(error),
        JobsError::Store(error) => convert::fault(error.into()),
    }
}

pub(super) async fn create(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: JobRequest,
) -> Result<JobCreateReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let created =
        ctx.jobs.create(NewJob { keyed, ..NewJob::new(p, caller.origin()) }).await.map_err(fault)?;
    Ok(JobCreateReply { job: created.job, existing: created.existing })
}

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, p: JobListParams) -> Result<JobListReply, Fault> {
    let before = convert::cursor(p.cursor.as_deref())?;
    let limit = convert::limit(p.limit, 100, 500);
    let states = p.states.unwrap_or_default();
    let label = p.label.as_deref().map(|label| match label.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (label, None),
    });
    let wanted = JobQuery {
        states: &states,
        schedule_id: p.schedule_id,
        template: p.template.as_deref(),
        label,
        cwd: p.cwd.as_deref(),
        ..JobQuery::default()
    };
    let (jobs, next) = ctx.jobs.list(before, limit, wanted).await.map_err(fault)?;
    Ok(JobListReply { jobs, next_cursor: next.map(|position| position.to_string()) })
}

pub(super) async fn get(ctx: Arc<RpcContext>, _: Caller, p: JobParams) -> Result<JobGetReply, Fault> {
    let (job, request) = ctx.jobs.get(p.job_id).await.map_err(fault)?;
    Ok(JobGetReply { job, request })
}

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: JobUpdateParams,
) -> Result<JobReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let JobUpdateParams { job_id, priority, run_at_ms, labels, budgets, .. } = p;
    let update = JobUpdate { priority, run_at_ms, labels, budgets };
    Ok(JobReply { job: ctx.jobs.update(job_id, update, keyed).await.map_err(fault)? })
}

pub(super) async fn cancel(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: JobCancelParams,
) -> Result<JobCancelReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let done = ctx.jobs.cancel(p.job_id, p.reason, keyed, caller.origin()).await.map_err(fault)?;
    Ok(JobCancelReply { job: done.job, stopped: done.stopped, survivors: done.survivors })
}

pub(super) async fn retry(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: JobRetryParams,
) -> Result<JobReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    Ok(JobReply { job: ctx.jobs.retry(p.job_id, p.mode, keyed, caller.origin()).await.map_err(fault)? })
}

pub(super) async fn wait(ctx: Arc<RpcContext>, _: Caller, p: JobWaitParams) -> Result<JobWaitReply, Fault> {
    if p.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
        return Err(convert::invalid_param("timeout_ms", &format!("at most {MAX_TIMEOUT_MS} (30 days)")));
    }
    let timeout = p.timeout_ms.map(Duration::from_millis);
    let (job, timed_out) = ctx.jobs.wait(p.job_id, timeout, ctx.stop.requested()).await.map_err(fault)?;
    Ok(JobWaitReply { job, timed_out })
}

/// A `JobLogsReply` whose events are passed on as stored in the journal.
#[derive(Serialize)]
pub(super) struct RawLogs {
    session_id: SessionId,
    #[serde(flatten)]
    page: events::RawEvents,
}

pub(super) async fn logs(ctx: Arc<RpcContext>, caller: Caller, p: JobLogsParams) -> Result<RawLogs, Fault> {
    let record = ctx.jobs.record(p.job_id).await.map_err(fault)?;
    let attempt = match p.attempt {
        None => record.attempts.last(),
        Some(number) => record.attempts.iter().find(|attempt| attempt.attempt == number),
    };
    let Some(session_id) = attempt.map(|attempt| attempt.session_id) else {
        return Err(match p.attempt {
            Some(number) => convert::invalid_param("attempt", &format!("the job has no attempt {number}")),
            None => Fault::new(Code::NotFound, "the job has no attempt yet, so it has no log"),
        });
    };
    let page = EventsParams {
        session_id,
        after_seq: p.after_seq.unwrap_or(0),
        limit: p.limit,
        ..EventsParams::for_session(session_id)
    };
    Ok(RawLogs { session_id, page: events::events(ctx, caller, page).await? })
}

pub(super) async fn events_of_job(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: JobEventsParams,
) -> Result<JobEventsReply, Fault> {
    let events = ctx.jobs.events(p.job_id, p.after_seq.unwrap_or(0), MAX_EVENTS).await.map_err(fault)?;
    Ok(JobEventsReply { events })
}

pub(super) async fn pause(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: JobPauseParams,
) -> Result<JobPauseReply, Fault> {
    set_paused(&ctx, true, p).await
}

pub(super) async fn resume(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: JobPauseParams,
) -> Result<JobPauseReply, Fault> {
    set_paused(&ctx, false, p).await
}

async fn set_paused(ctx: &RpcContext, paused: bool, mut p: JobPauseParams) -> Result<JobPauseReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    Ok(JobPauseReply { paused: ctx.jobs.set_paused(paused, keyed).await.map_err(fault)? })
}
