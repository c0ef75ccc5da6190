//! Parameters and replies of worktrees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::{JobId, SessionId};
use types::worktree::Worktree;

/// `worktree.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeListParams {}

/// Reply of `worktree.list`: oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeListReply {
    /// The worktrees that exist.
    pub worktrees: Vec<Worktree>,
}

/// How `worktree.merge` merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeMethod {
    /// A fast-forward, which needs that the target has no other commits.
    #[default]
    Ff,
    /// A merge commit.
    Commit,
}

/// `worktree.merge`. Exactly one of `session_id` and `job_id` is needed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeMergeParams {
    /// The session of the worktree.
    pub session_id: Option<SessionId>,
    /// The job of the worktree.
    pub job_id: Option<JobId>,
    /// A fast-forward by default.
    pub how: Option<MergeMethod>,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

/// Reply of `worktree.merge`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeMergeReply {
    /// The branch that was changed: the one that the repository's folder has checked out.
    pub into: String,
    /// Its newest commit now.
    pub commit: String,
    /// Whether it has changed; otherwise it had all commits before.
    pub merged: bool,
    /// Files of the worktree whose changes are not committed, and so were not merged.
    #[serde(default)]
    pub uncommitted: u64,
}

/// `worktree.remove`. Exactly one of `session_id` and `job_id` is needed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeRemoveParams {
    /// The session of the worktree. It must have ended or be archived.
    pub session_id: Option<SessionId>,
    /// The job of the worktree. It must be over.
    pub job_id: Option<JobId>,
    /// Whether uncommitted changes are lost; otherwise they keep the worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

/// `worktree.diff`. Exactly one of `session_id` and `job_id` is needed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeDiffParams {
    /// The session of the worktree.
    pub session_id: Option<SessionId>,
    /// The job of the worktree.
    pub job_id: Option<JobId>,
}

/// Reply of `worktree.diff`: all changes since the base, committed or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeDiffReply {
    /// Its branch.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// A unified diff of at most 1 MiB.
    pub diff: String,
    /// Whether the diff was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The changed files.
    pub files: Vec<ChangedFile>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Path relative to the top of the repository.
    pub path: String,
    /// Lines added; 0 for a binary file.
    pub insertions: u64,
    /// Lines removed; 0 for a binary file.
    pub deletions: u64,
}
