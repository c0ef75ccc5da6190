//! The worktree of an attempt.

use std::path::Path;

use crate::error::JobsError;
use crate::record::{JobRecord, WorktreePlace};
use crate::runner::Services;
use project::worktree;
use session::{MadeWorktree, SessionError, WorktreeRequest};
use types::job::JobError;
use types::worktree::{GitResult, WorktreeChoice};

/// Checks that a worktree of this folder could be made now.
///
/// # Errors
/// The folder is no repository, or a field of the choice is wrong; the error has its path.
pub(crate) async fn check(cwd: &str, choice: &WorktreeChoice) -> Result<(), JobsError> {
    let checked = worktree::check(Path::new(cwd), choice).await;
    checked.map(|_| ()).map_err(|problem| JobsError::bad(problem.field, problem.why))
}

/// Makes the worktree of the newest attempt, in `DATA/worktrees/JOB`; further attempts get a name with their number.
/// It may be repeated after a crash.
///
/// # Errors
/// Git or the disk failed, or the repository has changed since the job was created.
pub(crate) async fn create(services: &Services, record: &JobRecord) -> Result<WorktreePlace, JobError> {
    let job = &record.job;
    let Some(choice) = &record.worktree else {
        return Err(JobError::new("internal", "the job has no worktree"));
    };
    let name = match job.attempt {
        0 | 1 => job.job_id.to_string(),
        attempt => format!("{}-{attempt}", job.job_id),
    };
    // A further attempt starts from the same commit, whatever the base branch is now.
    let choice = WorktreeChoice {
        base: record.worktree_base.clone().or_else(|| choice.base.clone()),
        branch: choice.branch.clone().filter(|_| job.attempt <= 1),
        ..choice.clone()
    };
    let request = WorktreeRequest {
        name,
        job_id: Some(job.job_id),
        session_id: job.session_id,
        cwd: job.cwd.clone(),
        choice,
    };
    let MadeWorktree { cwd, row } =
        services.registry.make_worktree(request).await.map_err(|it| error(&it))?;
    Ok(WorktreePlace {
        path: row.path,
        cwd,
        branch: row.branch,
        base: row.base,
        uncommitted_in_base: row.uncommitted_in_base,
    })
}

/// Commits what the attempt left, and keeps or removes the worktree.
///
/// # Errors
/// The repository is gone, or git or the disk failed. The worktree is kept then.
pub(crate) async fn finish(
    services: &Services,
    record: &JobRecord,
    place: &WorktreePlace,
) -> Result<GitResult, JobError> {
    let name = Path::new(&place.path).file_name().unwrap_or_default().to_string_lossy();
    let message =
        format!("{}\n\nMade by {}, attempt {}.", record.job.title, record.job.job_id, record.job.attempt);
    services.registry.finish_worktree(&name, &message).await.map_err(|it| error(&it))
}

fn error(error: &SessionError) -> JobError {
    JobError::new("worktree", error.to_string())
}
