//! `worktree.*`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{
    ChangedFile, Done, MergeMethod, WorktreeDiffParams, WorktreeDiffReply, WorktreeListParams,
    WorktreeListReply, WorktreeMergeParams, WorktreeMergeReply, WorktreeRemoveParams,
};
use api::{ApiMethod, Fault, methods};
use session::{MergeHow, Merged, WorktreeOwner};
use types::ids::{JobId, SessionId};

/// Maximum bytes of a diff.
const MAX_DIFF_BYTES: usize = 1 << 20;

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    _: WorktreeListParams,
) -> Result<WorktreeListReply, Fault> {
    let worktrees = ctx.registry.worktrees().await.map_err(convert::fault)?;
    Ok(WorktreeListReply { worktrees })
}

pub(super) async fn merge(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: WorktreeMergeParams,
) -> Result<WorktreeMergeReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let owner = owner(p.session_id, p.job_id)?;
    let how = match p.how.unwrap_or_default() {
        MergeMethod::Ff => MergeHow::FastForward,
        MergeMethod::Commit => MergeHow::Commit,
    };
    let name = methods::worktree::Merge::METHOD.name;
    let reply = |merged: Merged| WorktreeMergeReply {
        into: merged.into,
        commit: merged.commit,
        merged: merged.is_changed,
        uncommitted: merged.uncommitted,
    };
    let work = async { ctx.registry.merge_worktree(owner, how).await.map(reply).map_err(convert::fault) };
    ctx.registry.once(name, None, keyed, convert::fault, work).await
}

pub(super) async fn remove(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: WorktreeRemoveParams,
) -> Result<Done, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let owner = owner(p.session_id, p.job_id)?;
    let name = methods::worktree::Remove::METHOD.name;
    let done = |()| Done {};
    let work = async { ctx.registry.remove_worktree(owner, p.force).await.map(done).map_err(convert::fault) };
    ctx.registry.once(name, None, keyed, convert::fault, work).await
}

pub(super) async fn diff(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: WorktreeDiffParams,
) -> Result<WorktreeDiffReply, Fault> {
    let owner = owner(p.session_id, p.job_id)?;
    let (row, diff) = ctx.registry.diff_worktree(owner, MAX_DIFF_BYTES).await.map_err(convert::fault)?;
    let files = diff.files.into_iter();
    let files = files.map(|(path, insertions, deletions)| ChangedFile { path, insertions, deletions });
    Ok(WorktreeDiffReply {
        branch: row.branch,
        base: row.base,
        diff: diff.text,
        truncated: diff.is_cut,
        files: files.collect(),
    })
}

fn owner(session_id: Option<SessionId>, job_id: Option<JobId>) -> Result<WorktreeOwner, Fault> {
    match (session_id, job_id) {
        (Some(id), None) => Ok(WorktreeOwner::Session(id)),
        (None, Some(id)) => Ok(WorktreeOwner::Job(id)),
        (None, None) => Err(convert::invalid_param("session_id", "name a session_id or a job_id")),
        (Some(_), Some(_)) => {
            Err(convert::invalid_param("job_id", "name a session_id or a job_id, not both"))
        }
    }
}
