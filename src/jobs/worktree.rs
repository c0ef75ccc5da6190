//! The worktree of an attempt.

use crate::error::JobsError;
use crate::record::{JobRecord, WorktreePlace};
use crate::runner::Services;
use types::job::JobError;
use types::job_request::JobRequest;
use types::worktree::{GitResult, WorktreeChoice};

/// Checks that a worktree of this folder could be made now.
pub(crate) async fn check(_cwd: &str, _choice: &WorktreeChoice) -> Result<(), JobsError> {
    Err(JobsError::bad("worktree", "worktrees are not built yet"))
}

/// Makes the worktree of the newest attempt. It may be repeated after a crash.
pub(crate) async fn create(
    _services: &Services,
    _record: &JobRecord,
    _request: &JobRequest,
) -> Result<WorktreePlace, JobError> {
    Err(JobError::new("worktree", "worktrees are not built yet"))
}

/// Commits what the attempt left and keeps or removes the worktree.
pub(crate) async fn finish(_services: &Services, _record: &JobRecord) -> Result<GitResult, JobError> {
    Err(JobError::new("worktree", "worktrees are not built yet"))
}
