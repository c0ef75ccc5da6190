//! The worktree of an attempt.

use std::path::Path;

use crate::error::JobsError;
use crate::record::{JobRecord, WorktreePlace};
use crate::runner::Services;
use session::{SessionError, WorktreeRequest};
use types::job::JobError;
use types::job_request::JobRequest;
use types::worktree::{GitResult, WorktreeChoice};

/// Checks that a worktree of this folder could be made now.
pub(crate) async fn check(cwd: &str, choice: &WorktreeChoice) -> Result<(), JobsError> {
    let checked = project::worktree::check(Path::new(cwd), choice).await;
    checked.map(|_| ()).map_err(|problem| JobsError::bad(problem.field, problem.why))
}

/// Makes the worktree of the newest attempt. It may be repeated after a crash. A fresh attempt starts from the commit that
/// the first one started from.
pub(crate) async fn create(
    services: &Services,
    record: &JobRecord,
    request: &JobRequest,
) -> Result<WorktreePlace, JobError> {
    let job = &record.job;
    let mut choice = record.worktree.clone().unwrap_or_else(WorktreeChoice::with_defaults);
    let first = job.job_id.to_string();
    let mut name = first.clone();
    if job.attempt > 1 {
        name = format!("{first}-{}", job.attempt);
        choice.branch = choice.branch.map(|branch| format!("{branch}-{}", job.attempt));
        let row = services.store.worktree_named(&first).await.map_err(|error| failed(error.into()))?;
        choice.base = row.map(|row| row.base).filter(|base| !base.is_empty()).or(choice.base);
    }
    let made = WorktreeRequest {
        name,
        job_id: Some(job.job_id),
        session_id: job.session_id,
        cwd: request.cwd.clone(),
        choice,
    };
    let made = services.registry.make_worktree(made).await.map_err(failed)?;
    Ok(WorktreePlace {
        path: made.row.path,
        cwd: made.cwd,
        branch: made.row.branch,
        base: made.row.base,
        uncommitted_in_base: made.row.uncommitted_in_base,
    })
}

/// Commits what the attempt left and keeps or removes the worktree.
pub(crate) async fn finish(services: &Services, record: &JobRecord) -> Result<GitResult, JobError> {
    let Some(place) = &record.worktree_place else {
        return Err(JobError::new("worktree", "the attempt has no worktree"));
    };
    let name = Path::new(&place.path).file_name().unwrap_or_default().to_string_lossy();
    let message = format!("agentd: work of job {}", record.job.job_id);
    services.registry.finish_worktree(&name, &message).await.map_err(failed)
}

fn failed(error: SessionError) -> JobError {
    JobError::new("worktree", error.to_string())
}

