//! The worktree of an attempt.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::error::JobsError;
use crate::record::{JobRecord, WorktreePlace};
use crate::services::Services;
use project::worktree;
use session::{MadeWorktree, SessionError, WorktreeError, WorktreeRequest};
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
/// It may be repeated after a crash. The token ends it.
///
/// # Errors
/// Git or the disk failed, it was cancelled, or the repository has changed since the job was created.
pub(crate) async fn create(
    services: &Services,
    record: &JobRecord,
    cancel: &CancellationToken,
) -> Result<WorktreePlace, JobError> {
    let job = &record.job;
    let Some(choice) = &record.worktree else {
        return Err(JobError::new("internal", "the job has no worktree"));
    };
    let name = name(record);
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
        cancel: cancel.clone(),
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

/// The name of the newest attempt's worktree. An attempt that continues has that of the attempt before.
fn name(record: &JobRecord) -> String {
    let job = &record.job;
    let known = record.worktree_place.as_ref().and_then(|place| Path::new(&place.path).file_name());
    match (known, job.attempt) {
        (Some(name), _) => name.to_string_lossy().into_owned(),
        (None, 0 | 1) => job.job_id.to_string(),
        (None, attempt) => format!("{}-{attempt}", job.job_id),
    }
}

/// Commits what the attempt left, and keeps or removes the worktree. `None` if the attempt has no worktree. The daemon may
/// have stopped after it made the worktree and before the job knew of it, so the name counts.
///
/// # Errors
/// The repository is gone, git or the disk failed, or the token stopped git. The worktree is kept then.
pub(crate) async fn finish(
    services: &Services,
    record: &JobRecord,
    cancel: &CancellationToken,
) -> Result<Option<GitResult>, JobError> {
    let message =
        format!("{}\n\nMade by {}, attempt {}.", record.job.title, record.job.job_id, record.job.attempt);
    match services.registry.finish_worktree(&name(record), &message, cancel).await {
        Ok(git) => Ok(Some(git)),
        Err(SessionError::Worktree(WorktreeError::NotFound)) if record.worktree_place.is_none() => Ok(None),
        Err(failure) => Err(error(&failure)),
    }
}

fn error(error: &SessionError) -> JobError {
    JobError::new("worktree", error.to_string())
}
