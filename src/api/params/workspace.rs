//! Parameters and replies of `workspace.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `workspace.untrust`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UntrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `workspace.status`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceParams {
    /// The folder, absolute.
    pub cwd: String,
    /// Whether the reply counts the changed files. Git runs only in a trusted folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count_changes: bool,
}

/// `workspace.trust`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TrustParams {
    /// The folder, absolute.
    pub cwd: String,
    /// The digest from `workspace.status`: content that changed since is not trusted. Without it, the current
    /// content is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// A repeated call with the same key and parameters returns the first reply, within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `workspace.status`, `workspace.trust` and `workspace.untrust`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceReply {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// Whether its current content is trusted.
    pub trusted: bool,
    /// Digest of all content that trust covers: different content has a different digest. Empty if the folder no
    /// longer exists.
    pub digest: String,
    /// Parts that are active with trust, as text for users; empty if no part needs trust.
    pub parts: Vec<String>,
    /// The programs that the folder's hooks and MCP servers run or reach, each with the file that names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// With `count_changes`: number of files that `git status` lists, if the folder is trusted and in a repository.
    /// If there are very many, only a part is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
}
