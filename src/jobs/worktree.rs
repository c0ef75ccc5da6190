//! The worktree of an attempt.

use std::path::Path;

use crate::error::JobsError;
use crate::record::{JobRecord, WorktreePlace};
use crate::runner::Services;
use project::worktree::{self, OwnWorktree, WorktreeProblem};
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
    let made = worktree::create(Path::new(&job.cwd), &choice, &name, &services.worktrees_dir).await;
    let made = made.map_err(|problem| error(&problem))?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(WorktreePlace {
        path: text(&made.own.path),
        repository: text(&made.own.repository),
        cwd: text(&made.cwd),
        branch: made.own.branch,
        is_new_branch: made.own.is_new_branch,
        base: made.own.base,
        uncommitted_in_base: made.uncommitted_in_base,
    })
}

/// Commits what the attempt left, and keeps or removes the worktree.
///
/// # Errors
/// The repository is gone, or git or the disk failed. The worktree is kept then.
pub(crate) async fn finish(record: &JobRecord, place: &WorktreePlace) -> Result<GitResult, JobError> {
    let choice = record.worktree.clone().unwrap_or_else(WorktreeChoice::with_defaults);
    let message = format!("{}\n\nMade by {}, attempt {}.", record.job.title, record.job.job_id, record.job.attempt);
    let finished = worktree::finish(&place.own(), &choice, &message).await.map_err(|problem| error(&problem))?;
    Ok(GitResult { uncommitted_in_base: place.uncommitted_in_base, ..finished.git })
}

fn error(problem: &WorktreeProblem) -> JobError {
    JobError::new("worktree", problem.why.clone())
}

impl WorktreePlace {
    /// The worktree as the crate `project` knows it.
    pub(crate) fn own(&self) -> OwnWorktree {
        OwnWorktree {
            path: self.path.clone().into(),
            repository: self.repository.clone().into(),
            branch: self.branch.clone(),
            is_new_branch: self.is_new_branch,
            base: self.base.clone(),
        }
    }
}
