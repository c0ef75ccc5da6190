//! The methods about worktrees of jobs and sessions.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the git worktrees that the daemon created and that exist.
    List = "worktree.list", p::WorktreeListParams => p::WorktreeListReply, READS.waits();
    /// Merges the branch of a worktree into the branch that its repository's folder has checked out, and returns that
    /// branch with its newest commit. It commits uncommitted changes of the worktree first, and never merges with
    /// conflicts.
    Merge = "worktree.merge", p::WorktreeMergeParams => p::WorktreeMergeReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Busy]);
    /// Removes a worktree that no session and no job uses. Its branch stays if it has a commit of its own.
    Remove = "worktree.remove", p::WorktreeRemoveParams => p::Done,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Busy]);
    /// Returns the changes of a worktree since the commit that it started from.
    Diff = "worktree.diff", p::WorktreeDiffParams => p::WorktreeDiffReply, READS.waits().errors(&[Code::NotFound]);
}
