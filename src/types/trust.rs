//! Trust in folders as clients see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the user trusts a folder: the reply of `workspace.*`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustStatus {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// The root of the project that holds the folder: trust covers the files of all folders from there to `cwd`.
    pub project_root: Option<String>,
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
    pub changed_files: Option<u64>,
}
